"""The one connection on which a migration runs, while every other process that wants to migrate waits."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Final

from sqlalchemy import Connection, exc, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import StaticPool

from adk_memory.errors import ConfigurationError, SchemaError, StorageUnavailableError

LOCK_KEY: Final = 0x61676D656D  # "agmem": one advisory lock per database
_POLL_SECONDS = 0.05
_SQLITE_WAIT_SECONDS = 60


@asynccontextmanager
async def exclusive(engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
    """Give a connection on which Alembic may run, while every other process waits."""
    if engine.dialect.name == "sqlite":
        locked = _exclusive_sqlite(engine)
    elif engine.dialect.name == "postgresql":
        locked = _exclusive_postgres(engine)
    else:
        raise ConfigurationError(f"adk-memory has no tables for {engine.dialect.name}: use SQLite or Postgres")
    async with locked as connection:
        yield connection


@asynccontextmanager
async def _exclusive_postgres(engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
    async with engine.connect() as connection:
        # A revision is a transaction, also on an engine that commits by itself.
        await connection.execution_options(isolation_level="READ COMMITTED")
        # Polling, not pg_advisory_lock(): a blocked waiter would hold a snapshot, and
        # CREATE INDEX CONCURRENTLY in the winner would wait for it for ever.
        while not await connection.scalar(select(func.pg_try_advisory_lock(LOCK_KEY))):
            await connection.rollback()
            await asyncio.sleep(_POLL_SECONDS)
        try:
            await connection.commit()
            # Alembic opens and commits one transaction per script, so that a script may
            # step out of it (autocommit_block) to build an index concurrently.
            yield connection
        finally:
            # Where the connection is gone (cancelled, or the server ended it), so is its lock.
            if not connection.invalidated:
                await connection.rollback()
                await connection.scalar(select(func.pg_advisory_unlock(LOCK_KEY)))
                await connection.commit()


# Of our tables alone: the host's may have been broken all along.
_DANGLING = """
    SELECT t.name, c.parent FROM sqlite_master AS t, pragma_foreign_key_check(t.name) AS c
    WHERE t.type = 'table' AND t.name GLOB 'adk_memory_*'
"""


@asynccontextmanager
async def _exclusive_sqlite(engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
    async with engine.connect() as connection:
        if isinstance(engine.pool, StaticPool) and await connection.run_sync(_is_open_on_driver):
            raise StorageUnavailableError(
                "the only connection of this engine is inside a transaction: end it before migrating"
            )
        patience = await connection.run_sync(_on_driver, "PRAGMA busy_timeout")
        enforced = await connection.run_sync(_on_driver, "PRAGMA foreign_keys")
        try:
            await _begin_immediate_when_free(connection)
            yield connection
            broken = await connection.run_sync(_on_driver, _DANGLING)
            if broken is not None:
                raise SchemaError(f"the migration left rows of {broken[0]} without their {broken[1]}")
            await connection.run_sync(_on_driver, "COMMIT")
        finally:
            if not connection.invalidated:
                await to_its_end(connection.run_sync(_restore, enforced[0], patience[0]))


async def to_its_end(work: Awaitable[None]) -> None:
    """Await work on SQLite; who cancels meanwhile waits for it, and is cancelled then.

    A statement that is cancelled runs on in the driver's thread; its connection, closed in the meantime, keeps the
    lock on the database until the cursor is collected as garbage.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # noted as seen: being cancelled matters more
        raise cancelled
    task.result()


async def _begin_immediate_when_free(connection: AsyncConnection) -> None:
    # SQLite's own waiting would hold the driver's thread, and so a task that is cancelled.
    await connection.run_sync(_on_driver, "PRAGMA busy_timeout = 0")
    deadline = time.monotonic() + _SQLITE_WAIT_SECONDS
    while True:
        try:
            await connection.run_sync(_begin_immediate)
            break
        except (exc.OperationalError, sqlite3.OperationalError) as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        await asyncio.sleep(_POLL_SECONDS)
    # To commit, it still has to wait for readers.
    await connection.run_sync(_on_driver, f"PRAGMA busy_timeout = {_SQLITE_WAIT_SECONDS * 1000:.0f}")


def _begin_immediate(connection: Connection) -> None:
    # SQLAlchemy begins now, or it would with the first statement; and then a listener of the host,
    # as SQLAlchemy's documentation advises, may emit a BEGIN of its own.
    if not connection.in_transaction():
        connection.begin()
    if _is_open_on_driver(connection):
        _on_driver(connection, "COMMIT")
    # Batch operations drop and rebuild tables: with foreign keys on, the drop would
    # cascade into child rows. The pragma is ignored inside a transaction, so set it first.
    _on_driver(connection, "PRAGMA foreign_keys = OFF")
    _on_driver(connection, "BEGIN IMMEDIATE")


def _restore(connection: Connection, foreign_keys: int, busy_timeout: int) -> None:
    # What was cancelled may still be waiting for the driver's thread: let it come first.
    _on_driver(connection, "SELECT 1")
    if _is_open_on_driver(connection):
        _on_driver(connection, "ROLLBACK")
    _on_driver(connection, f"PRAGMA foreign_keys = {foreign_keys}")
    _on_driver(connection, f"PRAGMA busy_timeout = {busy_timeout}")


def _on_driver(connection: Connection, statement: str) -> Any:
    """Execute past SQLAlchemy, which would begin a transaction first, and return the first row."""
    cursor = connection.connection.cursor()
    try:
        cursor.execute(statement)
        return cursor.fetchone()
    finally:
        cursor.close()


def _is_open_on_driver(connection: Connection) -> bool:
    driver: Any = connection.connection.driver_connection
    return bool(driver.in_transaction)


def is_busy(error: exc.OperationalError | sqlite3.OperationalError) -> bool:
    driver_error = error.orig if isinstance(error, exc.OperationalError) else error
    code = getattr(driver_error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
