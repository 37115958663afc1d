"""Vectors that callers give, with entries and with questions: stored and compared as if the provider had made them."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pytest

from adk_memory import (
    EmbeddingMismatchError,
    MemoryEntry,
    MemoryServiceAdapter,
    OperationNotSupportedError,
    SessionEntries,
    ValidationError,
)
from adk_memory.embedders import GivenVectors
from adk_memory.testing._base import ContractBase, MakeService, Memories
from adk_memory.testing._embedder import ToyEmbedder

DIMENSIONS: Final = 64
NAN, INFINITY = float("nan"), float("inf")


def axis(number: int, dimensions: int = DIMENSIONS) -> list[float]:
    """Return a vector that points along one axis."""
    return [float(place == number) for place in range(dimensions)]


FORMS: Final[dict[str, Callable[[list[float]], Any]]] = {
    "tuple": tuple,
    "generator": iter,
    "integers": lambda vector: [int(3 * number) for number in vector],
    "array": lambda vector: array("d", vector),
    "float16": lambda vector: np.array(vector, np.float16),
    "float32": lambda vector: np.array(vector, np.float32),
    "long": lambda vector: np.array(vector) * 1e300,
    "short": lambda vector: np.array(vector) * 1e-30,
}
UNUSABLE: Final = [
    pytest.param([1.0] * 63, EmbeddingMismatchError, id="too short"),
    pytest.param([1.0] * 65, EmbeddingMismatchError, id="too long"),
    pytest.param([], EmbeddingMismatchError, id="empty"),
    pytest.param([NAN, *[1.0] * 63], ValidationError, id="NaN"),
    pytest.param([1.0] * 63 + [-INFINITY], ValidationError, id="infinity"),
]


class GivenVectorsContract(ContractBase):
    async def test_a_given_vector_is_that_of_the_entry(self, embedded: Memories, embedder: ToyEmbedder) -> None:
        await embedded.add(MemoryEntry("green tea", vector=axis(3)), MemoryEntry("black tea", vector=axis(4)))

        response = await embedded.search("anything", mode="vector", vector=axis(3))

        assert [memory.text for memory in response] == ["green tea", "black tea"]
        assert [memory.score for memory in response] == pytest.approx([1.0, 0.0], abs=1e-3)
        assert {memory.vector for memory in response} == {None}
        assert response.partial is False
        assert embedder.asked == []

    @pytest.mark.parametrize("form", FORMS)
    async def test_a_vector_may_come_in_any_form(self, embedded: Memories, form: str) -> None:
        vector = FORMS[form]
        await embedded.add(MemoryEntry("green tea", vector=vector(axis(3))), MemoryEntry("tea", vector=axis(4)))

        [best, _] = await embedded.search("", vector=vector(axis(3)))

        assert best.text == "green tea"
        assert best.score == pytest.approx(1.0, abs=1e-3)

    async def test_the_embedder_is_asked_for_the_others_alone(self, embedded: Memories, embedder: ToyEmbedder) -> None:
        await embedded.add("black coffee", MemoryEntry("green tea", vector=axis(3)), "loud music")

        assert sorted(embedder.asked) == ["black coffee", "loud music"]
        assert (await embedded.search("tea")).partial is False

    @pytest.mark.parametrize(("vector", "error"), UNUSABLE)
    async def test_a_vector_that_is_not_of_the_model_is_refused_with_its_place_and_nothing_is_written(
        self, embedded: Memories, vector: list[float], error: type[Exception]
    ) -> None:
        bad = MemoryEntry("bad tea", vector=vector)

        with pytest.raises(error, match=r"entries\[1\]\.vector"):
            await embedded.add("green tea", bad, "black tea")
        with pytest.raises(error, match=r"entries\[0\]\.vector"):
            await embedded.add_entry(bad)

        assert await embedded.found("tea", mode="keyword") == []

    @pytest.mark.parametrize(("vector", "error"), UNUSABLE)
    async def test_of_many_items_those_before_the_bad_vector_are_stored(
        self, embedded: Memories, vector: list[float], error: type[Exception]
    ) -> None:
        bad: list[MemoryEntry | str] = ["green tea", MemoryEntry("bad tea", vector=vector)]
        items = [self._item(embedded, "s1", "black tea"), self._item(embedded, "s2", *bad)]

        with pytest.raises(error, match=r"items\[1\]: entries\[1\]\.vector.*1 entries, is stored"):
            await embedded.service.add_many(items)

        assert await embedded.found("tea", mode="keyword") == ["black tea"]

    @pytest.mark.parametrize(("vector", "error"), UNUSABLE)
    @pytest.mark.parametrize("query", ["tea", ""])
    async def test_a_question_whose_vector_is_not_of_the_model_is_refused(
        self, embedded: Memories, vector: list[float], error: type[Exception], query: str
    ) -> None:
        await embedded.add("green tea")

        with pytest.raises(error, match="vector"):
            await embedded.search(query, vector=vector)

    async def test_without_an_embedder_no_vector_is_taken(self, memory: Memories) -> None:
        entry = MemoryEntry("green tea", vector=axis(3))

        with pytest.raises(ValidationError, match="embedder"):
            await memory.add("black tea", entry)
        with pytest.raises(ValidationError, match="embedder"):
            await memory.service.add_many([self._item(memory, "s1", entry)])
        with pytest.raises((ValidationError, OperationNotSupportedError), match="embed"):
            await memory.search("tea", vector=axis(3))

        assert await memory.found("tea") == []

    # What is there already

    async def test_a_given_vector_is_written_over_the_one_that_is_there(self, embedded: Memories) -> None:
        await embedded.add(MemoryEntry("green tea", id="e1", vector=axis(3)), "black tea")

        await embedded.add(MemoryEntry("green tea", id="e1", vector=axis(5)))
        await embedded.add(MemoryEntry("green tea", id="e1", vector=axis(5)))

        assert await self._similarity(embedded, axis(5)) == pytest.approx(1.0, abs=1e-3)
        assert await self._similarity(embedded, axis(3)) == pytest.approx(0.0, abs=1e-3)

    async def test_a_given_vector_is_written_over_the_one_that_the_embedder_made(self, embedded: Memories) -> None:
        ids = await embedded.add("green tea")

        assert await embedded.add(MemoryEntry("green tea", vector=axis(5))) == ids  # it is no part of what it is

        assert await self._similarity(embedded, axis(5)) == pytest.approx(1.0, abs=1e-3)
        assert len(await embedded.search("tea")) == 1

    @pytest.mark.parametrize(("existing", "kept"), [("keep", 3), ("replace", 5)])
    async def test_keep_keeps_the_vector_and_replace_does_not(
        self, embedded: Memories, existing: Any, kept: int
    ) -> None:
        await embedded.add(MemoryEntry("green tea", id="e1", vector=axis(3)))

        await embedded.add(MemoryEntry("green tea", id="e1", vector=axis(5)), existing=existing)

        assert await self._similarity(embedded, axis(kept)) == pytest.approx(1.0, abs=1e-3)

    async def test_an_entry_that_comes_again_without_its_vector_keeps_it(
        self, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        await embedded.add(MemoryEntry("green tea", id="e1", vector=axis(3)))

        await embedded.add(MemoryEntry("green tea", id="e1", metadata={"seen": 2}))

        assert await self._similarity(embedded, axis(3)) == pytest.approx(1.0, abs=1e-3)
        assert embedder.asked == []

    async def test_a_reworded_entry_without_a_vector_is_embedded(
        self, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        await embedded.add(MemoryEntry("green tea", id="e1", vector=axis(3)))

        await embedded.add(MemoryEntry("black coffee", id="e1"))

        assert embedder.asked == ["black coffee"]

    @pytest.mark.parametrize("before", [axis(3), None])
    async def test_an_entry_with_a_given_zero_vector_has_none(
        self, embedded: Memories, before: list[float] | None
    ) -> None:
        await embedded.add(MemoryEntry("green tea", id="e1", vector=before))

        await embedded.add(MemoryEntry("green tea", id="e1", vector=[0.0] * DIMENSIONS))

        assert await embedded.found("", vector=axis(3)) == []
        response = await embedded.search("tea")
        assert (len(response), response.partial) == (1, True)

    async def test_an_entry_without_a_word_has_no_vector(self, embedded: Memories) -> None:
        await embedded.add(MemoryEntry("!!!", vector=axis(3)), MemoryEntry("green tea", vector=axis(4)))

        response = await embedded.search("", vector=axis(3))

        assert ([memory.text for memory in response], response.partial) == (["green tea"], False)

    # Other ways in

    async def test_single_entries_many_items_and_adapters_take_vectors(
        self, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        await embedded.add_entry(MemoryEntry("green tea", vector=axis(3)))
        items = [
            self._item(embedded, "s1", MemoryEntry("black tea", vector=axis(4)), "black coffee"),
            self._item(embedded, None, MemoryEntry("white tea", vector=axis(5))),
        ]
        await embedded.service.add_many(items)
        await embedded.service.add_many(items[:1])
        adapter = MemoryServiceAdapter(embedded.service, embedded.app_name, "ana")
        await adapter.add(MemoryEntry("red tea", vector=axis(6)))

        for text, vector in [("green tea", 3), ("black tea", 4), ("white tea", 5), ("red tea", 6)]:
            [best] = await adapter.search("", limit=1, vector=axis(vector))
            assert best.text == text
            assert best.score == pytest.approx(1.0, abs=1e-3)
        assert embedder.asked == ["black coffee"]

    # Questions

    async def test_a_question_with_a_vector_is_answered_by_its_words_too(
        self, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        await embedded.add(MemoryEntry("green tea", vector=axis(3)), MemoryEntry("coffee", vector=axis(4)))

        response = await embedded.search("tea", vector=axis(4))

        assert {memory.text for memory in response} == {"green tea", "coffee"}
        assert (response.mode, response.partial) == ("hybrid", False)
        assert embedder.asked == []

    @pytest.mark.parametrize("query", ["", "!!!"])
    @pytest.mark.parametrize("mode", [None, "vector", "hybrid"])
    async def test_a_question_without_a_word_is_answered_by_its_vector(
        self, embedded: Memories, query: str, mode: Any
    ) -> None:
        await embedded.add(MemoryEntry("green tea", vector=axis(3)), MemoryEntry("coffee", vector=axis(4)))

        response = await embedded.search(query, mode=mode, vector=axis(4), limit=1)

        assert [memory.text for memory in response] == ["coffee"]
        assert response.mode == "vector"

    async def test_a_search_by_keyword_leaves_the_vector_alone(self, embedded: Memories) -> None:
        await embedded.add(MemoryEntry("green tea", vector=axis(3)), MemoryEntry("coffee", vector=axis(4)))

        assert await embedded.found("tea", mode="keyword", vector=axis(4)) == ["green tea"]
        assert await embedded.found("", mode="keyword", vector=axis(4)) == []

    async def test_a_search_by_a_given_vector_stays_in_its_scope(self, embedded: Memories) -> None:
        entry = MemoryEntry("green tea", vector=axis(3))
        await embedded.user("ben").add(entry)
        await embedded.app(embedded.app_name + "-other").add(entry)
        await embedded.add(MemoryEntry("coffee", vector=axis(4)))

        assert await embedded.found("", vector=axis(3)) == ["coffee"]

    # An application that has all vectors itself

    @pytest.mark.parametrize("dimensions", [2, 3_072])
    async def test_a_provider_that_embeds_nothing_leaves_it_to_the_caller(
        self, make_service: MakeService, embedded: Memories, dimensions: int
    ) -> None:
        async with make_service(embedder=GivenVectors(f"given-{uuid.uuid4().hex}", dimensions)) as service:
            mine = Memories(service, embedded.can, embedded.app_name)
            await mine.add(MemoryEntry("green tea", vector=axis(1, dimensions)))
            whole = await mine.search("tea", vector=axis(1, dimensions))
            await mine.add(MemoryEntry("green tea", vector=axis(1, dimensions)), "black tea")

            by_words = await mine.search("tea")
            by_vector = await mine.search("", vector=axis(1, dimensions))

        assert (whole.mode, whole.partial) == ("hybrid", False)
        assert {memory.text for memory in by_words} == {"green tea", "black tea"}
        assert (by_words.mode, by_words.partial) == ("keyword", True)
        assert [memory.text for memory in by_vector] == ["green tea"]
        assert (by_vector.mode, by_vector.partial) == ("vector", True)

    def _item(self, memories: Memories, session: str | None, *entries: MemoryEntry | str) -> SessionEntries:
        made = [entry if isinstance(entry, MemoryEntry) else MemoryEntry(entry) for entry in entries]
        return SessionEntries(memories.app_name, memories.user_id, session, made)

    async def _similarity(self, memories: Memories, vector: Sequence[float]) -> float:
        """Return how similar the entry of the word green is."""
        response = await memories.search("", vector=vector)
        [score] = [memory.score for memory in response if memory.text == "green tea"]
        return score or 0.0
