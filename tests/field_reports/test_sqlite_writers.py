"""F22: several processes and tasks that write to one SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import MemoryEntry, StorageUnavailableError, open_memory
from adk_memory._open import open_engine
from field_reports.calls import APP, USER, found, recent, remember
from field_reports.processes import finish, start_script
from field_reports.tables import fts5_is_sound, index_differences, looking

WORKER = """
import asyncio, sys, time
from adk_memory import MemoryEntry, SearchRequest, open_memory
url, worker, tasks, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
kept = []

async def work(service, task, end):
    number = 0
    while time.monotonic() < end or number < 2:
        name = f"{worker} {task} {number}"
        await service.add_session("app", "shared", name, [MemoryEntry(f"note {n} of {name}") for n in range(3)])
        await service.add_session("app", f"user {worker}", name, [MemoryEntry(f"own note of {name}")])
        hits = await service.search(SearchRequest("own note", "app", f"user {worker}", limit=1_000))
        assert any(hit.session_id == name for hit in hits), name
        if number % 3 == 1:
            assert await service.delete_session("app", "shared", name) == 3
        else:
            kept.append(name)
        number += 1

async def main():
    async with open_memory(url) as service:
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds
        await asyncio.gather(*[work(service, task, end) for task in range(tasks)])
    print(*kept, sep="\\n")

asyncio.run(main())
"""


async def many_writers(url: str, folder: Path, *, processes: int, tasks: int, seconds: float) -> None:
    file = url.removeprefix("sqlite:///")
    started = [
        start_script(folder, WORKER, [url, f"w{number}", f"{tasks}", f"{seconds}"], {}) for number in range(processes)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    async with open_memory(url) as service:
        await remember(service, "before", user="reader")
    # A reader that starts and then sleeps: its snapshot stays open all the time.
    reader = sqlite3.connect(file)
    paused = reader.execute("SELECT * FROM adk_memory_scope")
    assert paused.fetchone() is not None
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    outputs = await asyncio.gather(*[asyncio.to_thread(finish, process, seconds + 120) for process in started])
    reader.close()

    kept = {name for output in outputs for name in output.splitlines()}
    assert len(kept) >= processes * tasks
    async with looking(url) as connection:
        statement = "SELECT session_key, count(*) FROM adk_memory_entry WHERE text LIKE 'note%' GROUP BY session_key"
        stored = {row[0]: row[1] for row in await connection.execute(text(statement))}
    assert stored == dict.fromkeys(kept, 3)
    assert await index_differences(url) == []
    assert await fts5_is_sound(url)


async def test_f22_four_processes_write_search_and_delete_without_an_error(
    migrated_sqlite_url: str, tmp_path: Path
) -> None:
    await many_writers(migrated_sqlite_url, tmp_path, processes=4, tasks=5, seconds=1.5)


@pytest.mark.heavy
async def test_f22_four_processes_of_twenty_tasks_for_half_a_minute(migrated_sqlite_url: str, tmp_path: Path) -> None:
    await many_writers(migrated_sqlite_url, tmp_path, processes=4, tasks=20, seconds=30)


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
