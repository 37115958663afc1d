"""A disk that is full: writing says so, reading goes on, nothing is half there, and once there is room all goes on."""

from __future__ import annotations

import asyncio
import random
import secrets
from pathlib import Path

import pytest
from sqlalchemy import text

from adk_memory import MemoryEntry, MemoryService, StorageError, open_memory
from conftest import migrate
from faults.small_disk import SmallDisk, small_disk
from faults.sound import assert_sound
from faults.workload import APP, WITH_VECTORS, CheapEmbedder, Life, assert_kept
from field_reports.calls import recent, remember
from field_reports.tables import looking
from postgres_server import OwnServer

MORE = 5
"""So many times each kind of writing is tried again on the full disk."""


async def fill(service: MemoryService, notes: list[str]) -> list[StorageError]:
    """Write until a call fails, and then some more; return the errors."""
    errors: list[StorageError] = []
    chance = random.Random("full")

    async def until_it_fails(name: str, limit: int) -> None:
        life = Life(name, chance, notes.append)
        try:
            for _ in range(limit):
                await life.step(service)
        except StorageError as error:
            errors.append(error)

    for number in range(10_000):
        await until_it_fails(f"{WITH_VECTORS} {number}", 5)
        if errors:
            break
    for kind in Life.KINDS * MORE:
        life = Life(f"{WITH_VECTORS} {kind} {len(notes)}", chance, notes.append)
        try:
            await life.step(service, kind)
        except StorageError as error:
            errors.append(error)
    return errors


async def a_full_disk_is_told_and_survived(url: str, disk: SmallDisk, room: int) -> None:
    notes: list[str] = []
    async with open_memory(url, embedder=CheapEmbedder()) as service:
        await remember(service, "before", user=f"{WITH_VECTORS} before")
        with pytest.raises(StorageError, match="full"):
            await take_most(service)
        errors = await fill(service, notes)
        assert len(errors) >= MORE
        print(f"\n{len(errors)} errors with {disk.free()} bytes left: {sorted({str(error) for error in errors})}")
        assert all("full" in str(error) for error in errors)

        assert await recent(service, user=f"{WITH_VECTORS} before") == ["before"]
        assert (await service.health_check()).schema_version
        disk.grow(room)
        await remember(service, "after", user=f"{WITH_VECTORS} before", session="s2")
        await fill_some(service, notes)
        assert await recent(service, user=f"{WITH_VECTORS} before") == ["after", "before"]
        await service.delete_user(APP, f"{WITH_VECTORS} before")
        await service.delete_user("app", f"{WITH_VECTORS} filler")
    await assert_sound(url)
    await assert_kept(url, notes)


async def take_most(service: MemoryService) -> None:
    for number in range(10_000):
        # Nothing that could be compressed.
        big = [MemoryEntry(f"big {entry}", metadata={"x": secrets.token_hex(10_000)}) for entry in range(10)]
        await remember(service, *big, user=f"{WITH_VECTORS} filler", session=f"s{number}")


async def fill_some(service: MemoryService, notes: list[str]) -> None:
    life = Life(f"{WITH_VECTORS} afterwards", random.Random(1), notes.append)
    for kind in Life.KINDS * 2:
        await life.step(service, kind)


async def test_a_full_disk_under_sqlite_is_told_and_survived(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 3) as disk:
        url = f"sqlite:///{disk.folder / 'memory.db'}"
        await asyncio.to_thread(migrate, url)
        await a_full_disk_is_told_and_survived(url, disk, 20)


async def test_a_full_disk_under_the_server_is_told_and_survived(own_server: OwnServer) -> None:
    with small_disk(own_server.home / "disk", 20) as disk:
        async with looking(own_server.url) as connection:
            await connection.execute(text(f"CREATE TABLESPACE small LOCATION '{disk.folder}'"))
        url = await asyncio.to_thread(own_server.create_database)
        name = url.rpartition("/")[2]
        async with looking(own_server.url) as connection:
            await connection.execute(text(f'ALTER DATABASE "{name}" SET TABLESPACE small'))
        try:
            await asyncio.to_thread(migrate, url)
            await a_full_disk_is_told_and_survived(url, disk, 60)
        finally:
            await asyncio.to_thread(own_server.drop_database, url)
            async with looking(own_server.url) as connection:
                await connection.execute(text("DROP TABLESPACE small"))
