"""F24: one service under several event loops, and calls that are cancelled in the middle."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_memory import MemoryEntry, MemoryService, StorageUnavailableError, open_memory
from field_reports.calls import APP, USER, found, recent, remember
from field_reports.embedders import Stuck
from field_reports.processes import run_script
from field_reports.tables import index_differences, looking

CANCELLATIONS = 200
BIG = [MemoryEntry(f"big note {number} " + "word " * 50) for number in range(60)]


# Connections of a loop that has ended can't be closed any more; their sockets are closed as they are forgotten.
SEVERAL_LOOPS = """
import asyncio, gc, sys, threading
from adk_memory import MemoryEntry, SearchRequest, open_memory

class Embedder:
    model, dimensions = "numbers", 4
    async def embed(self, texts):
        return [[len(text), 1, 2, 3] for text in texts]

service = open_memory(sys.argv[1], embedder=Embedder() if sys.argv[2] == "vectors" else None)

async def remember(text):
    await service.add_session("app", "ana", "s1", [MemoryEntry(text)])
    return sorted(memory.text for memory in await service.search(SearchRequest("loop", "app", "ana")))

asyncio.run(service.migrate())
asyncio.run(service.health_check())
assert asyncio.run(remember("first loop")) == ["first loop"]
assert asyncio.run(remember("second loop")) == ["first loop", "second loop"]
seen = []
for number in range(3):
    thread = threading.Thread(target=lambda: seen.append(asyncio.run(remember(f"loop of thread {number}"))))
    thread.start()
    thread.join()
assert [len(texts) for texts in seen] == [3, 4, 5], seen
asyncio.run(service.close())
gc.collect()
"""


@pytest.mark.parametrize("mode", ["words", "vectors"])
def test_f24_one_service_under_several_event_loops(url: str, tmp_path: Path, mode: str) -> None:
    assert run_script(tmp_path, SEVERAL_LOOPS, [url, mode], {}, warnings="ignore::ResourceWarning") == ""


async def test_f24_a_service_can_be_used_again_after_it_was_closed_or_left(sql_url: str) -> None:
    service = open_memory(sql_url)
    async with service:
        await remember(service, "kept")
    await service.close()
    await service.close()

    assert await recent(service) == ["kept"]
    await service.close()


@pytest.fixture
async def small_pool(sql_url: str) -> AsyncIterator[str | AsyncEngine]:
    """On Postgres an engine with two connections; on SQLite the URL, for the settings of our own engine matter."""
    if sql_url.startswith("sqlite"):
        yield sql_url
        return
    engine = create_async_engine(
        sql_url.replace("://", "+asyncpg://"),
        pool_size=2,
        max_overflow=0,
        pool_timeout=20,
        connect_args={"server_settings": {"application_name": "small pool"}},
    )
    yield engine
    await engine.dispose()


async def test_f24_cancelled_calls_leave_the_pool_whole_and_no_half_session(
    small_pool: str | AsyncEngine, sql_url: str
) -> None:
    async with open_memory(small_pool) as service:
        await remember(service, "kept")
        finished = await cancel_many(service)

        assert await found(service, "kept") == ["kept"]
        sessions = {f"session {number}": 0 for number in range(CANCELLATIONS)}
        for memory in await all_of(sql_url):
            sessions[memory] += 1
        assert set(sessions.values()) <= {0, len(BIG)}
        assert all(sessions[f"session {number}"] == len(BIG) for number in finished)
        await asyncio.gather(*[found(service, "kept") for _ in range(10)])
        if isinstance(small_pool, AsyncEngine):
            states = await connections_of("small pool", sql_url)
            assert len(states) <= 2
            assert set(states) <= {"idle"}
    assert await index_differences(sql_url) == []


async def cancel_many(service: MemoryService) -> list[int]:
    """Cancel calls after more and more turns of the loop, and return the numbers of those that finished before."""
    finished = []
    for number in range(CANCELLATIONS):
        call = asyncio.create_task(remember(service, *BIG, session=f"session {number}", user="big"))
        for _ in range(number % 40):
            await asyncio.sleep(0)
        if number % 10 == 9:
            await asyncio.wait([call], timeout=0.001 * (number % 70))
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            continue
        finished.append(number)
    return finished


async def all_of(url: str) -> list[str]:
    async with looking(url) as connection:
        statement = (
            "SELECT e.session_key FROM adk_memory_entry AS e "
            "JOIN adk_memory_scope AS s ON s.id = e.scope_id WHERE s.user_id = 'big'"
        )
        return list(await connection.scalars(text(statement)))


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """Leaves what is in cycles where it is, as it may be for a while in any process."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
async def test_f24_a_cancelled_write_leaves_no_lock_on_the_file(migrated_sqlite_url: str) -> None:
    other = sqlite3.connect(migrated_sqlite_url.removeprefix("sqlite:///"), isolation_level=None, timeout=0)
    async with open_memory(migrated_sqlite_url) as service:
        for number in range(150):
            call = asyncio.create_task(remember(service, *BIG, session=f"session {number}"))
            await asyncio.wait([call], timeout=number * 0.0003)
            call.cancel()
            await asyncio.wait([call])

            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        await remember(service, "after all", user="someone")
    other.close()


async def connections_of(application: str, url: str) -> list[str]:
    statement = text(
        "SELECT state FROM pg_stat_activity WHERE application_name = :name AND datname = current_database()"
    )
    async with looking(url) as connection:
        return list(await connection.scalars(statement, {"name": application}))


async def test_f24_calls_cancelled_in_a_slow_embedder_hold_nothing(small_pool: str | AsyncEngine) -> None:
    embedder = Stuck()
    async with open_memory(small_pool, embedder=embedder) as service:
        calls = [asyncio.create_task(remember(service, f"note {number}")) for number in range(20)]
        await embedder.was_asked.wait()
        for _ in range(3):
            assert await recent(service) == []
        for call in calls:
            call.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*calls, return_exceptions=True)
        )

        embedder.may_answer.set()
        await remember(service, "after all")
        assert await found(service, "after all") == ["after all"]


async def test_f24_cancelled_searches_and_deletes_leave_the_pool_whole(small_pool: str | AsyncEngine) -> None:
    async with open_memory(small_pool) as service:
        await remember(service, *BIG)
        for number in range(60):
            calls = [
                asyncio.create_task(found(service, "big note")),
                asyncio.create_task(service.delete_session(APP, USER, "another")),
                asyncio.create_task(service.list_recent(APP, USER)),
            ]
            for _ in range(number % 20):
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

        assert len(await found(service, "big note")) == len(BIG)


async def test_f24_a_call_that_finds_no_free_connection_says_so(sql_url: str) -> None:
    driver = "+aiosqlite://" if sql_url.startswith("sqlite") else "+asyncpg://"
    engine = create_async_engine(sql_url.replace("://", driver, 1), pool_size=1, max_overflow=0, pool_timeout=0.05)
    async with open_memory(engine) as service:
        await remember(service, "kept")
        async with engine.connect():
            with pytest.raises(StorageUnavailableError, match="free in time"):
                await recent(service)
        assert await recent(service) == ["kept"]
    await engine.dispose()


LOOP_ENDED_MEANWHILE = """
import asyncio, sqlite3, sys
from adk_memory import MemoryEntry, open_memory

service = open_memory(sys.argv[1])
asyncio.run(service.migrate())
other = sqlite3.connect(sys.argv[1].removeprefix("sqlite:///"), isolation_level=None)
other.execute("BEGIN IMMEDIATE")

async def begin():
    task = asyncio.ensure_future(service.add_entry("app", "ana", MemoryEntry("left behind")))
    await asyncio.sleep(0.1)
    return task

asyncio.run(begin())
other.execute("ROLLBACK")

async def go_on():
    await service.add_entry("app", "ana", MemoryEntry("later"))
    return [memory.text for memory in await service.list_recent("app", "ana")]

assert asyncio.run(asyncio.wait_for(go_on(), 20)) == ["later"]
"""


def test_f24_a_loop_that_ends_while_a_call_waits_leaves_the_next_one_a_whole_pool(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"

    assert run_script(tmp_path, LOOP_ENDED_MEANWHILE, [url], {}, warnings="ignore::ResourceWarning") == ""


async def test_f24_ending_all_tasks_of_a_loop_gives_every_connection_back(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'memory.db'}"
    engine = create_async_engine(url, pool_size=1, max_overflow=0)
    async with open_memory(engine) as service:
        await service.migrate()
        for delay in range(40):
            running = asyncio.ensure_future(remember(service, *BIG[:9], session=f"s{delay}"))
            await asyncio.sleep(delay / 4_000)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.wait({running})

        assert engine.sync_engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        await remember(service, "still here", session="last")
    await engine.dispose()


async def test_f24_who_waits_for_a_connection_has_a_turn(sql_url: str) -> None:
    driver = "+aiosqlite://" if sql_url.startswith("sqlite") else "+asyncpg://"
    engine = create_async_engine(sql_url.replace("://", driver, 1), pool_size=1, max_overflow=0, pool_timeout=1)
    async with open_memory(engine) as service:
        await recent(service)
        loop = asyncio.get_running_loop()
        end = loop.time() + 2

        async def read_without_a_pause() -> int:
            number = 0
            while loop.time() < end:
                await recent(service)
                number += 1
            return number

        turns = await asyncio.gather(*(read_without_a_pause() for _ in range(3)))
    await engine.dispose()
    assert min(turns) > max(turns) / 10
