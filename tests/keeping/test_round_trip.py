"""From one database to the other and back: whatever a user's memory holds comes back as it was."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_memory import Content, Memory, MemoryEntry, MemoryService, SearchRequest, SessionEntries, open_memory
from adk_memory.cli._conversation import export_line, read_export
from conftest import migrate

APP = "app"
LAST = datetime.max.replace(tzinfo=UTC)
HOSTILE = [
    "",
    "\u2028",
    "\x85",
    "\\u0000",
    "\\ud800",
    "\0",
    "\ud800",
    "\\",
    '"',
    "\n",
    "\r\n",
    "😀",
    "tea",
    "null",
    "x" * 256,
]
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12), st.lists(st.sampled_from(HOSTILE)).map("".join))
values: Any = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.just(10**4_000), st.just(-0.0),
        st.floats(allow_nan=False, allow_infinity=False), texts,
    ),
    lambda children: st.one_of(st.lists(children, max_size=3), st.dictionaries(texts, children, max_size=3)),
    max_leaves=8,
)  # fmt: skip
objects = st.dictionaries(texts.map(lambda text: text.replace("\0", "0").replace("\ud800", "1")), values, max_size=3)
parts = st.lists(st.one_of(texts, objects), max_size=3)
contents = st.one_of(
    texts,
    st.builds(Content, st.one_of(st.none(), texts), parts),
    st.builds(Content, st.just("tool"), parts, kind=values),
)
ids = st.one_of(st.sampled_from(["e1", "e2", "é", "e\u0301", "E1", " e1", "x" * 256, "𝄞" * 256]), st.none())
instants = st.one_of(
    st.none(), st.datetimes(timezones=st.just(UTC)), st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), LAST])
)
endings = st.one_of(st.none(), st.integers(1, 10**15).map(lambda before: LAST - timedelta(microseconds=before)))
entries = st.builds(
    MemoryEntry,
    contents, texts, instants, ids, objects, endings,
)  # fmt: skip
places = st.tuples(st.sampled_from([None, "s", "S ", "%", "x" * 256]), st.sampled_from([None, "A", "x" * 256]))
stores = st.lists(st.tuples(places, st.lists(entries, min_size=1, max_size=4)), max_size=5)
_users = count()


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def services(
    runner: asyncio.Runner, postgres_server: Any, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[MemoryService]]:
    with postgres_server.database(postgres_template) as postgres:
        sqlite = f"sqlite:///{tmp_path_factory.mktemp('keeping') / 'memory.db'}"
        migrate(sqlite)
        services = [open_memory(url) for url in (sqlite, postgres, "memory://")]
        yield services
        for service in services:
            runner.run(service.close())


async def _lines(service: MemoryService, user: str) -> list[bytes]:
    return [export_line(memory) async for memory in service.export_user(APP, user)]


async def _read(service: MemoryService, user: str) -> tuple[list[Memory], list[tuple[str, float | None]]]:
    response = await service.search(SearchRequest("tea null 😀", APP, user, "A", 1_000))
    return await service.list_recent(APP, user, 1_000), [(memory.id, memory.score) for memory in response]


@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(stores=stores)
def test_every_content_comes_back_from_every_database(
    services: list[MemoryService], runner: asyncio.Runner, stores: list[Any]
) -> None:
    async def round_trip() -> None:
        user = f"user {next(_users)}"
        first, *others = services
        await first.add_many(SessionEntries(APP, user, session, those, project) for (session, project), those in stores)
        lines = await _lines(first, user)
        memories, scores = await _read(first, user)
        for number, other in enumerate([*others, first]):
            assert all(b"\n" not in line[:-1] and len(line.decode().splitlines()) == 1 for line in lines)
            copy = f"{user}, copy {number}"
            for _ in range(2):
                await other.add_many(read_export(lines, APP, copy))
            assert await _lines(other, copy) == lines
            memories_of_copy, scores_of_copy = await _read(other, copy)
            assert memories_of_copy == memories
            assert [entry_id for entry_id, _ in scores_of_copy] == [entry_id for entry_id, _ in scores]
            assert [score for _, score in scores_of_copy] == pytest.approx([score for _, score in scores], abs=1e-6)

    runner.run(round_trip())


async def test_memory_stays_bounded_on_the_way(sqlite_url: str) -> None:
    async with open_memory(sqlite_url) as service:
        await service.migrate()
        text = "tea " * 500
        sizes = {"small": 4, "large": 16}
        peaks = {}
        for user, sessions in sizes.items():
            await service.add_many(
                SessionEntries(APP, user, f"s{n}", [MemoryEntry(f"{text} {i}") for i in range(500)])
                for n in range(sessions)
            )

        for user, sessions in sizes.items():
            tracemalloc.start()
            exported = 0
            async for memory in service.export_user(APP, user):
                exported += len(export_line(memory)) > 0
            peaks[user] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert exported == 500 * sessions

        assert peaks["large"] < 1.5 * peaks["small"]
