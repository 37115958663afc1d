"""Many may migrate at once: one does the work, the others wait; nothing stays locked behind one that died."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from adk_memory import migrate
from adk_memory._sql.exclusive import LOCK_KEY
from adk_memory.errors import StorageUnavailableError
from migrations.support import (
    PATIENCE_SECONDS,
    Scripts,
    Worker,
    at_once,
    check_models,
    execute,
    fetch,
    host_engine,
    index,
    matching,
    on_connect,
    store_two_entries,
    table_names,
    until,
    wait_for,
)

FEW = 4
MANY = 8

# Runs twice only where two processes run it: the second would find the table there.
SLOW_TABLE = """
time.sleep(0.2)
op.create_table("adk_memory_slow", sa.Column("id", sa.Integer(), primary_key=True))
"""
STALL_IF_TOLD = """
op.create_table("adk_memory_slow", sa.Column("id", sa.Integer(), primary_key=True))
if "STALL" in os.environ:
    pathlib.Path(os.environ["STALL"]).touch()
    time.sleep(600)
"""
SLOW_STATEMENT = """
op.create_table("adk_memory_slow", sa.Column("id", sa.Integer(), primary_key=True))
if op.get_bind().dialect.name == "sqlite":
    op.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000000) SELECT max(i) FROM n")
else:
    op.execute("SELECT pg_sleep(600)")
"""
CONCURRENT_INDEX = """
with op.get_context().autocommit_block():
    op.execute("DROP INDEX IF EXISTS adk_memory_entry_author_idx")
    op.execute("CREATE INDEX CONCURRENTLY adk_memory_entry_author_idx ON adk_memory_entry (author)")
"""


NewWorker = Callable[..., Worker]


def migrate_in_processes(new_worker: NewWorker, url: str, count: int) -> None:
    workers = [new_worker(url) for _ in range(count)]
    at_once(workers)
    ends = [worker.finish() for worker in workers]
    assert ends == [(0, "")] * count


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.heavy)])
def test_processes_on_an_empty_database(new_worker: NewWorker, database_url: str, count: int) -> None:
    migrate_in_processes(new_worker, database_url, count)


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.heavy)])
async def test_processes_on_an_older_revision_one_of_them_killed(
    engine: AsyncEngine, database_url: str, new_worker: NewWorker, scripts: Scripts, tmp_path: Path, count: int
) -> None:
    await migrate.upgrade(engine)
    await store_two_entries(engine)
    await engine.dispose()
    scripts.add("0002", "0001", STALL_IF_TOLD)
    stalled = tmp_path / "stalled"
    victim = new_worker(database_url, STALL=str(stalled))
    others = [new_worker(database_url) for _ in range(count - 1)]

    at_once([victim])
    await asyncio.to_thread(wait_for, stalled)
    at_once(others)
    victim.process.send_signal(signal.SIGKILL)

    ends = [await asyncio.to_thread(worker.finish) for worker in others]
    assert ends == [(0, "")] * (count - 1)
    assert victim.finish()[0] == -signal.SIGKILL
    await migrate.require_head(engine)
    await index(engine, 3, "cocoa")
    assert await matching(engine, "tea") == [1, 2]
    assert await matching(engine, "cocoa") == [3]


async def test_processes_building_an_index_concurrently(
    postgres_engine: AsyncEngine, postgres_url: str, new_worker: NewWorker, scripts: Scripts
) -> None:
    await migrate.upgrade(postgres_engine)
    scripts.add("0002", "0001", CONCURRENT_INDEX)

    await asyncio.to_thread(migrate_in_processes, new_worker, postgres_url, FEW - 1)

    assert await fetch(
        postgres_engine,
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('adk_memory_entry_author_idx')",
    ) == [(True,)]


async def test_several_databases_in_one_loop(tmp_path: Path) -> None:
    engines = [host_engine(f"sqlite:///{tmp_path / f'{number} %41.db'}") for number in range(6)]

    await asyncio.gather(*(migrate.upgrade(engine) for engine in engines))

    for engine in engines:
        await migrate.require_head(engine)
        await engine.dispose()


async def test_several_calls_on_one_engine(engine: AsyncEngine, scripts: Scripts) -> None:
    scripts.add("0002", "0001", SLOW_TABLE)

    await asyncio.gather(*(migrate.upgrade(engine) for _ in range(4)))

    await migrate.require_head(engine)


def test_several_threads_each_with_a_loop(database_url: str, scripts: Scripts) -> None:
    scripts.add("0002", "0001", SLOW_TABLE)
    failures: list[BaseException] = []

    async def run() -> None:
        engine = host_engine(database_url)
        await migrate.upgrade(engine)
        await migrate.require_head(engine)
        await engine.dispose()

    def thread() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=thread) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert failures == []


async def test_a_pool_of_one_connection(database_url: str) -> None:
    engine = host_engine(database_url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0, pool_timeout=3)

    await migrate.upgrade(engine)
    await migrate.require_head(engine)

    await engine.dispose()


async def test_a_pool_that_is_used_up_is_unavailable(database_url: str) -> None:
    engine = host_engine(database_url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0, pool_timeout=0.1)

    async with engine.connect():
        with pytest.raises(StorageUnavailableError, match="no connection to the database became free"):
            await migrate.upgrade(engine)

    await migrate.upgrade(engine)
    await engine.dispose()


async def test_a_database_in_memory() -> None:
    engine = host_engine("sqlite://")

    await migrate.upgrade(engine)
    await migrate.require_head(engine)
    await check_models(engine)

    await engine.dispose()


async def test_the_loop_runs_on_while_one_waits(postgres_engine: AsyncEngine) -> None:
    async with postgres_engine.connect() as other:
        await other.execute(text(f"SELECT pg_advisory_lock({LOCK_KEY})"))
        waiting = asyncio.create_task(migrate.upgrade(postgres_engine))

        assert not await until(waiting, 0.3)
        assert await table_names(postgres_engine) == set()

        await other.execute(text(f"SELECT pg_advisory_unlock({LOCK_KEY})"))
        await waiting
    await migrate.require_head(postgres_engine)


async def test_a_waiter_that_is_cancelled_leaves_nothing_locked(engine: AsyncEngine) -> None:
    if engine.dialect.name == "sqlite":
        lock, unlock = "BEGIN IMMEDIATE", "ROLLBACK"
    else:
        lock, unlock = (f"SELECT pg_advisory_{verb}lock({LOCK_KEY})" for verb in ("", "un"))
    async with engine.connect(), engine.connect():
        pass  # two connections are in the pool: what is cancelled below is the waiting, not the connecting
    async with engine.connect() as other:
        await other.exec_driver_sql(lock)
        waiting = asyncio.create_task(migrate.upgrade(engine))
        assert not await until(waiting, 0.3)

        waiting.cancel()
        assert await until(waiting, PATIENCE_SECONDS)
        await other.exec_driver_sql(unlock)

    await asyncio.wait_for(migrate.upgrade(engine), PATIENCE_SECONDS)
    await migrate.require_head(engine)


async def test_work_that_is_cancelled_is_undone_and_leaves_nothing_locked(
    database_url: str, scripts: Scripts, tmp_path: Path
) -> None:
    engine = host_engine(database_url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0)
    await migrate.upgrade(engine)
    begun = tmp_path / "begun"
    scripts.add("0002", "0001", f"pathlib.Path({str(begun)!r}).touch()\n{SLOW_STATEMENT}")
    working = asyncio.create_task(migrate.upgrade(engine))
    await asyncio.to_thread(wait_for, begun)

    working.cancel()
    assert await until(working, PATIENCE_SECONDS)
    assert working.cancelled()

    scripts.add("0002", "0001", SLOW_TABLE)
    await asyncio.wait_for(migrate.upgrade(engine), PATIENCE_SECONDS)
    await migrate.require_head(engine)
    await engine.dispose()


async def test_giving_up_at_any_moment_leaves_engine_and_database_intact(database_url: str, scripts: Scripts) -> None:
    engine = host_engine(database_url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0)
    if engine.dialect.name == "sqlite":
        on_connect(engine, "PRAGMA foreign_keys = ON")
    await migrate.upgrade(engine)
    scripts.add("0002", "0001", SLOW_TABLE.replace("0.2", "0.01"), 'op.drop_table("adk_memory_slow")')
    settings = "SHOW search_path" if engine.dialect.name == "postgresql" else "PRAGMA foreign_keys"
    before = await fetch(engine, settings)

    for milliseconds in range(0, 60, 2):
        turn = migrate.upgrade if milliseconds % 4 else migrate.downgrade
        with suppress(TimeoutError):
            await asyncio.wait_for(turn(engine, "0002" if milliseconds % 4 else "0001"), milliseconds / 1000)

    await asyncio.wait_for(migrate.upgrade(engine), PATIENCE_SECONDS)
    await migrate.require_head(engine)
    assert await fetch(engine, settings) == before
    await engine.dispose()


async def test_a_server_that_ends_the_connection_leaves_nothing_locked(
    postgres_engine: AsyncEngine, scripts: Scripts, tmp_path: Path
) -> None:
    await migrate.upgrade(postgres_engine)
    begun = tmp_path / "begun"
    scripts.add("0002", "0001", f"pathlib.Path({str(begun)!r}).touch()\n{SLOW_STATEMENT}")
    working = asyncio.create_task(migrate.upgrade(postgres_engine))
    await asyncio.to_thread(wait_for, begun)

    await execute(
        postgres_engine,
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    with pytest.raises(StorageUnavailableError):
        await working

    scripts.add("0002", "0001", SLOW_TABLE)
    await asyncio.wait_for(migrate.upgrade(postgres_engine), PATIENCE_SECONDS)
    await migrate.require_head(postgres_engine)
