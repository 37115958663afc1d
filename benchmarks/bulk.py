"""How fast many memories come in: `add_session` in a loop, `add_many`, and a table with a global HNSW index.

    python benchmarks/bulk.py [ENTRIES]

Entries have 25 words, sessions 10 or 50 entries, and there are 1,000 users, mixed. The vectors come out of a table, so
that no model is measured. Each way has a new database; the two tables beside it get 20,000 rows, one INSERT each or by
executemany, into an index that is there already, as it is in a product in use.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import asyncpg
import numpy as np

from adk_memory import MemoryEntry, MemoryService, SessionEntries, open_memory

ENTRIES: Final = 100_000
PEER_ROWS: Final = 20_000
USERS: Final = 1_000
WORDS: Final = 25
DIMENSIONS: Final = 384
_START: Final = datetime(2024, 1, 1, tzinfo=UTC)
_SEED: Final = 2026

Add = Callable[[MemoryService, Sequence[SessionEntries]], Awaitable[object]]


class TableEmbedder:
    """Finds vectors by the checksums of texts."""

    model = "benchmark-table"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._table = np.random.default_rng(_SEED).normal(size=(10_000, DIMENSIONS)).astype(np.float32)

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        return [self._table[crc32(text.encode()) % len(self._table)] for text in texts]


def sessions(entries: int, length: int) -> Iterator[SessionEntries]:
    """Yield sessions of so many entries, whose words are as frequent as Zipf's law has it."""
    random = np.random.default_rng(_SEED)
    for number in range(entries // length):
        lines = np.minimum(random.zipf(1.3, size=(length, WORDS)), 20_000).tolist()
        start = _START + timedelta(minutes=number)
        said = [
            MemoryEntry(" ".join(f"word{rank}" for rank in line), ("user", "model")[turn % 2], start, f"turn-{turn}")
            for turn, line in enumerate(lines)
        ]
        yield SessionEntries("benchmark", f"user-{number % USERS}", f"session-{number}", said)


async def in_a_loop(service: MemoryService, items: Sequence[SessionEntries]) -> None:
    for item in items:
        await service.add_session(item.app_name, item.user_id, str(item.session_id), item.entries)


async def at_once(service: MemoryService, items: Sequence[SessionEntries]) -> None:
    await service.add_many(items)


async def ours(url: str, add: Add, items: Sequence[SessionEntries]) -> None:
    async with open_memory(url, embedder=TableEmbedder()) as service:
        await service.migrate()
        await timed(items, add(service, items))


async def peer(url: str, items: Sequence[SessionEntries], *, many: bool) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        f"""
        CREATE EXTENSION IF NOT EXISTS vector;
        CREATE TABLE entry (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id text, session_id text, author text,
            at timestamptz, content text, vector vector({DIMENSIONS})
        );
        CREATE INDEX ON entry (user_id);
        CREATE INDEX ON entry USING hnsw (vector vector_cosine_ops);
        """
    )
    await timed(items, _fill(connection, items, many=many))
    await connection.close()


async def _fill(connection: asyncpg.Connection, items: Sequence[SessionEntries], *, many: bool) -> None:
    embedder = TableEmbedder()
    insert = """
        INSERT INTO entry (user_id, session_id, author, at, content, vector) VALUES ($1, $2, $3, $4, $5, $6::real[])
    """
    for item in items:
        vectors = await embedder.embed([entry.text for entry in item.entries])
        rows = [
            (item.user_id, item.session_id, entry.author, entry.timestamp, entry.text, vector.tolist())
            for entry, vector in zip(item.entries, vectors, strict=True)
        ]
        if many:
            await connection.executemany(insert, rows)
        else:
            for row in rows:
                await connection.execute(insert, *row)


async def timed(items: Sequence[SessionEntries], work: Awaitable[object]) -> None:
    entries = sum(len(item.entries) for item in items)
    start, cpu = time.perf_counter(), time.process_time()
    await work
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{entries / seconds:10,.0f} entries/s, {entries / cpu:10,.0f} per second of CPU here", flush=True)


def main(entries: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres_server import running_postgres

    with running_postgres() as server, tempfile.TemporaryDirectory() as directory:
        for length in (10, 50):
            items = list(sessions(entries, length))
            for add in (in_a_loop, at_once):
                name = f"{add.__name__}, sessions of {length}"
                with server.database() as url:
                    print(f"Postgres, {name:28}", end="", flush=True)
                    asyncio.run(ours(url, add, items))
                print(f"SQLite,   {name:28}", end="", flush=True)
                asyncio.run(ours(f"sqlite:///{directory}/{length}{add.__name__}.db", add, items))
        items = list(sessions(min(entries, PEER_ROWS), 50))
        for many in (False, True):
            with server.database() as url:
                print(f"HNSW,     {'executemany' if many else 'one INSERT each':28}", end="", flush=True)
                asyncio.run(peer(url, items, many=many))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES)
