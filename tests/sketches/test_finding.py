"""Searches by sketches: what they find, what they never miss, and what they say of themselves."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from adk_memory import Author, MemoryEntry, PostgresMemoryService, SearchRequest, SearchResponse
from adk_memory._sql import postgres_find, prepared
from adk_memory.testing import ToyEmbedder
from sketches.support import APP, ENOUGH, USER, remember, run, service, sketched

FEW, MANY = 400, 700


@pytest.fixture(autouse=True)
def _smaller_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a store of many is made quickly: of more than `FEW`, 300 are compared."""
    monkeypatch.setattr(postgres_find, "_ALL_COMPARED", FEW)
    monkeypatch.setattr(postgres_find, "_COMPARED", 300)
    monkeypatch.setattr(postgres_find, "_COMPARED_FOR_EACH", 2)
    # Statements that are prepared already have the usual limits in them.
    monkeypatch.setattr(prepared, "_compiled", lru_cache(prepared._compiled.__wrapped__))


async def ask(memory: PostgresMemoryService, query: str, **options: Any) -> SearchResponse:
    return await memory.search(SearchRequest(query, APP, USER, mode="vector", **options))


async def test_few_vectors_are_all_compared(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, FEW)
        response = await ask(memory, "note399")

    assert (await sketched(migrated_postgres_url))[1] == FEW
    assert response[0].text == "note399"
    assert not response.approximate


async def test_of_more_the_sketches_choose(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, MANY)
        found = [await ask(memory, f"note{number}") for number in range(0, MANY, 70)]
        wider = await ask(memory, "note7", limit=400)

    assert [response[0].text for response in found] == [f"note{number}" for number in range(0, MANY, 70)]
    assert all(response.approximate for response in found)
    assert not wider.approximate  # 800 are compared where 400 are wanted


async def test_nearly_all_of_the_nearest_are_found(migrated_postgres_url: str) -> None:
    embedder = ToyEmbedder(384)
    async with service(migrated_postgres_url, embedder=embedder) as memory:
        await memory.add_session(
            APP, USER, "s", [MemoryEntry(f"w{number % 97} x{number % 89} y{number % 83}") for number in range(1_000)]
        )
        questions = [f"w{number} x{number + 1} y{number + 2}" for number in range(20)]
        sketchy = [await ask(memory, question) for question in questions]
        await run(migrated_postgres_url, "UPDATE adk_memory_embedding SET sketch = NULL")
        exact = [await ask(memory, question) for question in questions]

    assert all(response.approximate for response in sketchy)
    assert not any(response.approximate for response in exact)
    same = [len({m.id for m in some} & {m.id for m in true}) for some, true in zip(sketchy, exact, strict=True)]
    assert sum(same) >= 0.99 * sum(map(len, exact))


@pytest.mark.parametrize("which", ["entry_id % 2 = 0", "entry_id % 100 = 0", "true"])
async def test_vectors_without_a_sketch_are_never_missed(migrated_postgres_url: str, which: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, 1_000)
        await run(migrated_postgres_url, f"UPDATE adk_memory_embedding SET sketch = NULL WHERE {which}")

        missed = [n for n in range(0, 1_000, 27) if (await ask(memory, f"note{n}"))[0].text != f"note{n}"]

    assert missed == []


async def test_a_reader_that_does_not_know_the_thresholds_finds_exactly_and_learns(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as reader, service(migrated_postgres_url) as writer:
        await remember(writer, 1)
        assert (await ask(reader, "note0"))[0].text == "note0"
        await remember(writer, MANY)

        first, second = await ask(reader, "note600"), await ask(reader, "note600")

    assert [first[0].text, second[0].text] == ["note600", "note600"]
    assert [first.approximate, second.approximate] == [False, True]


async def test_only_what_passes_a_filter_is_compared(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, MANY)
        await memory.add_session(APP, USER, "of bo", [MemoryEntry(f"far {n}", author="bo") for n in range(20)])

        response = await ask(memory, "note600", filter=Author("bo"), limit=20)

    assert sorted(found.text for found in response) == sorted(f"far {n}" for n in range(20))
    assert not response.approximate


async def test_the_sketches_of_others_are_not_chosen(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, MANY, user="bo")
        await remember(memory, 3)

        response = await ask(memory, "note600")

    assert sorted(found.text for found in response) == ["note0", "note1", "note2"]
    assert not response.approximate


async def test_projects_are_chosen_from_together(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, FEW)
        for start in (0, 200):
            entries = [MemoryEntry(f"page{number}") for number in range(start, start + 200)]
            await memory.add_session(APP, USER, f"pages {start}", entries, project_id="book")

        found = [await ask(memory, query, project_id="book") for query in ("note77", "page333")]
        elsewhere = await ask(memory, "page333")

    assert [response[0].text for response in found] == ["note77", "page333"]
    assert all(response.approximate for response in found)
    assert not any(memory.text.startswith("page") for memory in elsewhere)


async def test_hybrid_searches_say_it_too_and_those_by_words_do_not(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, MANY)
        hybrid = await memory.search(SearchRequest("note7", APP, USER))
        by_words = await memory.search(SearchRequest("note7", APP, USER, mode="keyword"))

    assert (hybrid.mode, hybrid.approximate, hybrid[0].text) == ("hybrid", True, "note7")
    assert (by_words.mode, by_words.approximate, by_words[0].text) == ("keyword", False, "note7")


async def test_three_thousand_dimensions(migrated_postgres_url: str) -> None:
    embedder = ToyEmbedder(3_072)
    async with service(migrated_postgres_url, embedder=embedder) as memory:
        await remember(memory, MANY)
        response = await ask(memory, "note600")
        hybrid = await memory.search(SearchRequest("note600", APP, USER))
        assert await memory.delete_user(APP, USER) == MANY

    assert response.approximate
    assert response[0].text == hybrid[0].text == "note600"


async def test_pgvector_may_be_in_a_schema_off_the_search_path(postgres_url: str) -> None:
    await run(postgres_url, 'CREATE SCHEMA "Ext 1"')
    await run(postgres_url, 'CREATE EXTENSION vector SCHEMA "Ext 1"')
    async with service(postgres_url) as memory:
        await memory.migrate()
        await remember(memory, MANY)
        response = await ask(memory, "note600")

    assert (await sketched(postgres_url)) == (MANY, MANY)
    assert response.approximate
    assert response[0].text == "note600"


async def test_a_model_of_few_vectors_is_searched_exactly(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, ENOUGH - 1)
        response = await ask(memory, "note77")

    assert (await sketched(migrated_postgres_url))[1] == 0
    assert response[0].text == "note77"
    assert not response.approximate


async def test_entries_without_a_vector_are_noticed_whenever_they_come(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory, PostgresMemoryService(migrated_postgres_url) as plain:
        await remember(memory, MANY)
        complete = [(await ask(memory, "note7")).partial for _ in range(3)]
        await remember(plain, 1, about="plain")
        lacking = [(await ask(memory, "note7")).partial for _ in range(3)]
        await remember(memory, 1, about="plain")  # gives it one
        again = [(await ask(memory, "note7")).partial for _ in range(3)]

    assert (complete, lacking, again) == ([False] * 3, [True] * 3, [False] * 3)


async def test_scopes_may_grow_and_shrink(migrated_postgres_url: str) -> None:
    seen = []
    async with service(migrated_postgres_url) as memory:
        await remember(memory, 300)
        seen.append(await ask(memory, "note7"))
        await remember(memory, FEW, about="more")
        seen.append(await ask(memory, "note7"))
        seen.append(await ask(memory, "more7"))
        await memory.delete_session(APP, USER, "more")
        seen.append(await ask(memory, "note7"))

    assert [response.approximate for response in seen] == [False, True, True, False]
    assert [response[0].text for response in seen] == ["note7", "note7", "more7", "note7"]
