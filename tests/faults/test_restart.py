"""Postgres ends and comes back under load: calls say that it is away, and the same service goes on."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Literal

import pytest

from adk_memory import MemoryService, StorageUnavailableError, open_memory
from conftest import migrate
from faults.sound import assert_sound
from faults.workload import APP, WITH_VECTORS, CheapEmbedder, Life, assert_kept
from postgres_server import OwnServer

TASKS = 10
Mode = Literal["fast", "immediate"]


class Load:
    """Tasks that write and read without a pause, but for a rest where the database is away.

    Attributes:
        notes: what they did, for `assert_kept`; one whose call fails goes on as another life.
        failed: how many calls failed, all of them with a StorageUnavailableError.
        kept: how many calls did not.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._tasks = [asyncio.create_task(self._live(number)) for number in range(TASKS)]
        self.notes: list[str] = []
        self.failed = self.kept = 0

    async def _live(self, number: int) -> None:
        chance = random.Random(number)
        while True:
            life = Life(f"{WITH_VECTORS} {number} {self.failed}", chance, self.notes.append)
            try:
                while True:
                    await life.step(self._service)
                    await self._service.list_recent(APP, "anyone")
                    self.kept += 2
            except StorageUnavailableError:
                self.failed += 1
            await asyncio.sleep(0.02)

    async def goes_on(self, calls: int) -> None:
        """Wait until so many more calls have not failed; raise what a task has raised."""
        enough = self.kept + calls
        async with asyncio.timeout(30):
            while self.kept < enough:
                for task in self._tasks:
                    if task.done():
                        await task
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with pytest.raises(asyncio.CancelledError):
                await task


async def restart_under_load(server: OwnServer, modes: list[Mode]) -> None:
    url = await asyncio.to_thread(server.create_database)
    await asyncio.to_thread(migrate, url)
    times: list[float] = []
    async with open_memory(url, embedder=CheapEmbedder()) as service:
        load = Load(service)
        await load.goes_on(100)
        for mode in modes:
            failed = load.failed
            await asyncio.to_thread(server.stop, mode)
            async with asyncio.timeout(30):
                while load.failed == failed:
                    await asyncio.sleep(0.01)
            with pytest.raises(StorageUnavailableError):
                await service.health_check()
            await asyncio.to_thread(server.start)
            started = time.monotonic()
            await load.goes_on(1)
            times.append(time.monotonic() - started)
            await load.goes_on(100)
            assert (await service.health_check()).backend == "postgresql"
        await load.end()

    print(f"\n{len(modes)} restarts: {load.failed} calls failed, {load.kept} did not; again after {max(times):.2f} s")
    await assert_sound(url)
    await assert_kept(url, load.notes)
    await asyncio.to_thread(server.drop_database, url)


async def test_the_service_recovers_by_itself(own_server: OwnServer) -> None:
    await restart_under_load(own_server, ["fast", "immediate"])


@pytest.mark.heavy
async def test_the_service_recovers_by_itself_each_time(own_server: OwnServer) -> None:
    await restart_under_load(own_server, ["fast", "immediate"] * 5)
