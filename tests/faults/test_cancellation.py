"""Calls that are cancelled at any of their awaits: the pool stays whole, no transaction open, nothing half there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from sqlalchemy import QueuePool, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_memory import MemoryService, SearchRequest, open_memory
from faults.sound import assert_sound
from faults.workload import APP, WITH_VECTORS, CheapEmbedder, Life, assert_kept
from field_reports.tables import looking

POOL = 2
AT_ONCE = 4
"""So half of the calls are cancelled while they wait for a connection."""
LONGEST = 0.006


class SlowEmbedder(CheapEmbedder):
    """Has awaits of its own at which to be cancelled."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        await asyncio.sleep(0.0005)
        return await super().embed(texts)


async def cancel_calls(url: str, times: int) -> None:
    driver = "+aiosqlite://" if url.startswith("sqlite") else "+asyncpg://"
    engine = create_async_engine(url.replace("://", driver, 1), pool_size=POOL, max_overflow=0, pool_timeout=20)
    chance = random.Random("cancellation")
    notes: list[str] = []
    for first in range(0, times, 100):
        # The first calls of a service do more than the later ones.
        async with open_memory(engine, embedder=SlowEmbedder()) as service:
            names = iter(range(first, min(first + 100, times)))

            cancelling = (_cancel_each(service, names, chance, notes) for _ in range(AT_ONCE))
            async with asyncio.timeout(120):
                await asyncio.gather(*cancelling)
            await _assert_whole(engine, service)
    await engine.dispose()

    await assert_sound(url)
    in_the_middle, stored = await assert_kept(url, notes)
    print(f"\n{times} cancelled: {in_the_middle} in the middle of writing, of which {stored} were stored")
    assert in_the_middle > times / 2


async def _cancel_each(service: MemoryService, names: Iterator[int], chance: random.Random, notes: list[str]) -> None:
    for number in names:
        await _cancel(service, f"{WITH_VECTORS} {number}", random.Random(number), chance, notes)


async def _cancel(
    service: MemoryService, name: str, its_chance: random.Random, chance: random.Random, notes: list[str]
) -> None:
    life = Life(name, its_chance, notes.append)
    for _ in range(chance.randrange(3)):
        await life.step(service)

    async def go_on() -> None:
        while True:
            if chance.random() < 0.2:
                await service.search(SearchRequest("green tea", APP, name))
            await life.step(service)

    if chance.random() < 0.5:
        with suppress(TimeoutError):
            async with asyncio.timeout(chance.uniform(0, LONGEST)):
                await go_on()
        return
    going = asyncio.ensure_future(go_on())
    for _ in range(chance.randrange(40)):
        await asyncio.sleep(0)
    going.cancel()
    with suppress(asyncio.CancelledError):
        await going


async def _assert_whole(engine: AsyncEngine, service: MemoryService) -> None:
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    assert pool.checkedout() == 0
    if engine.dialect.name == "postgresql":
        url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        open_ones = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        async with looking(url) as connection:
            assert await connection.scalar(text(open_ones)) == 0
    async with asyncio.timeout(10):
        await asyncio.gather(*(service.list_recent(APP, "anyone") for _ in range(2 * POOL)))
    assert pool.checkedout() == 0


async def test_some_cancelled_calls_leave_everything_whole(url: str) -> None:
    await cancel_calls(url, 100)


@pytest.mark.heavy
async def test_500_cancelled_calls_leave_everything_whole(url: str) -> None:
    await cancel_calls(url, 500)
