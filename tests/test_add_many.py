"""add_many on the databases: the same rows as by add_session, a batch in one transaction, one call of the embedder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import text

from adk_memory import EmbeddingError, MemoryEntry, MemoryService, SessionEntries, open_memory
from adk_memory._sql.service import SqlMemoryService
from adk_memory.testing import ToyEmbedder

TEXTS = [
    "The CAFÉ opens at nine, it's O'Brien's \\ back\\slash",
    "我喜欢绿茶 and 東京都",
    "🙂 👍🏽 e-mail getUserName C++ U.S.A. 1,000,000",
    "",
    "again " * 300 + "and once more",
    " ".join(f"word{number}" for number in range(17_000)) + " again word3",
    "a" * 70 + " \u0301 \ufffd \u200d",
]
ROWS = {
    "entry": "SELECT id, session_key, entry_key, position, author, timestamp, CAST(content AS text), text, "
    "CAST(metadata AS text), term_count FROM adk_memory_entry ORDER BY id",
    "scope": "SELECT id, fingerprint, entry_count, term_count FROM adk_memory_scope",
    "vector": "SELECT entry_id, scope_id, model_id, vector FROM adk_memory_embedding ORDER BY entry_id",
}
INDEX = {
    "sqlite": "SELECT rowid, terms FROM adk_memory_search_entry ORDER BY rowid",
    "postgresql": "SELECT scope_id, entry_id, terms, lexemes::text FROM adk_memory_search_entry ORDER BY entry_id",
}


class CountingEmbedder(ToyEmbedder):
    """Knows how many texts each of its calls had."""

    def __init__(self) -> None:
        super().__init__(dimensions=7)
        self.calls: list[int] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.calls.append(len(texts))
        return await super().embed(texts)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
async def service(database_url: str, embedder: CountingEmbedder) -> AsyncIterator[MemoryService]:
    async with open_memory(database_url, embedder=embedder) as service:
        await service.migrate()
        yield service


def sessions(count: int, user: str = "ana") -> Iterator[SessionEntries]:
    """Yield sessions of ten entries."""
    for number in range(count):
        entries = [MemoryEntry(f"tea {number} {turn}", id=f"{turn}") for turn in range(10)]
        yield SessionEntries("app", user, f"s{number}", entries)


async def rows(service: MemoryService) -> dict[str, list[Any]]:
    assert isinstance(service, SqlMemoryService)
    async with service._database._engine.connect() as connection:
        statements = ROWS | {"index": INDEX[service._dialect.name]}
        return {name: [tuple(row) for row in await connection.execute(text(sql))] for name, sql in statements.items()}


async def stored(service: MemoryService) -> int:
    return len((await rows(service))["entry"])


async def test_the_rows_are_those_that_a_loop_leaves(service: MemoryService) -> None:
    day = "2024-05-01T12:00:00.000001"
    entries = [MemoryEntry(said, "Ana", day, metadata={"n": n}) for n, said in enumerate(TEXTS)]
    for number in range(3):
        await service.add_session("app", "ana", f"s{number}", entries[number:])
    looped = await rows(service)
    await service.delete_user("app", "ana")
    assert await stored(service) == 0

    await service.add_many(SessionEntries("app", "ana", f"s{number}", entries[number:]) for number in range(3))

    added = await rows(service)
    first = added["entry"][0][0] - looped["entry"][0][0]
    scope = added["scope"][0][0]
    assert [row[0] for row in added["entry"]] == [row[0] + first for row in looped["entry"]]
    assert [row[1:] for row in added["entry"]] == [row[1:] for row in looped["entry"]]
    assert [row[1:] for row in added["scope"]] == [row[1:] for row in looped["scope"]]
    assert [row[2:] for row in added["vector"]] == [row[2:] for row in looped["vector"]]
    assert [row[0] for row in added["vector"]] == [row[0] + first for row in looped["vector"]]
    assert len(added["index"]) == len(looped["index"])
    for new, old in zip(added["index"], looped["index"], strict=True):
        old_scope = looped["scope"][0][0]
        assert new[-1] == old[-1].replace(f"'@{old_scope}'", f"'@{scope}'").replace(f"{old_scope}_", f"{scope}_")


async def test_a_batch_is_embedded_in_one_call(service: MemoryService, embedder: CountingEmbedder) -> None:
    await service.add_many(sessions(230))
    await service.add_many(sessions(230))

    assert embedder.calls == [1_000, 1_000, 300]


async def test_a_batch_whose_embedder_fails_is_not_written(service: MemoryService, embedder: CountingEmbedder) -> None:
    embedder.answers["tea 150 5"] = OSError("down")
    told: list[int] = []

    with pytest.raises(EmbeddingError):
        await service.add_many(sessions(230), on_progress=told.append)

    assert told == [1_000]
    assert await stored(service) == 1_000


async def test_a_batch_that_is_cancelled_is_not_written(service: MemoryService, embedder: CountingEmbedder) -> None:
    told: list[int] = []
    adding = asyncio.create_task(service.add_many(sessions(230), on_progress=told.append))
    while len(embedder.calls) < 2:
        await asyncio.sleep(0)

    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding

    assert told == [1_000]
    assert await stored(service) == 1_000
    await service.add_many(sessions(230))
    assert await stored(service) == 2_300


@pytest.mark.parametrize("moment", range(0, 60, 5))
async def test_a_batch_is_written_whole_or_not_whenever_it_is_cancelled(service: MemoryService, moment: int) -> None:
    adding = asyncio.create_task(service.add_many(sessions(100)))
    await asyncio.sleep(moment / 1_000)

    adding.cancel()
    await asyncio.gather(adding, return_exceptions=True)

    assert await stored(service) in (0, 1_000)
    assert await service.add_many(sessions(100)) == 1_000
    assert await stored(service) == 1_000


async def test_writers_of_the_same_scopes_do_not_wait_for_each_other(service: MemoryService) -> None:
    users = [f"user-{number}" for number in range(30)]

    async def add(order: Sequence[str]) -> None:
        for project in (None, "A", "B"):
            await service.add_many(
                SessionEntries("app", user, f"s{number}", [MemoryEntry(f"tea {number}", id="t")], project)
                for number in range(3)
                for user in order
            )

    async def erase() -> None:
        for user in users:
            await service.delete_user("app", user)

    await asyncio.gather(add(users), add(users[::-1]), erase(), add(users[15:] + users[:15]), erase())
    await add(users)

    assert await stored(service) == 30 * 3 * 3


async def test_it_does_not_wait_in_a_circle_with_who_erases_a_project(migrated_postgres_url: str) -> None:
    items = [
        SessionEntries("app", "ana", "s1", [MemoryEntry("x", id="1")]),
        SessionEntries("app", "ana", "s2", [MemoryEntry("x", id="2")], project_id="p"),
    ]
    async with open_memory(migrated_postgres_url) as service:

        async def add_and_erase(number: int) -> None:
            for turn in range(15):
                if (turn + number) % 3:
                    await service.add_many(items)
                else:
                    await service.delete_project("app", "ana", "p")

        await asyncio.gather(*map(add_and_erase, range(12)))
