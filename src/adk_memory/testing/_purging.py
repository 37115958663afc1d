"""The purge: what has expired goes for good, nothing else does, and no answer changes by it."""

from __future__ import annotations

import asyncio
from typing import Any

from adk_memory import MemoryEntry
from adk_memory.testing._base import Memories
from adk_memory.testing._clocked import HOUR, TICK, Clock, ClockedContract


class PurgingContract(ClockedContract):
    async def test_a_purge_erases_what_has_expired_and_nothing_else(self, clock: Clock, memory: Memories) -> None:
        await clock.purge_alone(memory)
        for those in (memory, memory.user("ben"), memory.app(f"{memory.app_name}-2")):
            await those.add("stays", MemoryEntry("soon", expires_at=clock.now + HOUR + TICK))
            await those.add_entry(MemoryEntry("goes", expires_at=clock.now + HOUR))
        clock.pass_by()
        told: list[int] = []

        assert await memory.service.purge_expired(on_progress=told.append) == 3

        assert (told[-1], told) == (3, sorted(told))
        assert await memory.service.purge_expired() == 0
        assert sorted(await memory.everything()) == ["soon", "stays"]
        assert await memory.delete_user() == 2

    async def test_a_purge_changes_no_answer(self, clock: Clock, embedded: Memories) -> None:
        await clock.purge_alone(embedded)
        ends = [None, clock.now + HOUR, None, clock.now + 2 * HOUR, clock.now + HOUR]
        for session in ("s1", "s2"):
            await embedded.add(
                *(MemoryEntry(f"tea {n} cup{n % 3}", expires_at=end) for n, end in enumerate(4 * ends)), session=session
            )
        clock.pass_by()

        async def answers() -> list[Any]:
            found: list[Any] = [await embedded.search("tea cup1", mode=mode) for mode in ("keyword", "vector", None)]
            return [
                *([(memory.id, round(memory.score or 0, 5)) for memory in each] for each in found),
                [each.partial for each in found],
                await embedded.recent(),
                (await embedded.page(with_total=True)).total,
                await embedded.delete_entries("tea", dry_run=True),
            ]

        before = await answers()
        assert await embedded.service.purge_expired() == 16
        assert await answers() == before
        await embedded.add("one more")
        assert (await embedded.page(with_total=True)).total == 25

    async def test_several_purges_at_once_erase_each_entry_once(self, clock: Clock, memory: Memories) -> None:
        await clock.purge_alone(memory)
        for number in range(20):
            of_user = memory.user(f"user {number}")
            await of_user.add("stays", *(MemoryEntry(f"goes {n}", expires_at=clock.now) for n in range(10)))

        adding = [memory.user(f"user {number}").add("new", session="s2") for number in range(20)]
        counts = await asyncio.gather(*(memory.service.purge_expired() for _ in range(4)), *adding)

        assert sum(count for count in counts if isinstance(count, int)) == 200
        assert sorted(await memory.user("user 7").everything()) == ["new", "stays"]

    async def test_a_purge_leaves_what_was_added_again(self, clock: Clock, memory: Memories) -> None:
        await memory.add(MemoryEntry("tea", id="e", expires_at=clock.now))
        await memory.add(MemoryEntry("tea", id="e", expires_at=clock.now + HOUR))

        await memory.service.purge_expired()

        assert await memory.everything() == ["tea"]
