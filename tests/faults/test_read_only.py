"""A database that may only be read: reading goes on where it can, and everything else says why not."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from adk_memory import MemoryEntry, MemoryService, SessionEntries, StorageError, StorageUnavailableError, open_memory
from faults.sound import assert_sound
from field_reports.calls import APP, USER, found, recent, remember
from field_reports.tables import looking

TESTS = Path(__file__).parents[1]
READ_ONLY = "the SQLite database is read-only: check the permissions of its file and folder"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can look into, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="adk-memory-read-only-") as made:
        yield Path(made)
        Path(made).chmod(0o755)


def permit(folder: Path, file_mode: int, folder_mode: int) -> None:
    (folder / "memory.db").chmod(file_mode)
    folder.chmod(folder_mode)


def as_another_user(url: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "faults.unprivileged", url],
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, str] = json.loads(done.stdout)
    return outcomes


@pytest.mark.parametrize("in_use", [False, True], ids=["at rest", "in use"])
@pytest.mark.parametrize("mode", [0o777, 0o555], ids=["open folder", "closed folder"])
async def test_a_file_without_permission_to_write(folder: Path, mode: int, in_use: bool) -> None:
    url = f"sqlite:///{folder / 'memory.db'}"
    async with open_memory(url) as service:
        await service.migrate()
        await remember(service, "first")
        if not in_use:
            await service.close()
        permit(folder, 0o444, mode)

        outcomes = await asyncio.to_thread(as_another_user, url)

        # A file in WAL mode can't even be read where its -shm is missing and can't be made.
        readable = in_use or mode == 0o777
        read = outcomes.pop("read")
        assert read == "first" if readable else read.startswith(f"StorageError: {READ_ONLY}")
        assert [outcome.partition(" (")[0] for outcome in outcomes.values()] == [f"StorageError: {READ_ONLY}"] * 3
        permit(folder, 0o644, 0o755)
    await assert_sound(url)


WRITES: list[Callable[[MemoryService], Awaitable[object]]] = [
    lambda service: remember(service, "second", session="s2"),
    lambda service: remember(service, MemoryEntry("second")),
    lambda service: service.add_many([SessionEntries(APP, USER, "s3", [MemoryEntry("third")])]),
    lambda service: service.delete_entries(APP, USER, "first"),
    lambda service: service.delete_session(APP, USER, "s1"),
    lambda service: service.delete_user(APP, USER),
]


async def test_a_postgres_database_that_is_read_only(migrated_postgres_url: str) -> None:
    url = migrated_postgres_url
    name = url.rpartition("/")[2]
    async with open_memory(url) as service:
        await remember(service, "first")
    async with looking(url) as connection:
        await connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'))

    async with open_memory(url) as service:
        for write in WRITES:
            with pytest.raises(StorageError, match="the Postgres database is read-only") as caught:
                await write(service)
            assert not isinstance(caught.value, StorageUnavailableError)  # trying again is no use
        assert await found(service, "first") == await recent(service) == ["first"]
        assert (await service.health_check()).backend == "postgresql"

    async with looking(url) as connection:
        await connection.execute(text("SET default_transaction_read_only = off"))
        await connection.execute(text(f'ALTER DATABASE "{name}" RESET default_transaction_read_only'))
    async with open_memory(url) as service:
        await remember(service, "second", session="s2")
        assert await recent(service) == ["second", "first"]
    await assert_sound(url)
