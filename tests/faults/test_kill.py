"""Writers that are killed at random moments: what was acknowledged is there whole, and nothing is half there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from faults.sound import assert_sound
from faults.workload import assert_kept
from field_reports.tables import looking

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked here")

LONGEST_LIFE = 0.3
"""In seconds, from the first acknowledged write."""


async def kill_writers(url: str, folder: Path, kills: int) -> None:
    notes = folder / "notes"
    script = [sys.executable, "-W", "error", "-m", "faults.killed", url, str(notes), str(kills), "a", str(LONGEST_LIFE)]
    tests = Path(__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tests}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "OPENBLAS_NUM_THREADS": "1",  # it would have threads, and a process with threads can't be forked safely
    }
    done = await asyncio.to_thread(
        subprocess.run, script, env=environment, capture_output=True, text=True, timeout=60 + 5 * kills, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""

    if url.startswith("postgresql"):
        await _until_the_server_has_noticed(url)
    await assert_sound(url)
    in_the_middle, stored = await assert_kept(url, notes.read_text().splitlines())
    doings = notes.read_text().count('"ends"')
    print(f"\n{kills} killed, after {doings} doings: {in_the_middle} were cut off, of which {stored} were stored")
    assert doings > kills / 2
    assert in_the_middle > kills / 3


async def _until_the_server_has_noticed(url: str) -> None:
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with asyncio.timeout(30), looking(url) as connection:
        while await connection.scalar(text(f"{others} AND backend_type = 'client backend'")):
            await asyncio.sleep(0.05)


async def test_some_killed_writers_leave_nothing_half_done(url: str, tmp_path: Path) -> None:
    await kill_writers(url, tmp_path, 8)


@pytest.mark.heavy
async def test_300_killed_writers_leave_nothing_half_done_on_sqlite(migrated_sqlite_url: str, tmp_path: Path) -> None:
    await kill_writers(migrated_sqlite_url, tmp_path, 300)


@pytest.mark.heavy
async def test_50_killed_clients_leave_nothing_half_done_on_postgres(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    await kill_writers(migrated_postgres_url, tmp_path, 50)
