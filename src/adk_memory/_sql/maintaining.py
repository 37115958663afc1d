"""SqlMaintenance: what an operator has a SQL database do, once for both databases."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import select

from adk_memory import _clock, migrate
from adk_memory._sql.backlog import Backlog
from adk_memory._sql.database import Database
from adk_memory._sql.failures import translated
from adk_memory._sql.purging import purge
from adk_memory._sql.reindexing import reindex, reindex_outdated
from adk_memory._sql.users import users
from adk_memory._validation import validate_id
from adk_memory.embedding import Embedder
from adk_memory.erasure import Erasure, ScrubReport
from adk_memory.maintenance import MaintainedService
from adk_memory.types import HealthReport


class SqlMaintenance(MaintainedService):
    """Looks after a SQL database; what is special about one is its dialect's business."""

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self._database = database
        self._embedder = embedder
        self._backlog = Backlog(database, embedder)

    async def close(self) -> None:
        await self._database.close()

    async def migrate(self) -> None:
        self._database.look_again()
        engine = await self._database.engine()
        await migrate.upgrade(engine)
        await reindex_outdated(engine, self._database.dialect)

    async def schema_version(self) -> str | None:
        return await migrate.current(await self._database.engine())

    async def reindex(
        self, *, from_scratch: bool = False, on_progress: Callable[[int, int], None] | None = None
    ) -> int:
        engine = await self._database.engine()
        await migrate.require_head(engine)
        self._database.look_again()
        return await reindex(engine, self._database.dialect, from_scratch=from_scratch, on_progress=on_progress)

    async def list_users(
        self, app_name: str, *, prefix: str = "", after: str | None = None, limit: int | None = None
    ) -> list[str]:
        read = users(app_name, prefix, after, limit, _clock.now())
        await self._database.ready_for_all()
        return await self._database.run(read)

    async def embed_pending(
        self, *, on_progress: Callable[[int, int], None] | None = None, limit: int | None = None
    ) -> int:
        return await self._backlog.embed(on_progress, limit)

    async def drop_model(self, model: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        return await self._backlog.drop(validate_id("model", model), on_progress)

    async def purge_expired(self, *, on_progress: Callable[[int], None] | None = None) -> Erasure:
        return await purge(self._database, _clock.now(), on_progress)

    async def scrub(self, *, on_progress: Callable[[int, int], None] | None = None) -> ScrubReport:
        async with translated():
            return await self._database.dialect.scrub(await self._database.ready_for_all(), on_progress)

    async def health_check(self) -> HealthReport:
        self._database.look_again()
        await self._database.run(lambda connection: connection.scalar(select(1)))
        model = None if self._embedder is None else self._embedder.model
        return HealthReport(
            backend=self._database.dialect.name,
            schema_version=migrate.HEAD,
            embedding_model=model,
            index_outdated=self._database.index_outdated,
            pending=await self._backlog.count(),
        )
