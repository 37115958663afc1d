"""One operation on SQLite, one hop into the driver's thread: a hop costs more than what most statements do there.

SQLAlchemy's asyncio engine hops for every cursor, statement and fetch. So its connection is only borrowed: in the
thread that aiosqlite keeps for it, the whole operation runs on the connection of the standard library below.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, Engine, PoolProxiedConnection, StaticPool, create_engine, exc
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from adk_memory._sql.dialect import Result
from adk_memory._sql.discretion import discreet, driver_errors, withhold
from adk_memory._sql.exclusive import is_busy

_ENGINE: Final = "adk_memory_engine"
_TURN_MILLISECONDS: Final = 200


async def in_one_hop(
    engine: AsyncEngine,
    begin: str | None,
    work: Callable[[Connection], Result],
    *,
    set_up: Callable[[sqlite3.Connection], None],
) -> Result:
    """Return what ``work`` does in a transaction, which an error undoes; ``set_up`` is called once per connection.

    Where ``begin`` is `None`, each of its statements is on its own, as some have to be.

    While another connection has the lock, a new attempt is made as long as the connection's own timeout says. Who
    cancels waits until the thread has undone what it was at.
    """
    borrowed = await engine.raw_connection()
    try:
        driver: Any = borrowed.driver_connection
        hop = _Hop(driver._conn, borrowed.info, set_up, begin, work)  # noqa: SLF001
        # aiosqlite has no public way to run a function in its thread; SQLAlchemy puts it into the same queue. Not as a
        # task: whoever ends an event loop cancels all of them, and this one's thread would be left behind.
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        driver._tx.put_nowait((done, hop.run))  # noqa: SLF001
        return await _until(done, hop.give_up)
    finally:
        await _give_back(borrowed)


class _Hop:
    """What runs in the driver's thread, on the connection that lives there."""

    def __init__(
        self,
        raw: sqlite3.Connection,
        info: dict[Any, Any],
        set_up: Callable[[sqlite3.Connection], None],
        begin: str | None,
        work: Callable[[Connection], Any],
    ) -> None:
        self._raw = raw
        self._info = info
        self._set_up = set_up
        self._begin = begin
        self._work = work  # not an argument of `run`: aiosqlite logs what it is given to run, arguments included
        self._given_up = False

    def give_up(self) -> None:
        """Have nothing begun any more, and nothing committed; what is committed already stays.

        What runs is not interrupted: while FTS5 reads, SQLite would then interrupt the rollback too, and each further
        one.
        """
        self._given_up = True

    def run(self) -> Any:
        try:
            return self._run()
        except driver_errors() as error:
            withhold(error)  # aiosqlite logs it
            raise

    def _run(self) -> Any:
        engine = self._engine()
        if self._raw.in_transaction:
            self._raw.rollback()  # the engine's owner has it emit a BEGIN of its own
        isolation_level = self._raw.isolation_level
        patience: int | None = None
        try:
            self._raw.isolation_level = None  # the driver would begin transactions where it thinks fit
            # SQLite's own waiting does not notice that a call was cancelled, so it is done in short turns.
            [patience] = self._raw.execute("PRAGMA busy_timeout").fetchone()
            deadline = time.monotonic() + patience / 1000
            self._raw.execute(f"PRAGMA busy_timeout = {min(patience, _TURN_MILLISECONDS)}")
            while True:
                try:
                    return self._attempt(engine)
                except (exc.OperationalError, sqlite3.OperationalError) as error:
                    if not is_busy(error) or self._given_up or time.monotonic() > deadline:
                        raise
        finally:
            if patience is not None:
                self._raw.execute(f"PRAGMA busy_timeout = {patience}")
            self._raw.isolation_level = isolation_level

    def _attempt(self, engine: Engine) -> Any:
        try:
            self._go_on()
            if self._begin is not None:
                self._raw.execute(self._begin)
            with engine.connect() as connection:
                self._go_on()
                result = self._work(connection)
                self._go_on()
                if self._begin is not None:
                    self._raw.execute("COMMIT")
            return result
        finally:
            if self._raw.in_transaction:
                self._raw.rollback()

    def _go_on(self) -> None:
        if self._given_up:
            raise sqlite3.OperationalError("the operation was cancelled")

    def _engine(self) -> Engine:
        """Return SQLAlchemy's synchronous engine for this one connection, made once."""
        engine: Engine | None = self._info.get(_ENGINE)
        if engine is None:
            self._set_up(self._raw)
            engine = discreet(
                create_engine("sqlite://", creator=lambda: self._raw, poolclass=StaticPool, pool_reset_on_return=None)
            )
            engine.connect().close()  # the first one ends with a rollback, which must not be that of our transaction
            self._info[_ENGINE] = engine
        return engine


async def _give_back(borrowed: PoolProxiedConnection) -> None:
    """Return a connection to its pool, whoever cancels meanwhile, and not as a task either."""
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            await greenlet_spawn(borrowed.close)
            break
        except asyncio.CancelledError as error:
            # SQLAlchemy has then closed the connection, but not yet counted it as returned.
            cancelled = error
    if cancelled is not None:
        raise cancelled
    await asyncio.sleep(0)  # or the next call of this task would take it before those who wait for one


async def _until(done: asyncio.Future[Result], give_up: Callable[[], None]) -> Result:
    """Await what a thread does; who cancels has it given up, waits for its end, and is cancelled then."""
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait({done})
        except asyncio.CancelledError as error:
            cancelled = error
            give_up()
    if cancelled is not None:
        done.exception()  # noted as seen: being cancelled matters more
        raise cancelled
    return done.result()
