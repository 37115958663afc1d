"""F22: several processes and tasks that write to one SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import MemoryEntry, StorageUnavailableError, open_memory
from adk_memory._open import open_engine
from field_reports.calls import APP, USER, found, recent, remember


async def test_f22_tasks_of_several_services_write_without_an_error(migrated_sqlite_url: str) -> None:
    services = [open_memory(migrated_sqlite_url) for _ in range(5)]

    await asyncio.gather(*[remember(services[n % 5], f"note {n}", session=f"s{n % 7}") for n in range(60)])

    assert sorted(await recent(services[0])) == sorted(f"note {n}" for n in range(60))
    for service in services:
        await service.close()


async def test_f22_every_connection_of_the_pool_has_the_settings(migrated_sqlite_url: str) -> None:
    engine = open_engine(migrated_sqlite_url)
    connections = [await engine.connect() for _ in range(8)]
    for connection in connections:
        for pragma, expected in [
            ("journal_mode", "wal"),
            ("busy_timeout", 30_000),
            ("secure_delete", 1),
            ("foreign_keys", 1),
        ]:
            assert await connection.scalar(text(f"PRAGMA {pragma}")) == expected, pragma
        await connection.close()
    await engine.dispose()


async def test_f22_readers_go_on_while_another_connection_writes(migrated_sqlite_url: str) -> None:
    writer = sqlite3.connect(migrated_sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    async with open_memory(migrated_sqlite_url) as service:
        await remember(service, "kept")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM adk_memory_search_entry")
        started = time.monotonic()

        assert await found(service, "kept") == await recent(service) == ["kept"]
        assert (await service.health_check()).backend == "sqlite"
        assert time.monotonic() - started < 5
        writer.execute("ROLLBACK")
    writer.close()


async def test_f22_a_writer_waits_for_the_one_before_it(migrated_sqlite_url: str) -> None:
    writer = sqlite3.connect(
        migrated_sqlite_url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False
    )
    async with open_memory(migrated_sqlite_url) as service:
        await remember(service, "kept")
        writer.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(remember(service, "second"))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done
        writer.execute("COMMIT")

        await waiting
        assert await recent(service) == ["second", "kept"]
    writer.close()


async def test_f22_a_lock_that_stays_is_a_clear_error_and_nothing_is_written(migrated_sqlite_url: str) -> None:
    writer = sqlite3.connect(migrated_sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    engine = create_async_engine(
        migrated_sqlite_url.replace("sqlite", "sqlite+aiosqlite", 1), connect_args={"timeout": 0.05}
    )
    async with open_memory(engine) as service:
        await remember(service, "kept")
        writer.execute("BEGIN IMMEDIATE")
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: remember(service, "second"),
            lambda: service.add_entry(APP, USER, MemoryEntry("second")),
            lambda: service.delete_session(APP, USER, "s1"),
            lambda: service.delete_entries(APP, USER, "kept"),
            lambda: service.delete_user(APP, USER),
        ]
        for call in calls:
            with pytest.raises(StorageUnavailableError, match="locked"):
                await call()
        writer.execute("ROLLBACK")

        assert await recent(service) == ["kept"]
        await remember(service, "second")
    writer.close()
    await engine.dispose()
