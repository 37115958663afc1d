"""Storing the entries of a session, or a single entry: what is new, what differs, what needs a vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, null, or_

from adk_memory import _analysis
from adk_memory._ranking import Vector
from adk_memory._records import Record, session_passages
from adk_memory._scope import Scope
from adk_memory._sql.dialect import Addition, Dialect, NewEntry, chunks
from adk_memory._sql.erasing import erase
from adk_memory._sql.models import answered_by
from adk_memory._sql.scope import Sight, count, lives, look, new_scope
from adk_memory._sql.tables import EmbeddingRow, EntryRow, entry_fields
from adk_memory.types import Existing


@dataclass(frozen=True, slots=True)
class Batch:
    """The records that one call stores in one session of one project; ``session_key`` is ``''`` outside of any.

    What has expired by ``now`` counts as absent.
    """

    scope: Scope
    project_id: str | None
    session_key: str
    records: Sequence[Record]
    existing: Existing
    now: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """An entry of a batch that is stored already."""

    row_id: int
    record: Record
    term_count: int
    has_vector: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What storing a batch means, by what is stored: ``sight`` is the batch's scope, or nothing where it is new.

    ``last`` is the entry after which the batch's new ones come, unless the batch holds or replaces it; ``expired`` are
    the row ids of entries that have expired, and that the batch adds anew.
    """

    batch: Batch
    sight: Sight
    model_id: int | None
    here: Mapping[str, Known]
    last: Record | None
    position: int
    expired: Sequence[int]

    def new(self) -> list[Record]:
        return [record for record in self.batch.records if record.id not in self.here]

    def rewritten(self) -> list[Record]:
        if self.batch.existing == "keep":
            return []
        known = [record for record in self.batch.records if record.id in self.here]
        return [record for record in known if record.rewrites(self.here[record.id].record)]

    def needs_vector(self, record: Record) -> bool:
        stored = self.here.get(record.id)
        if stored is None:
            return True
        lacks = record.vector is not None or not stored.has_vector or _reworded(record, stored.record)
        return self.batch.existing != "keep" and lacks

    def passages(self, *, turns: bool) -> dict[str, str]:
        """Return what is to be embedded, by the ids of the records that need a vector: texts, or turns."""
        turns = turns and bool(self.batch.session_key)
        passages = session_passages(self.batch.records, self.last, turns=turns)
        needing = [record for record in self.batch.records if record.vector is None and self.needs_vector(record)]
        return {record.id: passages[record.id] for record in needing if record.id in passages}

    def given(self) -> dict[str, Sequence[float]]:
        """Return the vectors that came with records, by their ids; those without a word have none."""
        return {
            record.id: record.vector
            for record in self.batch.records
            if record.vector is not None and self.needs_vector(record) and _analysis.has_word(record.text)
        }

    def only_adds(self, vectors: Mapping[str, Vector | None]) -> bool:
        """Whether nothing that is stored is touched."""
        untouched = not self.expired and not self.rewritten() and self.here.keys().isdisjoint(vectors)
        return untouched and self.batch.existing != "replace"

    def addition(self, vectors: Mapping[str, Vector | None]) -> Addition:
        """Return the new entries, with their ``vectors`` by id, in their order, which is the order of arrival."""
        position = self.position
        entries = []
        for record in self.new():
            if self.batch.session_key:  # nothing stands beside a single entry
                position = max(position + 1, record.position or 0)
            entries.append(NewEntry(record, position, _analysis.terms(record.text), vectors.get(record.id)))
        scope_ids = self.sight.scope_ids
        return Addition(
            scope=new_scope(self.batch.scope, self.batch.project_id),
            scope_id=scope_ids[0] if scope_ids else None,
            version=self.sight.version,
            session_key=self.batch.session_key,
            model_id=self.model_id,
            entries=entries,
        )


def plan(connection: Connection, dialect: Dialect, sight: Sight, batch: Batch, model_id: int | None) -> Plan:
    """Look up what the batch meets in its scope, which the caller has looked at, or locked."""
    rows: list[Any] = []
    statement = with_vectors(sight.entries(*KNOWN_COLUMNS).where(EntryRow.session_key == batch.session_key), model_id)
    for keys in chunks(sorted({record.id for record in batch.records})) if sight else ():
        wanted = dialect.among(EntryRow.entry_key, keys)
        if batch.session_key:
            wanted = or_(wanted, EntryRow.position == _last_position(sight, batch))
        rows += connection.execute(statement.where(wanted))
    return planned(batch, sight, model_id, rows)


KNOWN_COLUMNS = (
    EntryRow.id,
    EntryRow.scope_id,
    EntryRow.session_key,
    EntryRow.entry_key,
    EntryRow.position,
    EntryRow.author,
    EntryRow.timestamp,
    EntryRow.content,
    EntryRow.text,
    EntryRow.metadata_,
    EntryRow.term_count,
    EntryRow.expires_at,
)


def with_vectors(known: Select[Any], model_id: int | None) -> Select[Any]:
    """Add the column ``vector_of`` to entries: their own id where the model has a vector, or none, for them."""
    if model_id is None:
        return known.add_columns(null().label("vector_of"))
    return known.add_columns(EmbeddingRow.entry_id.label("vector_of")).outerjoin(
        EmbeddingRow, _vector_of_entry(model_id)
    )


def planned(batch: Batch, sight: Sight, model_id: int | None, rows: Iterable[Any]) -> Plan:
    """Return the plan for a batch by what is stored of it, and the last of its session."""
    here: dict[str, Known] = {}
    last: Record | None = None
    position = 0
    expired = []
    ids = {record.id for record in batch.records}
    for row in rows:
        record = Record(row.entry_key, row.author, row.timestamp, row.content, row.text, row.metadata, row.expires_at)
        if not record.lives(batch.now):
            if record.id in ids:
                expired.append(row.id)
            continue
        if batch.existing == "replace" and record.id not in ids:
            continue  # it is erased: what is new comes after what stays
        if row.position > position:
            position, last = row.position, record
        if record.id in ids:
            here[record.id] = Known(row.id, record, row.term_count, row.vector_of is not None)
    if last is not None and last.id in ids:
        last = None
    return Plan(batch, sight, model_id, here, last, position, expired)


def store(connection: Connection, dialect: Dialect, plan: Plan, vectors: Mapping[str, Vector | None]) -> None:
    """Write what is planned into its scope, which the caller has claimed: entries, their index, ``vectors`` by id."""
    addition = plan.addition(vectors)
    if plan.expired:
        erase_expired(connection, dialect, plan)
        addition = replace(addition, version=look(connection, plan.batch.scope).version)  # it was changed by that
    if addition.entries:
        dialect.add(connection, addition)
    if plan.batch.existing == "replace":
        _erase_others(connection, dialect, plan)
    write_known(connection, dialect, plan, vectors)


def erase_expired(connection: Connection, dialect: Dialect, plan: Plan) -> None:
    """Erase what has expired and is added anew."""
    for ids in chunks(plan.expired):
        erase(connection, dialect, plan.sight, dialect.among(EntryRow.id, ids))


def write_known(connection: Connection, dialect: Dialect, plan: Plan, vectors: Mapping[str, Vector | None]) -> None:
    """Write what is planned for entries that are stored already, with ``vectors`` by id."""
    _rewrite(connection, dialect, plan)
    known = [record for record in plan.batch.records if record.id in plan.here]
    if plan.model_id is None or not known:
        return
    [scope_id] = plan.sight.scope_ids
    found = {plan.here[record.id].row_id: vectors.get(record.id) for record in known}
    given = [plan.here[record.id].row_id for record in known if record.vector is not None and record.id in vectors]
    for ids in chunks(given):  # of the others that are to get one, none has one
        those = dialect.among(EntryRow.id, ids)
        connection.execute(plan.sight.erase_vectors(those, answered_by(plan.model_id)))
    rows = [(scope_id, row_id, vector) for row_id, vector in found.items() if vector is not None]
    if rows:
        dialect.add_vectors(connection, plan.model_id, rows)
    if rows or given:
        count(connection, {scope_id: (0, 0)})


def _erase_others(connection: Connection, dialect: Dialect, plan: Plan) -> None:
    kept = {record.id for record in plan.batch.records}
    in_session = EntryRow.session_key == plan.batch.session_key
    rows = connection.execute(plan.sight.entries(EntryRow.id, EntryRow.entry_key).where(in_session))
    for ids in chunks([row.id for row in rows if row.entry_key not in kept]):
        erase(connection, dialect, plan.sight, dialect.among(EntryRow.id, ids))


def _rewrite(connection: Connection, dialect: Dialect, plan: Plan) -> None:
    records = plan.rewritten()
    if not records:
        return
    stored = [plan.here[record.id] for record in records]
    terms = [_analysis.terms(record.text) for record in records]
    columns = [
        entry_fields(record.over(known.record), found)
        for record, known, found in zip(records, stored, terms, strict=True)
    ]
    rows = [
        {"row_id": known.row_id, **{f"new_{name}": value for name, value in new.items()}}
        for known, new in zip(stored, columns, strict=True)
    ]
    connection.execute(plan.sight.rewrite({name: bindparam(f"new_{name}") for name in columns[0]}), rows)

    [scope_id] = plan.sight.scope_ids
    reworded = [
        (known.row_id, found)
        for record, known, found in zip(records, stored, terms, strict=True)
        if _reworded(record, known.record)
    ]
    for ids in chunks([row_id for row_id, _ in reworded]):
        those = dialect.among(EntryRow.id, ids)
        connection.execute(dialect.unindex(plan.sight, plan.sight.entries(EntryRow.id).where(those)))
        connection.execute(plan.sight.erase_vectors(those))
    index_rows = [dialect.index(scope_id, row_id, found) for row_id, found in reworded if found]
    if index_rows:
        connection.execute(dialect.index_statement, index_rows)
    before = [known.term_count for known in stored]
    after = [len(found) for found in terms]
    count(connection, {scope_id: (sum(map(bool, after)) - sum(map(bool, before)), sum(after) - sum(before))})


def _reworded(record: Record, stored: Record) -> bool:
    return (record.author, record.text) != (stored.author, stored.text)


def _last_position(sight: Sight, batch: Batch) -> Any:
    last = sight.entries(func.max(EntryRow.position)).where(EntryRow.session_key == batch.session_key, lives(batch.now))
    return last.correlate(None).scalar_subquery()


def _vector_of_entry(model_id: int) -> ColumnElement[bool]:
    return and_(
        EmbeddingRow.scope_id == EntryRow.scope_id,
        answered_by(model_id),
        EmbeddingRow.entry_id == EntryRow.id,
    )
