"""A scrub of a SQLite file: nothing erased is left in it or beside it, whoever reads and writes meanwhile."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import MemoryService, SchemaMissingError, SearchRequest, open_memory
from adk_memory._sql import sqlite_scrub
from erasure.files import (
    APP,
    bytes_of,
    checkpoint,
    fts5_is_sound,
    merge,
    raw,
    remember,
    remember_many,
    segments,
)  # fmt: skip
from field_reports.processes import start_script

CANARY = b"canary-user"
USERS = [f"{'canary' if number % 4 == 1 else 'other'}-user-{number:04}" for number in range(40)]


async def erase_canaries(service: MemoryService) -> None:
    for user in USERS:
        if "canary" in user:
            assert await service.delete_user(APP, user) == 80


async def found(service: MemoryService, user: str) -> dict[str, float | None]:
    response = await service.search(SearchRequest("word2 tea 7", APP, user, limit=1_000))
    return {memory.id: memory.score for memory in response}


async def test_nothing_is_left_of_what_was_erased(migrated_sqlite_url: str, file: Path) -> None:
    async with open_memory(migrated_sqlite_url) as service:
        await remember_many(service, *USERS)
        before = await found(service, "other-user-0000")
        await erase_canaries(service)
        assert CANARY in bytes_of(file)

        report = await service.scrub()

        assert (report.left, report.complete) == ((), True)
        assert CANARY not in bytes_of(file)
        assert await found(service, "other-user-0000") == before
    assert fts5_is_sound(file)
    assert segments(file) == 1


async def test_copies_of_ids_that_sqlite_moved_are_removed(migrated_sqlite_url: str, file: Path) -> None:
    async with open_memory(migrated_sqlite_url) as service:
        await remember_many(service, *USERS)
        await erase_canaries(service)
    merge(file)
    checkpoint(file)
    if CANARY not in bytes_of(file):
        pytest.skip("this SQLite left no copies of these")

    async with open_memory(migrated_sqlite_url) as service:
        await service.scrub()

        assert CANARY not in bytes_of(file)


async def test_a_scrub_of_an_engine_of_others_overwrites_too(migrated_sqlite_url: str, file: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    async with open_memory(engine) as service:
        await remember_many(service, *USERS)
        await erase_canaries(service)

        assert (await service.scrub()).complete

        assert CANARY not in bytes_of(file)
        async with engine.connect() as connection:
            assert (await connection.exec_driver_sql("PRAGMA foreign_keys")).scalar_one() == 0
    await engine.dispose()


async def test_a_private_database_in_memory_is_scrubbed_too() -> None:
    async with open_memory("sqlite://") as service:
        await service.migrate()
        await remember(service, "ana", "green tea")
        await service.delete_user(APP, "ana")

        assert (await service.scrub()).complete


async def test_tables_of_others_keep_their_row_ids(migrated_sqlite_url: str, file: Path) -> None:
    with raw(file) as connection:
        connection.execute("CREATE TABLE host (name TEXT)")
        connection.execute("INSERT INTO host VALUES ('a'), ('b'), ('c')")
        connection.execute("DELETE FROM host WHERE name = 'b'")
    async with open_memory(migrated_sqlite_url) as service:
        report = await service.scrub()

    assert not report.complete
    assert [("VACUUM" in line, "host" in line) for line in report.left] == [(True, False)]
    with raw(file) as connection:
        assert connection.execute("SELECT rowid, name FROM host").fetchall() == [(1, "a"), (3, "c")]


@pytest.mark.parametrize(
    "table", ["CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT)", "CREATE TABLE host (a TEXT, b TEXT, "
              "PRIMARY KEY (a, b)) WITHOUT ROWID", "CREATE VIRTUAL TABLE host USING fts5(body)"],
)  # fmt: skip
async def test_tables_of_others_that_name_their_row_ids_are_no_obstacle(
    migrated_sqlite_url: str, file: Path, table: str
) -> None:
    with raw(file) as connection:
        connection.execute(table)
    async with open_memory(migrated_sqlite_url) as service:
        assert (await service.scrub()).complete


async def test_a_reader_in_the_way_of_the_log_is_reported(
    migrated_sqlite_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_scrub, "_PATIENCE_SECONDS", 0.5)
    async with open_memory(migrated_sqlite_url) as service:
        await remember_many(service, *USERS)
        with raw(file) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM adk_memory_entry").fetchone()
            await erase_canaries(service)

            report = await service.scrub()

            assert ["log" in line for line in report.left] == [True]
            assert CANARY in bytes_of(file)
            reader.execute("COMMIT")
        assert (await service.scrub()).complete
        assert CANARY not in bytes_of(file)


async def test_a_writer_in_the_way_of_the_rewrite_is_reported(
    migrated_sqlite_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_scrub, "_PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr("adk_memory._sql.sqlite._BUSY_SECONDS", 1)
    async with open_memory(migrated_sqlite_url) as service:
        await remember(service, "ana", "green tea")
        with raw(file) as writer:
            rewrite = sqlite_scrub._rewrite

            async def rewrite_while_locked(hop: sqlite_scrub.Hop) -> list[str]:
                writer.execute("BEGIN IMMEDIATE")
                return await rewrite(hop)

            monkeypatch.setattr(sqlite_scrub, "_rewrite", rewrite_while_locked)
            report = await service.scrub()
            writer.execute("ROLLBACK")

        assert ["locked" in line for line in report.left] == [True, False]


async def test_others_write_and_search_while_it_runs(migrated_sqlite_url: str, file: Path) -> None:
    async with open_memory(migrated_sqlite_url) as service, open_memory(migrated_sqlite_url) as other:
        await remember_many(service, *USERS)
        await erase_canaries(service)
        done = asyncio.Event()
        writes = 0

        async def write() -> None:
            nonlocal writes
            while not done.is_set():
                await remember(other, "writer", f"green tea {writes}", session=f"s{writes}")
                assert await found(other, "other-user-0000")
                writes += 1

        writing = asyncio.ensure_future(write())
        await asyncio.gather(service.scrub(), service.scrub())
        done.set()
        await writing

        assert writes
        assert len(await other.list_recent(APP, "writer", 1_000)) == writes
        assert (await service.scrub()).complete
    assert CANARY not in bytes_of(file)
    assert fts5_is_sound(file)


async def test_its_progress_only_grows_and_ends_at_the_whole(
    migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_scrub, "_PAGES_PER_STEP", 5)
    seen: list[tuple[int, int]] = []
    async with open_memory(migrated_sqlite_url) as service:
        await remember_many(service, *USERS)
        await erase_canaries(service)
        await service.scrub(on_progress=lambda done, total: seen.append((done, total)))

    assert len(seen) > 3
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(done <= total for done, total in seen)
    assert seen[-1][0] == seen[-1][1]


async def test_an_interrupted_one_is_done_by_the_next(
    migrated_sqlite_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_scrub, "_PAGES_PER_STEP", 3)
    async with open_memory(migrated_sqlite_url) as service:
        await remember_many(service, *USERS)
        await erase_canaries(service)
        for attempt in range(20):
            scrubbing = asyncio.ensure_future(service.scrub())
            await asyncio.sleep(attempt / 500)
            scrubbing.cancel()
            await asyncio.wait({scrubbing})
        before = await found(service, "other-user-0000")

        assert (await service.scrub()).complete

        assert await found(service, "other-user-0000") == before
    assert CANARY not in bytes_of(file)
    assert fts5_is_sound(file)


SCRUBBING = """
import asyncio, sys
from adk_memory import open_memory
from adk_memory._sql import sqlite_scrub

async def main():
    sqlite_scrub._PAGES_PER_STEP = 3
    async with open_memory(sys.argv[1]) as service:
        await service.schema_version()
        print("ready", flush=True)
        while True:
            await service.scrub()

asyncio.run(main())
"""


async def test_a_killed_one_leaves_a_sound_file(migrated_sqlite_url: str, file: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    async with open_memory(migrated_sqlite_url) as service:
        await remember_many(service, *USERS)
        await erase_canaries(service)
        before = await found(service, "other-user-0000")
    for _ in range(5):
        process = start_script(tmp_path, SCRUBBING, [migrated_sqlite_url], {})
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.3))  # noqa: ASYNC251 - nothing else is to run
        process.kill()
        process.communicate()
        assert fts5_is_sound(file)

    async with open_memory(migrated_sqlite_url) as service:
        assert (await service.scrub()).complete
        assert await found(service, "other-user-0000") == before
    assert CANARY not in bytes_of(file)


async def test_without_tables_there_is_nothing_to_scrub(sqlite_url: str) -> None:
    sqlite3.connect(sqlite_url.removeprefix("sqlite:///")).close()
    async with open_memory(sqlite_url) as service:
        with pytest.raises(SchemaMissingError):
            await service.scrub()
