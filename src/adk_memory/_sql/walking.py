"""Walking through the entries of all users, in bounded steps: what looks after a whole store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, bindparam, exists, literal, select, tuple_, update

from adk_memory._sql.scope import Sight, project_of
from adk_memory._sql.tables import ENTRIES, EntryRow, ScopeRow


def hold(connection: Connection, which: ColumnElement[bool]) -> Sight:
    """Lock the scopes, of any user, that fulfil a condition, in the order of `look`."""
    columns = (ScopeRow.id, ScopeRow.project_key, ScopeRow.entry_count)
    rows = connection.execute(select(*columns).where(which).order_by(ScopeRow.id).with_for_update()).all()
    projects = {row.id: project_of(row.project_key) for row in rows}
    return Sight(projects, entry_count=sum(row.entry_count for row in rows))


def places(order: Sequence[Any], after: Sequence[int]) -> Select[Any]:
    """Select where entries are and how many terms they have, of every user: to walk through all, in some order."""
    columns: tuple[Any, ...] = (EntryRow.scope_id, EntryRow.id, EntryRow.term_count)
    return select(*columns).where(beyond(order, after)).order_by(*order)


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
