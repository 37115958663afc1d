"""What the tests of erasing see of a database, past the library."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adk_memory import MemoryEntry, MemoryService, SessionEntries

APP = "app"


def bytes_of(file: Path) -> bytes:
    """Return what is in a database file and in the files beside it."""
    return b"".join(path.read_bytes() for path in sorted(file.parent.glob(f"{file.name}*")))


@contextmanager
def raw(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file past the library; it commits by itself."""
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def checkpoint(file: Path) -> None:
    """Empty the write-ahead log into the file."""
    with raw(file) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def segments(file: Path) -> int:
    """Return how many segments the full-text index has."""
    with raw(file) as connection:
        [count] = connection.execute("SELECT count(DISTINCT segid) FROM adk_memory_search_entry_idx").fetchone()
    return int(count)


def fts5_is_sound(file: Path) -> bool:
    """Run the checks of SQLite and FTS5; the latter raises where index and content differ."""
    with raw(file) as connection:
        connection.execute(
            "INSERT INTO adk_memory_search_entry (adk_memory_search_entry, rank) VALUES ('integrity-check', 1)"
        )
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


async def remember(service: MemoryService, user: str, *texts: str, session: str = "s1") -> None:
    await service.add_session(APP, user, session, [MemoryEntry(text) for text in texts])


async def remember_many(service: MemoryService, *users: str, sessions: int = 20, entries: int = 4) -> None:
    """Remember sessions of users in an order that makes SQLite move much of what it has in its indexes."""
    order = [(user, number) for user in users for number in range(sessions)]
    random.Random(1).shuffle(order)
    await service.add_many(
        SessionEntries(
            APP, user, f"session-{number}-of-{user}",
            [MemoryEntry(f"{user} said word{n} tea {number}", id=f"{user}-{number}-{n}") for n in range(entries)],
        )
        for user, number in order
    )  # fmt: skip


def merge(file: Path) -> None:
    """Merge the full-text index into one segment, by FTS5's own command."""
    with raw(file) as connection:
        connection.execute("INSERT INTO adk_memory_search_entry (adk_memory_search_entry) VALUES ('optimize')")
