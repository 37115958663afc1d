"""Walking through the entries of all users, in bounded steps: what looks after a whole store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal,
    not_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory._sql.dialect import Dialect
from adk_memory._sql.scope import Sight, project_of
from adk_memory._sql.tables import ENTRIES, EntryRow, ScopeRow
from adk_memory.errors import ConfigurationError

_ENTRIES_PER_STEP = 500
_TERMS_PER_STEP = 50_000


async def require_all(engine: AsyncEngine, dialect: Dialect) -> None:
    """Raise a ConfigurationError where the database hides entries from this role: the walk would miss them."""
    await dialect.run(engine, dialect.look_around)
    if dialect.bound:
        raise ConfigurationError(
            "row-level security hides the entries of others from this role: only the owner of the tables can do this"
        )


def hold(connection: Connection, which: ColumnElement[bool]) -> Sight:
    """Lock the scopes, of any user, that fulfil a condition, in the order of `look`."""
    columns = (ScopeRow.id, ScopeRow.project_key, ScopeRow.entry_count)
    rows = connection.execute(select(*columns).where(which).order_by(ScopeRow.id).with_for_update()).all()
    projects = {row.id: project_of(row.project_key) for row in rows}
    return Sight(projects, entry_count=sum(row.entry_count for row in rows))


def everyones(*columns: Any) -> Select[Any]:
    """Select columns of the entries of every user: for what looks after the whole database, and returns none of it."""
    return select(*columns).select_from(EntryRow)


def count_of_all(connection: Connection) -> int:
    return connection.scalar(everyones(func.count())) or 0


def places(order: Sequence[Any], after: Sequence[int]) -> Select[Any]:
    """Select where entries are and how many terms they have, of every user: to walk through all, in some order."""
    found = everyones(EntryRow.scope_id, EntryRow.id, EntryRow.term_count)
    return found.where(beyond(order, after)).order_by(*order)


def beyond(order: Sequence[Any], place: Sequence[int]) -> ColumnElement[bool]:
    """Return whether an entry comes later in the order of these columns than those values of them."""
    later: ColumnElement[bool] = tuple_(*order) > tuple_(*(literal(value, BigInteger) for value in place))
    return later


def recount(connection: Connection, term_counts: Mapping[tuple[int, int], int]) -> None:
    """Note how many terms entries have, which are named by the ids of their scope, locked by the caller, and row."""
    this = (EntryRow.scope_id == bindparam("scope"), EntryRow.id == bindparam("row_id"))
    rows = [{"scope": scope_id, "row_id": row_id, "terms": terms} for (scope_id, row_id), terms in term_counts.items()]
    if rows:
        connection.execute(update(ENTRIES).where(*this).values(term_count=bindparam("terms")), rows)


def scopes_with_expired(after: int, now: datetime) -> Select[Any]:
    """Select the ids of scopes beyond one that hold entries which have expired, in their order."""
    gone = exists().where(EntryRow.scope_id == ScopeRow.id, EntryRow.expires_at <= now)
    return select(ScopeRow.id).where(ScopeRow.id > after, gone).order_by(ScopeRow.id)


@dataclass(frozen=True, slots=True)
class Step:
    """The next entries: their ``rows`` as `places` selects them, the place of the last, and who is one of them."""

    rows: Sequence[Any]
    last: tuple[int, ...]
    passed: ColumnElement[bool]


def step(connection: Connection, order: Sequence[Any], after: Sequence[int]) -> Step | None:
    """Return the entries that come after a place, no more than can be held at once; `None` at the end."""
    rows = _bounded(connection.execute(places(order, after).limit(_ENTRIES_PER_STEP)).all())
    if not rows:
        return None
    last = tuple(getattr(rows[-1], column.key) for column in order)
    return Step(rows, last, and_(beyond(order, after), not_(beyond(order, last))))


def _bounded(found: Sequence[Any]) -> Sequence[Any]:
    """Return the first of the entries, at least one, that have as many terms as a step may: texts can be long."""
    terms = accumulate(row.term_count for row in found)
    return found[: max(1, sum(total <= _TERMS_PER_STEP for total in terms))]
