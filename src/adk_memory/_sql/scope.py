"""The scoping filter: every statement that reads or erases entries of a SQL backend is built here.

What goes through the entries of all users, to look after them, is in `walking`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    Label,
    Select,
    Text,
    Update,
    and_,
    any_,
    bindparam,
    delete,
    exists,
    false,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.orm import aliased

from adk_memory._scope import Scope
from adk_memory._sql.columns import UtcDateTime
from adk_memory._sql.prepared import execute
from adk_memory._sql.tables import ENTRIES, EmbeddingRow, EntryRow, ScopeRow

GLOBAL_KEY = ""
"""The project key of the global entries; a project id is never empty."""

_ANY_MODEL: ColumnElement[bool] = true()
_SEEN: tuple[Any, ...] = (
    ScopeRow.id,
    ScopeRow.project_key,
    ScopeRow.entry_count,
    ScopeRow.term_count,
    ScopeRow.version,
)


_EXPIRED = aliased(EntryRow)


class Sight:
    """The scopes that one call may touch, found once; statements made from it reach no entry outside of them.

    ``entry_count`` and ``term_count`` say how many entries with terms were in the scopes then, and of how many terms;
    ``version`` is that of a single scope.
    ``passing`` is the condition of a filter that narrows the sight, or `None`. ``now`` is the instant by which entries
    have expired that it does not see; a sight without one, for writing and erasing, sees all. ``some_expired`` says
    whether there are any.
    """

    def __init__(
        self,
        projects: Mapping[int, str | None],
        *,
        entry_count: int = 0,
        term_count: int = 0,
        version: int = 0,
        passing: ColumnElement[bool] | None = None,
        now: datetime | None = None,
        some_expired: bool = False,
    ) -> None:
        self._projects = dict(projects)
        self.scope_ids: list[Any] = sorted(projects)
        self.entry_count = entry_count
        self.term_count = term_count
        self.version = version
        self.passing = passing
        self.now: Any = now
        self.some_expired = some_expired
        self._gone: CTE | None = None
        self._found: ColumnElement[Any] | None = None
        self._range: Callable[[Any], ColumnElement[bool]] | None = None

    @classmethod
    def of_parameters(cls, scopes: int, *, some_expired: bool = False) -> Sight:
        """Return a sight for statements that are prepared: its scopes, and its instant, are those of `parameters`."""
        sight = cls({}, some_expired=some_expired)
        sight.now = _now()
        sight.scope_ids = [bindparam(name, type_=BigInteger) for name in _scope_parameters(scopes)]
        return sight

    @classmethod
    def of_scopes(cls, scopes: CTE) -> Sight:
        """Return a sight for a statement that finds the scopes itself; its instant is the parameter ``now``."""
        sight = cls({}, some_expired=True)
        sight.now = _now()
        sight._found = any_(func.array(select(scopes.c.id).scalar_subquery()))
        first, last = (select(end(scopes.c.id)).scalar_subquery() for end in (func.min, func.max))
        sight._range = lambda scope_id: scope_id.between(first, last)
        sight._gone = sight._expired(_EXPIRED.id, _EXPIRED.term_count).cte("expired")
        return sight

    @property
    def parameters(self) -> dict[str, Any]:
        return {**dict(zip(_scope_parameters(len(self.scope_ids)), self.scope_ids, strict=True)), "now": self.now}

    def __bool__(self) -> bool:
        return bool(self.scope_ids)

    def narrowed(self, passing: ColumnElement[bool] | None) -> Sight:
        """Return this sight without the entries that do not fulfil a condition; the counters stay."""
        narrowed = copy(self)
        narrowed.passing = passing
        return narrowed

    def with_expired(self) -> Sight:
        """Return this sight with all that it does not see because it has expired."""
        whole = copy(self)
        whole.now, whole.some_expired = None, False
        return whole

    def project_id(self, scope_id: int) -> str | None:
        return self._projects[scope_id]

    def entries(self, *columns: Any, scope_id: Any = EntryRow.scope_id) -> Select[Any]:
        """Select columns of the entries in sight; ``scope_id`` is the column of their scope, as a planner likes it."""
        return select(*columns).where(self.within(scope_id), self._living(), self._passing())

    def vectors(self, model_id: Any, *columns: Any, scope_id: Any = None) -> Select[Any]:
        """Select columns of the vectors in sight that one model made.

        ``scope_id`` is the column of their scope in a form that keeps the planner from looking them up by it.
        """
        in_scope = self.sought(EmbeddingRow.scope_id) if scope_id is None else self.within(scope_id)
        made = select(*columns).where(in_scope, EmbeddingRow.model_id == model_id)
        return self.narrow(made, EmbeddingRow.entry_id)

    def within(self, scope_id: Any) -> ColumnElement[bool]:
        """Return whether a scope is in sight."""
        within: ColumnElement[bool] = scope_id.in_(self.scope_ids) if self._found is None else scope_id == self._found
        return within

    def sought(self, scope_id: Any) -> ColumnElement[bool]:
        """Return whether a scope is in sight, in a form by which a planner looks up what it finds there."""
        # The range says nothing new, but Postgres expects few rows of one. Where there are few scopes in all it would
        # expect to find half of the table in those that it does not know yet, and read all of it.
        return self.within(scope_id) if self._range is None else and_(self.within(scope_id), self._range(scope_id))

    def narrow(self, found: Select[Any], entry_id: Any) -> Select[Any]:
        """Leave out the rows whose entries have expired, or do not pass the filter that narrows the sight."""
        if self.some_expired:
            gone = self._expired(_EXPIRED.id) if self._gone is None else select(self._gone.c.id)
            found = found.where(entry_id.not_in(gone))
        if self.passing is None:
            return found
        # Not an IN: Postgres, expecting few entries to pass, would search anew for each of many.
        passes = select(self.passing).where(self.within(EntryRow.scope_id), EntryRow.id == entry_id)
        return found.where(passes.correlate_except(EntryRow).scalar_subquery())

    def rewrite(self, values: Mapping[str, Any]) -> Update:
        """Rewrite columns of the entries in sight whose row ids are the parameters ``row_id``."""
        # An IN can't be executed with many sets of parameters.
        in_sight = or_(false(), *(EntryRow.scope_id == scope_id for scope_id in self.scope_ids))
        columns = {ENTRIES.c[name]: value for name, value in values.items()}
        return update(EntryRow).where(in_sight, self._passing(), EntryRow.id == bindparam("row_id")).values(columns)

    def erase_entries(self, condition: ColumnElement[bool]) -> Delete:
        return delete(EntryRow).where(self._in_sight(), condition)

    def erase_vectors(self, condition: ColumnElement[bool], of_model: ColumnElement[bool] = _ANY_MODEL) -> Delete:
        """Erase the vectors, of all models or some, of the entries in sight that fulfil the condition."""
        erased = self.entries(EntryRow.id).where(condition)
        return self.drop_vectors(and_(of_model, EmbeddingRow.entry_id.in_(erased)))

    def drop_vectors(self, condition: ColumnElement[bool]) -> Delete:
        """Erase the vectors in sight that fulfil the condition; their entries stay."""
        return delete(EmbeddingRow).where(self.within(EmbeddingRow.scope_id), condition)

    def erase_scopes(self) -> Delete:
        return delete(ScopeRow).where(self.within(ScopeRow.id))

    @property
    def passes(self) -> Label[bool]:
        """Whether an entry passes the filter that narrows the sight, as the column ``passes``."""
        return self._passing().label("passes")

    def _in_sight(self) -> ColumnElement[bool]:
        return and_(self.within(EntryRow.scope_id), self._passing())

    def expired_counts(self) -> tuple[ColumnElement[int], ColumnElement[int]]:
        """Return how many entries with terms have expired, and how many terms they have, as columns to select."""
        gone = self._expired(_EXPIRED.term_count).cte("expired") if self._gone is None else self._gone
        with_terms = select(func.count()).select_from(gone).where(gone.c.term_count > 0)
        terms = select(func.coalesce(func.sum(gone.c.term_count), 0)).select_from(gone)
        return with_terms.scalar_subquery(), terms.scalar_subquery()

    def _living(self) -> ColumnElement[bool]:
        return true() if self.now is None else lives(self.now)

    def _expired(self, *columns: Any) -> Select[Any]:
        gone = select(*columns).where(self.within(_EXPIRED.scope_id), _EXPIRED.expires_at <= self.now)
        return gone if self._range is None else gone.where(self._range(_EXPIRED.scope_id))

    def _passing(self) -> ColumnElement[bool]:
        return true() if self.passing is None else self.passing


def lives(now: Any) -> ColumnElement[bool]:
    """Return whether an entry has not expired by then."""
    return or_(EntryRow.expires_at.is_(None), EntryRow.expires_at > now)


def named_entries(named: FromClause, *columns: Any) -> Select[Any]:
    """Select columns of the entries that have what a row of ``named`` has, its scope above all.

    It is for a call that writes to many scopes. The columns of a row have the names of those of `EntryRow`.
    """
    same = [ENTRIES.c[column.key] == column for column in named.c if column.key != "scope_id"]
    return select(*columns).join_from(named, EntryRow, and_(EntryRow.scope_id == named.c.scope_id, *same))


def look(connection: Connection, scope: Scope, now: datetime | None = None, *, lock: bool = False) -> Sight:
    """Find the scopes that ``scope`` names and that exist; with ``lock`` no other writer changes them meanwhile.

    Who reads says what time it is ``now``. Locks are taken in the order of their ids, so that two callers can't wait
    for each other.
    """
    shape = (None if scope.projects is None else len(scope.projects), now is not None, lock)
    rows = execute(connection, _looking, shape, {**scope_parameters(scope), "now": now}).all()
    return Sight(
        {row.id: project_of(row.project_key) for row in rows},
        entry_count=sum(row.entry_count for row in rows),
        term_count=sum(row.term_count for row in rows),
        version=rows[0].version if rows else 0,
        now=now,
        some_expired=any(row.some_expired for row in rows),
    )


def _looking(projects: int | None, reading: bool, lock: bool) -> Select[Any]:
    found = scopes_of_parameters(projects).order_by(ScopeRow.id)
    gone = exists().where(_EXPIRED.scope_id == ScopeRow.id, _EXPIRED.expires_at <= _now()) if reading else false()
    found = found.add_columns(gone.label("some_expired"))
    return found.with_for_update() if lock else found


def living(connection: Connection, sight: Sight) -> Sight:
    """Return a sight whose counters leave out what has expired, as the words and the vectors in it do."""
    if not sight.some_expired:
        return sight
    entries, terms = connection.execute(select(*sight.expired_counts())).one()
    living = copy(sight)
    living.entry_count -= entries
    living.term_count -= terms
    return living


def scopes_of_parameters(projects: int | None) -> Select[Any]:
    """Select the scopes of `scope_parameters`, those of so many projects, or of all."""
    found: Select[Any] = select(*_SEEN)
    if projects is None:
        return found.where(ScopeRow.app_name == bindparam("app_name"), ScopeRow.user_id == bindparam("user_id"))
    fingerprints = [bindparam(f"project_{number}", type_=Text) for number in range(projects)]
    return found.where(ScopeRow.fingerprint.in_(fingerprints))


def scope_parameters(scope: Scope) -> dict[str, str]:
    if scope.projects is None:
        return {"app_name": scope.app_name, "user_id": scope.user_id}
    return {f"project_{number}": fingerprint(scope, project) for number, project in enumerate(scope.projects)}


def project_of(project_key: str) -> str | None:
    return None if project_key == GLOBAL_KEY else project_key


def claim(connection: Connection, dialect_insert: Any, scope: Scope, project_id: str | None) -> Sight:
    """Find or make the scope of one project, and lock it: its writers come one after the other."""
    statement = dialect_insert(ScopeRow).values(new_scope(scope, project_id))
    # An update that changes nothing is what locks the row, and returns it, where it is there already.
    statement = statement.on_conflict_do_update(
        index_elements=[ScopeRow.fingerprint], set_={"project_key": statement.excluded.project_key}
    )
    row = connection.execute(statement.returning(ScopeRow.id, ScopeRow.version)).one()
    return Sight({row.id: project_id}, version=row.version)


def count(connection: Connection, deltas: Mapping[int, tuple[int, int]]) -> None:
    """Note a change of scopes, which the caller has locked, and what it adds: entries with terms, and their terms."""
    statement = (
        update(ScopeRow)
        .where(ScopeRow.id == bindparam("scope"))
        .values(
            entry_count=ScopeRow.entry_count + bindparam("entries"),
            term_count=ScopeRow.term_count + bindparam("terms"),
            version=ScopeRow.version + 1,
        )
    )
    rows = [{"scope": scope_id, "entries": entries, "terms": terms} for scope_id, (entries, terms) in deltas.items()]
    if rows:
        connection.execute(statement, rows)


def new_scope(scope: Scope, project_id: str | None) -> dict[str, str | int]:
    """Return the row of one project of ``scope``, empty."""
    return {
        "fingerprint": fingerprint(scope, project_id),
        "app_name": scope.app_name,
        "user_id": scope.user_id,
        "project_key": GLOBAL_KEY if project_id is None else project_id,
        "entry_count": 0,
        "term_count": 0,
        "version": 0,
    }


def fingerprint(scope: Scope, project_id: str | None) -> str:
    identity = json.dumps([scope.app_name, scope.user_id, project_id])
    return hashlib.sha256(identity.encode()).hexdigest()


def _now() -> Any:
    return bindparam("now", type_=UtcDateTime)


def _scope_parameters(scopes: int) -> list[str]:
    return [f"scope_{number}" for number in range(scopes)]
