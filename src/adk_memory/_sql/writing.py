"""Storing the entries of a session, or a single entry: what is new, what differs, what needs a vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, func, insert, null
from sqlalchemy.ext.asyncio import AsyncConnection

from adk_memory import _analysis
from adk_memory._ranking import Vector
from adk_memory._records import Record
from adk_memory._scope import Scope
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.erasing import erase
from adk_memory._sql.scope import Sight, count, new_scope
from adk_memory._sql.tables import ENTRIES, EmbeddingRow, EntryRow, ScopeRow
from adk_memory.types import Existing

_KEYS_PER_STATEMENT = 2_000  # a statement can have 32,766 parameters on SQLite, 32,767 on Postgres


@dataclass(frozen=True, slots=True)
class Batch:
    """The records that one call stores in one session of one project; ``session_key`` is ``''`` outside of any."""

    scope: Scope
    project_id: str | None
    session_key: str
    records: Sequence[Record]
    existing: Existing


@dataclass(frozen=True, slots=True)
class Known:
    """An entry of a batch that is stored already."""

    row_id: int
    record: Record
    term_count: int
    has_vector: bool


async def claim(connection: AsyncConnection, dialect: Dialect, batch: Batch) -> Sight:
    """Find or make the batch's scope, and lock it: its writers come one after the other."""
    statement = dialect.insert(ScopeRow).values(new_scope(batch.scope, batch.project_id))
    # An update that changes nothing is what locks the row, and returns it, where it is there already.
    statement = statement.on_conflict_do_update(
        index_elements=[ScopeRow.fingerprint], set_={"project_key": statement.excluded.project_key}
    )
    scope_id = await connection.scalar(statement.returning(ScopeRow.id))
    return Sight({scope_id: batch.project_id})


async def known(connection: AsyncConnection, sight: Sight, batch: Batch, model_id: int | None) -> dict[str, Known]:
    """Return the stored entries of the batch's session that have the id of one of its records."""
    vector = null() if model_id is None else EmbeddingRow.entry_id
    statement = sight.entries(
        EntryRow.id,
        EntryRow.entry_key,
        EntryRow.author,
        EntryRow.timestamp,
        EntryRow.content,
        EntryRow.text,
        EntryRow.metadata_,
        EntryRow.term_count,
        vector.label("vector_of"),
    ).where(EntryRow.session_key == batch.session_key)
    if model_id is not None:
        statement = statement.outerjoin(EmbeddingRow, _vector_of_entry(model_id))
    found = {}
    for keys in _chunks([record.id for record in batch.records]):
        for row in await connection.execute(statement.where(EntryRow.entry_key.in_(keys))):
            record = Record(row.entry_key, row.author, row.timestamp, row.content, row.text, row.metadata)
            found[record.id] = Known(row.id, record, row.term_count, row.vector_of is not None)
    return found


async def last_turn(connection: AsyncConnection, sight: Sight, batch: Batch) -> Record | None:
    """Return the last entry of the batch's session, unless the batch holds or replaces it."""
    if not batch.session_key or not sight or batch.existing == "replace":
        return None
    ids = {record.id for record in batch.records}
    columns = (EntryRow.entry_key, EntryRow.author, EntryRow.timestamp, EntryRow.text)
    statement = sight.entries(*columns).where(EntryRow.session_key == batch.session_key)
    row = (await connection.execute(statement.order_by(EntryRow.position.desc()).limit(1))).one_or_none()
    if row is None or row.entry_key in ids:
        return None
    return Record(row.entry_key, row.author, row.timestamp, "", row.text, "")


def passages_to_embed(
    batch: Batch, here: Mapping[str, Known], passages: Mapping[str, str], vectors: Mapping[str, Vector | None]
) -> list[str]:
    """Return the passages of the records that will be stored, need a vector, and have none in ``vectors`` yet."""
    return [
        passages[record.id]
        for record in batch.records
        if record.id in passages
        and passages[record.id] not in vectors
        and _needs_vector(record, here.get(record.id), batch.existing)
    ]


async def store(
    connection: AsyncConnection,
    dialect: Dialect,
    sight: Sight,
    batch: Batch,
    here: Mapping[str, Known],
    vectors: Mapping[str, Vector | None],
    model_id: int | None,
) -> None:
    """Write the batch into its scope, which the caller has claimed: entries, their index, their ``vectors`` by id."""
    [scope_id] = sight.scope_ids
    if batch.existing == "replace":
        await _erase_others(connection, dialect, sight, batch)
    new = [record for record in batch.records if record.id not in here]
    rewritten = [record for record in batch.records if record.id in here and record.rewrites(here[record.id].record)]
    if batch.existing == "keep":
        rewritten = []
    terms = {record.id: _analysis.terms(record.text) for record in new + rewritten}
    row_ids = {entry_id: stored.row_id for entry_id, stored in here.items()}
    row_ids |= await _insert(connection, sight, batch, new, terms)
    await _rewrite(connection, sight, rewritten, here, terms)

    reworded = [record for record in rewritten if _reworded(record, here[record.id].record)]
    for ids in _chunks([row_ids[record.id] for record in reworded]):
        entry_ids = sight.entries(EntryRow.id).where(EntryRow.id.in_(ids))
        await connection.execute(dialect.unindex(sight, entry_ids))
        await connection.execute(sight.erase_vectors(EntryRow.id.in_(ids)))
    rows = [
        dialect.index(scope_id, row_ids[record.id], terms[record.id]) for record in new + reworded if terms[record.id]
    ]
    if rows:
        await connection.execute(dialect.index_statement, rows)
    before = [here[record.id].term_count for record in rewritten]
    after = [len(found) for found in terms.values()]
    await count(
        connection,
        {scope_id: (sum(map(bool, after)) - sum(map(bool, before)), sum(after) - sum(before))},
    )
    if model_id is not None:
        await _add_vectors(connection, dialect, scope_id, model_id, batch, here, row_ids, vectors)


def _needs_vector(record: Record, stored: Known | None, existing: Existing) -> bool:
    if stored is None:
        return True
    return existing != "keep" and (not stored.has_vector or _reworded(record, stored.record))


def _reworded(record: Record, stored: Record) -> bool:
    return (record.author, record.text) != (stored.author, stored.text)


async def _erase_others(connection: AsyncConnection, dialect: Dialect, sight: Sight, batch: Batch) -> None:
    kept = {record.id for record in batch.records}
    rows = await connection.execute(
        sight.entries(EntryRow.id, EntryRow.entry_key).where(EntryRow.session_key == batch.session_key)
    )
    for ids in _chunks([row.id for row in rows if row.entry_key not in kept]):
        await erase(connection, dialect, sight, EntryRow.id.in_(ids))


async def _insert(
    connection: AsyncConnection,
    sight: Sight,
    batch: Batch,
    records: Sequence[Record],
    terms: Mapping[str, Sequence[str]],
) -> dict[str, int]:
    """Insert entries, in their order, which is the order of arrival; return their row ids by their ids."""
    if not records:
        return {}
    now = datetime.now(UTC)
    position = await _last_position(connection, sight, batch)
    rows = [
        {
            "scope_id": sight.scope_ids[0],
            "session_key": batch.session_key,
            "entry_key": record.id,
            "position": position + number,
            "created_at": now,
            **_fields(record, terms[record.id]),
        }
        for number, record in enumerate(records, 1)
    ]
    statement = insert(ENTRIES).returning(EntryRow.id, sort_by_parameter_order=True)
    row_ids = await connection.scalars(statement, rows)
    return dict(zip((record.id for record in records), row_ids, strict=True))


async def _last_position(connection: AsyncConnection, sight: Sight, batch: Batch) -> int:
    if not batch.session_key:
        return 0  # nothing stands beside a single entry
    last = sight.entries(func.max(EntryRow.position)).where(EntryRow.session_key == batch.session_key)
    return await connection.scalar(last) or 0


async def _rewrite(
    connection: AsyncConnection,
    sight: Sight,
    records: Sequence[Record],
    here: Mapping[str, Known],
    terms: Mapping[str, Sequence[str]],
) -> None:
    if not records:
        return
    fields = [_fields(record.over(here[record.id].record), terms[record.id]) for record in records]
    rows = [
        {"row_id": here[record.id].row_id, **{f"new_{name}": value for name, value in values.items()}}
        for record, values in zip(records, fields, strict=True)
    ]
    await connection.execute(sight.rewrite({name: bindparam(f"new_{name}") for name in fields[0]}), rows)


def _fields(record: Record, terms: Sequence[str]) -> dict[str, Any]:
    return {
        "author": record.author,
        "timestamp": record.timestamp,
        "content": record.content,
        "text": record.text,
        "metadata": record.metadata,
        "term_count": len(terms),
    }


async def _add_vectors(
    connection: AsyncConnection,
    dialect: Dialect,
    scope_id: int,
    model_id: int,
    batch: Batch,
    here: Mapping[str, Known],
    row_ids: Mapping[str, int],
    vectors: Mapping[str, Vector | None],
) -> None:
    rows = [
        dialect.vector_parameters(row_ids[record.id], vector)
        for record in batch.records
        if _needs_vector(record, here.get(record.id), batch.existing) and (vector := vectors.get(record.id)) is not None
    ]
    if rows:
        await connection.execute(dialect.vector_insert(scope_id, model_id), rows)


def _vector_of_entry(model_id: int) -> ColumnElement[bool]:
    return and_(
        EmbeddingRow.scope_id == EntryRow.scope_id,
        EmbeddingRow.model_id == model_id,
        EmbeddingRow.entry_id == EntryRow.id,
    )


def _chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + _KEYS_PER_STATEMENT] for start in range(0, len(items), _KEYS_PER_STATEMENT))
