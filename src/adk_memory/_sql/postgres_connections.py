"""Running work on connections to Postgres: how its statements are isolated, and when it is done again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection, Engine, exc
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from adk_memory._scope import Scope
from adk_memory._sql.dialect import Result
from adk_memory._sql.discretion import discreet
from adk_memory._sql.postgres_row_security import show
from adk_memory._sql.undone import until_kept


class Connections:
    """The connections of engines, of which each call takes one; see `Dialect.run` and `Dialect.transact`."""

    def __init__(self) -> None:
        self._engines: dict[tuple[AsyncEngine, str], Engine] = {}

    async def run(self, engine: AsyncEngine, work: Callable[[Connection], Result]) -> Result:
        # Where a statement is undone, the database's own level is a strict one, at which of those that meet only one
        # gets through; in a transaction they wait for each other.
        return await until_kept(
            partial(self._in_transaction, engine, work), first=partial(self._on_connection, engine, "AUTOCOMMIT", work)
        )

    async def transact(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], *, shown: Scope | None
    ) -> Result:
        """Call ``work`` in a transaction, to which row-level security shows the rows of a scope's user, if of any."""
        return await until_kept(partial(self._in_transaction, engine, work, shown))

    async def _in_transaction(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], shown: Scope | None = None
    ) -> Result:
        committing = False

        def transaction(connection: Connection) -> Result:
            nonlocal committing
            begun = connection.begin()
            if shown is not None:
                show(connection, shown)
            result = work(connection)
            committing = True
            begun.commit()
            return result

        # Locks on scope rows order the writers; each then has to see what the one before it committed.
        return await self._on_connection(engine, "READ COMMITTED", transaction, lambda: committing)

    async def _on_connection(
        self,
        engine: AsyncEngine,
        isolation: str,
        work: Callable[[Connection], Result],
        is_final: Callable[[], bool] = lambda: False,
    ) -> Result:
        def on_connection() -> Result:
            with isolated.connect() as connection:
                return work(connection)

        if (engine, isolation) not in self._engines:
            self._engines[engine, isolation] = discreet(engine.sync_engine.execution_options(isolation_level=isolation))
        isolated = self._engines[engine, isolation]
        try:
            # In one greenlet; the asyncio classes of SQLAlchemy would start three.
            result = await greenlet_spawn(on_connection)
        except exc.DBAPIError as error:
            if is_final() or not (error.connection_invalidated or isinstance(error, exc.NotSupportedError)):
                raise
            # The connection had died in the pool, where all others of its age have been replaced by now; to ask each
            # for a sign of life, before it is used, would cost every call a journey. Or a table was altered under a
            # plan, which is "not supported".
            result = await greenlet_spawn(on_connection)
        await asyncio.sleep(0)  # or the next call of this task would take it before those who wait for a connection
        return result
