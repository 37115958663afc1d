"""Erasing entries with their index entries and vectors."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, func, select

from adk_memory import _analysis
from adk_memory._sql.dialect import Dialect, chunks
from adk_memory._sql.scope import Sight, count
from adk_memory._sql.tables import EntryRow


def erase(connection: Connection, dialect: Dialect, sight: Sight, condition: ColumnElement[bool]) -> int:
    """Erase the entries in sight that fulfil the condition, and all that was made from them; return how many."""
    if not sight:
        return 0
    counted = sight.entries(EntryRow.scope_id, -func.count(), -func.sum(EntryRow.term_count))
    counted = counted.where(condition, EntryRow.term_count > 0).group_by(EntryRow.scope_id)
    lost = {scope_id: (entries, terms) for scope_id, entries, terms in connection.execute(counted)}
    count(connection, dict.fromkeys(sight.scope_ids, (0, 0)) | lost)
    connection.execute(sight.erase_vectors(condition))
    connection.execute(dialect.unindex(sight, sight.entries(EntryRow.id).where(condition)))
    return connection.execute(sight.erase_entries(condition)).rowcount


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
