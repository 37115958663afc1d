"""A script: a process whose tasks write, search and erase on the database at a URL, which other processes use too.

Arguments: the URL, the name of the process, how many tasks, for how many seconds, and how many connections. It prints
``ready`` and waits for a line; in the end it prints how many calls it made, how many transactions the database undid
in favour of others, and each session that is to be kept.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import MemoryEntry, MemoryService, SearchRequest, open_memory
from adk_memory._open import open_engine

APP = "app"
SHARED = "shared"
"""The user to whom all processes write."""
ENTRIES = 3


class Counter(logging.Handler):
    """Counts what it is told of."""

    count = 0

    def emit(self, _record: logging.LogRecord) -> None:
        self.count += 1


async def write(service: MemoryService, process: str, task: int, end: float, kept: list[str]) -> int:
    """Write until the end; return how many calls that took."""
    user, number, calls = f"user {process}", 0, 0
    while time.monotonic() < end or number < 2:
        name = f"{process} {task} {number}"
        await service.add_session(APP, SHARED, name, [MemoryEntry(f"note {n} of {name}") for n in range(ENTRIES)])
        await service.add_session(APP, user, name, [MemoryEntry(f"own note of {name}")])
        hits = await service.search(SearchRequest(f"own note {number}", APP, user, limit=1_000))
        assert any(hit.session_id == name for hit in hits), f"{name} is not found"
        if number % 3 == 1:
            assert await service.delete_session(APP, SHARED, name) == ENTRIES
        else:
            kept.append(name)
        if number % 5 == 4:
            # Several users at once, of whom others have some too: where locks meet.
            await service.delete_user(APP, f"side {task % 3}")
            await service.add_session(APP, f"side {task % 3}", name, [MemoryEntry("beside")], project_id="P")
            await service.add_session(APP, f"side {task % 3}", name, [MemoryEntry("beside")])
            calls += 3
        number += 1
        calls += 3 + (number % 3 == 2)
    return calls


async def main(url: str, process: str, tasks: int, seconds: float, pool: int) -> None:
    kept: list[str] = []
    undone, logger = Counter(), logging.getLogger("adk_memory._sql.undone")
    logger.setLevel(logging.INFO)
    logger.addHandler(undone)
    # On SQLite the product's own engine, with its settings.
    if url.startswith("sqlite"):
        engine = open_engine(url)
    else:
        engine = create_async_engine(url.replace("://", "+asyncpg://", 1), pool_size=pool, max_overflow=0)
    async with open_memory(engine) as service:
        await service.health_check()
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds
        calls = await asyncio.gather(*[write(service, process, task, end, kept) for task in range(tasks)])
    await engine.dispose()
    print(sum(calls), undone.count, *kept, sep="\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])))
