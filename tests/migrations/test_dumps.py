"""Databases as every released version left them: loaded, upgraded, used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adk_memory import InMemoryMemoryService, Memory, MemoryService, SearchRequest, open_memory
from faults.sound import assert_sound
from migrations.stored import APP, DUMPS, Letters, fill, items, load_postgres, load_sqlite

QUESTIONS = ["what about the kitchen", "walls", "\u5eb7\u666f", "cafe", "turn 2"]


@pytest.fixture(params=sorted(path.name for path in DUMPS.iterdir()))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that a dump was loaded into."""
    name: str = request.param
    sql = (DUMPS / name).read_text()
    if ".sqlite." in name:
        load_sqlite(tmp_path / "memory.db", sql)
        return f"sqlite:///{tmp_path / 'memory.db'}"
    found: str = request.getfixturevalue("postgres_url")
    asyncio.run(load_postgres(found, sql))
    return found


async def everything(service: MemoryService) -> dict[str, list[Memory]]:
    users = sorted({item.user_id for item in items()})
    return {user: [memory async for memory in service.export_user(APP, user)] for user in users}


async def answers(service: MemoryService) -> list[list[tuple[str, float]]]:
    found = [await service.search(SearchRequest(query, APP, "ana", "A")) for query in QUESTIONS]
    return [[(memory.id, round(memory.score or 0, 6)) for memory in response] for response in found]


def test_there_are_dumps_for_both_databases() -> None:
    assert {name.split(".")[1] for name in (path.name for path in DUMPS.iterdir())} == {"sqlite", "postgresql"}


async def test_a_dump_is_upgraded_and_holds_what_was_stored(url: str) -> None:
    fresh = InMemoryMemoryService(embedder=Letters())
    await fill(fresh)
    async with open_memory(url, embedder=Letters()) as service:
        await service.migrate()
        assert await everything(service) == await everything(fresh)
        assert await answers(service) == await answers(fresh)
        health = await service.health_check()
        assert (health.pending, health.index_outdated) == (0, False)
    await assert_sound(url)


async def test_an_upgraded_dump_is_written_to_and_erased(url: str) -> None:
    async with open_memory(url, embedder=Letters()) as service:
        await service.migrate()
        again = await service.add_session(APP, "ana", "monday", items()[0].entries)
        assert again == [entry.id for entry in items()[0].entries]
        stored = await everything(service)
        assert len(stored["ana"]) == 14
        proof = await service.erase_user(APP, "ana")
        assert proof.erased.parts() == {"entries": 14, "vectors": 14, "index_entries": 14, "scopes": 3}
        assert proof.complete
        assert (await everything(service))["o'Brien%_"] == stored["o'Brien%_"]
    await assert_sound(url)
