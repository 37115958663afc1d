"""Storing batches of many sessions, of many scopes, at once: each step of it is one statement for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from adk_memory._expiry import Lifetime
from adk_memory._ranking import Vector
from adk_memory._records import session_records, single_records
from adk_memory._scope import Scope
from adk_memory._sessions import SessionEntries
from adk_memory._sql.dialect import Dialect, chunks
from adk_memory._sql.scope import GLOBAL_KEY, Sight, fingerprint, lives, named_entries, new_scope
from adk_memory._sql.tables import EntryRow, ScopeRow
from adk_memory._sql.writing import KNOWN_COLUMNS, Batch, Plan, erase_expired, planned, with_vectors, write_known
from adk_memory.embedding import Embedder
from adk_memory.types import Existing

Sights = Mapping[str, Sight]
"""The sight of each scope that is there, by its fingerprint."""


class ScopesErasedError(Exception):
    """Raised in a transaction, which it undoes: to make a scope anew, with locks in hand, could wait in a circle."""


def batch_of(
    item: SessionEntries, existing: Existing, lifetime: Lifetime, now: datetime, embedder: Embedder | None
) -> Batch:
    """Return what storing an item at this instant stores."""
    scope = Scope.erasing(item.app_name, item.user_id, item.project_id)
    session_key = GLOBAL_KEY if item.session_id is None else item.session_id
    if item.session_id is None:
        records = single_records(item.entries, existing, embedder)
    else:
        _, records = session_records(item.entries, item.session_id, item.project_id, existing, item.positions, embedder)
    return Batch(scope, item.project_id, session_key, lifetime.dated(records, now), existing, now)


def look_at_all(connection: Connection, dialect: Dialect, batches: Sequence[Batch], *, lock: bool = False) -> Sights:
    """Find those scopes of the batches that are there; see `look`."""
    projects = {_fingerprint(batch): batch.project_id for batch in batches}
    found = select(ScopeRow.id, ScopeRow.fingerprint).order_by(ScopeRow.id)
    found = found.with_for_update() if lock else found
    return {
        row.fingerprint: Sight({row.id: projects[row.fingerprint]})
        for wanted in chunks(list(projects))
        for row in connection.execute(found.where(dialect.among(ScopeRow.fingerprint, wanted)))
    }


def claim_all(connection: Connection, dialect: Dialect, batches: Sequence[Batch]) -> Sights:
    """Find or make the scopes of the batches, and lock them: their writers come one after the other.

    Raises:
        ScopesErasedError: one was erased in the meantime.
    """
    rows = {_fingerprint(batch): new_scope(batch.scope, batch.project_id) for batch in batches}
    missing = rows.keys() - look_at_all(connection, dialect, batches)
    if missing:
        new = dialect.insert(ScopeRow).on_conflict_do_nothing(index_elements=[ScopeRow.fingerprint])
        # Who makes the same ones waits; if all do it in one order, nobody waits for each other.
        connection.execute(new, [rows[fingerprint] for fingerprint in sorted(missing)])
    locked = look_at_all(connection, dialect, batches, lock=True)
    if len(locked) < len(rows):
        raise ScopesErasedError
    return locked


def plan_all(
    connection: Connection, dialect: Dialect, sights: Sights, batches: Sequence[Batch], model_id: int | None
) -> list[Plan]:
    """Look up what each batch meets in its scope; no two of them are of one session, or hold the same entry."""
    found = [(batch, sights.get(_fingerprint(batch), Sight({}))) for batch in batches]
    sessions = [_session(batch, sight) for batch, sight in found if sight and batch.session_key]
    now = batches[0].now
    last = {_session_of(row): row for row in _last_rows(connection, dialect, sessions, now, model_id)}
    entries = [(*_session(batch, sight), record.id) for batch, sight in found if sight for record in batch.records]
    known = {(*_session_of(row), row.entry_key): row for row in _known_rows(connection, dialect, entries, model_id)}
    plans = []
    for batch, sight in found:
        session = _session(batch, sight)
        met = [known.get((*session, record.id)) for record in batch.records]
        plans.append(planned(batch, sight, model_id, filter(None, [*met, last.get(session)])))
    return plans


def store_all(
    connection: Connection, dialect: Dialect, plans: Sequence[Plan], vectors: Sequence[Mapping[str, Vector | None]]
) -> None:
    """Write what is planned into scopes that the caller has claimed, with ``vectors`` by id for each plan."""
    for plan in plans:
        erase_expired(connection, dialect, plan)
    additions = [plan.addition(by_id) for plan, by_id in zip(plans, vectors, strict=True)]
    additions = [addition for addition in additions if addition.entries]
    if additions:
        dialect.add_all(connection, additions)
    for plan, by_id in zip(plans, vectors, strict=True):
        write_known(connection, dialect, plan, by_id)


def _last_rows(
    connection: Connection, dialect: Dialect, sessions: Sequence[tuple[int, str]], now: datetime, model_id: int | None
) -> Iterator[Any]:
    """Yield the last entry of each session that has one which has not expired."""
    session = (EntryRow.scope_id, EntryRow.session_key)
    for wanted in chunks(sessions):
        position = func.max(EntryRow.position).label("position")
        last = named_entries(dialect.given(session, wanted), *session, position).where(lives(now)).group_by(*session)
        yield from connection.execute(with_vectors(named_entries(last.subquery(), *KNOWN_COLUMNS), model_id))


def _known_rows(
    connection: Connection, dialect: Dialect, entries: Sequence[tuple[int, str, str]], model_id: int | None
) -> Iterator[Any]:
    """Yield the entries that are there."""
    columns = (EntryRow.scope_id, EntryRow.session_key, EntryRow.entry_key)
    for wanted in chunks(entries):
        known = named_entries(dialect.given(columns, wanted), *KNOWN_COLUMNS)
        yield from connection.execute(with_vectors(known, model_id))


def _session(batch: Batch, sight: Sight) -> tuple[int, str]:
    return max(sight.scope_ids, default=0), batch.session_key  # no scope has the number 0


def _session_of(row: Any) -> tuple[int, str]:
    return row.scope_id, row.session_key


def _fingerprint(batch: Batch) -> str:
    return fingerprint(batch.scope, batch.project_id)
