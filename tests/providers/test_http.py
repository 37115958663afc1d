"""HttpEmbedder, on a real server that answers well, badly, slowly and in the wrong order."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from adk_memory import ConfigurationError, EmbeddingError, EmbeddingMismatchError, EmbeddingProvider
from adk_memory.embedders import HttpEmbedder
from adk_memory.embedders._posting import Retrying, retry_after
from adk_memory.embedding import Embedder
from embedding_endpoint import DIMENSIONS, Answer, Endpoint, embeddings, meaning

KEY = "sk-secret"


def embedder(endpoint: Endpoint, **options: Any) -> HttpEmbedder:
    options = {"api_key": KEY, "retry_seconds": 0.001, **options}
    return HttpEmbedder(endpoint.url, "meaning", DIMENSIONS, **options)


@pytest.fixture
async def provider(endpoint: Endpoint) -> AsyncIterator[HttpEmbedder]:
    async with embedder(endpoint) as provider:
        yield provider


async def _refused(provider: HttpEmbedder, *texts: str) -> str:
    """Return what the error says, which is neither a text nor the key."""
    with pytest.raises(EmbeddingError) as caught:
        await Embedder(provider).passages(texts or ["secret tea"])
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in f"{error}{error.args}"
        error = error.__cause__
    return str(caught.value)


async def test_it_asks_as_the_endpoint_expects(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    vectors = await provider.embed(["doctor", "bicycle"])

    assert isinstance(provider, EmbeddingProvider)
    assert vectors == [meaning("doctor"), meaning("bicycle")]
    [request] = endpoint.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "meaning", "input": ["doctor", "bicycle"], "encoding_format": "float"}
    assert request.headers["Authorization"] == f"Bearer {KEY}"


async def test_without_a_key_none_is_sent(endpoint: Endpoint) -> None:
    async with embedder(endpoint, api_key=None, headers={"x-team": "blue"}) as provider:
        await provider.embed(["tea"])

    assert "Authorization" not in endpoint.requests[0].headers
    assert endpoint.requests[0].headers["x-team"] == "blue"


async def test_further_fields_and_prefixes_are_sent(endpoint: Endpoint) -> None:
    options = {"extra_body": {"dimensions": 4}, "passage_prefix": "passage: ", "query_prefix": "query: "}
    async with embedder(endpoint, **options) as provider:
        await provider.embed(["tea"])
        await provider.embed_query("tea")

    assert [request.texts for request in endpoint.requests] == [["passage: tea"], ["query: tea"]]
    assert [request.body["dimensions"] for request in endpoint.requests] == [4, 4]


@pytest.mark.parametrize("ending", ["", "/", "?api-version=1"])
async def test_the_address_may_end_in_a_slash_or_have_a_query(endpoint: Endpoint, ending: str) -> None:
    endpoint.url += ending
    async with embedder(endpoint) as provider:
        await provider.embed(["tea"])

    assert endpoint.requests[0].path == "/v1/embeddings" + ending.strip("/")


async def test_requests_are_limited_by_the_number_of_texts_and_of_characters(endpoint: Endpoint) -> None:
    async with embedder(endpoint, batch_size=3, batch_characters=10) as provider:
        vectors = await provider.embed(["a", "b", "c", "doctor", "e" * 9, "f" * 20, "g"])

    assert [request.texts for request in endpoint.requests] == [
        ["a", "b", "c"], ["doctor"], ["e" * 9], ["f" * 20], ["g"]
    ]  # fmt: skip
    assert [vector == meaning("doctor") for vector in vectors] == [False] * 3 + [True] + [False] * 3


async def test_a_text_that_is_too_long_loses_its_middle(endpoint: Endpoint) -> None:
    async with embedder(endpoint) as provider:
        await provider.embed(["begin" + "x" * 100_000 + "end"])

    [text] = endpoint.requests[0].texts
    assert (len(text), text[:5], text[-3:]) == (4_000, "begin", "end")


async def test_blank_texts_and_lone_surrogates_are_not_sent(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    vectors = await provider.embed(["", "doctor \ud83d", " \n", "\0"])

    zeros = [0.0] * DIMENSIONS
    assert vectors == [zeros, meaning("doctor"), zeros, zeros]
    assert endpoint.requests[0].texts == ["doctor ?"]
    assert await provider.embed([" "]) == [zeros]
    assert await provider.embed_query(" ") == zeros
    assert len(endpoint.requests) == 1


async def test_vectors_are_put_in_order_by_their_index(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    texts = ["doctor", "peanuts", "bicycle"]
    shuffled = embeddings(texts)["data"]
    endpoint.answers.append(Answer(body={"data": [shuffled[2], shuffled[0], shuffled[1]]}))

    assert await provider.embed(texts) == [meaning(text) for text in texts]


async def test_without_an_index_the_order_of_the_answer_counts(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    endpoint.answers.append(Answer(body={"data": [{"embedding": [1.0] * 4}, {"embedding": [2.0] * 4}]}))

    assert await provider.embed(["a", "b"]) == [[1.0] * 4, [2.0] * 4]


@pytest.mark.parametrize(
    "body",
    [
        {"data": [{"index": 0, "embedding": [1.0] * 4}]},
        {"data": [{"index": 0, "embedding": [1.0] * 4}] * 2},
        {"data": [{"index": place, "embedding": [1.0] * 4} for place in (1, 2)]},
        {"data": [{"index": place, "embedding": [1.0] * 4} for place in range(3)]},
        {"data": [{"index": 0}, {"index": 1}]},
        {"data": [{"index": [0], "embedding": [1.0] * 4}] * 2},
        {"data": None},
        {"data": "secret tea"},
        {"error": "secret tea"},
        ["secret tea"],
        None,
        "secret tea, not JSON",
        "",
    ],
)
async def test_an_answer_that_is_not_one_vector_for_each_text_is_refused(
    endpoint: Endpoint, provider: HttpEmbedder, body: object
) -> None:
    endpoint.answers.append(Answer(body=body))

    assert "meaning at 127.0.0.1" in await _refused(provider, "secret tea", "secret coffee")
    assert len(endpoint.requests) == 1


async def test_vectors_of_another_length_are_refused(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    endpoint.answers.append(Answer(body={"data": [{"index": 0, "embedding": [1.0] * 3}]}))

    with pytest.raises(EmbeddingMismatchError):
        await Embedder(provider).passages(["tea"])


# Trying again


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_tried_again(endpoint: Endpoint, provider: HttpEmbedder, status: int) -> None:
    endpoint.answers += [Answer(status)] * 3

    assert await provider.embed(["doctor"]) == [meaning("doctor")]
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
async def test_what_will_not_pass_is_not_tried_again(endpoint: Endpoint, provider: HttpEmbedder, status: int) -> None:
    endpoint.answers.append(Answer(status, "secret tea", {"Location": "/elsewhere"}))

    assert f"HTTP {status}" in await _refused(provider)
    assert len(endpoint.requests) == 1


async def test_after_the_last_repetition_the_error_says_what_happened(endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(503, "secret tea")] * 9
    async with embedder(endpoint, max_retries=2) as provider:
        assert await _refused(provider) == "meaning at 127.0.0.1: HTTP 503, tried 3 times"

    assert len(endpoint.requests) == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_says_when_is_asked_then(endpoint: Endpoint, provider: HttpEmbedder, status: int) -> None:
    endpoint.answers.append(Answer(status, headers={"Retry-After": "0.3"}))
    start = time.monotonic()

    await provider.embed(["tea"])

    assert 0.3 <= time.monotonic() - start < 5
    assert len(endpoint.requests) == 2


async def test_a_server_that_says_in_an_hour_is_not_waited_for(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    endpoint.answers.append(Answer(429, headers={"Retry-After": "3600"}))

    async with asyncio.timeout(10):
        assert "HTTP 429, tried once" in await _refused(provider)


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7), ("0", 0), ("-3", 0), ("soon", None), ("nan", None), (None, None)]
)
def test_a_retry_after_is_a_number_of_seconds(header: str | None, seconds: float | None) -> None:
    assert retry_after(header) == seconds


def test_a_retry_after_is_a_date() -> None:
    now = datetime.now(UTC)

    assert retry_after(format_datetime(now + timedelta(seconds=30), usegmt=True)) == pytest.approx(29, abs=2)
    assert retry_after(format_datetime(now - timedelta(seconds=30), usegmt=True)) == 0


def test_waits_double_up_to_a_minute_and_differ() -> None:
    retrying = Retrying(times=9, seconds=1, timeout=1)

    for repetition in range(9):
        waits = {retrying.wait(repetition, None) for _ in range(20)}
        assert len(waits) > 1
        assert min(60, 2**repetition) / 2 <= min(waits) <= max(waits) <= min(60, 2**repetition)
    assert 5 <= retrying.wait(0, 5) <= 6


async def test_a_slow_answer_is_given_up_and_asked_for_again(endpoint: Endpoint) -> None:
    endpoint.answers.append(endpoint.hang)
    async with embedder(endpoint, timeout=0.2) as provider:
        assert await provider.embed(["doctor"]) == [meaning("doctor")]

    assert len(endpoint.requests) == 2


async def test_a_question_has_a_time_limit_of_its_own(endpoint: Endpoint) -> None:
    endpoint.answers.append(endpoint.hang)
    async with embedder(endpoint, query_timeout=0.2) as provider:
        with pytest.raises(EmbeddingError, match=r"no vector of a question in 0\.2 s"):
            await provider.embed_query("doctor")


async def test_a_server_that_is_not_there_is_an_embedding_error() -> None:
    endpoint = Endpoint()
    with endpoint.running():
        pass
    async with embedder(endpoint, max_retries=1) as provider:
        assert await _refused(provider) == "meaning at 127.0.0.1: ConnectError, tried 2 times"


async def test_a_cancelled_call_ends_at_once(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    endpoint.answers.append(endpoint.hang)
    task = asyncio.create_task(provider.embed(["tea"]))
    while not endpoint.requests:
        await asyncio.sleep(0.005)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert await provider.embed(["doctor"]) == [meaning("doctor")]


# Connections


async def test_requests_share_connections(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    for _ in range(5):
        await provider.embed(["tea"])

    assert endpoint.connections == 1


async def test_it_may_be_closed_twice_and_used_again(endpoint: Endpoint, provider: HttpEmbedder) -> None:
    await provider.aclose()
    await provider.embed(["tea"])
    await provider.aclose()
    await provider.aclose()

    assert await provider.embed(["doctor"]) == [meaning("doctor")]
    assert endpoint.connections == 2


def test_each_event_loop_has_connections_of_its_own(endpoint: Endpoint) -> None:
    provider = embedder(endpoint)

    async def once() -> list[Any]:
        async with provider:
            return list(await provider.embed(["doctor"]))

    for _ in range(3):
        assert asyncio.run(once()) == [meaning("doctor")]
    gc.collect()

    assert endpoint.connections == 3
    assert len(provider._clients) == 0


# Options


@pytest.mark.parametrize(
    "base_url", ["", "localhost:11434/v1", "ftp://ana:secret@host", "http://", "http://host:port/", None, 7]
)
def test_an_address_has_to_be_one(base_url: Any) -> None:
    with pytest.raises(ConfigurationError, match="base_url") as caught:
        HttpEmbedder(base_url, "meaning", DIMENSIONS)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-secret\nx", "sk-sécret", "sk-secret\0"])
def test_a_key_that_no_header_can_hold_is_refused_unquoted(endpoint: Endpoint, key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        embedder(endpoint, api_key=key)

    assert "sk-" not in str(caught.value)


async def test_the_line_end_of_a_key_from_a_file_does_not_matter(endpoint: Endpoint) -> None:
    async with embedder(endpoint, api_key=f"{KEY}\n") as provider:
        await provider.embed(["tea"])

    assert endpoint.requests[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "option",
    [{"timeout": 0}, {"query_timeout": 0}, {"max_retries": -1}, {"retry_seconds": -1}, {"batch_characters": 0}],
)
def test_an_option_that_makes_no_sense_is_refused(endpoint: Endpoint, option: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        embedder(endpoint, **option)


def test_its_representation_does_not_hold_the_key(endpoint: Endpoint) -> None:
    assert KEY not in repr(embedder(endpoint))
