"""F37: the keyword index holds what the entries hold, whatever was called in whatever order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text

from adk_memory import InMemoryMemoryService, MemoryEntry, MemoryService, open_memory
from adk_memory.types import Existing
from field_reports.calls import APP, ask, found, recent, remember, texts
from field_reports.embedders import HashEmbedder
from field_reports.tables import fts5_is_sound, index_differences, looking, rows_of_users

WORDS = ["alpha", "beta", "gamma", "delta", "éclair", "東京", "🍕", "!!!", "", "run running", "x\x00y"]
Step = Callable[[MemoryService], Awaitable[object]]


def random_step(chooser: random.Random) -> Step:
    user, session = chooser.choice(["ana", "bob"]), chooser.choice(["s1", "s2"])
    project = chooser.choice([None, None, "p", "q"])
    query = " ".join(chooser.choices(WORDS, k=2))
    name = f"{chooser.randrange(6)}"
    said = [
        MemoryEntry(
            " ".join(chooser.choices(WORDS, k=chooser.randrange(4))), id=chooser.choice([None, f"{n}"]), timestamp=n
        )
        for n in range(chooser.randrange(5))
    ]
    existing: Existing = chooser.choice(["update", "update", "keep", "replace"])
    steps: list[Step] = [
        lambda service: remember(service, *said, user=user, session=session, project=project, existing=existing),
        lambda service: remember(service, *said, user=user, session=session, project=project),
        lambda service: remember(service, *said, *said, user=user, session=session, project=project, existing="keep"),
        lambda service: service.add_entry(APP, user, MemoryEntry(query, id=name, timestamp=1), project_id=project),
        lambda service: service.delete(APP, user, name),
        lambda service: service.delete(APP, user, name, project_id=project),
        lambda service: service.delete_entries(APP, user, query, project_id=project),
        lambda service: service.delete_session(APP, user, session),
        lambda service: service.delete_session(APP, user, session, project_id=project),
        lambda service: service.delete_project(APP, user, project or "p"),
        lambda service: service.delete_user(APP, user),
    ]
    return chooser.choices(steps, weights=[6, 6, 3, 6, 2, 2, 2, 1, 1, 1, 1])[0]


async def holds_the_same(service: MemoryService, reference: MemoryService) -> None:
    for user in ("ana", "bob"):
        kept, expected = [await each.list_recent(APP, user, 1_000) for each in (service, reference)]
        assert kept == expected
        for query in ("alpha beta", "éclair", "東京", "🍕", "running"):
            for project in (None, "p"):
                here, there = [
                    await found(each, query, user=user, project=project, mode="keyword")
                    for each in (service, reference)
                ]
                assert here == there, (user, query, project)


async def try_at_random(url: str, seed: int, steps: int) -> None:
    chooser = random.Random(seed)
    reference = InMemoryMemoryService(embedder=HashEmbedder())
    async with open_memory(url, embedder=HashEmbedder()) as service:
        for number in range(steps):
            step = random_step(chooser)
            assert await step(service) == await step(reference), (seed, number)
            if number % 50 == 49:
                await holds_the_same(service, reference)
                assert await index_differences(url) == [], (seed, number)
                if url.startswith("sqlite"):
                    assert await fts5_is_sound(url), (seed, number)


async def test_f37_random_calls_leave_a_sound_index_and_the_same_answers(sql_url: str) -> None:
    await try_at_random(sql_url, seed=1, steps=150)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(2, 7))
async def test_f37_two_thousand_random_calls_leave_a_sound_index(sql_url: str, seed: int) -> None:
    await try_at_random(sql_url, seed, steps=2_000)


async def test_f37_calls_at_the_same_time_leave_a_sound_index(sql_url: str) -> None:
    chooser = random.Random(7)
    async with open_memory(sql_url, embedder=HashEmbedder()) as service:
        for _ in range(6):
            await asyncio.gather(*[random_step(chooser)(service) for _ in range(15)])
            assert await index_differences(sql_url) == []
        rows = await rows_of_users(sql_url)
        entries = [memory for user in ("ana", "bob") for memory in await service.list_recent(APP, user, 1_000)]

    assert rows["adk_memory_entry"] == len(entries)
    assert rows["adk_memory_search_entry"] <= rows["adk_memory_entry"]
    if sql_url.startswith("sqlite"):
        assert await fts5_is_sound(sql_url)


async def test_f37_the_old_text_of_an_entry_is_not_found(sql_url: str) -> None:
    async with open_memory(sql_url) as service:
        await remember(service, MemoryEntry("alpha secret", id="x"))
        await remember(service, MemoryEntry("beta", id="x"))

        assert await found(service, "secret") == []
        assert await found(service, "beta") == ["beta"]
    assert await index_differences(sql_url) == []


async def test_f37_deleting_twice_and_deleting_what_has_no_words_is_harmless(sql_url: str) -> None:
    async with open_memory(sql_url) as service:
        await remember(service, MemoryEntry("", id="empty"), MemoryEntry({"parts": [{"call": 1}]}, id="call"), "kept")
        for name in ("empty", "call"):
            assert await service.delete(APP, "ana", name) == 1
            assert await service.delete(APP, "ana", name) == 0
        await remember(service, MemoryEntry("", id="empty"), "kept too")

        assert sorted(await recent(service)) == ["", "kept", "kept too"]
        assert sorted(await found(service, "kept")) == ["kept", "kept too"]
    if sql_url.startswith("sqlite"):
        assert await fts5_is_sound(sql_url)


async def test_f37_row_ids_are_never_used_again(migrated_sqlite_url: str) -> None:
    async with open_memory(migrated_sqlite_url) as service:
        await remember(service, "first", user="eve")
        await service.delete_user(APP, "eve")
        await remember(service, "second")
    async with looking(migrated_sqlite_url) as connection:
        assert list(await connection.scalars(text("SELECT id FROM adk_memory_entry"))) == [2]
        assert list(await connection.scalars(text("SELECT id FROM adk_memory_scope"))) == [2]
        await connection.execute(text("VACUUM"))

    async with open_memory(migrated_sqlite_url) as service:
        assert texts(await ask(service, "second first")) == ["second"]
    assert await fts5_is_sound(migrated_sqlite_url)
