"""Four processes of twenty tasks on one database: no call fails, nothing that was acknowledged is missing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from faults.loaded import ENTRIES, SHARED
from faults.sound import assert_sound
from field_reports.processes import finish
from field_reports.tables import looking

PROCESSES, POOL = 4, 5
MANY, FEW = 20, 5
"""So many tasks has each process."""
TESTS = Path(__file__).parents[1]


def start(url: str, process: str, tasks: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "faults.loaded", url, process, f"{tasks}", f"{seconds}", f"{POOL}"],
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


async def many_writers(url: str, tasks: int, seconds: float) -> None:
    started = [start(url, f"p{number}", tasks, seconds) for number in range(PROCESSES)]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    began = time.monotonic()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = await asyncio.gather(*[asyncio.to_thread(finish, process, seconds + 120) for process in started])
    took = time.monotonic() - began

    calls, undone = (sum(int(output.splitlines()[line]) for output in outputs) for line in (0, 1))
    kept = {name for output in outputs for name in output.splitlines()[2:]}
    print(
        f"\n{calls} calls of {PROCESSES * tasks} tasks in {took:.1f} s, none failed; {undone} were undone and repeated"
    )
    assert len(kept) >= PROCESSES * tasks
    async with looking(url) as connection:
        statement = f"""
            SELECT e.session_key, count(*) FROM adk_memory_entry AS e JOIN adk_memory_scope AS s ON s.id = e.scope_id
            WHERE s.user_id = '{SHARED}' GROUP BY e.session_key
        """
        stored = {row[0]: row[1] for row in await connection.execute(text(statement))}
    assert stored == dict.fromkeys(kept, ENTRIES)
    await assert_sound(url)


async def many_writers_beside_a_reader(url: str, tasks: int, seconds: float) -> None:
    """As `many_writers`, and there is a reader that started and then sleeps: its snapshot stays open all the time."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as reader:
        paused = reader.execute("SELECT * FROM sqlite_master")
        assert paused.fetchone() is not None
        await many_writers(url, tasks, seconds)


async def test_f22_four_processes_write_search_and_delete_without_an_error(migrated_sqlite_url: str) -> None:
    await many_writers_beside_a_reader(migrated_sqlite_url, FEW, 1.5)


async def test_four_processes_share_a_postgres_database(migrated_postgres_url: str) -> None:
    await many_writers(migrated_postgres_url, FEW, 1.5)


@pytest.mark.heavy
async def test_f22_four_processes_of_twenty_tasks_for_half_a_minute(migrated_sqlite_url: str) -> None:
    await many_writers_beside_a_reader(migrated_sqlite_url, MANY, 30)


@pytest.mark.heavy
async def test_four_processes_share_a_postgres_database_for_half_a_minute(migrated_postgres_url: str) -> None:
    await many_writers(migrated_postgres_url, MANY, 30)
