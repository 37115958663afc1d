"""SqlMemoryService: every operation of the contract, once, for both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from sqlalchemy import ColumnElement, select, true
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_memory import _analysis, migrate
from adk_memory._asking import ask
from adk_memory._paging import cursor, place_of
from adk_memory._ranking import Vector
from adk_memory._records import session_passages, session_records, single_record
from adk_memory._scope import Scope
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.erasing import entries_with_every_word, erase
from adk_memory._sql.failures import translated
from adk_memory._sql.filtering import condition
from adk_memory._sql.listing import entries_in_sight, newest_first
from adk_memory._sql.recall import recall
from adk_memory._sql.scope import GLOBAL_KEY, Sight, look
from adk_memory._sql.tables import EmbeddingModelRow, EntryRow
from adk_memory._sql.writing import Batch, Known, claim, known, last_turn, passages_to_embed, store
from adk_memory._validation import (
    DEFAULT_LIMIT,
    DEFAULT_PAGE,
    validate_id,
    validate_limit,
    validate_project_id,
    validate_query,
)
from adk_memory.embedding import Embedder, EmbeddingProvider
from adk_memory.errors import EmbeddingMismatchError
from adk_memory.filters import Filter, validate_filter
from adk_memory.service import MemoryService
from adk_memory.types import (
    ALL_PROJECTS,
    AllProjects,
    Existing,
    HealthReport,
    Memory,
    MemoryEntry,
    Page,
    SearchRequest,
    SearchResponse,
)


class SqlMemoryService(MemoryService):
    """Keeps entries in a SQL database; what is special about one is its dialect's business."""

    supports_project_scoping = True

    def __init__(
        self, engine: AsyncEngine, dialect: Dialect, *, owns_engine: bool, embedder: EmbeddingProvider | None
    ) -> None:
        self._engine = engine
        self._dialect = dialect
        self._owns_engine = owns_engine
        self._embedder = None if embedder is None else Embedder(embedder)
        self._ready = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        if self._owns_engine:
            await (await self._engine_of_this_loop()).dispose()

    async def migrate(self) -> None:
        self._ready = False
        await migrate.upgrade(await self._engine_of_this_loop())

    async def schema_version(self) -> str | None:
        return await migrate.current(await self._engine_of_this_loop())

    async def health_check(self) -> HealthReport:
        self._ready = False
        async with self._reading():
            model = None if self._embedder is None else self._embedder.model
            return HealthReport(backend=self._dialect.name, schema_version=migrate.HEAD, embedding_model=model)

    async def add_session(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        entries: Sequence[MemoryEntry],
        *,
        project_id: str | None = None,
        existing: Existing = "update",
    ) -> list[str]:
        scope = Scope.erasing(app_name, user_id, validate_project_id(project_id))
        validate_id("session_id", session_id)
        ids, records = session_records(entries, session_id, project_id, existing)
        if records or existing == "replace":
            await self._store(Batch(scope, project_id, session_id, records, existing))
        return ids

    async def add_entry(
        self,
        app_name: str,
        user_id: str,
        entry: MemoryEntry,
        *,
        project_id: str | None = None,
        existing: Literal["update", "keep"] = "update",
    ) -> str:
        scope = Scope.erasing(app_name, user_id, validate_project_id(project_id))
        record = single_record(entry, existing)
        await self._store(Batch(scope, project_id, GLOBAL_KEY, [record], existing))
        return record.id

    async def search(self, request: SearchRequest) -> SearchResponse:
        scope = Scope.reading(request.app_name, request.user_id, request.project_id)
        question, mode, partial = await ask(self._embedder, request)
        if question is None:
            return SearchResponse(mode=mode)
        async with self._reading() as connection:
            sight = await look(connection, scope)
            model_id = await self._model_id(connection)
            passing = self._condition(request.filter)
            memories, unreached = await recall(
                connection, self._dialect, sight, question, model_id, passing=passing, explain=request.explain
            )
        return SearchResponse(memories=tuple(memories), mode=mode, partial=partial or unreached)

    async def get(self, app_name: str, user_id: str, entry_id: str, *, project_id: str | None = None) -> Memory | None:
        validate_id("entry_id", entry_id)
        scope = Scope.reading(app_name, user_id, validate_project_id(project_id))
        found = await self._latest(scope, EntryRow.entry_key == entry_id, 1)
        return found[0] if found else None

    async def list_recent(
        self,
        app_name: str,
        user_id: str,
        limit: int | None = DEFAULT_LIMIT,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
        filter: Filter | None = None,
    ) -> list[Memory]:
        scope = Scope.reading(app_name, user_id, project_id)
        return await self._latest(scope, self._condition(validate_filter(filter)), validate_limit(limit))

    async def list_page(
        self,
        app_name: str,
        user_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
        filter: Filter | None = None,
        limit: int | None = DEFAULT_PAGE,
        after: str | None = None,
        with_total: bool = False,
    ) -> Page:
        scope = Scope.reading(app_name, user_id, project_id)
        limit, filter = validate_limit(limit, DEFAULT_PAGE), validate_filter(filter)
        place = place_of(after, scope, filter)
        async with self._reading() as connection:
            sight = (await look(connection, scope)).narrowed(self._condition(filter))
            memories, end = await newest_first(connection, sight, limit, place)
            total = await entries_in_sight(connection, sight) if with_total else None
        following = None if end is None else cursor(end, scope, filter)
        return Page(memories=tuple(memories), next=following, total=total)

    async def delete(
        self,
        app_name: str,
        user_id: str,
        entry_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> int:
        validate_id("entry_id", entry_id)
        return await self._erase(Scope.erasing(app_name, user_id, project_id), EntryRow.entry_key == entry_id)

    async def delete_entries(
        self, app_name: str, user_id: str, query: str, *, project_id: str | None = None, dry_run: bool = False
    ) -> int:
        scope = Scope.erasing(app_name, user_id, validate_project_id(project_id))
        words = _analysis.required_words(validate_query(query))
        async with self._reading() if dry_run else self._writing() as connection:
            sight = await look(connection, scope, lock=not dry_run)
            row_ids = await entries_with_every_word(connection, self._dialect, sight, words)
            if not dry_run:
                for start in range(0, len(row_ids), 1_000):
                    await erase(connection, self._dialect, sight, EntryRow.id.in_(row_ids[start : start + 1_000]))
        return len(row_ids)

    async def delete_session(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> int:
        validate_id("session_id", session_id)
        return await self._erase(Scope.erasing(app_name, user_id, project_id), EntryRow.session_key == session_id)

    async def delete_project(self, app_name: str, user_id: str, project_id: str) -> int:
        scope = Scope.erasing(app_name, user_id, validate_id("project_id", project_id))
        return await self._erase(scope, true(), scopes_too=True)

    async def delete_user(self, app_name: str, user_id: str) -> int:
        return await self._erase(Scope.erasing(app_name, user_id, ALL_PROJECTS), true(), scopes_too=True)

    async def _store(self, batch: Batch) -> None:
        """Write a batch in one transaction; what has to be embedded for it is embedded before, outside of any."""
        vectors: dict[str, Vector | None] = {}
        if self._embedder is not None:
            async with self._reading() as connection:
                sight = await look(connection, batch.scope)
                model_id = await self._model_id(connection)
                missing, _, _ = await self._plan(connection, sight, batch, model_id, vectors)
            vectors = await self._embedder.passages(missing)
        while missing := await self._write(batch, vectors):
            # Another writer changed these entries since they were looked at.
            vectors |= await self._embedder.passages(missing) if self._embedder is not None else {}

    async def _write(self, batch: Batch, vectors: Mapping[str, Vector | None]) -> list[str]:
        """Write a batch, or return the passages whose vectors are missing for it."""
        async with self._writing() as connection:
            sight = await claim(connection, self._dialect, batch)
            model_id = await self._model_id(connection, register=True)
            missing, here, passages = await self._plan(connection, sight, batch, model_id, vectors)
            if missing:
                await connection.rollback()
                return missing
            by_id = {entry_id: vectors[passage] for entry_id, passage in passages.items() if passage in vectors}
            await store(connection, self._dialect, sight, batch, here, by_id, model_id)
            return []

    async def _plan(
        self,
        connection: AsyncConnection,
        sight: Sight,
        batch: Batch,
        model_id: int | None,
        vectors: Mapping[str, Vector | None],
    ) -> tuple[list[str], dict[str, Known], dict[str, str]]:
        """Return the passages that still have to be embedded, what is stored already, and all passages by id."""
        here = await known(connection, sight, batch, model_id)
        if self._embedder is None:
            return [], here, {}
        turns = self._embedder.embeds_turns and bool(batch.session_key)
        before = await last_turn(connection, sight, batch) if turns else None
        passages = session_passages(batch.records, before, turns=turns)
        return passages_to_embed(batch, here, passages, vectors), here, passages

    async def _latest(self, scope: Scope, passing: ColumnElement[bool] | None, limit: int) -> list[Memory]:
        async with self._reading() as connection:
            sight = await look(connection, scope)
            memories, _ = await newest_first(connection, sight.narrowed(passing), limit)
        return memories

    def _condition(self, filter: Filter | None) -> ColumnElement[bool] | None:
        return None if filter is None else condition(filter, self._dialect)

    async def _erase(self, scope: Scope, which: ColumnElement[bool], *, scopes_too: bool = False) -> int:
        async with self._writing() as connection:
            sight = await look(connection, scope, lock=True)
            erased = await erase(connection, self._dialect, sight, which)
            if scopes_too:
                await connection.execute(sight.erase_scopes())
        return erased

    async def _model_id(self, connection: AsyncConnection, *, register: bool = False) -> int | None:
        """Return the number of the configured model; `None` without one, or where no vector of it was stored yet."""
        if self._embedder is None:
            return None
        stored = select(EmbeddingModelRow.id, EmbeddingModelRow.dimensions).where(
            EmbeddingModelRow.name == self._embedder.model
        )
        row = (await connection.execute(stored)).one_or_none()
        if row is None and register:
            new = self._dialect.insert(EmbeddingModelRow).values(
                name=self._embedder.model, dimensions=self._embedder.dimensions
            )
            await connection.execute(new.on_conflict_do_nothing(index_elements=[EmbeddingModelRow.name]))
            row = (await connection.execute(stored)).one()
        if row is None:
            return None
        if row.dimensions != self._embedder.dimensions:
            raise EmbeddingMismatchError(
                f"vectors of {self._embedder.model} are stored with {row.dimensions} dimensions, but the embedder "
                f"declares {self._embedder.dimensions}; give the new model a name of its own"
            )
        model_id: int = row.id
        return model_id

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[AsyncConnection]:
        async with translated():
            engine = await self._make_ready()
            async with self._dialect.reading(engine) as connection:
                yield connection

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[AsyncConnection]:
        async with translated():
            engine = await self._make_ready()
            async with self._dialect.writing(engine) as connection:
                yield connection

    async def _make_ready(self) -> AsyncEngine:
        """Before the first statement: see that the tables are what this version needs."""
        engine = await self._engine_of_this_loop()
        if self._ready:
            return engine
        await migrate.require_head(engine)
        if self._embedder is not None:
            async with self._dialect.reading(engine) as connection:
                await self._dialect.check_vectors(connection)
        self._ready = True
        return engine

    async def _engine_of_this_loop(self) -> AsyncEngine:
        """Return the engine, without the pooled connections of an event loop before this one if they need theirs."""
        last, self._loop = self._loop, asyncio.get_running_loop()
        if self._owns_engine and self._dialect.connections_need_their_loop and last not in (None, self._loop):
            await self._engine.dispose(close=False)  # closing them would need their loop too
        return self._engine
