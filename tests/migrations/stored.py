"""What is in the dumps of each released schema, and how they are made.

    PYTHONPATH=tests python -m migrations.stored

writes ``dumps/REVISION.sqlite.sql`` and ``dumps/REVISION.postgresql.sql`` for the schema that this version makes: once,
when a revision is released. Dumps are never made anew: they are what users have.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import asyncpg

from adk_memory import Content, MemoryEntry, MemoryService, SessionEntries, migrate, open_memory
from postgres_server import running_postgres

DUMPS: Final = Path(__file__).parent / "dumps"
APP: Final = "dumped"
_VIRTUAL_ROWS: Final = ('INSERT INTO "adk_memory_search_entry" ', 'INSERT INTO "adk_memory_search_term" ')
_OF_NO_USE: Final = ("\\", "--", "SET transaction_timeout")  # for psql, for readers, for Postgres 17 and newer
_START: Final = datetime(2026, 1, 1, 9, tzinfo=UTC)


class Letters:
    """Embeds a text as the number of times that it has each of eight letters."""

    model = "letters"
    dimensions = 8

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in "aeiourst"] for text in texts]


def items() -> list[SessionEntries]:
    """Return what is stored, of two users, in the global scope and in two projects."""
    return [
        SessionEntries(APP, "ana", "monday", _talk("kitchen", 6)),
        SessionEntries(APP, "ana", "monday", _talk("garden", 4), project_id="A"),
        SessionEntries(APP, "ana", "tuesday", _talk("\u5eb7\u666f", 3), project_id="B"),
        SessionEntries(
            APP, "ana", None, [MemoryEntry("The caf\u00e9 opens at 9 \U0001f375", "Ana", _START, "opening")]
        ),
        SessionEntries(APP, "o'Brien%_", "monday", _talk("boat", 5)),
    ]


def _talk(topic: str, turns: int) -> list[MemoryEntry]:
    return [
        MemoryEntry(
            Content("user", [f"Turn {turn} about the {topic}: walls and windows", {"data": {"turn": turn}}]),
            ("Ana", "assistant")[turn % 2],
            _START + timedelta(minutes=turn, microseconds=turn),
            f"{topic}-{turn}",
            {"turn": turn, "topic": topic},
            expires_at=_START.replace(year=2999) if turn == 0 else None,
        )
        for turn in range(turns)
    ]


async def fill(service: MemoryService) -> None:
    """Store the items."""
    await service.migrate()
    await service.add_many(items())


async def _of_url(url: str) -> None:
    async with open_memory(url, embedder=Letters()) as service:
        await fill(service)


def dump_sqlite() -> str:
    """Return a new SQLite database with the items, as SQL."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        asyncio.run(_of_url(f"sqlite:///{path}"))
        connection = sqlite3.connect(path)
        try:
            # The rows of a virtual table are in its shadow tables, which are dumped too.
            lines = [line for line in connection.iterdump() if not line.startswith(_VIRTUAL_ROWS)]
            return "\n".join(lines) + "\n"
        finally:
            connection.close()


def load_sqlite(path: Path, sql: str) -> None:
    """Make a file of a dump."""
    connection = sqlite3.connect(path)
    try:
        connection.executescript(sql)
    finally:
        connection.close()


def dump_postgres() -> str:
    """Return a new Postgres database with the items, as SQL."""
    with running_postgres() as server, server.database() as url:
        asyncio.run(_of_url(url))
        options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
        ran = subprocess.run(
            [os.environ.get("PG_DUMP", "pg_dump"), *options, url], capture_output=True, text=True, check=True
        )
    return "".join(line for line in ran.stdout.splitlines(keepends=True) if not line.startswith(_OF_NO_USE))


async def load_postgres(url: str, sql: str) -> None:
    """Fill an empty database with a dump."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


if __name__ == "__main__":
    DUMPS.mkdir(exist_ok=True)
    for name, dump in (("sqlite", dump_sqlite), ("postgresql", dump_postgres)):
        (DUMPS / f"{migrate.HEAD}.{name}.sql").write_text(dump())
