"""InMemoryMemoryService: the contract in plain Python; the other backends are held against it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Literal

import numpy as np

from adk_memory import _analysis
from adk_memory._asking import ask
from adk_memory._paging import Place, cursor, place_of
from adk_memory._ranking import (
    Candidate,
    Collection,
    Question,
    Vector,
    cosines,
    document_frequency,
    keyword_shares,
    nearest,
    ranked,
)
from adk_memory._records import Record, session_passages, session_records, single_record
from adk_memory._scope import Scope
from adk_memory._validation import (
    DEFAULT_LIMIT,
    DEFAULT_PAGE,
    JsonValue,
    microseconds,
    validate_id,
    validate_limit,
    validate_project_id,
    validate_query,
)
from adk_memory.embedding import Embedder, EmbeddingProvider
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


@dataclass(slots=True)
class _Row:
    arrival: int
    project_id: str | None
    session_id: str | None
    record: Record
    position: int
    terms: list[str]
    vector: Vector | None = None

    @property
    def author(self) -> str:
        return self.record.author

    @property
    def timestamp(self) -> datetime:
        return self.record.timestamp

    @property
    def metadata(self) -> dict[str, JsonValue]:
        metadata: dict[str, JsonValue] = json.loads(self.record.metadata)
        return metadata

    def candidate(self, filter: Filter | None) -> Candidate:
        return Candidate(
            id=self.arrival,
            instant=microseconds(self.record.timestamp),
            session=None if self.session_id is None else (self.project_id, self.session_id),
            position=self.position,
            author=_analysis.name_words(self.record.author),
            terms=self.terms,
            passes=filter is None or filter.passes(self),
        )

    def memory(self, score: float | None = None, explanation: dict[str, float] | None = None) -> Memory:
        return self.record.memory(self.session_id, self.project_id, score, explanation)


class InMemoryMemoryService(MemoryService):
    """Keeps everything in this process and forgets it at its end."""

    supports_project_scoping = True

    def __init__(self, *, embedder: EmbeddingProvider | None = None, reranker: Reranker | None = None) -> None:
        self._embedder = None if embedder is None else Embedder(embedder)
        self._reranking = Reranking(reranker)
        self._users: defaultdict[tuple[str, str], list[_Row]] = defaultdict(list)
        self._arrivals = count(1)

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
        await self._store(scope, project_id, session_id, records, existing)
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
        await self._store(scope, project_id, None, [record], existing)
        return record.id

    async def search(self, request: SearchRequest) -> SearchResponse:
        return await self._reranking.search(request, self._search)

    async def _search(self, request: SearchRequest) -> SearchResponse:
        scope = Scope.reading(request.app_name, request.user_id, request.project_id)
        question, mode, partial = await ask(self._embedder, request)
        if question is None:
            return SearchResponse(mode=mode)
        rows = {row.arrival: row for row in self._rows(scope)}
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
        rows = self._rows(
            Scope.reading(app_name, user_id, validate_project_id(project_id)), lambda row: row.record.id == entry_id
        )
        newest = max(rows, key=_instant, default=None)
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
        limit, filter = validate_limit(limit), validate_filter(filter)
        rows = self._newest_first(Scope.reading(app_name, user_id, project_id), filter)
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
        place = place_of(after, scope, filter)
        rows = self._newest_first(scope, filter)
        rest = rows if place is None else [row for row in rows if _instant(row) < (place.instant, place.arrival)]
        last = rest[limit - 1] if 0 < limit < len(rest) else None
        return Page(
            memories=tuple(row.memory() for row in rest[:limit]),
            next=None if last is None else cursor(Place(*_instant(last)), scope, filter),
            total=len(rows) if with_total else None,
        )

    async def delete(
        self,
        app_name: str,
        user_id: str,
        entry_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> int:
        validate_id("entry_id", entry_id)
        scope = Scope.erasing(app_name, user_id, project_id)
        return self._erase(scope, lambda row: row.record.id == entry_id)

    async def delete_entries(
        self, app_name: str, user_id: str, query: str, *, project_id: str | None = None, dry_run: bool = False
    ) -> int:
        scope = Scope.erasing(app_name, user_id, validate_project_id(project_id))
        wanted = set(_analysis.required_words(validate_query(query)))

        def matches(row: _Row) -> bool:
            return bool(wanted) and wanted.issubset(_analysis.words(row.record.text))

        return len(list(self._rows(scope, matches))) if dry_run else self._erase(scope, matches)

    async def delete_session(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> int:
        validate_id("session_id", session_id)
        scope = Scope.erasing(app_name, user_id, project_id)
        return self._erase(scope, lambda row: row.session_id == session_id)

    async def delete_project(self, app_name: str, user_id: str, project_id: str) -> int:
        return self._erase(Scope.erasing(app_name, user_id, validate_id("project_id", project_id)))

    async def delete_user(self, app_name: str, user_id: str) -> int:
        return self._erase(Scope.erasing(app_name, user_id, ALL_PROJECTS))

    async def health_check(self) -> HealthReport:
        return HealthReport(backend="memory", embedding_model=None if self._embedder is None else self._embedder.model)

    # Below, nothing awaits between a look at the rows and a change of them: each change is atomic.

    async def _store(
        self,
        scope: Scope,
        project_id: str | None,
        session_id: str | None,
        records: list[Record],
        existing: Existing,
    ) -> None:
        def in_session(row: _Row) -> bool:
            return row.session_id == session_id

        vectors: dict[str, Vector | None] = {}
        passages: dict[str, str] = {}
        while True:
            session = {row.record.id: row for row in self._rows(scope, in_session)}
            if self._embedder is None:
                break
            passages = self._passages({} if existing == "replace" else session, records, turns=session_id is not None)
            missing = [
                passages[record.id]
                for record in records
                if record.id in passages
                and passages[record.id] not in vectors
                and _needs_vector(record, session.get(record.id), existing)
            ]
            if not missing:
                break
            vectors |= await self._embedder.passages(missing)
        if existing == "replace":
            kept = {record.id for record in records}
            self._erase(scope, lambda row: in_session(row) and row.record.id not in kept)
        rows = self._users[scope.app_name, scope.user_id] if records else []
        position = max((row.position for row in self._rows(scope, in_session)), default=0)
        for record in records:
            row = session.get(record.id)
            if row is None:
                position += 1
                row = _Row(next(self._arrivals), project_id, session_id, record, position, [])
                rows.append(row)
            elif existing == "keep":
                continue
            elif _needs_vector(record, row, existing):
                row.vector = None
            row.vector = row.vector if row.vector is not None else vectors.get(passages.get(record.id, ""))
            row.record = record.over(row.record)
            row.terms = _analysis.terms(record.text)

    def _passages(self, session: dict[str, _Row], records: list[Record], *, turns: bool) -> dict[str, str]:
        last = max(session.values(), key=lambda row: row.position, default=None)
        before = None if last is None or last.record.id in {record.id for record in records} else last.record
        turns = turns and self._embedder is not None and self._embedder.embeds_turns
        return session_passages(records, before, turns=turns)

    def _rows(self, scope: Scope, matches: Callable[[_Row], bool] = lambda _row: True) -> Iterator[_Row]:
        rows = self._users.get((scope.app_name, scope.user_id), [])
        return (row for row in rows if scope.holds(row.project_id) and matches(row))

    def _newest_first(self, scope: Scope, filter: Filter | None) -> list[_Row]:
        return sorted(self._rows(scope, lambda row: filter is None or filter.passes(row)), key=_instant, reverse=True)

    def _erase(self, scope: Scope, matches: Callable[[_Row], bool] = lambda _row: True) -> int:
        key = (scope.app_name, scope.user_id)
        rows = self._users.pop(key, [])
        kept = [row for row in rows if not (scope.holds(row.project_id) and matches(row))]
        if kept:
            self._users[key] = kept
        return len(rows) - len(kept)


def _needs_vector(record: Record, row: _Row | None, existing: Existing) -> bool:
    if row is None:
        return True
    reworded = (record.author, record.text) != (row.record.author, row.record.text)
    return existing != "keep" and (row.vector is None or reworded)


def _instant(row: _Row) -> tuple[datetime, int]:
    return row.record.timestamp, row.arrival


def _keyword_leg(question: Question, candidates: dict[int, Candidate]) -> dict[int, float]:
    if question.mode == "vector":
        return {}
    documents = [candidate.terms for candidate in candidates.values() if candidate.terms]
    collection = Collection(
        entries=len(documents),
        terms=sum(map(len, documents)),
        frequency=document_frequency(question.terms, documents),
    )
    return keyword_shares(question.terms, candidates.values(), collection)


def _vector_leg(question: Question, rows: dict[int, _Row], candidates: dict[int, Candidate]) -> list[tuple[int, float]]:
    found = {
        arrival: row.vector for arrival, row in rows.items() if row.vector is not None and candidates[arrival].passes
    }
    if question.vector is None or not found:
        return []
    scores = dict(zip(found, cosines(np.stack(list(found.values())), question.vector).tolist(), strict=True))
    return nearest(scores, candidates, question.nearest)
