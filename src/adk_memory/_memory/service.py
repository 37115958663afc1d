"""InMemoryMemoryService: the contract in plain Python; the other backends are held against it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from typing import Literal

import numpy as np

from adk_memory import _analysis, _clock
from adk_memory._asking import ask
from adk_memory._expiry import Lifetime
from adk_memory._memory.pending import embed_pending
from adk_memory._memory.rows import Row, Rows, erasure, instant
from adk_memory._paging import Place, cursor, place_of
from adk_memory._ranking import (
    Candidate,
    Collection,
    Question,
    cosines,
    keyword_shares,
    nearest,
    ranked,
)
from adk_memory._records import session_records, single_record, single_records
from adk_memory._scope import Scope
from adk_memory._sessions import SessionEntries
from adk_memory._validation import (
    DEFAULT_LIMIT,
    DEFAULT_PAGE,
    MAX_LIMIT,
    validate_flag,
    validate_id,
    validate_limit,
    validate_project_id,
    validate_query,
    validate_users,
)
from adk_memory.embedding import Embedder, EmbeddingProvider, OnEmbeddingError
from adk_memory.erasure import Erasure, ErasureProof, ScrubReport
from adk_memory.errors import ConfigurationError
from adk_memory.filters import Filter, validate_filter
from adk_memory.reranking import Reranker, Reranking
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


class InMemoryMemoryService(MemoryService):
    """Keeps everything in this process and forgets it at its end."""

    supports_project_scoping = True
    backend_name = "memory"
    supports_expiry = True

    def __init__(
        self,
        *,
        embedder: EmbeddingProvider | None = None,
        reranker: Reranker | None = None,
        on_embedding_error: OnEmbeddingError = "raise",
        default_ttl: timedelta | None = None,
    ) -> None:
        self._embedder = Embedder.of(embedder, on_embedding_error)
        self._reranking = Reranking(reranker)
        self._rows = Rows(self._embedder)
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
        now = _clock.now()
        await self._rows.store(scope, project_id, session_id, self._lifetime.dated(records, now), existing, now)
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
        await self._rows.store(scope, project_id, None, self._lifetime.dated([record], now), existing, now)
        return record.id

    async def _add_batch(self, items: Sequence[SessionEntries], existing: Literal["update", "keep"]) -> None:
        for item in items:
            scope = Scope.erasing(item.app_name, item.user_id, item.project_id)
            if item.session_id is None:
                records = single_records(item.entries, existing, self._embedder)
            else:
                _, records = session_records(
                    item.entries, item.session_id, item.project_id, existing, item.positions, self._embedder
                )
            now = _clock.now()
            records = self._lifetime.dated(records, now)
            await self._rows.store(scope, item.project_id, item.session_id, records, existing, now)

    async def search(self, request: SearchRequest) -> SearchResponse:
        return await self._reranking.search(request, self._search)

    async def _search(self, request: SearchRequest) -> SearchResponse:
        scope = Scope.reading(request.app_name, request.user_id, request.project_id)
        question, mode, partial = await ask(self._embedder, request)
        if question is None:
            return SearchResponse(mode=mode)
        rows = {row.arrival: row for row in self._rows.living(scope, _clock.now())}
        candidates = {arrival: row.candidate(request.filter) for arrival, row in rows.items()}
        shares = _keyword_leg(question, candidates)
        near = _vector_leg(question, rows, candidates)
        memories = tuple(
            rows[answer.id].memory(answer.score, answer.evidence.parts() if request.explain else None)
            for answer in ranked(question, shares, near, candidates)
        )
        unreached = mode != "keyword" and any(row.terms and row.vector is None for row in rows.values())
        return SearchResponse(memories=memories, mode=mode, partial=partial or unreached)

    async def get(self, app_name: str, user_id: str, entry_id: str, *, project_id: str | None = None) -> Memory | None:
        validate_id("entry_id", entry_id)
        scope = Scope.reading(app_name, user_id, validate_project_id(project_id))
        rows = self._rows.living(scope, _clock.now(), lambda row: row.record.id == entry_id)
        newest = max(rows, key=instant, default=None)
        return None if newest is None else newest.memory()

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
        rows = self._rows.newest_first(scope, _clock.now(), filter)
        return [row.memory() for row in rows[:limit]]

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
        rows = self._rows.newest_first(scope, _clock.now(), filter)
        rest = rows if place is None else [row for row in rows if instant(row) < (place.instant, place.arrival)]
        last = rest[limit - 1] if 0 < limit < len(rest) else None
        return Page(
            memories=tuple(row.memory() for row in rest[:limit]),
            next=None if last is None else cursor(Place(*instant(last)), scope, filter),
            total=len(rows) if with_total else None,
        )

    async def export_user(self, app_name: str, user_id: str) -> AsyncGenerator[Memory]:
        scope = Scope.reading(app_name, user_id, ALL_PROJECTS)
        for row in sorted(self._rows.of(scope), key=lambda row: row.arrival):
            if row.record.lives(_clock.now()):
                yield row.memory()

    async def delete(
        self,
        app_name: str,
        user_id: str,
        entry_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> Erasure:
        validate_id("entry_id", entry_id)
        scope = Scope.erasing(app_name, user_id, project_id)
        return self._rows.erase(scope, lambda row: row.record.id == entry_id)

    async def delete_entries(
        self, app_name: str, user_id: str, query: str, *, project_id: str | None = None, dry_run: bool = False
    ) -> Erasure:
        scope = Scope.erasing(app_name, user_id, validate_project_id(project_id))
        wanted = set(_analysis.required_words(validate_query(query)))
        validate_flag("dry_run", dry_run)
        now = _clock.now()

        def matches(row: Row) -> bool:
            return bool(wanted) and row.record.lives(now) and wanted.issubset(_analysis.words(row.record.text))

        return erasure(self._rows.of(scope, matches)) if dry_run else self._rows.erase(scope, matches)

    async def delete_session(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> Erasure:
        validate_id("session_id", session_id)
        scope = Scope.erasing(app_name, user_id, project_id)
        return self._rows.erase(scope, lambda row: row.session_id == session_id)

    async def delete_project(self, app_name: str, user_id: str, project_id: str) -> Erasure:
        return self._rows.erase(
            Scope.erasing(app_name, user_id, validate_id("project_id", project_id)), scopes_too=True
        )

    async def delete_user(self, app_name: str, user_id: str) -> Erasure:
        return self._rows.erase(Scope.erasing(app_name, user_id, ALL_PROJECTS), scopes_too=True)

    async def scrub(self, *, on_progress: Callable[[int, int], None] | None = None) -> ScrubReport:
        return ScrubReport()

    async def erase_user(
        self, app_name: str, user_id: str, *, on_progress: Callable[[int, int], None] | None = None
    ) -> ErasureProof:
        erased = await self.delete_user(app_name, user_id)
        left = list(self._rows.of(Scope.erasing(app_name, user_id, ALL_PROJECTS)))
        found = {"entries": len(left), "vectors": erasure(left).vectors, "index entries": erasure(left).index_entries}
        return ErasureProof(erased, await self.scrub(on_progress=on_progress), found)

    async def purge_expired(self, *, on_progress: Callable[[int], None] | None = None) -> Erasure:
        purged = self._rows.purge(_clock.now())
        if purged and on_progress is not None:
            on_progress(purged)
        return purged

    async def list_users(
        self, app_name: str, *, prefix: str = "", after: str | None = None, limit: int | None = None
    ) -> list[str]:
        validate_users(app_name, prefix, after)
        limit = validate_limit(limit, MAX_LIMIT)
        found = (user for user in self._rows.users(app_name, _clock.now()) if user.startswith(prefix))
        return sorted(user for user in found if after is None or user > after)[:limit]

    async def health_check(self) -> HealthReport:
        if self._embedder is None:
            return HealthReport(backend="memory")
        pending = self._rows.pending(_clock.now())
        return HealthReport(backend="memory", embedding_model=self._embedder.model, pending=pending)

    async def embed_pending(
        self, *, on_progress: Callable[[int, int], None] | None = None, limit: int | None = None
    ) -> int:
        return await embed_pending(self._rows, self._embedder, on_progress, limit)

    async def drop_model(self, model: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        validate_id("model", model)
        known = None if self._embedder is None or not self._rows.written else self._embedder.model
        if model != known:
            raise ConfigurationError(f"there is no model {model!r}; there are: {known or 'none'}")
        dropped = self._rows.drop_vectors()
        if on_progress is not None:
            on_progress(dropped)
        return dropped


def _keyword_leg(question: Question, candidates: dict[int, Candidate]) -> dict[int, float]:
    if question.mode == "vector":
        return {}
    documents = [candidate for candidate in candidates.values() if candidate.terms]
    collection = Collection(entries=len(documents), terms=sum(len(document.terms) for document in documents))
    return keyword_shares(question.terms, documents, collection)


def _vector_leg(question: Question, rows: dict[int, Row], candidates: dict[int, Candidate]) -> list[tuple[int, float]]:
    found = {
        arrival: row.vector for arrival, row in rows.items() if row.vector is not None and candidates[arrival].passes
    }
    if question.vector is None or not found:
        return []
    scores = dict(zip(found, cosines(np.stack(list(found.values())), question.vector).tolist(), strict=True))
    return nearest(scores, candidates, question.nearest)
