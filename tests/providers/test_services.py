"""A function and an endpoint behind a service: a question finds what it shares no word with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adk_memory import EmbeddingError, EmbeddingProvider, MemoryEntry, MemoryService, SearchRequest
from adk_memory.embedders import FunctionEmbedder, HttpEmbedder
from embedding_endpoint import DIMENSIONS, Answer, Endpoint, meaning
from providers.conftest import MakeService

SAID = ["My physician moved to Lyon.", "The kitchen is green.", "I like to ride in the rain."]


@pytest.fixture(params=["function", "http"])
async def provider(request: pytest.FixtureRequest, endpoint: Endpoint) -> AsyncIterator[EmbeddingProvider]:
    if request.param == "function":
        yield FunctionEmbedder(lambda texts: [meaning(text) for text in texts], model="meaning", dimensions=DIMENSIONS)
        return
    async with HttpEmbedder(endpoint.url, "meaning", DIMENSIONS, max_retries=0) as provider:
        yield provider


@pytest.fixture
async def service(make_service: MakeService, provider: EmbeddingProvider) -> AsyncIterator[MemoryService]:
    async with make_service(provider) as service:
        await service.migrate()
        yield service


@pytest.mark.parametrize(("question", "answer"), [("any doctor?", SAID[0]), ("what about her bicycle", SAID[2])])
async def test_a_question_finds_what_it_shares_no_word_with(service: MemoryService, question: str, answer: str) -> None:
    for text in SAID:
        await service.add_entry("app", "ana", MemoryEntry(text))

    by_words = await service.search(SearchRequest(question, "app", "ana", mode="keyword"))
    response = await service.search(SearchRequest(question, "app", "ana"))

    assert len(by_words) == 0
    assert (response.mode, response.partial) == ("hybrid", False)
    assert response[0].text == answer


async def test_a_turn_is_found_by_what_was_said_before_it(service: MemoryService) -> None:
    said = [MemoryEntry("Shall we go cycling?", author="Ben"), MemoryEntry("Yes, on Sunday.", author="Ana")]
    await service.add_session("app", "ana", "monday", [MemoryEntry("The kitchen is green."), *said])

    response = await service.search(SearchRequest("bicycle", "app", "ana", mode="vector", limit=2))

    assert {memory.text for memory in response} == {"Shall we go cycling?", "Yes, on Sunday."}


async def test_an_endpoint_that_refuses_costs_a_search_its_similarity_and_a_write_everything(
    make_service: MakeService, endpoint: Endpoint
) -> None:
    async with (
        HttpEmbedder(endpoint.url, "meaning", DIMENSIONS) as provider,
        make_service(provider) as service,
    ):
        await service.migrate()
        await service.add_entry("app", "ana", MemoryEntry("green tea"))
        endpoint.answers += [Answer(401)] * 2

        response = await service.search(SearchRequest("green", "app", "ana"))
        with pytest.raises(EmbeddingError, match="HTTP 401"):
            await service.add_entry("app", "ana", MemoryEntry("black tea"))

        assert (response.mode, response.partial, len(response)) == ("keyword", True, 1)
        assert [memory.text for memory in await service.list_recent("app", "ana")] == ["green tea"]
