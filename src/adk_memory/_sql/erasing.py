"""Erasing entries with their index entries and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from adk_memory import _analysis
from adk_memory._sql.dialect import Dialect, chunks
from adk_memory._sql.scope import Sight, count
from adk_memory._sql.tables import EmbeddingRow, EntryRow
from adk_memory.erasure import Erasure

_AT_ONCE: Final = 20_000
"""So many entries are erased in one transaction: on SQLite all others wait for it, some tenths of a second."""


def erase(connection: Connection, dialect: Dialect, sight: Sight, condition: ColumnElement[bool]) -> Erasure:
    """Erase the entries in sight that fulfil the condition, and all that was made from them; return what there was."""
    if not sight:
        return Erasure()
    counted = sight.entries(EntryRow.scope_id, -func.count(), -func.sum(EntryRow.term_count))
    counted = counted.where(condition, EntryRow.term_count > 0).group_by(EntryRow.scope_id)
    lost = {scope_id: (entries, terms) for scope_id, entries, terms in connection.execute(counted)}
    count(connection, dict.fromkeys(sight.scope_ids, (0, 0)) | lost)
    vectors = connection.execute(sight.erase_vectors(condition)).rowcount
    unindexed = connection.execute(dialect.unindex(sight, sight.entries(EntryRow.id).where(condition))).rowcount
    entries = connection.execute(sight.erase_entries(condition)).rowcount
    return Erasure(entries, vectors=vectors, index_entries=unindexed)


def erase_some(
    connection: Connection, dialect: Dialect, sight: Sight, condition: ColumnElement[bool]
) -> tuple[Erasure, bool]:
    """Erase as `erase` does, of very many entries the first; return what there was, and whether that was all."""
    first_left = None
    if sight.entry_count > _AT_ONCE:
        those = sight.entries(EntryRow.id).where(condition).order_by(EntryRow.id)
        first_left = connection.scalar(those.offset(_AT_ONCE).limit(1))
    if first_left is not None:
        condition = and_(condition, EntryRow.id < first_left)
    return erase(connection, dialect, sight, condition), first_left is None


def would_erase(connection: Connection, sight: Sight, condition: ColumnElement[bool]) -> Erasure:
    """Return what `erase` would return."""
    those = sight.entries(EntryRow.id).where(condition)
    counted = those.with_only_columns(func.count(), func.count(case((EntryRow.term_count > 0, 1))))
    entries, indexed = connection.execute(counted).one()
    of_them = (sight.within(EmbeddingRow.scope_id), EmbeddingRow.entry_id.in_(those))
    vectors = connection.execute(select(func.count()).select_from(EmbeddingRow).where(*of_them)).scalar_one()
    return Erasure(entries, vectors=vectors, index_entries=indexed)


def entries_with_every_word(connection: Connection, dialect: Dialect, sight: Sight, words: Sequence[str]) -> list[int]:
    """Return the row ids of the entries in sight that hold every word.

    The index knows stems and at most some hundred terms of a query, so what it finds is looked at once more.
    """
    if not sight or not words:
        return []
    terms = list(dict.fromkeys(map(_analysis.term, words)))[: _analysis.MAX_QUERY_TERMS]
    matched = dialect.matching(sight, dialect.query(sight, terms, every=True))
    row_ids = connection.scalars(select(matched.c.entry_id).order_by(matched.c.entry_id)).all()
    wanted = set(words)
    return [
        row.id
        for ids in chunks(row_ids)
        for row in connection.execute(sight.entries(EntryRow.id, EntryRow.text).where(dialect.among(EntryRow.id, ids)))
        if wanted.issubset(_analysis.words(row.text))
    ]
