"""SqlMemoryService: every operation of the contract, once, for both databases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, Literal

from sqlalchemy import ColumnElement, Connection, true
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import _analysis, _clock
from adk_memory._asking import ask
from adk_memory._expiry import Lifetime
from adk_memory._paging import Place, cursor, place_of
from adk_memory._records import session_records, single_record
from adk_memory._scope import Scope
from adk_memory._sessions import SessionEntries
from adk_memory._sql.bulk import batch_of
from adk_memory._sql.database import Database
from adk_memory._sql.dialect import Dialect, chunks
from adk_memory._sql.erasing import entries_with_every_word, erase, erase_some, would_erase
from adk_memory._sql.failures import translated
from adk_memory._sql.filtering import condition
from adk_memory._sql.listing import entries_in_sight, newest_first, next_arrivals
from adk_memory._sql.maintaining import SqlMaintenance
from adk_memory._sql.proof import evidence, remainders
from adk_memory._sql.recall import recall
from adk_memory._sql.scope import GLOBAL_KEY, look
from adk_memory._sql.storing import Storage
from adk_memory._sql.tables import EntryRow
from adk_memory._sql.writing import Batch
from adk_memory._validation import (
    DEFAULT_LIMIT,
    DEFAULT_PAGE,
    validate_flag,
    validate_id,
    validate_limit,
    validate_project_id,
    validate_query,
)
from adk_memory.embedding import Embedder, EmbeddingProvider, OnEmbeddingError
from adk_memory.erasure import Erasure, ErasureProof
from adk_memory.filters import Filter, validate_filter
from adk_memory.reranking import Reranker, Reranking
from adk_memory.service import MemoryService
from adk_memory.types import (
    ALL_PROJECTS,
    AllProjects,
    Existing,
    Memory,
    MemoryEntry,
    Page,
    SearchRequest,
    SearchResponse,
)

_EXPORTED_AT_ONCE: Final = 1_000


class SqlMemoryService(SqlMaintenance, MemoryService):
    """Keeps entries in a SQL database; what is special about one is its dialect's business."""

    supports_project_scoping = True
    supports_expiry = True

    def __init__(
        self,
        engine: AsyncEngine,
        dialect: Dialect,
        *,
        owns_engine: bool,
        embedder: EmbeddingProvider | None,
        reranker: Reranker | None,
        on_embedding_error: OnEmbeddingError,
        default_ttl: timedelta | None,
    ) -> None:
        self._embedder = Embedder.of(embedder, on_embedding_error)
        super().__init__(Database(engine, dialect, self._embedder, owns_engine=owns_engine), self._embedder)
        self._dialect = dialect
        self._storage = Storage(self._database, self._embedder)
        self._reranking = Reranking(reranker)
        self._lifetime = Lifetime(default_ttl)

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
        ids, records = session_records(entries, session_id, project_id, existing, embedder=self._embedder)
        if records or existing == "replace":
            now = _clock.now()
            records = self._lifetime.dated(records, now)
            await self._storage.store([Batch(scope, project_id, session_id, records, existing, now)])
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
        record = single_record(entry, existing, self._embedder)
        now = _clock.now()
        records = self._lifetime.dated([record], now)
        await self._storage.store([Batch(scope, project_id, GLOBAL_KEY, records, existing, now)])
        return record.id

    async def _add_batch(self, items: Sequence[SessionEntries], existing: Literal["update", "keep"]) -> None:
        now = _clock.now()
        await self._storage.store([batch_of(item, existing, self._lifetime, now, self._embedder) for item in items])

    async def search(self, request: SearchRequest) -> SearchResponse:
        return await self._reranking.search(request, self._search)

    async def _search(self, request: SearchRequest) -> SearchResponse:
        scope = Scope.reading(request.app_name, request.user_id, request.project_id)
        question, mode, partial = await ask(self._embedder, request)
        if question is None:
            return SearchResponse(mode=mode)

        def work(connection: Connection) -> SearchResponse:
            model_id = self._database.known_model(connection)
            return recall(
                connection, self._dialect, scope, question, model_id, now=now, passing=passing, explain=request.explain
            )

        now = _clock.now()
        passing = self._condition(request.filter)
        response = await self._database.run(work, scope)
        return response.model_copy(update={"partial": True}) if partial else response

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
        limit, filter = validate_limit(limit), validate_filter(filter)
        return await self._latest(scope, self._condition(filter), limit)

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
        validate_flag("with_total", with_total)
        place = place_of(after, scope, filter)
        passing = self._condition(filter)
        now = _clock.now()

        def work(connection: Connection) -> tuple[list[Memory], Place | None, int | None]:
            sight = look(connection, scope, now).narrowed(passing)
            total = entries_in_sight(connection, sight) if with_total else None
            return *newest_first(connection, sight, limit, place), total

        memories, end, total = await self._database.run(work, scope)
        following = None if end is None else cursor(end, scope, filter)
        return Page(memories=tuple(memories), next=following, total=total)

    async def export_user(self, app_name: str, user_id: str) -> AsyncGenerator[Memory]:
        scope = Scope.reading(app_name, user_id, ALL_PROJECTS)
        last = 0

        def work(connection: Connection) -> tuple[list[Memory], int]:
            sight = look(connection, scope, _clock.now())
            return next_arrivals(connection, self._dialect, sight, last, _EXPORTED_AT_ONCE)

        while True:
            memories, last = await self._database.run(work, scope)
            for found in memories:
                yield found
            if not memories:
                return

    async def delete(
        self,
        app_name: str,
        user_id: str,
        entry_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> Erasure:
        validate_id("entry_id", entry_id)
        return await self._erase(Scope.erasing(app_name, user_id, project_id), EntryRow.entry_key == entry_id)

    async def delete_entries(
        self, app_name: str, user_id: str, query: str, *, project_id: str | None = None, dry_run: bool = False
    ) -> Erasure:
        scope = Scope.erasing(app_name, user_id, validate_project_id(project_id))
        words = _analysis.required_words(validate_query(query))
        validate_flag("dry_run", dry_run)
        now = _clock.now()

        def work(connection: Connection) -> Erasure:
            sight = look(connection, scope, now, lock=not dry_run)
            row_ids = entries_with_every_word(connection, self._dialect, sight, words)
            those = [self._dialect.among(EntryRow.id, ids) for ids in chunks(row_ids)]
            if dry_run:
                return Erasure.of(would_erase(connection, sight, which) for which in those)
            return Erasure.of(erase(connection, self._dialect, sight, which) for which in those)

        return await (self._database.run(work, scope) if dry_run else self._database.transact(work, scope))

    async def delete_session(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> Erasure:
        validate_id("session_id", session_id)
        return await self._erase(Scope.erasing(app_name, user_id, project_id), EntryRow.session_key == session_id)

    async def delete_project(self, app_name: str, user_id: str, project_id: str) -> Erasure:
        scope = Scope.erasing(app_name, user_id, validate_id("project_id", project_id))
        return await self._erase(scope, true(), scopes_too=True)

    async def delete_user(self, app_name: str, user_id: str) -> Erasure:
        return await self._erase(Scope.erasing(app_name, user_id, ALL_PROJECTS), true(), scopes_too=True)

    async def erase_user(
        self, app_name: str, user_id: str, *, on_progress: Callable[[int, int], None] | None = None
    ) -> ErasureProof:
        scope = Scope.erasing(app_name, user_id, ALL_PROJECTS)
        await self._database.ready_for_all()  # what is hidden would count as gone
        before = await self._database.run(partial(evidence, dialect=self._dialect, scope=scope))
        erased = await self.delete_user(app_name, user_id)
        report = await self.scrub(on_progress=on_progress)
        found = await self._database.run(partial(remainders, dialect=self._dialect, scope=scope, before=before.sight))
        async with translated():
            found |= await self._dialect.file_remainders(await self._database.ready(), before.traces)
        return ErasureProof(erased, report, found)

    async def _latest(self, scope: Scope, passing: ColumnElement[bool] | None, limit: int) -> list[Memory]:
        now = _clock.now()
        return await self._database.run(
            lambda connection: newest_first(connection, look(connection, scope, now).narrowed(passing), limit)[0], scope
        )

    def _condition(self, filter: Filter | None) -> ColumnElement[bool] | None:
        return None if filter is None else condition(filter, self._dialect)

    async def _erase(self, scope: Scope, which: ColumnElement[bool], *, scopes_too: bool = False) -> Erasure:
        def work(connection: Connection) -> tuple[Erasure, bool]:
            sight = look(connection, scope, lock=True)
            erased, all_of_them = erase_some(connection, self._dialect, sight, which)
            if scopes_too and all_of_them:
                scopes = connection.execute(sight.erase_scopes()).rowcount
                erased = Erasure.of((erased, Erasure(scopes=scopes)))
            return erased, all_of_them

        erased: list[Erasure] = []
        while True:
            started = time.monotonic()
            some, all_of_them = await self._database.transact(work, scope)
            erased.append(some)
            if all_of_them:
                return Erasure.of(erased)
            await asyncio.sleep(time.monotonic() - started)  # others, who wait for the lock, have their turn
