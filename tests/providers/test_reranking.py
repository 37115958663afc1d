"""A reranker behind each service: it gives the scores and the order, and one that fails does no harm."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adk_memory import (
    ConfigurationError,
    EmbeddingError,
    Memory,
    MemoryEntry,
    MemoryService,
    Reranker,
    SearchRequest,
    SearchResponse,
    open_memory,
)
from adk_memory.testing import ToyEmbedder

NAN = float("nan")
SECRET = "green tea in a message"
SAID = ["green tea", "green tea and honey", "green tea and some more honey", "black coffee"]
FOUND = SAID[:3]

OpenMemory = Callable[..., MemoryService]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a store of each kind."""
    fixtures = {"sqlite": "sqlite_url", "postgresql": "migrated_postgres_url"}
    return "memory://" if request.param == "memory" else request.getfixturevalue(fixtures[request.param])


@pytest.fixture
async def opened(url: str) -> AsyncIterator[OpenMemory]:
    """Opens the store, with what was said in it, around a reranker."""
    services: list[MemoryService] = []

    def opened(reranker: Reranker | None = None, **options: Any) -> MemoryService:
        services.append(open_memory(url, reranker=reranker, **options))
        return services[-1]

    yield opened
    for service in services:
        await service.close()


async def said(service: MemoryService, texts: Sequence[str] = SAID) -> MemoryService:
    await service.migrate()
    for text in texts:
        await service.add_entry("app", "ana", MemoryEntry(text))
    return service


async def search(service: MemoryService, query: str = "green tea", **options: Any) -> SearchResponse:
    return await service.search(SearchRequest(query, "app", "ana", **options))


def texts(memories: Sequence[Memory] | SearchResponse) -> list[str]:
    return [memory.text for memory in memories]


async def longest(_query: str, memories: Sequence[Memory]) -> list[float]:
    return [len(memory.text) / 100 for memory in memories]


def in_reverse(_query: str, memories: Sequence[Memory]) -> list[float]:
    return [number / len(memories) for number in range(1, len(memories) + 1)]


class AsObject:
    async def __call__(self, query: str, memories: Sequence[Memory]) -> list[float]:
        return await longest(query, memories)


def as_array(_query: str, memories: Sequence[Memory]) -> NDArray[np.float32]:
    return np.array([len(memory.text) / 100 for memory in memories], np.float32)


async def test_without_a_reranker_a_search_says_that_there_was_none(opened: OpenMemory) -> None:
    response = await search(await said(opened()))

    assert (texts(response), response.reranked) == (FOUND, False)


@pytest.mark.parametrize(
    "reranker", [longest, in_reverse, AsObject(), as_array, lambda query, memories: longest(query, list(memories))]
)
async def test_answers_come_by_the_scores_of_the_reranker(opened: OpenMemory, reranker: Any) -> None:
    response = await search(await said(opened(reranker)))

    scores = [memory.score or 0 for memory in response]
    assert (texts(response), response.reranked) == (FOUND[::-1], True)
    assert scores == sorted(scores, reverse=True)
    assert all(type(score) is float for score in scores)


async def test_it_is_given_the_query_and_the_best_answers_with_their_scores(opened: OpenMemory) -> None:
    given: list[tuple[str, list[Memory]]] = []

    async def reranker(query: str, memories: Sequence[Memory]) -> list[float]:
        given.append((query, list(memories)))
        return [0.5] * len(memories)

    service = await said(opened(reranker))
    response = await search(service, "Green TEA?")

    [(query, memories)] = given
    assert query == "Green TEA?"
    assert texts(memories) == texts(response) == FOUND
    assert all(0 < (memory.score or 0) <= 1 for memory in memories)


@pytest.mark.parametrize(("limit", "depth"), [(1, 50), (50, 50), (55, 55), (100, 60)])
async def test_it_is_given_fifty_answers_or_as_many_as_are_asked_for(
    opened: OpenMemory, limit: int, depth: int
) -> None:
    given: list[int] = []

    def reranker(_query: str, memories: Sequence[Memory]) -> list[float]:
        given.append(len(memories))
        return [0.5] * len(memories)

    service = await said(opened(reranker), [])
    await service.add_session("app", "ana", "s1", [MemoryEntry(f"green tea {number}") for number in range(60)])

    response = await search(service, limit=limit)

    assert given == [depth]
    assert len(response) == min(limit, 60)


async def test_what_is_beyond_the_limit_may_come_first(opened: OpenMemory) -> None:
    response = await search(await said(opened(longest)), limit=1)

    assert texts(response) == FOUND[-1:]


async def test_answers_of_equal_scores_stay_in_the_order_before(opened: OpenMemory) -> None:
    async def first_counts(_query: str, memories: Sequence[Memory]) -> list[float]:
        return [0.9 if memory.text == FOUND[2] else 0.5 for memory in memories]

    response = await search(await said(opened(first_counts)))

    assert texts(response) == [FOUND[2], FOUND[0], FOUND[1]]


async def test_min_score_is_about_the_new_scores(opened: OpenMemory) -> None:
    service = await said(opened(longest))

    assert texts(await search(service, min_score=0.15)) == FOUND[:0:-1]
    assert texts(await search(service, min_score=0.999)) == []


async def test_an_explanation_has_its_part_beside_the_others(opened: OpenMemory) -> None:
    service = await said(opened(longest))

    plain, explained = await search(service), await search(service, explain=True)

    assert [memory.explanation for memory in plain] == [None] * 3
    for memory in explained:
        assert memory.explanation is not None
        assert memory.explanation["rerank"] == memory.score
        assert memory.explanation["keyword"] > 0


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OSError(SECRET), id="failure"),
        pytest.param(EmbeddingError(SECRET), id="an error of ours"),
        pytest.param([], id="none"),
        pytest.param([0.5, 0.5], id="too few"),
        pytest.param([0.5] * 4, id="too many"),
        pytest.param([[0.5]] * 3, id="nested"),
        pytest.param([0.5, NAN, 0.5], id="NaN"),
        pytest.param([0.5, 1.01, 0.5], id="above one"),
        pytest.param([0.5, -0.01, 0.5], id="below zero"),
        pytest.param([0.5, None, 0.5], id="nothing"),
        pytest.param([0.5, SECRET, 0.5], id="text"),
        pytest.param(None, id="no sequence"),
        pytest.param(0.5, id="a number"),
    ],
)
async def test_where_it_fails_the_order_before_stays_and_the_response_says_so(
    opened: OpenMemory, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    async def reranker(_query: str, _memories: Sequence[Memory]) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    service = await said(opened(reranker))
    with caplog.at_level(logging.WARNING, "adk_memory"):
        response = await search(service, explain=True)

    [record] = caplog.records
    assert (texts(response), response.reranked, response.partial) == (FOUND, False, False)
    assert all("rerank" not in (memory.explanation or {}) for memory in response)
    assert "without the reranker" in record.getMessage()
    assert "tea" not in caplog.text


async def test_where_it_fails_min_score_and_limit_are_about_the_scores_before(opened: OpenMemory) -> None:
    def reranker(_query: str, _memories: Sequence[Memory]) -> list[float]:
        raise OSError

    service = await said(opened(reranker))
    scores = [memory.score or 0 for memory in await search(service)]

    assert texts(await search(service, min_score=scores[1])) == FOUND[:2]
    assert texts(await search(service, limit=1)) == FOUND[:1]


@pytest.mark.parametrize(("query", "limit"), [("nothing like that", 10), ("", 10), ("green tea", 0)])
async def test_it_is_not_asked_where_there_is_nothing_to_order(opened: OpenMemory, query: str, limit: int) -> None:
    def reranker(_query: str, _memories: Sequence[Memory]) -> list[float]:
        raise AssertionError

    response = await search(await said(opened(reranker)), query, limit=limit)

    assert (len(response), response.reranked) == (0, False)


async def test_others_read_and_write_while_it_works(opened: OpenMemory) -> None:
    async def reranker(_query: str, memories: Sequence[Memory]) -> list[float]:
        await service.add_entry("app", "ana", MemoryEntry("green tea again"))
        return await longest(_query, memories)

    service = await said(opened(reranker))

    assert texts(await search(service)) == FOUND[::-1]
    assert len(await service.list_recent("app", "ana")) == len(SAID) + 1


async def test_a_search_that_is_cancelled_while_it_works_is_cancelled(opened: OpenMemory) -> None:
    working = asyncio.Event()

    async def reranker(_query: str, _memories: Sequence[Memory]) -> list[float]:
        working.set()
        await asyncio.Event().wait()
        return []

    searching = asyncio.create_task(search(await said(opened(reranker))))
    await working.wait()
    searching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await searching


async def test_a_failing_embedder_fails_as_it_does_without_a_reranker(opened: OpenMemory) -> None:
    embedder = ToyEmbedder()
    service = await said(opened(longest, embedder=embedder))
    embedder.answers["green tea"] = OSError("down")

    response = await search(service)

    assert (texts(response), response.reranked, response.partial) == (FOUND[::-1], True, True)
    with pytest.raises(EmbeddingError):
        await search(service, mode="vector")


def test_what_can_not_be_called_is_refused() -> None:
    no_reranker: Any = "cross-encoder"

    with pytest.raises(ConfigurationError, match="callable"):
        open_memory("memory://", reranker=no_reranker)
