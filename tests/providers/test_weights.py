"""The local models themselves. These tests are heavy: where the extras are missing they fail, they don't skip."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import numpy as np
import pytest

from adk_memory import MemoryEntry, SearchRequest
from adk_memory.embedders import FastLocalEmbedder, LocalEmbedder
from adk_memory.embedding import Embedder
from providers.conftest import MakeService

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.parametrize("make", [LocalEmbedder, FastLocalEmbedder], ids=["local", "local-fast"]),
]

Make = Callable[[], LocalEmbedder | FastLocalEmbedder]
SAID = [
    "I moved to Lyon for my new job as a baker.",
    "Peanuts make my daughter's throat swell up.",
    "The bicycle has a flat tyre again.",
    "We painted the kitchen dark green.",
    "My brother plays the cello in an orchestra.",
]
# None shares a word with what it asks for.
ASKED = {
    "Which food is she allergic to?": SAID[1],
    "Where does she work?": SAID[0],
    "¿Qué instrumento musical toca su hermano?": SAID[4],
    "Welche Farbe haben die Wände?": SAID[3],
}


@pytest.mark.parametrize("question", ASKED)
async def test_a_question_finds_what_it_shares_no_word_with(
    make: Make, make_service: MakeService, question: str
) -> None:
    async with make_service(make()) as service:
        await service.migrate()
        for text in SAID:
            await service.add_entry("app", "ana", MemoryEntry(text, author="Ana"))

        by_words = await service.search(SearchRequest(question, "app", "ana", mode="keyword"))
        response = await service.search(SearchRequest(question, "app", "ana"))

    assert ASKED[question] not in [memory.text for memory in by_words]
    assert (response.mode, response.partial) == ("hybrid", False)
    assert response[0].text == ASKED[question]


async def test_in_a_session_the_answer_is_at_the_top(make: Make, make_service: MakeService) -> None:
    talk = [("Ben", "What did the doctor tell you?"), ("Ana", SAID[1]), ("Ben", "Oh dear."), ("Ana", SAID[4])]
    async with make_service(make()) as service:
        await service.migrate()
        await service.add_session("app", "ana", "monday", [MemoryEntry(text, author=author) for author, text in talk])

        response = await service.search(SearchRequest("¿Qué instrumento musical toca su hermano?", "app", "ana"))

    assert response[0].text == SAID[4]


async def test_kin_and_strangers_are_on_the_two_sides_of_the_span(make: Make) -> None:
    checked = Embedder(make())
    vectors = await checked.passages([f"Ana: {text}" for text in SAID])

    answers: list[float] = []
    others: list[float] = []
    for question, answer in ASKED.items():
        asked = await checked.query(question)
        assert asked is not None
        for text, vector in vectors.items():
            assert vector is not None
            (answers if text.endswith(answer) else others).append(float(asked @ vector))

    low, high = checked.span
    assert low < float(np.mean(answers))
    assert float(np.mean(others)) < (low + high) / 2
    assert float(np.mean(others)) < float(np.mean(answers))


async def test_a_vector_depends_neither_on_the_batch_nor_on_what_runs_beside_it(make: Make) -> None:
    provider = make()
    together = await provider.embed(SAID)

    alone = await asyncio.gather(*(provider.embed([text]) for text in SAID))

    assert np.allclose(np.array(together), np.array([vectors[0] for vectors in alone]), atol=1e-5)


async def test_no_text_is_too_long_or_too_strange(make: Make) -> None:
    provider = make()
    strange = ["x" * 100_000, "\ud800", "a\0b", "🍵🍵", "我喜欢绿茶", "\u202e", "<s> </s>", "\n\n\n.", "%s %n"]
    start = time.process_time()

    vectors = np.array(await provider.embed(strange))

    assert time.process_time() - start < 10
    assert np.isfinite(vectors).all()
    assert (np.abs(np.linalg.norm(vectors, axis=1) - 1) < 1e-3).all()


async def test_what_follows_a_nul_counts(make: Make) -> None:
    cut, whole = await make().embed(["tea", "tea\0and a loud orchestra"])

    assert not np.allclose(cut, whole, atol=1e-3)
