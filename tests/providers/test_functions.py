"""FunctionEmbedder: any function as a provider, and what all providers do to texts."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from adk_memory import ConfigurationError, EmbeddingError, EmbeddingProvider
from adk_memory.embedders import FunctionEmbedder
from adk_memory.embedding import DEFAULT_SPAN, DEFAULT_WEIGHT, Embedder
from embedding_endpoint import DIMENSIONS, meaning


def _meanings(texts: list[str]) -> list[list[float]]:
    return [meaning(text) for text in texts]


async def _awaited(texts: list[str], _more: object = None) -> list[list[float]]:
    await asyncio.sleep(0)
    return _meanings(texts)


class _Model:
    def __call__(self, texts: list[str]) -> Any:
        return np.array(_meanings(texts), np.float32)


class _AwaitedModel:
    async def __call__(self, texts: list[str]) -> Any:
        return await _awaited(texts)


FUNCTIONS = {
    "function": _meanings,
    "coroutine function": _awaited,
    "partial of a coroutine function": partial(_awaited, _more=1),
    "lambda around a coroutine function": lambda texts: _awaited(texts, None),
    "object": _Model(),
    "object with an async call": _AwaitedModel(),
}


def embedder(function: Any = _meanings, **options: Any) -> FunctionEmbedder:
    return FunctionEmbedder(function, model="meaning", dimensions=DIMENSIONS, **options)


@pytest.mark.parametrize("kind", FUNCTIONS)
async def test_any_callable_is_a_provider(kind: str) -> None:
    provider = embedder(FUNCTIONS[kind])
    checked = Embedder(provider)

    vectors = await checked.passages(["physician", "bicycle"])
    question = await checked.query("doctor")

    assert isinstance(provider, EmbeddingProvider)
    assert question is not None
    assert [question.tolist() == vector.tolist() for vector in vectors.values() if vector is not None] == [True, False]


async def test_a_function_runs_off_the_event_loop_a_coroutine_function_on_it() -> None:
    threads: list[int] = []

    def slow(texts: list[str]) -> Any:
        threads.append(threading.get_ident())
        return _meanings(texts)

    async def awaited(texts: list[str]) -> Any:
        return slow(texts)

    await embedder(slow).embed(["tea"])
    await embedder(awaited).embed(["tea"])

    assert [thread == threading.get_ident() for thread in threads] == [False, True]


async def test_a_question_goes_to_the_function_for_questions() -> None:
    def vector(text: str) -> list[float]:
        return meaning(text.removeprefix("query: "))

    asking = embedder(query_function=lambda text: vector(f"query: {text}"))

    assert await asking.embed_query("doctor") == meaning("physician")
    assert await embedder().embed_query("doctor") == meaning("physician")


async def test_texts_come_in_batches_and_vectors_in_order() -> None:
    batches: list[list[str]] = []

    def function(texts: list[str]) -> Any:
        batches.append(texts)
        return [[float(text)] * DIMENSIONS for text in texts]

    vectors = await embedder(function, batch_size=2).embed(["1", "2", "3", "4", "5"])

    assert [vector[0] for vector in vectors] == [1, 2, 3, 4, 5]
    assert batches == [["1", "2"], ["3", "4"], ["5"]]


@pytest.mark.parametrize("blank", ["", " \n", "\0", "\u2003"])
async def test_a_blank_text_has_no_vector_and_is_not_given_to_the_function(blank: str) -> None:
    asked: list[str] = []

    def function(texts: list[str]) -> Any:
        asked.extend(texts)
        return _meanings(texts)

    provider = embedder(function, query_function=asked.append)

    assert await provider.embed([blank, "tea", blank]) == [[0.0] * DIMENSIONS, meaning("tea"), [0.0] * DIMENSIONS]
    assert await provider.embed_query(blank) == [0.0] * DIMENSIONS
    assert asked == ["tea"]


async def test_nothing_is_embedded_without_a_call() -> None:
    def function(_texts: list[str]) -> Any:
        raise AssertionError

    assert await embedder(function).embed([]) == []


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("a" * 10, "a" * 10),
        ("abcdefghijkl", "abcd…hijkl"),
        ("Ana: " + "long " * 50 + "\nBen: yes", "Ana:…: yes"),
        ("  tea \n", "tea"),
        ("green\0tea", "green tea"),
        ("tea \ud83d!", "tea ?!"),
        ("\U0001f375" * 12, "\U0001f375" * 4 + "…" + "\U0001f375" * 5),
    ],
)
async def test_a_model_is_given_valid_text_that_is_not_too_long_with_both_its_ends(text: str, given: str) -> None:
    asked: list[str] = []

    def function(texts: list[str]) -> Any:
        asked.extend(texts)
        return _meanings(texts)

    def query_function(text: str) -> Any:
        return function([text])[0]

    provider = embedder(function, query_function=query_function, max_characters=10)
    await provider.embed([text])
    await provider.embed_query(text)

    assert asked == [given, given]


@pytest.mark.parametrize("longest", range(1, 6))
async def test_the_shortest_texts_are_as_long_as_they_may_be(longest: int) -> None:
    lengths: list[int] = []

    def function(texts: list[str]) -> Any:
        lengths.extend(map(len, texts))
        return _meanings(texts)

    await embedder(function, max_characters=longest).embed(["abcdefgh"])

    assert lengths == [longest]


async def test_a_batch_with_too_few_vectors_is_refused_even_if_the_next_has_too_many() -> None:
    counts = iter([1, 3])

    def function(_texts: list[str]) -> Any:
        return [[1.0] * DIMENSIONS] * next(counts)

    with pytest.raises(EmbeddingError, match="1 vectors for 2 texts"):
        await embedder(function, batch_size=2).embed(["a", "b", "c", "d"])


async def test_what_went_wrong_is_told_without_a_text() -> None:
    def function(texts: list[str]) -> Any:
        raise ValueError(f"no: {texts}")

    with pytest.raises(EmbeddingError, match="meaning failed with ValueError") as caught:
        await Embedder(embedder(function)).passages(["secret tea"])

    assert "secret" not in str(caught.value)


async def test_an_embedding_error_of_a_provider_is_passed_on() -> None:
    def function(_texts: list[str]) -> Any:
        raise EmbeddingError("the card is gone")

    with pytest.raises(EmbeddingError, match=r"^the card is gone$"):
        await Embedder(embedder(function)).passages(["tea"])


def test_what_search_needs_to_know_can_be_told() -> None:
    plain, told = embedder(), embedder(embeds_turns=False, similarity_span=(0.1, 0.2), similarity_weight=0.5)

    assert (plain.embeds_turns, plain.similarity_span, plain.similarity_weight) == (True, DEFAULT_SPAN, DEFAULT_WEIGHT)
    assert (told.embeds_turns, told.similarity_span, told.similarity_weight) == (False, (0.1, 0.2), 0.5)


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"max_characters": -1}, {"batch_size": 1.5}, {"function": 1}])
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        embedder(**options)
