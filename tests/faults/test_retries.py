"""What Postgres undoes in favour of another transaction is done again, some times, and nobody gets to know."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import MemoryEntry, MemoryService, SessionEntries, StorageUnavailableError, open_memory
from adk_memory._sql.undone import ATTEMPTS
from faults.sound import assert_sound
from field_reports.calls import APP, USER, recent, remember
from field_reports.tables import looking

UNDONE = ["40001", "40P01"]

# A sequence is not undone with its transaction, so it counts the attempts.
_FAILING = """
    CREATE SEQUENCE attempts;
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('attempts') <= {times} THEN RAISE EXCEPTION 'undone' USING ERRCODE = '{state}'; END IF;
        RETURN NULL;
    END $$;
    CREATE {kind}TRIGGER failing AFTER INSERT OR UPDATE OR DELETE ON adk_memory_entry
        {deferred} FOR EACH {each} EXECUTE FUNCTION fail();
"""
AT_ONCE = {"kind": "", "deferred": "", "each": "STATEMENT"}
AT_COMMIT = {"kind": "CONSTRAINT ", "deferred": "DEFERRABLE INITIALLY DEFERRED", "each": "ROW"}

Write = Callable[[MemoryService], Awaitable[object]]
WRITES: dict[str, Write] = {
    "add in one statement": lambda service: remember(service, "second", session="s2"),
    "rewrite": lambda service: remember(service, MemoryEntry("other words", id="mine")),
    "replace": lambda service: remember(service, "third", existing="replace"),
    "add_many": lambda service: service.add_many([SessionEntries(APP, USER, "s3", [MemoryEntry("third")])]),
    "delete": lambda service: service.delete(APP, USER, "mine"),
    "delete_entries": lambda service: service.delete_entries(APP, USER, "first"),
    "delete_user": lambda service: service.delete_user(APP, USER),
}


async def make_writes_fail(url: str, times: int, state: str, when: dict[str, str]) -> None:
    async with looking(url) as connection:
        for statement in _FAILING.format(times=times, state=state, **when).split(";\n    C"):
            whole = statement if statement.strip().startswith("C") else f"C{statement}"
            await connection.exec_driver_sql(whole)


async def attempts(url: str) -> int:
    async with looking(url) as connection:
        return int(await connection.scalar(text("SELECT last_value FROM attempts")) or 0)


@pytest.mark.parametrize("when", [AT_ONCE, AT_COMMIT], ids=["in the middle", "at the commit"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_that_is_undone_is_done_again(
    migrated_postgres_url: str, write: Write, when: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    url = migrated_postgres_url
    async with open_memory(url) as service:
        await remember(service, MemoryEntry("first words", id="mine"))
        await make_writes_fail(url, 2, "40P01", when)
        caplog.set_level(logging.DEBUG, "adk_memory")

        await write(service)

        assert await attempts(url) >= 3
    told = [record for record in caplog.records if "40P01" in record.getMessage()]
    assert [record.levelno for record in told] == [logging.INFO] * 2
    assert not any(word in caplog.text for word in ("words", "mine", USER, "second", "third"))
    await assert_sound(url)


@pytest.mark.parametrize("state", UNDONE)
async def test_a_write_that_is_undone_each_time_fails_in_the_end(migrated_postgres_url: str, state: str) -> None:
    async with open_memory(migrated_postgres_url) as service:
        await remember(service, "first")
        await make_writes_fail(migrated_postgres_url, 1_000, state, AT_ONCE)

        with pytest.raises(StorageUnavailableError, match=state):
            await remember(service, "second", session="s2")

        assert await attempts(migrated_postgres_url) == ATTEMPTS
        assert await recent(service) == ["first"]
    await assert_sound(migrated_postgres_url)


async def test_another_error_is_told_at_once(migrated_postgres_url: str) -> None:
    async with open_memory(migrated_postgres_url) as service:
        await make_writes_fail(migrated_postgres_url, 1_000, "40003", AT_ONCE)  # whether it was done is not known

        with pytest.raises(StorageUnavailableError, match="40003"):
            await remember(service, "second")

        assert await attempts(migrated_postgres_url) == 1


async def test_the_victim_of_a_deadlock_is_done_again(
    migrated_postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    lock = "SELECT FROM adk_memory_scope WHERE project_key = '{}' FOR UPDATE"
    caplog.set_level(logging.INFO, "adk_memory")
    async with open_memory(migrated_postgres_url) as service, looking(migrated_postgres_url) as other:
        await remember(service, "first")
        await remember(service, "second", project="P")
        await other.exec_driver_sql("SET deadlock_timeout = '1min'")  # the service looks first, and is the victim
        await other.exec_driver_sql("BEGIN")
        await other.exec_driver_sql(lock.format("P"))

        erasing = asyncio.create_task(service.delete_user(APP, USER))
        async with asyncio.timeout(10), looking(migrated_postgres_url) as watching:
            while not await watching.scalar(text(waits)):
                await asyncio.sleep(0.01)
        await other.exec_driver_sql(lock.format(""))
        await other.exec_driver_sql("COMMIT")

        assert await erasing == 2
    assert "40P01" in caplog.text
    await assert_sound(migrated_postgres_url)


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
async def test_a_database_and_an_engine_that_serialise_cost_nobody_an_error(
    migrated_postgres_url: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with looking(migrated_postgres_url) as connection:
        name = await connection.scalar(text("SELECT current_database()"))
        await connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level.lower()}'")
    url = migrated_postgres_url.replace("://", "+asyncpg://", 1)
    engine = create_async_engine(url, isolation_level=level, pool_size=10, max_overflow=0)
    caplog.set_level(logging.INFO, "adk_memory")

    async def write(service: MemoryService, task: int) -> None:
        for number in range(3):
            await remember(service, f"note {number} of {task}", session=f"s{task % 3}")
            await service.add_entry(APP, USER, MemoryEntry(f"alone {number} of {task}"))
            await remember(service, f"erased {number} of {task}", session=f"erased {task}")
            await service.delete_session(APP, USER, f"erased {task}")

    async with open_memory(engine) as service:
        await asyncio.gather(*(write(service, task) for task in range(12)))
        assert len(await recent(service)) == 12 * 3 * 2
    await engine.dispose()
    assert "40001" in caplog.text  # it was needed
    await assert_sound(migrated_postgres_url)
