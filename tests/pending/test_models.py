"""Models that come and go on the databases: what is compared, what is dropped, and what others have to notice."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from adk_memory import MemoryEntry, open_memory
from adk_memory._open import open_engine
from adk_memory._sql import pending, postgres_find
from adk_memory._sql.postgres_index import create, indexes
from adk_memory.testing import ToyEmbedder
from field_reports.calls import APP, USER, ask, remember, texts
from field_reports.tables import looking
from pending.support import fill, vectors


async def versions(url: str) -> list[int]:
    async with looking(url) as connection:
        rows = await connection.execute(text("SELECT version FROM adk_memory_scope ORDER BY id"))
        return [version for [version] in rows]


@pytest.mark.parametrize("dimensions", [64, 63])
async def test_two_services_with_two_models_on_one_store_never_compare_the_vectors_of_the_other(
    url: str, dimensions: int
) -> None:
    first, second = ToyEmbedder(64, "first"), ToyEmbedder(dimensions, "second")
    for provider, axis in ((first, 0), (second, 1)):
        provider.answers = {
            "west": [float(n == axis) for n in range(provider.dimensions)],
            "east": [float(n == 1 - axis) for n in range(provider.dimensions)],
            "question": [1.0] + [0.0] * (provider.dimensions - 1),
        }
    async with open_memory(url, embedder=first) as one, open_memory(url, embedder=second) as two:
        await remember(one, MemoryEntry("west", id="w"))
        await remember(two, MemoryEntry("east", id="e"), session="s2")
        assert (texts(await ask(one, "question", mode="vector")), (await ask(one, "west")).partial) == (["west"], True)
        assert (texts(await ask(two, "question", mode="vector")), (await ask(two, "east")).partial) == (["east"], True)

        await one.embed_pending()
        await two.embed_pending()

        # The first model has the question beside west, the second beside east.
        assert texts(await ask(one, "question", mode="vector")) == ["west", "east"]
        assert texts(await ask(two, "question", mode="vector")) == ["east", "west"]
        assert not (await ask(one, "west")).partial
        assert not (await ask(two, "west")).partial
    assert await vectors(url) == {"first": 2, "second": 2}


async def test_vectors_are_dropped_in_parts_while_others_read_and_write(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_VECTORS_AT_A_TIME", 30)
    await fill(url, 20)
    provider = ToyEmbedder(model="old")
    provider.answers = {"note 3 3": [0.0] * 64}
    steps: list[int] = []
    async with open_memory(url, embedder=provider) as old, open_memory(url, embedder=ToyEmbedder(9, "new")) as new:
        await old.embed_pending()
        await new.embed_pending()
        assert await vectors(url) == {"old": 199, "new": 200}

        dropping = asyncio.create_task(new.drop_model("old", on_progress=steps.append))
        while not dropping.done():
            await remember(new, f"written meanwhile {len(steps)}", user="user 3")
            assert not (await ask(new, "note", user="user 3")).partial
        assert await dropping == 199

        assert steps == sorted(steps)
        assert len(steps) == 7
        assert (await vectors(url)).keys() == {"new"}
        assert await new.drop_model("old") == 0
        written = await ask(new, "meanwhile", user="user 3", mode="keyword")
        assert (await old.health_check()).pending == 200 + len(written)


async def test_every_write_of_vectors_to_known_entries_raises_the_version_of_their_scope(url: str) -> None:
    async with open_memory(url) as service:
        await remember(service, MemoryEntry("a note", id="a"))
        await remember(service, MemoryEntry("a note", id="a"), user="ben")
    seen = [await versions(url)]
    async with open_memory(url, embedder=ToyEmbedder()) as service:
        await service.embed_pending(limit=1)
        seen.append(await versions(url))
        await service.embed_pending()
        seen.append(await versions(url))
        for user in (USER, "ben"):
            await remember(service, MemoryEntry("a note", id="a", vector=[1.0] * 64), user=user)
        seen.append(await versions(url))
        await service.drop_model("toy-64")
        seen.append(await versions(url))
        for user in (USER, "ben"):
            await remember(service, MemoryEntry("a note", id="a"), user=user)  # it lacks its vector
        seen.append(await versions(url))
        await service.embed_pending()

    assert [sum(versions) - sum(seen[0]) for versions in seen] == [0, 1, 2, 4, 6, 8]
    assert await versions(url) == seen[-1]


async def test_a_service_that_has_seen_all_vectors_notices_that_they_are_gone(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_find, "_ALL_COMPARED", 100)
    url = migrated_postgres_url
    async with open_memory(url, embedder=ToyEmbedder()) as service, open_memory(url) as other:
        for start in range(0, 400, 100):
            await remember(service, *[f"note {start + number}" for number in range(100)], session=f"s{start}")
        for _ in range(4):
            assert not (await ask(service, "note 7")).partial
        assert None not in service._dialect._sketches.of_many.values()  # type: ignore[attr-defined]
        assert service._dialect._sketches.of_many  # type: ignore[attr-defined]

        await other.drop_model("toy-64")

        assert (await ask(service, "note 7")).partial
        await service.embed_pending()
        assert not (await ask(service, "note 7")).partial


async def test_what_is_made_later_has_sketches_too(migrated_postgres_url: str) -> None:
    url = migrated_postgres_url
    await fill(url, 60)
    async with open_memory(url, embedder=ToyEmbedder()) as service:
        await service.embed_pending()
        await service.add_entry(APP, USER, MemoryEntry("one more"))
    async with looking(url) as connection:
        counted = await connection.execute(text("SELECT count(*), count(sketch) FROM adk_memory_embedding"))
        assert tuple(counted.one()) == (601, 601)


async def test_the_index_of_a_model_goes_with_its_vectors(migrated_postgres_url: str) -> None:
    url = migrated_postgres_url
    engine = open_engine(url)
    async with open_memory(engine, embedder=ToyEmbedder()) as service:
        await remember(service, "a note")
        await create(engine, "toy-64", lambda _: None)
        assert [index.model for index in await indexes(engine)] == ["toy-64"]

        assert await service.drop_model("toy-64") == 1

        assert await indexes(engine) == []
    await engine.dispose()
