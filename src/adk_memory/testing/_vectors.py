"""Vectors: what is near is found, inside the scope, and the response says how."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import pytest

from adk_memory import Content, MemoryEntry
from adk_memory.testing._base import ContractBase, MakeService, Memories
from adk_memory.testing._embedder import ToyEmbedder

DIRECTIONS: Final = {
    "north": (1.0, 0.0), "nearly north": (0.8, 0.6), "east": (0.0, 1.0), "south": (-1.0, 0.0),
    "west by south": (-0.1, 1.0), "zero": (0.0, 0.0),
    "query": (1.0, 0.0),
}  # fmt: skip
ODD: Final = [
    pytest.param([1e-30] * 64, id="tiny"),
    pytest.param([1e300] * 64, id="huge"),
    pytest.param([1] * 64, id="integers"),
    pytest.param((0.5,) * 64, id="tuple"),
]


class QueryEmbedder(ToyEmbedder):
    """Embeds a question in another way than a passage."""

    async def embed_query(self, text: str) -> Sequence[float]:
        [vector] = await self.embed([f"passage {text}"])
        return vector


class VectorsContract(ContractBase):
    @pytest.fixture
    def compass(self, embedder: ToyEmbedder) -> None:
        """Make the embedder point each text of `DIRECTIONS` there."""
        rest = [0.0] * (embedder.dimensions - 2)
        embedder.answers |= {text: [*direction, *rest] for text, direction in DIRECTIONS.items()}

    @pytest.mark.usefixtures("compass")
    async def test_the_nearest_come_first(self, embedded: Memories) -> None:
        await embedded.add("south", "east", "nearly north", "north")

        assert (await embedded.found("query", mode="vector"))[:2] == ["north", "nearly north"]

    @pytest.mark.usefixtures("compass")
    async def test_a_score_by_similarity_is_from_0_to_1_and_the_same_direction_near_1(self, embedded: Memories) -> None:
        await embedded.add("south", "east", "nearly north", "north")

        scores = await embedded.scores("query", mode="vector")

        assert scores["north"] >= 0.99
        assert list(scores.values()) == sorted(scores.values(), reverse=True)
        assert all(0 <= score <= 1 for score in scores.values())

    @pytest.mark.usefixtures("compass")
    async def test_of_entries_that_point_away_the_newest_fill_the_limit(self, embedded: Memories) -> None:
        await embedded.add(MemoryEntry("west by south", timestamp="2024-05-01"))
        await embedded.add(MemoryEntry("south", timestamp="2024-05-02"))

        response = await embedded.search("query", mode="vector", limit=1)

        assert [(memory.text, memory.score) for memory in response] == [("south", 0.0)]

    @pytest.mark.usefixtures("compass")
    async def test_equally_near_entries_come_newest_first(self, embedded: Memories) -> None:
        days = ["2024-05-02", "2024-05-03", "2024-05-01"]
        await embedded.add(*(MemoryEntry("north", timestamp=day, id=day) for day in days))

        found = await embedded.search("query", mode="vector")

        assert [memory.id for memory in found] == sorted(days, reverse=True)

    async def test_a_search_finds_by_word_and_by_nearness_at_once(
        self, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        embedder.answers["what do they drink"] = embedder.answers["tea"] = [1.0] * 64
        await embedded.add("drink", "tea")

        response = await embedded.search("what do they drink")

        assert {memory.text for memory in response} == {"drink", "tea"}
        assert (response.mode, response.partial) == ("hybrid", False)

    @pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
    async def test_a_response_says_how_it_was_answered(self, embedded: Memories, mode: Any) -> None:
        await embedded.add("green tea")

        assert (await embedded.search("tea", mode=mode)).mode == mode

    async def test_without_an_embedder_the_answer_is_by_keyword(self, memory: Memories) -> None:
        await memory.add("green tea")

        response = await memory.search("tea")

        assert (response.mode, response.partial) == ("keyword", False)

    async def test_a_search_by_keyword_never_calls_the_embedder(
        self, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        await embedded.add("green tea")
        embedder.asked.clear()

        assert await embedded.found("tea", mode="keyword") == ["green tea"]

        assert embedder.asked == []

    @pytest.mark.parametrize("mode", ["vector", "hybrid"])
    async def test_limit_and_threshold_hold_for_similarity_too(self, embedded: Memories, mode: Any) -> None:
        await embedded.add("green tea", "black tea", "white tea", "coffee")
        scores = await embedded.scores("green tea", mode=mode)
        second = sorted(scores.values())[-2]

        assert await embedded.found("green tea", limit=1, mode=mode) == ["green tea"]
        assert len(await embedded.search("green tea", min_score=second, mode=mode)) >= 2
        assert min(await self._floored(embedded, second, mode)) >= second

    async def _floored(self, embedded: Memories, floor: float, mode: Any) -> list[float]:
        response = await embedded.search("green tea", min_score=floor, mode=mode)
        return [memory.score or 0.0 for memory in response]

    async def test_a_search_by_similarity_stays_in_its_scope(self, embedded: Memories) -> None:
        await embedded.add("green tea")
        await embedded.user("ben").add("green tea of ben")
        await embedded.app(embedded.app_name + "-other").add("green tea of another app")

        assert await embedded.found("green tea", mode="vector") == ["green tea"]

    @pytest.mark.parametrize(("project", "seen"), [(None, 1), ("A", 2), ("B", 2)])
    async def test_a_search_by_similarity_stays_in_its_project(
        self, embedded: Memories, project: str | None, seen: int
    ) -> None:
        for home in (None, "A", "B"):
            await embedded.project(home).add("green tea")

        found = await embedded.project(project).search("green tea", mode="vector")

        assert len(found) == seen
        assert {memory.project_id for memory in found} == {None, project}

    async def test_a_near_crowd_out_of_sight_does_not_use_up_the_limit(self, embedded: Memories) -> None:
        await embedded.user("ben").add(*["green tea"] * 300)
        await embedded.add("green coffee", "black coffee")

        assert len(await embedded.search("green tea", limit=2, mode="vector")) == 2

    @pytest.mark.parametrize("mode", ["vector", "hybrid"])
    async def test_entries_out_of_sight_never_change_a_score_by_similarity(self, embedded: Memories, mode: Any) -> None:
        notes = ["green tea", "black tea with milk", "green house", "coffee"]
        await embedded.add(*notes)
        before = await embedded.scores("green tea", mode=mode)

        await embedded.user("ben").add(*notes, "green tea for ben")
        await embedded.app(embedded.app_name + "-other").add(*notes, "green tea elsewhere")

        assert await embedded.scores("green tea", mode=mode) == pytest.approx(before, abs=1e-6)

    async def test_an_update_changes_what_an_entry_is_near_to(self, embedded: Memories, embedder: ToyEmbedder) -> None:
        await embedded.add(MemoryEntry("green tea", id="mine"), "black coffee")

        await embedded.add(MemoryEntry("loud music", id="mine"))

        assert (await embedded.found("loud music", mode="vector"))[0] == "loud music"
        assert "loud music" in embedder.asked

    async def test_what_is_erased_is_near_to_nothing(self, embedded: Memories) -> None:
        [green, _black] = await embedded.add("green tea", "black coffee")

        await embedded.delete(green)

        assert await embedded.found("green tea", mode="vector") == ["black coffee"]

    async def test_a_question_is_embedded_as_one_where_the_provider_can(
        self, make_service: MakeService, embedded: Memories
    ) -> None:
        asking = QueryEmbedder(model="toy-query")
        async with make_service(embedder=asking) as service:
            mine = Memories(service, embedded.can, embedded.app_name)
            await mine.add("passage tea", "tea cup")

            assert (await mine.scores("tea", mode="vector"))["passage tea"] >= 0.99

    async def test_ten_concurrent_calls_leave_one_copy_with_one_vector(self, embedded: Memories) -> None:
        await asyncio.gather(*(embedded.add("green tea", "black tea") for _ in range(10)))

        found = await embedded.found("tea", mode="vector")

        assert sorted(found) == ["black tea", "green tea"]

    @pytest.mark.parametrize("dimensions", [1, 2, 1_536, 3_072, 16_000])
    async def test_vectors_may_have_1_to_16000_dimensions(
        self, make_service: MakeService, embedded: Memories, dimensions: int
    ) -> None:
        async with make_service(embedder=ToyEmbedder(dimensions)) as service:
            mine = Memories(service, embedded.can, embedded.app_name)
            await mine.add("green tea")

            assert await mine.found("green tea", mode="vector") == ["green tea"]

    @pytest.mark.parametrize("answer", ODD)
    async def test_a_vector_of_any_length_and_form_is_a_direction(
        self, embedded: Memories, embedder: ToyEmbedder, answer: Any
    ) -> None:
        embedder.answers["green tea"] = answer
        await embedded.add("green tea")

        assert (await embedded.scores("green tea", mode="vector"))["green tea"] >= 0.99

    # Entries without a vector

    @pytest.mark.usefixtures("compass")
    async def test_an_entry_with_a_zero_vector_is_found_by_its_words_alone(self, embedded: Memories) -> None:
        await embedded.add("zero", "north")

        assert await embedded.found("zero", mode="keyword") == ["zero"]
        assert await embedded.found("query", mode="vector") == ["north"]

    @pytest.mark.usefixtures("compass")
    async def test_a_response_is_partial_where_an_entry_in_sight_has_no_vector(self, embedded: Memories) -> None:
        await embedded.add("zero", "north")

        assert (await embedded.search("query")).partial is True
        assert (await embedded.search("query", mode="vector")).partial is True
        assert (await embedded.search("query", mode="keyword")).partial is False

    @pytest.mark.usefixtures("compass")
    async def test_a_response_is_whole_where_only_entries_out_of_sight_have_no_vector(self, embedded: Memories) -> None:
        await embedded.add("north")
        await embedded.user("ben").add("zero")

        assert (await embedded.search("query")).partial is False

    @pytest.mark.usefixtures("compass")
    @pytest.mark.parametrize("mode", [None, "vector", "hybrid"])
    async def test_a_question_with_a_zero_vector_is_near_to_nothing(self, embedded: Memories, mode: Any) -> None:
        await embedded.add("north", "zero degrees")

        response = await embedded.search("zero", mode=mode)

        assert [memory.text for memory in response] == ([] if mode == "vector" else ["zero degrees"])
        assert response.partial is True

    @pytest.mark.parametrize("content", ["", " ", "!!! ???", Content("model", [{"function_call": {}}])])
    async def test_an_entry_without_a_word_is_not_embedded(
        self, embedded: Memories, embedder: ToyEmbedder, content: object
    ) -> None:
        await embedded.add(MemoryEntry(content), "green tea")

        assert embedder.asked == ["green tea"]
        assert (await embedded.search("tea")).partial is False

    async def test_a_wordless_question_matches_nothing(self, embedded: Memories) -> None:
        await embedded.add("green tea")

        assert await embedded.found("!!! ???") == []
