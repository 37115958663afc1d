"""A hostile size, tried on one store in a process of its own: prints what came of it, and what it cost.

Usage: python -m fuzz.sizes NAME URL
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from adk_memory import AdkMemoryError, Author, MemoryEntry, MemoryService, Metadata, SearchRequest, open_memory

Try = Callable[[MemoryService], Awaitable[Any]]


def nested(levels: int, last: Any = "tea") -> Any:
    """Return JSON of so many levels, lists and objects in turn."""
    for level in range(levels):
        last = [last] if level % 2 else {"k": last}
    return last


async def _stored(service: MemoryService, *entries: MemoryEntry, query: str = "tea") -> Any:
    await service.add_session("app", "ana", "s", list(entries))
    found = await service.search(SearchRequest(query, "app", "ana", limit=3))
    listed = await service.list_recent("app", "ana", 2)
    intact = {memory.id: memory for memory in listed}.get(entries[-1].id or "")
    same = intact is not None and (intact.content, intact.metadata) == (entries[-1].content, entries[-1].metadata)
    erased = await service.delete_session("app", "ana", "s")
    return [len(found), [round(memory.score or 0.0, 5) for memory in found], same, erased]


async def _asked(service: MemoryService, query: str) -> Any:
    await service.add_session("app", "ana", "s", [MemoryEntry("green tea", id="1"), MemoryEntry("a note", id="2")])
    found = await service.search(SearchRequest(query, "app", "ana"))
    would = await service.delete_entries("app", "ana", query, dry_run=True)
    return [[memory.id for memory in found], would]


async def _filtered(service: MemoryService, make: Callable[[], Any]) -> Any:
    return len(await service.list_recent("app", "ana", filter=make()))


def _deep_filter() -> Any:
    found: Any = Author("a")
    for _ in range(1_000):
        found = ~found
    return found


MB: Final = 1_000_000
SIZES: Final[dict[str, Try]] = {
    "5 MB of distinct words": lambda s: _stored(
        s, MemoryEntry("tea " + " ".join(f"word{number}" for number in range(5 * MB // 11)), id="1")
    ),
    "5 MB of one word": lambda s: _stored(s, MemoryEntry("tea " * (5 * MB // 4), id="1")),
    "5 MB without a space": lambda s: _stored(s, MemoryEntry("x" * 5 * MB + " tea", id="1")),
    "5 MB of Chinese": lambda s: _stored(
        s, MemoryEntry("tea " + "".join(chr(0x4E00 + number % 20_000) for number in range(5 * MB // 3)), id="1")
    ),
    "a query of 200,000 words": lambda s: _asked(s, "tea " + " ".join(f"w{number}" for number in range(200_000))),
    "a query of 5 MB": lambda s: _asked(s, "tea" * (5 * MB // 3)),
    "a session of 10,000 entries": lambda s: _stored(
        s, *(MemoryEntry(f"tea number {number}", timestamp=float(number), id=str(number)) for number in range(10_000))
    ),
    "1,000 levels in content": lambda s: _stored(s, MemoryEntry({"parts": [{"text": "tea"}, nested(1_000)]}, id="1")),
    "1,000 levels in metadata": lambda s: _stored(s, MemoryEntry("tea", id="1", metadata={"k": nested(1_000)})),
    "200,000 levels in metadata": lambda s: _stored(s, MemoryEntry("tea", id="1", metadata={"k": nested(200_000)})),
    "190 levels in both": lambda s: _stored(
        s, MemoryEntry({"parts": [{"text": "tea"}, {"k": nested(190)}]}, id="1", metadata={"k": nested(190)})
    ),
    "10,000 keys": lambda s: _stored(
        s, MemoryEntry("tea", id="1", metadata={f"key {number}": number for number in range(10_000)})
    ),
    "a metadata string of 1 MB": lambda s: _stored(s, MemoryEntry("tea", id="1", metadata={"k": "\u00e9" * MB})),
    "a metadata key of 1 MB": lambda s: _stored(s, MemoryEntry("tea", id="1", metadata={"\u00e9" * MB: 1})),
    "an author of 1 MB": lambda s: _stored(s, MemoryEntry("tea", "author " * (MB // 7), id="1")),
    "10,000 parts": lambda s: _stored(s, MemoryEntry({"parts": [{"text": "tea"}] * 10_000}, id="1")),
    "a filter of 100,000 values": lambda s: _filtered(s, lambda: Metadata("k", "in", list(range(100_000)))),
    "a filter of 1,000 levels": lambda s: _filtered(s, _deep_filter),
    "a filter with a string of 1 MB": lambda s: _filtered(s, lambda: Metadata("k", "eq", "x" * MB)),
}
"""By name, from the call that makes it: what comes of it is the same on every backend."""


async def _attempt(name: str, url: str) -> Any:
    async with open_memory(url) as service:
        try:
            return await SIZES[name](service)
        except AdkMemoryError as error:
            return [type(error).__name__, str(error)]


def main() -> None:
    name, url = sys.argv[1:]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    outcome = asyncio.run(_attempt(name, url))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({"outcome": outcome, "seconds": time.monotonic() - started, "megabytes": grown / 1024}))


if __name__ == "__main__":
    main()
