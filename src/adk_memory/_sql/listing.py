"""Lists of memories: the newest first, from the beginning or from where a page ended."""

from __future__ import annotations

from sqlalchemy import BigInteger, ColumnElement, Connection, and_, func, literal, or_

from adk_memory._paging import Place
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.recall import ENTRY_COLUMNS, memory
from adk_memory._sql.scope import Sight
from adk_memory._sql.tables import EntryRow
from adk_memory.types import Memory


def newest_first(
    connection: Connection, sight: Sight, limit: int, after: Place | None = None
) -> tuple[list[Memory], Place | None]:
    """Return up to ``limit`` memories in sight, and where they end if more follow."""
    statement = sight.entries(*ENTRY_COLUMNS).order_by(EntryRow.timestamp.desc(), EntryRow.id.desc()).limit(limit + 1)
    rows = connection.execute(statement if after is None else statement.where(_after(after))).all()
    last = rows[limit - 1] if 0 < limit < len(rows) else None
    memories = [memory(row, sight) for row in rows[:limit]]
    return memories, None if last is None else Place(last.timestamp, last.id)


def entries_in_sight(connection: Connection, sight: Sight) -> int:
    if not sight.some_expired:
        sight = sight.with_expired()  # then an index has all that is counted
    counted: int = connection.execute(sight.entries(func.count(EntryRow.id))).scalar_one()
    return counted


def next_arrivals(
    connection: Connection, dialect: Dialect, sight: Sight, after: int, limit: int
) -> tuple[list[Memory], int]:
    """Return the next memories in sight in order of arrival, and the number of the last; none at the end."""
    number = dialect.arrival_in_scope
    arrived = sight.entries(EntryRow.id).where(number > after).order_by(number).limit(limit)
    those = sight.entries(*ENTRY_COLUMNS).where(EntryRow.id.in_(arrived.correlate(None))).order_by(EntryRow.id)
    rows = connection.execute(those).all()
    return [memory(row, sight) for row in rows], rows[-1].id if rows else after


def _after(place: Place) -> ColumnElement[bool]:
    # In this form both databases walk down the index of a scope from the place on.
    arrived_before = or_(EntryRow.timestamp < place.instant, EntryRow.id < literal(place.arrival, BigInteger))
    return and_(EntryRow.timestamp <= place.instant, arrived_before)
