"""The rows of the in-memory backend: the entries of all users, in order of arrival."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from adk_memory import _analysis
from adk_memory._ranking import Candidate, Vector
from adk_memory._records import Record, session_passages
from adk_memory._scope import Scope
from adk_memory._validation import JsonValue, microseconds
from adk_memory.embedding import Embedder
from adk_memory.erasure import Erasure
from adk_memory.filters import Filter
from adk_memory.types import Existing, Memory


@dataclass(slots=True)
class Row:
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
        record = replace(self.record, position=None if self.session_id is None else self.position)
        return record.memory(self.session_id, self.project_id, score, explanation)


class Rows:
    """All rows. Nothing awaits between a look at them and a change of them: each change is atomic."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._users: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._scopes: defaultdict[tuple[str, str], set[str | None]] = defaultdict(set)
        self._arrivals = count(1)

    async def store(
        self,
        scope: Scope,
        project_id: str | None,
        session_id: str | None,
        records: list[Record],
        existing: Existing,
        now: datetime,
    ) -> None:
        """Store records; what has expired by ``now`` counts as absent."""

        def in_session(row: Row) -> bool:
            return row.session_id == session_id

        vectors: dict[str, Vector | None] = {}
        passages: dict[str, str] = {}
        while True:
            session = {row.record.id: row for row in self.living(scope, now, in_session)}
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
        self._claim(scope, project_id, needed=bool(records) or existing == "replace")
        ids = {record.id for record in records}
        self.erase(scope, lambda row: in_session(row) and row.record.id in ids and not row.record.lives(now))
        if existing == "replace":
            self.erase(scope, lambda row: in_session(row) and row.record.id not in ids)
        rows = self._users[scope.app_name, scope.user_id] if records else []
        position = max((row.position for row in self.living(scope, now, in_session)), default=0)
        for record in records:
            row = session.get(record.id)
            if row is None:
                position = max(position + 1, record.position or 0)
                row = Row(next(self._arrivals), project_id, session_id, record, position, [])
                rows.append(row)
            elif existing == "keep":
                continue
            elif _needs_vector(record, row, existing):
                row.vector = None
            row.vector = row.vector if row.vector is not None else vectors.get(passages.get(record.id, ""))
            row.record = record.over(row.record)
            row.terms = _analysis.terms(record.text)

    def _claim(self, scope: Scope, project_id: str | None, *, needed: bool) -> None:
        # As a database has a row for it, also when its last entry is gone.
        if needed:
            self._scopes[scope.app_name, scope.user_id].add(project_id)

    def _passages(self, session: dict[str, Row], records: list[Record], *, turns: bool) -> dict[str, str]:
        last = max(session.values(), key=lambda row: row.position, default=None)
        before = None if last is None or last.record.id in {record.id for record in records} else last.record
        turns = turns and self._embedder is not None and self._embedder.embeds_turns
        return session_passages(records, before, turns=turns)

    def of(self, scope: Scope, matches: Callable[[Row], bool] = lambda _row: True) -> Iterator[Row]:
        rows = self._users.get((scope.app_name, scope.user_id), [])
        return (row for row in rows if scope.holds(row.project_id) and matches(row))

    def living(self, scope: Scope, now: datetime, matches: Callable[[Row], bool] = lambda _row: True) -> Iterator[Row]:
        return self.of(scope, lambda row: row.record.lives(now) and matches(row))

    def newest_first(self, scope: Scope, now: datetime, filter: Filter | None) -> list[Row]:
        living = self.living(scope, now, lambda row: filter is None or filter.passes(row))
        return sorted(living, key=instant, reverse=True)

    def erase(
        self, scope: Scope, matches: Callable[[Row], bool] = lambda _row: True, *, scopes_too: bool = False
    ) -> Erasure:
        key = (scope.app_name, scope.user_id)
        rows = self._users.pop(key, [])
        erased: list[Row] = []
        kept: list[Row] = []
        for row in rows:
            (erased if scope.holds(row.project_id) and matches(row) else kept).append(row)
        if kept:
            self._users[key] = kept
        return Erasure.of((erasure(erased), Erasure(scopes=self._erase_scopes(scope) if scopes_too else 0)))

    def purge(self, now: datetime) -> Erasure:
        owners = [Scope(*owner, None) for owner in self._users]
        return Erasure.of(self.erase(owner, lambda row: not row.record.lives(now)) for owner in owners)

    def _erase_scopes(self, scope: Scope) -> int:
        key = (scope.app_name, scope.user_id)
        projects = self._scopes.pop(key, set())
        kept = {project_id for project_id in projects if not scope.holds(project_id)}
        if kept:
            self._scopes[key] = kept
        return len(projects) - len(kept)


def erasure(rows: Iterable[Row]) -> Erasure:
    """Return what there is of the rows, to be erased."""
    counted = [(row.vector is not None, bool(row.terms)) for row in rows]
    vectors, indexed = (sum(kind) for kind in zip(*counted, strict=True)) if counted else (0, 0)
    return Erasure(len(counted), vectors=vectors, index_entries=indexed)


def _needs_vector(record: Record, row: Row | None, existing: Existing) -> bool:
    if row is None:
        return True
    reworded = (record.author, record.text) != (row.record.author, row.record.text)
    return existing != "keep" and (row.vector is None or reworded)


def instant(row: Row) -> tuple[datetime, int]:
    return row.record.timestamp, row.arrival
