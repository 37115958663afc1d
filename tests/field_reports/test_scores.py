"""F10 and F14: scores are numbers from 0 to 1, higher is better, whatever the vectors are."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest

from adk_memory import EmbeddingError, MemoryService, SearchRequest, ValidationError
from adk_memory.types import Mode
from field_reports.calls import MakeService, ask, found, remember, texts

THRESHOLDS = (0, 0.0, 1e-9, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0, 1)
VECTORS: dict[str, Sequence[float]] = {
    "exact text": (1.0, 0.0, 0.0, 0.0),
    "near text": (0.9, 0.4, 0.0, 0.0),
    "far text": (0.1, 1.0, 0.0, 0.0),
    "unrelated": (0.0, 0.0, 1.0, 0.0),
    "opposite": (-1.0, 0.0, 0.0, 0.0),
}


class Table:
    """An embedder that looks vectors up."""

    def __init__(self, vectors: dict[str, Sequence[float]], dimensions: int = 4, model: str = "table") -> None:
        self.vectors = vectors
        self.dimensions = dimensions
        self.model = model

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [self.vectors[text] for text in texts]


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
async def test_f10_raising_min_score_only_removes_the_tail(make_service: MakeService, mode: Mode) -> None:
    async with make_service(Table(VECTORS)) as service:
        await remember(service, *VECTORS)
        everything = list(await ask(service, "exact text", mode=mode))

        for threshold in THRESHOLDS:
            kept = list(await ask(service, "exact text", mode=mode, min_score=threshold))
            assert kept == everything[: len(kept)], threshold
            assert all((memory.score or 0) >= threshold for memory in kept)
            assert all((memory.score or 0) < threshold for memory in everything[len(kept) :])


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
async def test_f10_scores_lie_between_0_and_1_and_fall(make_service: MakeService, mode: Mode) -> None:
    async with make_service(Table(VECTORS)) as service:
        await remember(service, *VECTORS)

        scores = [memory.score for memory in await ask(service, "exact text", mode=mode)]

    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert all(score is not None and math.isfinite(score) and 0 <= score <= 1 for score in scores)
    assert json.dumps(scores, allow_nan=False)


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
async def test_f10_the_exact_text_is_first(make_service: MakeService, mode: Mode) -> None:
    async with make_service(Table(VECTORS)) as service:
        await remember(service, *reversed(VECTORS))

        assert (await found(service, "exact text", mode=mode))[0] == "exact text"


async def test_f10_similarity_is_a_cosine_and_opposites_are_0(make_service: MakeService) -> None:
    async with make_service(Table(VECTORS)) as service:
        await remember(service, *VECTORS)

        scores = {memory.text: memory.score for memory in await ask(service, "exact text", mode="vector")}

    expected = {"exact text": 1.0, "near text": 0.9138, "far text": 0.0995, "unrelated": 0.0, "opposite": 0.0}
    assert scores == pytest.approx(expected, abs=1e-3)


async def test_f10_opposites_stay_opposite_in_more_dimensions(make_service: MakeService) -> None:
    vectors: dict[str, Sequence[float]] = {"up": [0.5] * 300, "down": [-0.5] * 300, "UP!": [7.0] * 300}
    async with make_service(Table(vectors, 300)) as service:
        await remember(service, *vectors)

        scores = {memory.text: memory.score for memory in await ask(service, "up", mode="vector")}

    assert scores == pytest.approx({"up": 1.0, "UP!": 1.0, "down": 0.0}, abs=1e-3)


async def test_f10_more_matching_words_score_higher(service: MemoryService) -> None:
    await remember(service, "red", "red apples", "red apples falling", "nothing of it")

    hits = await ask(service, "red apples falling")

    assert texts(hits) == ["red apples falling", "red apples", "red"]
    scores = [memory.score or 0 for memory in hits]
    assert 1 >= scores[0] > scores[1] > scores[2] > 0


async def test_f10_the_only_entry_passes_modest_thresholds(service: MemoryService) -> None:
    await remember(service, "User prefers window seats")

    for query in ["User prefers window seats", "window seats", "window"]:
        assert len(await ask(service, query, min_score=0.3)) == 1, query


async def test_f10_other_users_do_not_change_a_score(service: MemoryService) -> None:
    await remember(service, "red apples", "green pears")
    before = [memory.score for memory in await ask(service, "red pears apples")]
    for number in range(5):
        await remember(service, *[f"red apples {n}" for n in range(50)], user=f"user {number}")
        await remember(service, *[f"pears {n}" for n in range(50)], app=f"app {number}")
        await remember(service, *[f"pears {n}" for n in range(50)], project=f"project {number}")

    assert [memory.score for memory in await ask(service, "red pears apples")] == before


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), "0.5", True, [], object()])
async def test_f10_a_threshold_that_is_no_number_is_refused(bad: object) -> None:
    with pytest.raises(ValidationError, match="min_score"):
        SearchRequest("q", "app", "ana", min_score=bad)  # type: ignore[arg-type]


async def test_f14_a_zero_vector_is_stored_as_none_and_the_entry_is_found_by_its_words(
    make_service: MakeService,
) -> None:
    vectors = VECTORS | {"zero text": (0.0, 0.0, 0.0, 0.0), "minus zero text": (-0.0, 0.0, -0.0, 0.0)}
    async with make_service(Table(vectors)) as service:
        await remember(service, *vectors)

        hits = await ask(service, "exact text")
        by_vector = await ask(service, "exact text", mode="vector")

    assert {"zero text", "minus zero text"} <= set(texts(hits))
    assert {"zero text", "minus zero text"}.isdisjoint(texts(by_vector))
    assert hits.partial
    assert by_vector.partial
    assert all(math.isfinite(memory.score or 0) for memory in [*hits, *by_vector])


@pytest.mark.parametrize("mode", [None, "keyword", "vector", "hybrid"])
async def test_f14_a_query_with_a_zero_vector_gives_finite_scores(make_service: MakeService, mode: Mode | None) -> None:
    vectors = VECTORS | {"empty text": (0.0, 0.0, 0.0, 0.0)}
    async with make_service(Table(vectors)) as service:
        await remember(service, *VECTORS)

        hits = await ask(service, "empty text", mode=mode)

    assert json.dumps([memory.score for memory in hits], allow_nan=False)
    assert set(texts(hits)) == (set() if mode == "vector" else {"exact text", "near text", "far text"})


async def test_f14_tiny_and_huge_vectors_are_as_good_as_any(make_service: MakeService) -> None:
    vectors: dict[str, Sequence[float]] = {
        "ask": (1.0, 1.0, 0.0, 0.0),
        "tiny": (1e-30, 1e-30, 0.0, 0.0),
        "subnormal": (5e-324, 5e-324, 0.0, 0.0),
        "huge": (1e300, 1e300, 0.0, 0.0),
        "largest": (1.7e308, 1.7e308, 0.0, 0.0),
        "uneven": (1e200, 1e-200, 0.0, 0.0),
    }
    async with make_service(Table(vectors)) as service:
        await remember(service, *vectors)

        scores = {memory.text: memory.score for memory in await ask(service, "ask", mode="vector")}

    assert scores == pytest.approx(dict.fromkeys(vectors, 1.0) | {"uneven": math.sqrt(0.5)}, abs=1e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
async def test_f14_a_vector_with_nan_or_infinity_is_refused_and_nothing_is_written(
    make_service: MakeService, bad: float
) -> None:
    async with make_service(Table(VECTORS | {"bad": (0.1, bad, 0.0, 0.0)})) as service:
        with pytest.raises(EmbeddingError):
            await remember(service, "exact text", "bad", "near text")
        assert await service.list_recent("app", "ana") == []

        await remember(service, "exact text")
        with pytest.raises(EmbeddingError):
            await ask(service, "bad", mode="vector")
        fallen_back = await ask(service, "bad")
        assert (list(fallen_back), fallen_back.mode, fallen_back.partial) == ([], "keyword", True)


async def test_f14_texts_without_a_word_never_reach_the_embedder(make_service: MakeService) -> None:
    async with make_service(Table(VECTORS)) as service:
        await remember(service, "exact text", "", "   ", "!!!", "\n")

        assert await found(service, "exact text") == ["exact text"]
        assert await found(service, "") == await found(service, "?!", mode="vector") == []
