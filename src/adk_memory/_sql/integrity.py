"""Whether what is stored agrees with itself: counters, places, index and vectors with the entries.

Nothing of what is looked at comes out, only how much of it is wrong. Others may write meanwhile: what belongs together
is read by one statement each time, so a write is seen whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, Select, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import _analysis, _clock
from adk_memory._sql.dialect import Dialect, Result
from adk_memory._sql.failures import translated
from adk_memory._sql.scope import GLOBAL_KEY, lives
from adk_memory._sql.tables import EmbeddingRow, EntryRow, ScopeRow
from adk_memory._sql.walking import count_of_all, everyones, require_all, step

FAULTS: Final[Mapping[str, str]] = {
    "counters": "scopes whose counters are not what their entries say",
    "entries_without_scope": "entries without a scope",
    "shared_positions": "positions of a session that several entries have",
    "not_indexed": "entries with words that are not in the keyword index",
    "indexed_otherwise": "entries whose terms are not those of their text",
    "index_without_entry": "index entries without an entry",
    "vectors_without_entry": "vectors without an entry",
    "damage": "complaints of the database's own checks",
}
"""What can be wrong, by the names under which it is counted."""


async def find_faults(
    engine: AsyncEngine, dialect: Dialect, *, on_progress: Callable[[int, int], None] | None = None
) -> dict[str, int]:
    """Return how many there are of each of `FAULTS`, 0 included.

    ``on_progress`` is called with the number of entries that were looked at and of all. On SQLite other writers wait
    while FTS5 checks its index. Where the index is of another analyser, or is just made anew, much is counted that
    `reindex` will put right.
    """

    async def run(work: Callable[[Connection], Result]) -> Result:
        async with translated():
            return await dialect.run(engine, work)

    async with translated():
        await require_all(engine, dialect)
    found = Counter(dict.fromkeys(FAULTS, 0))
    for kind, statement in _counts(dialect).items():
        found[kind] += await run(partial(_counted, statement=statement))
    for check in dialect.own_checks:
        found["damage"] += await run(check)
    total = 0 if on_progress is None else await run(count_of_all)
    done, after = 0, (0,) * len(dialect.order)
    while looked := await run(partial(_look, dialect=dialect, after=after)):
        seen, after, wrong = looked
        done += seen
        found.update(wrong)
        if on_progress is not None:
            on_progress(done, max(done, total))
    return {kind: found[kind] for kind in FAULTS}


def _look(
    connection: Connection, dialect: Dialect, after: tuple[int, ...]
) -> tuple[int, tuple[int, ...], Counter[str]] | None:
    """Compare the next entries with what the index has of them."""
    following = step(connection, dialect.order, after)
    if following is None:
        return None
    entries = everyones(EntryRow.scope_id, EntryRow.id, EntryRow.text, EntryRow.term_count).where(following.passed)
    wrong: Counter[str] = Counter()
    for row in connection.execute(dialect.with_terms(entries, outer=True)):
        terms = _analysis.terms(row.text)
        indexed = dialect.index(row.scope_id, row.id, terms)["terms"] if terms else None
        if row.terms is None and terms:
            wrong["not_indexed"] += 1
        elif row.terms != indexed or row.term_count != len(terms):
            wrong["indexed_otherwise"] += 1
    return len(following.rows), following.last, wrong


def _counted(connection: Connection, statement: Select[Any]) -> int:
    return connection.scalar(statement) or 0


def _counts(dialect: Dialect) -> dict[str, Select[Any]]:
    return {
        "counters": _wrong_counters(),
        "entries_without_scope": everyones(func.count()).where(
            ~select(ScopeRow.id).where(ScopeRow.id == EntryRow.scope_id).exists()
        ),
        "shared_positions": _shared_positions(),
        "index_without_entry": dialect.stray_index_entries(),
        "vectors_without_entry": _stray_vectors(),
    }


def _wrong_counters() -> Select[Any]:
    held = (
        everyones(EntryRow.scope_id, func.count().label("entries"), func.sum(EntryRow.term_count).label("terms"))
        .where(EntryRow.term_count > 0)
        .group_by(EntryRow.scope_id)
        .subquery()
    )
    wrong = or_(
        ScopeRow.entry_count != func.coalesce(held.c.entries, 0), ScopeRow.term_count != func.coalesce(held.c.terms, 0)
    )
    return select(func.count()).select_from(ScopeRow).outerjoin(held, held.c.scope_id == ScopeRow.id).where(wrong)


def _shared_positions() -> Select[Any]:
    place = (EntryRow.scope_id, EntryRow.session_key, EntryRow.position)
    # Single entries stand beside nothing, and what has expired leaves its place to what comes after it.
    in_sessions = everyones(*place).where(EntryRow.session_key != GLOBAL_KEY, lives(_clock.now()))
    shared = in_sessions.group_by(*place).having(func.count() > 1).subquery()
    return select(func.count()).select_from(shared)


def _stray_vectors() -> Select[Any]:
    its_entry = everyones(EntryRow.id).where(
        EntryRow.scope_id == EmbeddingRow.scope_id, EntryRow.id == EmbeddingRow.entry_id
    )
    return select(func.count()).select_from(EmbeddingRow).where(~its_entry.exists())
