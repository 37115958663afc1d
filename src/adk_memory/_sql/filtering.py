"""A filter as a condition on the rows of entries; it agrees with `Filter.passes` on every row."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, not_, or_, true

from adk_memory._sql.dialect import Dialect
from adk_memory._sql.scope import GLOBAL_KEY
from adk_memory._sql.tables import EntryRow
from adk_memory.errors import ValidationError
from adk_memory.filters import AllOf, AnyOf, Author, Filter, Metadata, Not, Session, Time


def condition(filter: Filter, dialect: Dialect) -> ColumnElement[bool]:
    """Return what an entry has to fulfil; it is true or false for every entry, never NULL."""
    match filter:
        case AllOf(filters):
            return and_(*(condition(part, dialect) for part in filters))
        case AnyOf(filters):
            return or_(*(condition(part, dialect) for part in filters))
        case Not(negated):
            return not_(condition(negated, dialect))
    return _single(filter, dialect)


def _single(filter: Filter, dialect: Dialect) -> ColumnElement[bool]:
    match filter:
        case Metadata():
            return dialect.metadata_condition(filter)
        case Author(names):
            return EntryRow.author.in_(names)
        case Session(ids):
            return EntryRow.session_key.in_([GLOBAL_KEY if session_id is None else session_id for session_id in ids])
        case Time(since, before):
            from_then = true() if since is None else EntryRow.timestamp >= since
            return and_(from_then, true() if before is None else EntryRow.timestamp < before)
    raise ValidationError(f"no condition is known for {type(filter).__name__}")
