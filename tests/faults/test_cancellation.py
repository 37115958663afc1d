"""Calls that are cancelled at any of their awaits: the pool stays whole, no transaction open, nothing half there."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Collection, Coroutine, Generator, Iterator, Sequence
from contextlib import suppress
from typing import Any

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


def small_pool(url: str, **options: Any) -> AsyncEngine:
    driver = "+aiosqlite://" if url.startswith("sqlite") else "+asyncpg://"
    made = url.replace("://", driver, 1)
    return create_async_engine(made, pool_size=POOL, max_overflow=0, pool_timeout=20, **options)


async def cancel_calls(url: str, times: int) -> None:
    # The product's own engine for SQLite does not have connections reset either.
    engine = small_pool(url, **({"pool_reset_on_return": None} if url.startswith("sqlite") else {}))
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
    with suppress(TimeoutError):
        async with asyncio.timeout(chance.uniform(0, LONGEST)):
            while True:
                if chance.random() < 0.2:
                    await service.search(SearchRequest("green tea", APP, name))
                await life.step(service)


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


class CancelledAt:
    """Awaits a call, and has the task cancelled at the awaits of these numbers, counted from 1.

    Attributes:
        awaits: how many there were.
    """

    def __init__(self, call: Coroutine[Any, Any, object], numbers: Collection[int]) -> None:
        self._call = call
        self._numbers = numbers
        self.awaits = 0

    def __await__(self) -> Generator[Any, Any, None]:
        thrown: BaseException | None = None
        while True:
            try:
                waited_for = self._call.send(None) if thrown is None else self._call.throw(thrown)
            except StopIteration:
                return
            self.awaits += 1
            if self.awaits in self._numbers:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            thrown = None
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001 - it goes where it would have gone
                thrown = error


TIMES = pytest.mark.parametrize(
    "times", [pytest.param(1, marks=pytest.mark.heavy), 2, pytest.param(3, marks=pytest.mark.heavy)]
)
"""So many awaits, one after the other, are cancelled: what tidies up after one is cancelled too."""


@TIMES
async def test_a_call_may_be_cancelled_at_each_of_its_awaits_on_sqlite(migrated_sqlite_url: str, times: int) -> None:
    await cancel_at_each_await(migrated_sqlite_url, small_pool(migrated_sqlite_url), times)


@TIMES
async def test_so_it_may_where_the_pool_resets_no_connection(migrated_sqlite_url: str, times: int) -> None:
    engine = small_pool(migrated_sqlite_url, pool_reset_on_return=None)  # as that of the product's own engine

    await cancel_at_each_await(migrated_sqlite_url, engine, times)


@pytest.mark.heavy
@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_call_may_be_cancelled_at_each_of_its_awaits_on_postgres(
    migrated_postgres_url: str, times: int
) -> None:
    await cancel_at_each_await(migrated_postgres_url, small_pool(migrated_postgres_url), times)


async def cancel_at_each_await(url: str, engine: AsyncEngine, times: int) -> None:
    """Cancel every kind of writing at its first await and up to two more, at its second, and so on to its last."""
    notes: list[str] = []
    cancelled = 0
    async with open_memory(engine, embedder=SlowEmbedder()) as service:
        for kind in Life.KINDS:
            for number in itertools.count(1):
                life = Life(f"{WITH_VECTORS} {kind} {number}", random.Random(kind), notes.append)
                for before in ("grow", "alone", "many"):
                    await life.step(service, before)
                call = CancelledAt(life.step(service, kind), range(number, number + times))
                task = asyncio.ensure_future(_awaited(call))
                await asyncio.wait({task})
                if not task.cancelled():
                    await task
                if call.awaits < number:
                    break
                cancelled += task.cancelled()
                assert engine.pool.checkedout() == 0, (kind, number)  # type: ignore[attr-defined]
            await _assert_whole(engine, service)
    await engine.dispose()

    await assert_sound(url)
    await assert_kept(url, notes)
    print(f"\ncancelled at {cancelled} awaits")
    assert cancelled > 3 * len(Life.KINDS)


async def _awaited(call: CancelledAt) -> None:
    await call


async def test_some_cancelled_calls_leave_everything_whole(url: str) -> None:
    await cancel_calls(url, 100)


@pytest.mark.heavy
async def test_500_cancelled_calls_leave_everything_whole(url: str) -> None:
    await cancel_calls(url, 500)
