"""F11 to F13 and F15: dimensions, models that change, embedders that fail."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from adk_memory import (
    AdkMemoryError,
    ConfigurationError,
    EmbeddingError,
    EmbeddingMismatchError,
    MemoryEntry,
    OperationNotSupportedError,
    open_memory,
)
from adk_memory._open import open_engine
from field_reports.calls import APP, USER, MakeService, ask, found, recent, remember, texts
from field_reports.embedders import Down, HashEmbedder, Liar, Picky, Stuck, WatchesConnections

NOTES = [f"note number {number}" for number in range(30)]


async def test_f11_each_user_gets_the_exact_nearest_however_many_others_are_nearer(make_service: MakeService) -> None:
    embedder = HashEmbedder(16)
    async with make_service(embedder) as service:
        await remember(service, *[f"crowd {n}" for n in range(1_500)], user="crowd")
        mine = [f"mine {number}" for number in range(60)]
        await remember(service, *mine)
        await remember(service, "alone", user="one")
        question = np.array(embedder.vector("question"))
        cosine = {
            text: float(np.dot(question, vector) / np.linalg.norm(question) / np.linalg.norm(vector))
            for text, vector in ((text, np.array(embedder.vector(text))) for text in mine)
        }
        exact = sorted(mine, key=lambda text: -max(cosine[text], 0.0))

        for limit, expected in [(1, 1), (20, 20), (50, 50), (1_500, 60)]:
            hits = await ask(service, "question", limit=limit, mode="vector")
            positive = [text for text in exact[:expected] if cosine[text] > 0.001]
            assert len(hits) == expected
            assert set(texts(hits)[: len(positive)]) == set(positive)
            assert [hit.score for hit in hits] == pytest.approx([max(cosine[hit.text], 0) for hit in hits], abs=2e-3)
        assert await found(service, "question", user="one", mode="vector") == ["alone"]


async def test_f11_a_large_limit_gives_every_entry(make_service: MakeService) -> None:
    async with make_service(HashEmbedder(4)) as service:
        await remember(service, *[f"note {number}" for number in range(600)])

        for limit in (50, 100, 101, 599, 600, 1_000, 1_500):
            assert len(await ask(service, "question", limit=limit, mode="vector")) == min(limit, 600)


@pytest.mark.parametrize("dimensions", [1, 2, 7, 2_000, 2_001, 3_072, 4_096, 16_000])
async def test_f12_any_number_of_dimensions_works(make_service: MakeService, dimensions: int) -> None:
    async with make_service(HashEmbedder(dimensions)) as service:
        await service.migrate()
        await remember(service, *NOTES)

        [best, *_] = await ask(service, NOTES[3], mode="vector")
        if dimensions > 1:
            assert best.text == NOTES[3]
        assert best.score == pytest.approx(1.0, abs=1e-3)
        assert await service.delete_user(APP, USER) == 30


@pytest.mark.parametrize("dimensions", [0, -1, 16_001, 10**9, "8", 8.0, None, True])
def test_f12_dimensions_that_cannot_be_are_refused_before_anything_else(dimensions: Any) -> None:
    class Odd(HashEmbedder):
        pass

    odd = Odd()
    odd.dimensions = dimensions

    if dimensions is True:  # a bool is an int in Python, and 1 a possible width
        assert open_memory("memory://", embedder=odd) is not None
        return
    for url in ("memory://", "sqlite://", "postgresql://nobody@localhost/nothing"):
        with pytest.raises(ConfigurationError, match="dimensions"):
            open_memory(url, embedder=odd)


async def test_f13_another_width_under_another_name_is_a_model_of_its_own(sql_url: str) -> None:
    async with open_memory(sql_url, embedder=HashEmbedder(8, "a")) as service:
        await remember(service, *NOTES)
    async with open_memory(sql_url, embedder=HashEmbedder(16, "b")) as service:
        before = await ask(service, NOTES[3])
        await remember(service, "a newer note")
        after = await ask(service, "a newer note", mode="vector")

    assert (before[0].text, before.mode, before.partial) == (NOTES[3], "hybrid", True)
    assert (texts(after), after.partial) == (["a newer note"], True)


async def test_f13_another_width_under_the_same_name_is_an_error_that_names_both(sql_url: str) -> None:
    async with open_memory(sql_url, embedder=HashEmbedder(8, "model-x")) as service:
        await remember(service, *NOTES)
    async with open_memory(sql_url, embedder=HashEmbedder(16, "model-x")) as service:
        for call in (lambda: ask(service, "note"), lambda: remember(service, "one more")):
            with pytest.raises(EmbeddingMismatchError, match=r"model-x.*8.*16"):
                await call()
    async with open_memory(sql_url) as service:
        assert len(await found(service, "note")) == 30
        assert await service.delete_user(APP, USER) == 30


async def test_f13_vectors_of_two_models_of_one_width_are_never_compared(sql_url: str) -> None:
    async with open_memory(sql_url, embedder=HashEmbedder(8, "a")) as service:
        await remember(service, *NOTES)
    async with open_memory(sql_url, embedder=HashEmbedder(8, "c", salt="other")) as service:
        response = await ask(service, NOTES[3], mode="vector")
        assert (list(response), response.partial) == ([], True)
        assert (await service.health_check()).embedding_model == "c"

        await remember(service, *NOTES)
        response = await ask(service, NOTES[3], mode="vector")
        assert (response[0].text, response.partial) == (NOTES[3], False)
    async with open_memory(sql_url, embedder=HashEmbedder(8, "a")) as service:
        response = await ask(service, NOTES[3], mode="vector")
        assert (response[0].text, response.partial) == (NOTES[3], False)


@pytest.mark.parametrize(("declared", "given"), [(8, 16), (16, 8), (8, 7), (1, 0), (8, 1), (1, 8)])
async def test_f13_a_provider_that_gives_another_width_than_it_declares_is_found_out(
    make_service: MakeService, declared: int, given: int
) -> None:
    async with make_service(Liar(declared, given)) as service:
        with pytest.raises(EmbeddingMismatchError, match=f"liar.*{given}.*{declared}"):
            await remember(service, "a note")
        assert await recent(service) == []


async def test_f15_a_failing_embedder_means_that_nothing_is_written(make_service: MakeService) -> None:
    for error in [
        ConnectionError("sk-123"),
        TimeoutError(),
        RuntimeError("sk-123"),
        KeyError("a note"),
        ExceptionGroup("x", [OSError()]),
    ]:
        embedder = Down(error)
        async with make_service(embedder) as service:
            for call in (
                lambda service=service: remember(service, "a note", "another note"),
                lambda service=service: service.add_entry(APP, USER, MemoryEntry("a note")),
            ):
                with pytest.raises(EmbeddingError, match="nothing was written") as raised:
                    await call()
                assert "sk-123" not in str(raised.value)
                assert "a note" not in str(raised.value)
            assert await recent(service) == []

            embedder.broken = False
            assert len(await remember(service, "a note", "another note")) == 2
            assert not (await ask(service, "a note")).partial
            await service.delete_user(APP, USER)


async def test_f15_one_text_that_the_model_refuses_rolls_back_the_whole_session(make_service: MakeService) -> None:
    async with make_service(Picky()) as service:
        await remember(service, "kept")

        for bad in ("poison", "word " * 40_000):
            with pytest.raises(EmbeddingError):
                await remember(service, "one", "two", bad, "four", "five")
        assert await recent(service) == ["kept"]
        assert len(await remember(service, "one", "two", "", "   ", "\n", "four")) == 6


async def test_f15_blank_entries_do_not_reach_the_model(make_service: MakeService) -> None:
    embedder = Picky()
    async with make_service(embedder) as service:
        await remember(service, "one", "", "  ", "...", MemoryEntry({"parts": [{"call": {}}]}), "two")

        assert sorted(embedder.asked) == ["one", "two"]
        assert len(await recent(service)) == 6
        assert not (await ask(service, "one")).partial


async def test_f15_a_search_goes_on_by_words_and_says_so(make_service: MakeService) -> None:
    embedder = Down()
    embedder.broken = False
    async with make_service(embedder) as service:
        await remember(service, "window seats", "aisle seats")
        embedder.broken = True

        response = await ask(service, "window")
        assert (texts(response), response.mode, response.partial) == (["window seats"], "keyword", True)
        for mode in ("vector", "hybrid"):
            with pytest.raises(EmbeddingError):
                await ask(service, "window", mode=mode)
        assert await found(service, "window", mode="keyword") == ["window seats"]


async def test_f15_deleting_never_asks_the_embedder(make_service: MakeService) -> None:
    embedder = Down()
    embedder.broken = False
    async with make_service(embedder) as service:
        for session in "abcde":
            await remember(
                service, MemoryEntry("window seats", id="x"), session=session, project="p" if session == "e" else None
            )
        embedder.broken, asked = True, list(embedder.asked)

        assert await service.delete_session(APP, USER, "a") == 1
        assert await service.delete_entries(APP, USER, "window", dry_run=True) == 3
        assert await service.delete_entries(APP, USER, "window seats") == 3
        assert await service.delete_project(APP, USER, "p") == 1
        assert await service.delete(APP, USER, "x") == await service.delete_user(APP, USER) == 0
        assert embedder.asked == asked


async def test_f15_others_can_write_while_the_embedder_hangs(make_service: MakeService) -> None:
    embedder = Stuck()
    async with make_service(embedder) as service:
        adding = asyncio.create_task(remember(service, "slow note"))
        await embedder.was_asked.wait()

        assert await recent(service) == []
        await remember(service, "!!!", user="someone")  # has no word, so it needs no vector
        assert await service.delete_user(APP, "someone") == 1
        embedder.may_answer.set()
        await adding
        assert await recent(service) == ["slow note"]


async def test_f15_giving_up_on_a_slow_embedder_leaves_nothing_behind(make_service: MakeService) -> None:
    embedder = Stuck()
    async with make_service(embedder) as service:
        adding = asyncio.create_task(remember(service, "slow note"))
        await embedder.was_asked.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding

        assert await recent(service) == []
        embedder.may_answer.set()
        await remember(service, "slow note")
        assert await found(service, "slow note") == ["slow note"]


async def test_f15_no_connection_is_held_while_the_embedder_works(sql_url: str) -> None:
    engine = open_engine(sql_url)
    embedder = WatchesConnections(engine)
    async with open_memory(engine, embedder=embedder) as service:
        await remember(service, "window seats")
        await remember(service, "window seats", "aisle seats", existing="replace")
        await service.add_entry(APP, USER, MemoryEntry("one more"))
        await ask(service, "window")
    await engine.dispose()

    assert embedder.seen == [0] * len(embedder.seen)
    assert len(embedder.seen) == 4


@pytest.mark.parametrize(
    "answer", [None, 5, [], [[1.0] * 8] * 3, [None], ["text"], [[None] * 8], [["a"] * 8], [{}], [object()], [[1j] * 8]]
)
async def test_f15_nonsense_from_the_model_is_an_embedding_error(make_service: MakeService, answer: Any) -> None:
    class Nonsense(HashEmbedder):
        async def embed(self, texts: Any) -> Any:
            return answer

    async with make_service(Nonsense()) as service:
        with pytest.raises(EmbeddingError):
            await remember(service, "a note")
        assert await recent(service) == []


def test_f15_what_is_no_provider_is_refused() -> None:
    class Model(HashEmbedder):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

    for bad in ["model", 5, object(), HashEmbedder, Model(None), Model(""), Model("m" * 257), Model(5)]:
        with pytest.raises(AdkMemoryError):
            open_memory("memory://", embedder=bad)  # type: ignore[arg-type]


async def test_f15_vectors_without_a_provider_are_refused(make_service: MakeService) -> None:
    async with make_service() as service:
        for mode in ("vector", "hybrid"):
            with pytest.raises(OperationNotSupportedError, match=mode):
                await ask(service, "question", mode=mode)
