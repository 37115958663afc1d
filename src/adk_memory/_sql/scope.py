"""The scoping filter: every statement that reads or erases entries of a SQL backend is built here, and nowhere else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    Label,
    Select,
    Update,
    and_,
    bindparam,
    delete,
    false,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from adk_memory._scope import Scope
from adk_memory._sql.tables import ENTRIES, EmbeddingRow, EntryRow, ScopeRow

GLOBAL_KEY = ""
"""The project key of the global entries; a project id is never empty."""


class Sight:
    """The scopes that one call may touch, found once; statements made from it reach no entry outside of them.

    ``entry_count`` and ``term_count`` say how many entries with terms were in the scopes then, and of how many terms.
    ``passing`` is the condition of a filter that narrows the sight, or `None`.
    """

    def __init__(
        self,
        projects: Mapping[int, str | None],
        *,
        entry_count: int = 0,
        term_count: int = 0,
        passing: ColumnElement[bool] | None = None,
    ) -> None:
        self._projects = dict(projects)
        self.scope_ids = sorted(projects)
        self.entry_count = entry_count
        self.term_count = term_count
        self.passing = passing

    def __bool__(self) -> bool:
        return bool(self.scope_ids)

    def narrowed(self, passing: ColumnElement[bool] | None) -> Sight:
        """Return this sight without the entries that do not fulfil a condition; the counters stay."""
        return Sight(self._projects, entry_count=self.entry_count, term_count=self.term_count, passing=passing)

    def project_id(self, scope_id: int) -> str | None:
        return self._projects[scope_id]

    def entries(self, *columns: Any) -> Select[Any]:
        """Select columns of the entries in sight."""
        return select(*columns).where(self._in_sight())

    def vectors(self, model_id: int, *columns: Any) -> Select[Any]:
        """Select columns of the vectors in sight that one model made."""
        made = select(*columns).where(EmbeddingRow.scope_id.in_(self.scope_ids), EmbeddingRow.model_id == model_id)
        return self.narrow(made, EmbeddingRow.entry_id)

    def narrow(self, found: Select[Any], entry_id: Any) -> Select[Any]:
        """Leave out, where a filter narrows the sight, the rows whose entries do not pass it."""
        if self.passing is None:
            return found
        # Not an IN: Postgres, expecting few entries to pass, would search anew for each of many.
        passes = select(self.passing).where(EntryRow.scope_id.in_(self.scope_ids), EntryRow.id == entry_id)
        return found.where(passes.correlate_except(EntryRow).scalar_subquery())

    def rewrite(self, values: Mapping[str, Any]) -> Update:
        """Rewrite columns of the entries in sight whose row ids are the parameters ``row_id``."""
        # An IN can't be executed with many sets of parameters.
        in_sight = or_(false(), *(EntryRow.scope_id == scope_id for scope_id in self.scope_ids))
        columns = {ENTRIES.c[name]: value for name, value in values.items()}
        return update(EntryRow).where(in_sight, self._passing(), EntryRow.id == bindparam("row_id")).values(columns)

    def erase_entries(self, condition: ColumnElement[bool]) -> Delete:
        return delete(EntryRow).where(self._in_sight(), condition)

    def erase_vectors(self, condition: ColumnElement[bool]) -> Delete:
        """Erase the vectors, of all models, of the entries in sight that fulfil the condition."""
        erased = self.entries(EntryRow.id).where(condition)
        return delete(EmbeddingRow).where(EmbeddingRow.scope_id.in_(self.scope_ids), EmbeddingRow.entry_id.in_(erased))

    def erase_scopes(self) -> Delete:
        return delete(ScopeRow).where(ScopeRow.id.in_(self.scope_ids))

    @property
    def passes(self) -> Label[bool]:
        """Whether an entry passes the filter that narrows the sight, as the column ``passes``."""
        return self._passing().label("passes")

    def _in_sight(self) -> ColumnElement[bool]:
        return and_(EntryRow.scope_id.in_(self.scope_ids), self._passing())

    def _passing(self) -> ColumnElement[bool]:
        return true() if self.passing is None else self.passing


async def look(connection: AsyncConnection, scope: Scope, *, lock: bool = False) -> Sight:
    """Find the scopes that ``scope`` names and that exist; with ``lock`` no other writer changes them meanwhile.

    Locks are taken in the order of their ids, so that two callers can't wait for each other.
    """
    columns = select(ScopeRow.id, ScopeRow.project_key, ScopeRow.entry_count, ScopeRow.term_count)
    if scope.projects is None:
        found = columns.where(ScopeRow.app_name == scope.app_name, ScopeRow.user_id == scope.user_id)
    else:
        found = columns.where(ScopeRow.fingerprint.in_([fingerprint(scope, project) for project in scope.projects]))
    found = found.order_by(ScopeRow.id)
    rows = (await connection.execute(found.with_for_update() if lock else found)).all()
    return Sight(
        {row.id: None if row.project_key == GLOBAL_KEY else row.project_key for row in rows},
        entry_count=sum(row.entry_count for row in rows),
        term_count=sum(row.term_count for row in rows),
    )


async def count(connection: AsyncConnection, deltas: Mapping[int, tuple[int, int]]) -> None:
    """Add to the counters of scopes, which the caller has locked: entries with terms, and their terms, by scope."""
    statement = (
        update(ScopeRow)
        .where(ScopeRow.id == bindparam("scope"))
        .values(
            entry_count=ScopeRow.entry_count + bindparam("entries"),
            term_count=ScopeRow.term_count + bindparam("terms"),
        )
    )
    rows = [
        {"scope": scope_id, "entries": entries, "terms": terms}
        for scope_id, (entries, terms) in deltas.items()
        if entries or terms
    ]
    if rows:
        await connection.execute(statement, rows)


def new_scope(scope: Scope, project_id: str | None) -> dict[str, str | int]:
    """Return the row of one project of ``scope``, empty."""
    return {
        "fingerprint": fingerprint(scope, project_id),
        "app_name": scope.app_name,
        "user_id": scope.user_id,
        "project_key": GLOBAL_KEY if project_id is None else project_id,
        "entry_count": 0,
        "term_count": 0,
    }


def fingerprint(scope: Scope, project_id: str | None) -> str:
    identity = json.dumps([scope.app_name, scope.user_id, project_id])
    return hashlib.sha256(identity.encode()).hexdigest()
