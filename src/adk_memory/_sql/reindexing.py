"""Making the keyword index anew from the texts of the entries, batch by batch, while others search and write.

How it stands is kept in `MetaRow`. ``analyser`` is the version of the analyser that made the whole index; while it is
made anew, ``analyser_progress`` is the version that makes it, the number of entries done, and the place of the last.
From the moment that this is written, an older analyser writes no more (see `refuse_newer`), so entries that the walk
has passed, or that come behind it, need no second look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import _analysis
from adk_memory._sql.dialect import Dialect, Result
from adk_memory._sql.failures import translated
from adk_memory._sql.prepared import execute
from adk_memory._sql.scope import Sight, count
from adk_memory._sql.tables import EntryRow, MetaRow, ScopeRow
from adk_memory._sql.walking import count_of_all, hold, recount, require_all, step
from adk_memory.errors import SchemaTooNewError

_ANALYSER: Final = "analyser"
_PROGRESS: Final = "analyser_progress"
_REST = 0.5
"""For so much of the time that a batch took, others have the database to themselves.

Without it, a writer on SQLite, where nobody queues, waited .4 s in the median; with it, 5 ms.
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an analyser has come: the number of entries, and the columns of the last, in the dialect's order."""

    version: int
    done: int
    after: tuple[int, ...]

    @classmethod
    def read(cls, stored: str) -> Progress:
        version, done, *after = map(int, stored.split(":"))
        return cls(version, done, tuple(after))

    def __str__(self) -> str:
        return ":".join(map(str, (self.version, self.done, *self.after)))


def index_is_outdated(connection: Connection) -> bool:
    """Whether the index, or a part of it, is of an older analyser, or is not yet made anew.

    Raises:
        SchemaTooNewError: it is, or is about to be, of a newer one.
    """
    rows = execute(connection, _stored, (), {"whole": _ANALYSER, "part": _PROGRESS})
    versions = {row.key: int(row.value.partition(":")[0]) for row in rows}
    _refuse_above(max(versions.values(), default=0))
    return versions.get(_ANALYSER) != _analysis.VERSION or _PROGRESS in versions


def refuse_newer(connection: Connection) -> None:
    """Raise a SchemaTooNewError where terms of this analyser would spoil the index of a newer one."""
    index_is_outdated(connection)


async def reindex_outdated(engine: AsyncEngine, dialect: Dialect) -> None:
    """Make the index anew where it is of an older analyser; raises as `index_is_outdated` does."""
    async with translated():
        outdated = await dialect.run(engine, index_is_outdated)
    if outdated:
        await reindex(engine, dialect)


async def reindex(
    engine: AsyncEngine,
    dialect: Dialect,
    *,
    from_scratch: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Make the index anew, or go on where that was interrupted; return how many entries this call indexed.

    Several calls at once share the work.
    """

    async def transact(work: Callable[[Connection], Result]) -> Result:
        async with translated():
            return await dialect.transact(engine, work)

    async with translated():
        await require_all(engine, dialect)
    await transact(partial(begin, dialect=dialect, from_scratch=from_scratch))
    total = 0
    if on_progress is not None:
        async with translated():
            total = await dialect.run(engine, count_of_all)
    indexed = 0
    while True:
        started = time.monotonic()
        batch = await transact(partial(index_batch, dialect=dialect))
        if batch is None:
            return indexed
        size, done = batch
        indexed += size
        if on_progress is not None:
            on_progress(done, max(done, total))
        await asyncio.sleep(_REST * (time.monotonic() - started))


def begin(connection: Connection, dialect: Dialect, *, from_scratch: bool) -> None:
    """Announce that this analyser makes the index anew, unless it is at it already.

    Raises:
        SchemaTooNewError: the index is, or is about to be, of a newer analyser.
    """
    start = Progress(_analysis.VERSION, 0, (0,) * len(dialect.order))
    # An update that changes nothing locks the row, and returns it, where it is there already.
    announced = dialect.insert(MetaRow).values(key=_PROGRESS, value=str(start))
    announced = announced.on_conflict_do_update(index_elements=[MetaRow.key], set_={"value": MetaRow.value})
    progress = Progress.read(connection.execute(announced.returning(MetaRow.value)).scalar_one())
    refuse_newer(connection)
    if from_scratch or progress.version < start.version or progress.done == 0:
        # Who began to write before the announcement ends now, and is seen by the batches.
        dialect.quiesce(connection)
        if from_scratch:
            dialect.discard_index(connection)
        _note(connection, start)


def index_batch(connection: Connection, dialect: Dialect) -> tuple[int, int] | None:
    """Index the next entries; return how many there were, and how many are done now, or `None` once all are."""
    stored = connection.scalar(select(MetaRow.value).where(MetaRow.key == _PROGRESS).with_for_update())
    if stored is None:
        return None  # another process came to the end
    progress = Progress.read(stored)
    _refuse_above(progress.version)
    found = step(connection, dialect.order, progress.after)
    if found is None:
        _finish(connection, dialect)
        return None
    # Until now entries may have been erased or rewritten, and whole scopes too.
    sight = hold(connection, dialect.among(ScopeRow.id, sorted({row.scope_id for row in found.rows})))
    if sight:
        _index(connection, dialect, sight, found.passed)
    progress = Progress(progress.version, progress.done + len(found.rows), found.last)
    _note(connection, progress)
    return len(found.rows), progress.done


def _index(connection: Connection, dialect: Dialect, sight: Sight, which: ColumnElement[bool]) -> None:
    entries = sight.entries(EntryRow.scope_id, EntryRow.id, EntryRow.text, EntryRow.term_count).where(which)
    indexed = [(row, _analysis.terms(row.text)) for row in connection.execute(entries)]
    connection.execute(dialect.unindex(sight, sight.entries(EntryRow.id).where(which)))
    index = [dialect.index(row.scope_id, row.id, terms) for row, terms in indexed if terms]
    if index:
        connection.execute(dialect.index_statement, index)
    term_counts: dict[tuple[int, int], int] = {}
    deltas = dict.fromkeys(sight.scope_ids, (0, 0))
    for row, terms in indexed:
        if row.term_count != len(terms):
            term_counts[row.scope_id, row.id] = len(terms)
            held, counted = deltas[row.scope_id]
            held += bool(terms) - bool(row.term_count)
            deltas[row.scope_id] = held, counted + len(terms) - row.term_count
    recount(connection, term_counts)
    count(connection, deltas)


def _finish(connection: Connection, dialect: Dialect) -> None:
    version = str(_analysis.VERSION)
    made = dialect.insert(MetaRow).values(key=_ANALYSER, value=version)
    connection.execute(made.on_conflict_do_update(index_elements=[MetaRow.key], set_={"value": version}))
    connection.execute(delete(MetaRow).where(MetaRow.key == _PROGRESS))


def _note(connection: Connection, progress: Progress) -> None:
    connection.execute(update(MetaRow).where(MetaRow.key == _PROGRESS).values(value=str(progress)))


def _stored() -> Select[Any]:
    # Not an IN, which is compiled anew for each list.
    these = or_(MetaRow.key == bindparam("whole"), MetaRow.key == bindparam("part"))
    columns: tuple[Any, ...] = (MetaRow.key, MetaRow.value)
    return select(*columns).where(these)


def _refuse_above(version: int) -> None:
    if version > _analysis.VERSION:
        raise SchemaTooNewError(
            f"the keyword index of the database is of analyser {version}, this version of adk-memory has "
            f"{_analysis.VERSION}: what it writes would not be found; install a newer adk-memory"
        )
