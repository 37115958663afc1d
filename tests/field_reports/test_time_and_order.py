"""F20 and F21: instants come back as they went in, and entries of one instant in the order of their arrival."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import MemoryEntry, MemoryService, ValidationError, open_memory
from field_reports.calls import APP, USER, ask, found, recent, remember

INDIA = timezone(timedelta(hours=5, minutes=30))
NEW_YORK = ZoneInfo("America/New_York")
INSTANTS: list[tuple[Any, datetime]] = [
    (datetime(2026, 3, 8, 7, 30, 0, 123456, UTC), datetime(2026, 3, 8, 7, 30, 0, 123456, UTC)),
    (datetime(2026, 3, 8, 12, 30, tzinfo=INDIA), datetime(2026, 3, 8, 7, 0, tzinfo=UTC)),
    (datetime(2026, 3, 8, 12, 30), datetime(2026, 3, 8, 12, 30, tzinfo=UTC)),  # noqa: DTZ001
    (datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK), datetime(2026, 11, 1, 5, 30, tzinfo=UTC)),
    (datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=NEW_YORK), datetime(2026, 11, 1, 6, 30, tzinfo=UTC)),
    (datetime(2026, 3, 8, 2, 30, tzinfo=NEW_YORK), datetime(2026, 3, 8, 7, 30, tzinfo=UTC)),
    (date(2026, 5, 6), datetime(2026, 5, 6, tzinfo=UTC)),
    (0, datetime(1970, 1, 1, tzinfo=UTC)),
    (-1.5, datetime(1969, 12, 31, 23, 59, 58, 500000, UTC)),
    (1767225600.25, datetime(2026, 1, 1, 0, 0, 0, 250000, UTC)),
    ("2026-05-06T07:08:09", datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)),
    ("2026-05-06T07:08:09.000001Z", datetime(2026, 5, 6, 7, 8, 9, 1, UTC)),
    ("2026-05-06 07:08:09+05:30", datetime(2026, 5, 6, 1, 38, 9, tzinfo=UTC)),
    ("2026-05-06", datetime(2026, 5, 6, tzinfo=UTC)),
    (datetime(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
    (datetime(1, 1, 1, 0, 0, 0, 1), datetime(1, 1, 1, 0, 0, 0, 1, UTC)),  # noqa: DTZ001
    (datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),  # noqa: DTZ001
    (datetime(1582, 10, 10, tzinfo=UTC), datetime(1582, 10, 10, tzinfo=UTC)),
    (datetime(2038, 1, 19, 3, 14, 8), datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC)),  # noqa: DTZ001
]  # fmt: skip
NO_INSTANTS: list[Any] = [
    "", "yesterday", "2026-13-01", "12:30", [], {}, b"2026-01-01", True, 1e30, -1e30, float("nan"), float("inf"),
    Ellipsis,
    datetime(1, 1, 1, tzinfo=INDIA), datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))), timedelta(1),
    10**400,
]  # fmt: skip

READS_IN_ANOTHER_ZONE = """
import asyncio, sys, time
from datetime import UTC
from adk_memory import MemoryEntry, open_memory
time.tzset()
async def main():
    async with open_memory(sys.argv[1]) as service:
        await service.add_session("app", "ana", "zone", [MemoryEntry("here", timestamp="2026-03-08T07:30:00",
        id="here")])
        for memory in await service.list_recent("app", "ana", 1_000):
            assert memory.timestamp.tzinfo is UTC
            print(memory.id, memory.timestamp.isoformat())
asyncio.run(main())
"""


async def test_f20_every_spelling_of_an_instant_comes_back_as_that_instant(service: MemoryService) -> None:
    await remember(service, *[MemoryEntry("when", timestamp=given, id=str(n)) for n, (given, _) in enumerate(INSTANTS)])

    for kept in await service.list_recent(APP, USER, 1_000):
        assert kept.timestamp == INSTANTS[int(kept.id)][1], kept.id
        assert kept.timestamp.tzinfo is UTC


async def test_f20_lists_are_in_the_order_of_instants(service: MemoryService) -> None:
    shuffled = list(enumerate(INSTANTS))
    random.Random(1).shuffle(shuffled)
    await remember(service, *[MemoryEntry("when", timestamp=given, id=str(n)) for n, (given, _) in shuffled])

    instants = [memory.timestamp for memory in await service.list_recent(APP, USER, 1_000)]

    assert instants == sorted((expected for _, expected in INSTANTS), reverse=True)


async def test_f20_without_a_timestamp_it_is_now(service: MemoryService) -> None:
    before = datetime.now(UTC)
    await remember(service, MemoryEntry("now"), MemoryEntry("now too", timestamp=None))
    after = datetime.now(UTC)

    assert all(before <= memory.timestamp <= after for memory in await service.list_recent(APP, USER))


@pytest.mark.parametrize("value", NO_INSTANTS, ids=repr)
def test_f20_what_is_no_instant_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match="timestamp"):
        MemoryEntry("when", timestamp=value)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"])
async def test_f20_the_zone_of_the_process_changes_nothing(
    sql_url: str, run_python: Callable[..., str], zone: str
) -> None:
    async with open_memory(sql_url) as service:
        await remember(
            service, *[MemoryEntry("w", timestamp=given, id=str(n)) for n, (given, _) in enumerate(INSTANTS)]
        )
    printed = dict(line.split() for line in run_python(READS_IN_ANOTHER_ZONE, sql_url, TZ=zone).splitlines())

    assert printed.pop("here") == "2026-03-08T07:30:00+00:00"
    assert printed == {str(n): expected.isoformat() for n, (_, expected) in enumerate(INSTANTS)}


async def test_f20_the_zone_of_the_postgres_session_changes_nothing(migrated_postgres_url: str) -> None:
    engine = create_async_engine(
        migrated_postgres_url.replace("://", "+asyncpg://"),
        connect_args={"server_settings": {"timezone": "Asia/Kolkata", "datestyle": "German"}},
    )
    usual = [(given, expected) for given, expected in INSTANTS if 1500 < expected.year < 3000]
    async with open_memory(engine) as service, engine.connect() as connection:
        await remember(service, *[MemoryEntry("w", timestamp=given, id=str(n)) for n, (given, _) in enumerate(usual)])
        assert await connection.scalar(text("SHOW timezone")) == "Asia/Kolkata"

        kept = {memory.id: memory.timestamp for memory in await service.list_recent(APP, USER, 100)}
    await engine.dispose()

    assert kept == {str(n): expected for n, (_, expected) in enumerate(usual)}


async def test_f21_entries_of_one_instant_come_in_the_order_of_arrival(service: MemoryService) -> None:
    names = [f"note {number}" for number in range(50)]
    random.Random(2).shuffle(names)
    await remember(service, *[MemoryEntry(name, timestamp=0) for name in names[:30]])
    await remember(service, *[MemoryEntry(name, timestamp=0) for name in names[30:]], session="s2")

    for _ in range(3):
        assert await recent(service, limit=10) == names[:-11:-1]
        assert await recent(service) == names[::-1]


async def test_f21_pages_neither_skip_nor_repeat(service: MemoryService) -> None:
    await remember(service, *[MemoryEntry(f"note {number}", timestamp=number // 10) for number in range(100)])
    everything = await recent(service)

    for size in range(1, 100, 7):
        assert await recent(service, limit=size) == everything[:size]
    assert len(set(everything)) == 100


async def test_f21_equal_scores_come_newest_first_then_in_order_of_arrival(service: MemoryService) -> None:
    for number in range(8):
        entry = MemoryEntry("same note", timestamp=number % 2, id=f"{number}")
        await remember(service, entry, session=f"s{number}")

    listed = await service.list_recent(APP, USER)
    assert [memory.id for memory in listed] == ["7", "5", "3", "1", "6", "4", "2", "0"]
    for limit in (8, 3, 1):
        hits = await ask(service, "same note", limit=limit)
        assert [memory.id for memory in hits] == ["1", "3", "5", "7", "0", "2", "4", "6"][:limit]


async def test_f21_rewriting_an_entry_leaves_it_in_its_place(service: MemoryService) -> None:
    await remember(service, *[MemoryEntry(f"note {number}", timestamp=0, id=f"{number}") for number in range(5)])
    await remember(
        service, MemoryEntry("rewritten note", timestamp=0, id="2"), MemoryEntry("note 4", timestamp=0, id="4")
    )

    assert await recent(service) == ["note 4", "note 3", "rewritten note", "note 1", "note 0"]


async def test_f21_vacuum_changes_no_order(sql_url: str) -> None:
    async with open_memory(sql_url) as service:
        await remember(service, *[MemoryEntry(f"note {number}", timestamp=0) for number in range(40)])
        for number in range(0, 40, 3):
            await service.delete_entries(APP, USER, f"note {number}")
        before, hits = await recent(service), await found(service, "note")

    engine = create_async_engine(
        sql_url.replace("://", "+aiosqlite://" if "sqlite" in sql_url else "+asyncpg://", 1),
        isolation_level="AUTOCOMMIT",
    )
    async with engine.connect() as connection:
        await connection.execute(text("VACUUM" if engine.dialect.name == "sqlite" else "VACUUM FULL"))
    await engine.dispose()

    async with open_memory(sql_url) as service:
        assert (await recent(service), await found(service, "note")) == (before, hits)
        await remember(service, MemoryEntry("a new note", timestamp=0))
        assert await recent(service) == ["a new note", *before]
