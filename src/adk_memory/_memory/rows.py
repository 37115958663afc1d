"""The rows of the in-memory backend: the entries of all users, in order of arrival."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, count

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
    user: tuple[str, str]
    arrival: int
    project_id: str | None
    session_id: str | None
    record: Record
    position: int
    terms: list[str]
    vector: Vector | None = None
    unembeddable: bool = False  # the model was asked, and has no vector for it

    def waits(self, now: datetime) -> bool:
        """Whether it has words and no vector, and is still there."""
        return bool(self.terms) and self.vector is None and not self.unembeddable and self.record.lives(now)

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
        self.written = False
        """Whether anything was ever stored: the embedder's model is known from then on."""

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
        while True:
            session = {row.record.id: row for row in self.living(scope, now, in_session)}
            passages = self._passages(session, records, existing, turns=session_id is not None)
            missing = [passage for passage in passages.values() if passage not in vectors]
            if self._embedder is None or not missing:
                break
            vectors |= await self._embedder.new_passages(missing)
        self._claim(scope, project_id, needed=bool(records) or existing == "replace")
        ids = {record.id for record in records}
        self.erase(scope, lambda row: in_session(row) and row.record.id in ids and not row.record.lives(now))
        if existing == "replace":
            self.erase(scope, lambda row: in_session(row) and row.record.id not in ids)
        user = (scope.app_name, scope.user_id)
        rows = self._users[user] if records else []
        position = max((row.position for row in self.living(scope, now, in_session)), default=0)
        for record in records:
            row = session.get(record.id)
            if row is None:
                position = max(position + 1, record.position or 0)
                row = Row(user, next(self._arrivals), project_id, session_id, record, position, [])
                rows.append(row)
            elif existing == "keep":
                continue
            self._write(row, record, vectors[passages[record.id]] if record.id in passages else None)

    def _claim(self, scope: Scope, project_id: str | None, *, needed: bool) -> None:
        # As a database has a row for it, also when its last entry is gone.
        if needed:
            self.written = True
            self._scopes[scope.app_name, scope.user_id].add(project_id)

    def _write(self, row: Row, record: Record, vector: Vector | None) -> None:
        if _needs_vector(record, row, "update"):
            row.vector, row.unembeddable = vector, False
        row.terms = _analysis.terms(record.text)
        if record.vector is not None and self._embedder is not None:
            row.vector = self._embedder.unit(record.vector) if row.terms else None
            row.unembeddable = False
        row.record = record.over(row.record)

    def _passages(
        self, session: dict[str, Row], records: list[Record], existing: Existing, *, turns: bool
    ) -> dict[str, str]:
        """Return what is to be embedded, by the ids of the records that need a vector and came without one."""
        if self._embedder is None or not self._embedder.embeds_texts:
            return {}
        earlier = () if existing == "replace" else session.values()
        last = max(earlier, key=lambda row: row.position, default=None)
        before = None if last is None or last.record.id in {record.id for record in records} else last.record
        passages = session_passages(records, before, turns=turns and self._embedder.embeds_turns)
        needing = (record for record in records if _needs_vector(record, session.get(record.id), existing))
        return {record.id: passages[record.id] for record in needing if record.vector is None and record.id in passages}

    def of(self, scope: Scope, matches: Callable[[Row], bool] = lambda _row: True) -> Iterator[Row]:
        rows = self._users.get((scope.app_name, scope.user_id), [])
        return (row for row in rows if scope.holds(row.project_id) and matches(row))

    def users(self, app_name: str, now: datetime) -> Iterator[str]:
        return (
            user_id
            for (app, user_id), rows in self._users.items()
            if app == app_name and any(row.record.lives(now) for row in rows)
        )

    def living(self, scope: Scope, now: datetime, matches: Callable[[Row], bool] = lambda _row: True) -> Iterator[Row]:
        return self.of(scope, lambda row: row.record.lives(now) and matches(row))

    def newest_first(self, scope: Scope, now: datetime, filter: Filter | None) -> list[Row]:
        living = self.living(scope, now, lambda row: filter is None or filter.passes(row))
        return sorted(living, key=instant, reverse=True)

    def all(self) -> Iterator[Row]:
        return chain.from_iterable(self._users.values())

    def pending(self, now: datetime) -> int:
        return sum(row.waits(now) for row in self.all())

    def drop_vectors(self) -> int:
        dropped = 0
        for row in self.all():
            dropped += row.vector is not None
            row.vector, row.unembeddable = None, False
        return dropped

    def before(self, row: Row, now: datetime) -> Row | None:
        """Return the turn before one of a session; what has expired by ``now`` is none."""
        place = (row.project_id, row.session_id)
        earlier = (
            other
            for other in self._users.get(row.user, [])
            if (other.project_id, other.session_id) == place
            and other.position < row.position
            and other.record.lives(now)
        )
        return max(earlier, key=lambda other: other.position, default=None)

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
    counted = [(row.vector is not None or row.unembeddable, bool(row.terms)) for row in rows]
    vectors, indexed = (sum(kind) for kind in zip(*counted, strict=True)) if counted else (0, 0)
    return Erasure(len(counted), vectors=vectors, index_entries=indexed)


def _needs_vector(record: Record, row: Row | None, existing: Existing) -> bool:
    if row is None:
        return True
    reworded = (record.author, record.text) != (row.record.author, row.record.text)
    lacks = row.vector is None and not row.unembeddable
    return existing != "keep" and (lacks or reworded)


def instant(row: Row) -> tuple[datetime, int]:
    return row.record.timestamp, row.arrival
