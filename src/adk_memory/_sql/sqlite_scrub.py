"""Removing from a SQLite file what erased entries left behind in it, and in the log beside it.

``secure_delete`` overwrites rows and pages that are freed. It does not reach three things: FTS5 keeps the words of
erased entries in its older segments until it merges these; when SQLite moves cells between pages, as in an index that
grows, copies of them stay in the free space of the page that they left; and the write-ahead log keeps whole pages as
they were. So the index is merged into one segment, the file is rewritten, and the log is emptied.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, Protocol

from sqlalchemy import Connection, exc

from adk_memory._sql.dialect import Result
from adk_memory._sql.exclusive import is_busy
from adk_memory._sql.tables import SEARCH_TABLE
from adk_memory.erasure import ScrubReport

_PAGES_PER_STEP: Final = 100
"""So many pages of the index are merged in one transaction, for some 15 ms: other writers wait for it."""
_REST: Final = 0.5
"""For so much of the time that a step took, others have the database to themselves."""
_PATIENCE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_MERGE: Final = f"INSERT INTO {SEARCH_TABLE}({SEARCH_TABLE}, rank) VALUES ('merge', ?)"  # noqa: S608
# VACUUM may give other row ids to tables that don't name theirs, and others may refer to these.
_UNSAFE_TO_REWRITE: Final = """
    SELECT t.name FROM sqlite_master AS t
    WHERE t.type = 'table' AND t.name NOT GLOB 'adk_memory_*' AND t.name NOT GLOB 'sqlite_*'
    AND t.sql NOT LIKE 'CREATE VIRTUAL %' AND t.sql NOT LIKE '%WITHOUT ROWID%'
    AND (SELECT group_concat(upper(c.type)) FROM pragma_table_info(t.name) AS c WHERE c.pk > 0) IS NOT 'INTEGER'
"""


class Hop(Protocol):
    """Does work on a connection, in a transaction that begins so, or in none."""

    async def __call__(self, begin: str | None, work: Callable[[Connection], Result]) -> Result: ...


async def scrub(hop: Hop, on_progress: Callable[[int, int], None] | None) -> ScrubReport:
    """Remove what erased entries left behind; what is done is done, if it is interrupted."""
    report = _Progress(on_progress, steps=2 + await hop("BEGIN", _index_pages) // _PAGES_PER_STEP)
    pages = -_PAGES_PER_STEP  # negative: take all segments that there are now into one merge
    while True:
        started = time.monotonic()
        if not await hop("BEGIN IMMEDIATE", partial(_merge, pages=pages)):
            break
        report.step(at_least=2)
        pages = _PAGES_PER_STEP
        await asyncio.sleep(_REST * (time.monotonic() - started))
    left = await _rewrite(hop)
    report.step(at_least=1)
    left += await _empty_log(hop)
    report.end()
    return ScrubReport(tuple(left))


def _index_pages(connection: Connection) -> int:
    return int(connection.exec_driver_sql(f"SELECT count(*) FROM {SEARCH_TABLE}_data").scalar_one())  # noqa: S608


def _merge(connection: Connection, *, pages: int) -> bool:
    """Merge some pages of the index; return whether there was anything to merge."""
    with _overwriting(connection):
        before = _changes(connection)
        connection.exec_driver_sql(_MERGE, (pages,))
        return _changes(connection) - before > 1  # the statement itself is one


async def _rewrite(hop: Hop) -> list[str]:
    if await hop("BEGIN", lambda connection: connection.exec_driver_sql(_UNSAFE_TO_REWRITE).first()):
        return [
            "copies of ids and texts may be in free space of the file: it has tables of others, without an INTEGER "
            "PRIMARY KEY, to which VACUUM may give other row ids; if they bear that, run VACUUM yourself"
        ]
    try:
        await hop(None, lambda connection: connection.exec_driver_sql("VACUUM").close())
    except exc.OperationalError as error:
        if not is_busy(error):
            raise
        return ["copies of ids and texts may be in free space of the file: others kept it locked; scrub again"]
    return []


async def _empty_log(hop: Hop) -> list[str]:
    """Write the log into the file and cut it to nothing, as soon as nobody reads from it."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while await hop(None, _checkpoint):
        if time.monotonic() > deadline:
            return ["the write-ahead log still has erased pages: others kept reading from it; scrub again"]
        await asyncio.sleep(_POLL_SECONDS)
    return []


def _checkpoint(connection: Connection) -> bool:
    """Return whether somebody was in the way."""
    try:
        busy, _log, _done = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    except exc.OperationalError as error:
        if not is_busy(error):
            raise
        return True
    return bool(busy)


def _changes(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT total_changes()").scalar_one())


@contextmanager
def _overwriting(connection: Connection) -> Iterator[None]:
    """Overwrite what is freed, on a connection too that another one has opened."""
    before = connection.exec_driver_sql("PRAGMA secure_delete").scalar_one()
    connection.exec_driver_sql("PRAGMA secure_delete = ON").close()
    try:
        yield
    finally:
        connection.exec_driver_sql(f"PRAGMA secure_delete = {'FAST' if before == 2 else int(before)}").close()


class _Progress:
    def __init__(self, report: Callable[[int, int], None] | None, *, steps: int) -> None:
        self._report = report
        self._done = 0
        self._steps = steps

    def step(self, *, at_least: int) -> None:
        """Report a step, after which as many follow as was expected, or ``at_least`` so many."""
        self._done += 1
        self._steps = max(self._steps, self._done + at_least)
        self._tell()

    def end(self) -> None:
        self._done = self._steps
        self._tell()

    def _tell(self) -> None:
        if self._report is not None:
            self._report(self._done, self._steps)
