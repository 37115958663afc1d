"""Database: an engine and its dialect, seen to be ready before the first statement, in whichever event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import migrate
from adk_memory._scope import Scope
from adk_memory._sql.dialect import Dialect, Result
from adk_memory._sql.failures import translated
from adk_memory._sql.models import known_model, register_model
from adk_memory._sql.reindexing import index_is_outdated
from adk_memory._sql.walking import require_all
from adk_memory.embedding import Embedder
from adk_memory.errors import StorageError

_logger = logging.getLogger(__name__)


class Database:
    """Where a service keeps entries.

    ``index_outdated`` is what was seen of the keyword index the last time that readiness was looked at.
    """

    def __init__(self, engine: AsyncEngine, dialect: Dialect, embedder: Embedder | None, *, owns_engine: bool) -> None:
        self.dialect = dialect
        self.index_outdated = False
        self._engine = engine
        self._embedder = embedder
        self._owns_engine = owns_engine
        self._ready = False
        self._model_id: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        if self._owns_engine:
            await (await self.engine()).dispose()

    def look_again(self) -> None:
        """Look at the tables and the index once more before the next statement."""
        self._ready = False
        self._model_id = None

    async def run(self, work: Callable[[Connection], Result], scope: Scope | None = None) -> Result:
        async with translated():
            return await self.dialect.run(await self.ready(), work, scope)

    async def transact(self, work: Callable[[Connection], Result], scope: Scope | None = None) -> Result:
        async with translated():
            return await self.dialect.transact(await self.ready(), work, scope)

    async def ready(self) -> AsyncEngine:
        """Before the first statement: see that the tables, and the index in them, are what this version needs."""
        engine = await self.engine()
        if self._ready:
            return engine
        await migrate.require_head(engine)
        outdated = await self.dialect.run(engine, self._look_around)
        if outdated and not self.index_outdated:
            _logger.warning("the keyword index is not of this version in all parts: run adk-memory reindex")
        self.index_outdated = outdated
        if self._embedder is not None:
            await self.dialect.run(engine, self.dialect.check_vectors)
        self._ready = True
        return engine

    async def ready_for_all(self) -> AsyncEngine:
        """Before what looks after the entries of all users: see also that all of them can be seen."""
        async with translated():
            engine = await self.ready()
            await require_all(engine, self.dialect)
        return engine

    def _look_around(self, connection: Connection) -> bool:
        self.dialect.look_around(connection)
        return index_is_outdated(connection)

    async def engine(self) -> AsyncEngine:
        """Return the engine, without the pooled connections of an event loop before this one if they need theirs."""
        last, self._loop = self._loop, asyncio.get_running_loop()
        if self._owns_engine and self.dialect.connections_need_their_loop and last not in (None, self._loop):
            await self._engine.dispose(close=False)  # closing them would need their loop too
        return self._engine

    def known_model(self, connection: Connection) -> int | None:
        """Return the number of the configured model; `None` without one, or where no vector of it was stored yet."""
        if self._embedder is not None and self._model_id is None:
            self._model_id = known_model(connection, self._embedder)
        return self._model_id

    async def tend(self, model_id: int) -> None:
        """After vectors were written: do what makes searches faster, and what they can do without."""
        try:
            async with translated():
                await self.dialect.tend(await self.ready(), model_id)
        except StorageError as error:
            # What was to be stored is stored, and searches are right without this.
            _logger.warning("the sketches of vectors are not up to date, which makes searches slower: %s", error)

    async def registered_model(self) -> int | None:
        """Return the number of the configured model, which has one from now on; `None` without one."""
        if self._embedder is not None and self._model_id is None:
            register = partial(register_model, dialect=self.dialect, embedder=self._embedder)
            self._model_id = await self.transact(register)
        return self._model_id
