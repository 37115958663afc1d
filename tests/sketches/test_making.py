"""When a model gets its thresholds, and its vectors their sketches."""

from __future__ import annotations

import asyncio
import logging

import pytest

from adk_memory import MemoryEntry, SearchRequest, StorageError
from adk_memory._sql.postgres import PostgresDialect
from adk_memory._sql.sketch import unpacked
from adk_memory.testing import ToyEmbedder
from sketches.support import APP, ENOUGH, USER, fetch, remember, run, service, sketched, statements


async def test_vectors_get_sketches_once_there_are_enough_of_a_model(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, ENOUGH - 1)
        assert await sketched(migrated_postgres_url) == (ENOUGH - 1, 0)

        await remember(memory, ENOUGH, about="more")
        assert await sketched(migrated_postgres_url) == (2 * ENOUGH - 1,) * 2

        await remember(memory, 10, about="still more")
        assert await sketched(migrated_postgres_url) == (2 * ENOUGH + 9,) * 2


async def test_services_of_few_entries_each_add_up(migrated_postgres_url: str) -> None:
    for number in range(4):
        async with service(migrated_postgres_url) as memory:
            await remember(memory, ENOUGH // 4, about=f"part {number} ")

    assert await sketched(migrated_postgres_url) == (ENOUGH, ENOUGH)


async def test_more_than_a_batch_is_sketched(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, 2_500)

    assert await sketched(migrated_postgres_url) == (2_500, 2_500)


async def test_looking_after_sketches_costs_other_writes_no_statement(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, 1)
        with statements(memory) as of_a_small_model:
            await remember(memory, 10, about="few")
        await remember(memory, ENOUGH, about="many")
        with statements(memory) as with_thresholds:
            await remember(memory, ENOUGH, about="others")

    assert len(of_a_small_model) == len(with_thresholds) == 3  # what is there, what comes last, the addition


async def test_the_first_thresholds_stay(migrated_postgres_url: str) -> None:
    thresholds = "SELECT thresholds FROM adk_memory_embedding_model"
    async with service(migrated_postgres_url) as memory, service(migrated_postgres_url) as other:
        await asyncio.gather(remember(memory, ENOUGH), remember(other, ENOUGH, user="bo"))
        first = await fetch(migrated_postgres_url, thresholds)
        await remember(other, 2 * ENOUGH, user="bo", about="later")

    assert first == await fetch(migrated_postgres_url, thresholds) != [(None,)]
    assert await sketched(migrated_postgres_url) == (4 * ENOUGH,) * 2


async def test_one_user_does_not_set_the_thresholds_alone(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = ToyEmbedder(384)
    embedder.answers = {f"mine{number}": [1.0] + [0.01] * 383 for number in range(500)}
    async with service(migrated_postgres_url, embedder=embedder) as memory:
        monkeypatch.setattr(memory._dialect, "tend", _nothing)
        for number in range(60):
            await remember(memory, 4, user=f"user {number}", about=f"theirs {number} ")
        await remember(memory, 500, about="mine")
    async with service(migrated_postgres_url, embedder=embedder) as memory:
        await remember(memory, 1, user="one more")

    [(stored,)] = await fetch(migrated_postgres_url, "SELECT thresholds FROM adk_memory_embedding_model")
    assert unpacked(stored, 384)[:, 0].max() < 0.5


async def test_a_writer_that_does_not_know_the_thresholds_learns_of_them(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as early, service(migrated_postgres_url) as late:
        await remember(early, 1, about="first")
        await remember(late, ENOUGH, about="many")
        assert await sketched(migrated_postgres_url) == (ENOUGH + 1,) * 2

        await remember(early, 10, about="early")

        assert await sketched(migrated_postgres_url) == (ENOUGH + 11,) * 2
        with statements(early) as sent:
            await remember(early, 10, about="knowing")
        assert len(sent) == 3


async def test_a_rewritten_entry_gets_the_sketch_of_its_new_vector(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, ENOUGH)
        before = await fetch(migrated_postgres_url, "SELECT entry_id, sketch FROM adk_memory_embedding ORDER BY 1")

        await memory.add_session(APP, USER, "note", [MemoryEntry("other words", id="note7")])

    after = await fetch(migrated_postgres_url, "SELECT entry_id, sketch FROM adk_memory_embedding ORDER BY 1")
    changed = [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert changed == [7]
    assert after[7][1] is not None


async def test_what_was_left_without_a_sketch_gets_one(migrated_postgres_url: str) -> None:
    async with service(migrated_postgres_url) as memory:
        await remember(memory, ENOUGH)
    await run(migrated_postgres_url, "UPDATE adk_memory_embedding SET sketch = NULL WHERE entry_id % 2 = 0")

    async with service(migrated_postgres_url) as memory:
        await remember(memory, 1, about="another")

    assert await sketched(migrated_postgres_url) == (ENOUGH + 1,) * 2


async def test_vectors_too_long_for_an_index_have_no_sketches(migrated_postgres_url: str) -> None:
    embedder = ToyEmbedder(8_001)
    embedder.answers = {f"note{number}": [1.0] * 8_000 + [float(number)] for number in range(ENOUGH)}
    async with service(migrated_postgres_url, embedder=embedder) as memory:
        await remember(memory, ENOUGH)
        response = await memory.search(SearchRequest("note7", APP, USER, mode="vector"))

    assert await sketched(migrated_postgres_url) == (ENOUGH, 0)
    assert response[0].text == "note7"


async def test_the_longest_sketches_fit_the_index(migrated_postgres_url: str) -> None:
    embedder = ToyEmbedder(8_000)
    embedder.answers = {f"note{number}": [float(number), 300.0] * 4_000 for number in range(ENOUGH)}
    async with service(migrated_postgres_url, embedder=embedder) as memory:
        await remember(memory, ENOUGH)
        response = await memory.search(SearchRequest("note7", APP, USER, mode="vector"))

    assert await sketched(migrated_postgres_url) == (ENOUGH, ENOUGH)
    assert response[0].text == "note7"


async def test_a_write_stands_when_its_sketches_can_not_be_made(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise StorageError("no disk")

    monkeypatch.setattr(PostgresDialect, "tend", fail)
    caplog.set_level(logging.WARNING)
    async with service(migrated_postgres_url) as memory:
        await remember(memory, 3)
        assert len(await memory.list_recent(APP, USER)) == 3

    assert "no disk" in caplog.text


async def _nothing(*_: object) -> None:
    pass
