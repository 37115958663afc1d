"""Embedding providers: one that fails or answers nonsense does no harm, and nothing waits for one that is slow."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest

from adk_memory import EmbeddingError, EmbeddingMismatchError, MemoryEntry
from adk_memory.testing._base import ContractBase, MakeService, Memories, texts
from adk_memory.testing._embedder import ToyEmbedder

NAN, INFINITY = float("nan"), float("inf")
UNUSABLE: Final = [
    pytest.param(OSError("down"), EmbeddingError, id="failure"),
    pytest.param([NAN] * 64, EmbeddingError, id="NaN"),
    pytest.param([INFINITY] + [0.0] * 63, EmbeddingError, id="infinity"),
    pytest.param([1.0] * 63, EmbeddingMismatchError, id="too short"),
    pytest.param([1.0] * 65, EmbeddingMismatchError, id="too long"),
    pytest.param([], EmbeddingMismatchError, id="empty"),
    pytest.param(["x"] * 64, EmbeddingError, id="no numbers"),
    pytest.param("x" * 64, EmbeddingError, id="text"),
]


class MiscountingEmbedder(ToyEmbedder):
    """Gives another number of vectors than there were texts."""

    def __init__(self, surplus: int) -> None:
        super().__init__()
        self.surplus = surplus

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [[1.0] * self.dimensions] * (len(texts) + self.surplus)


class InterruptedEmbedder(ToyEmbedder):
    """Lets something else happen before it answers, once."""

    interruption: Callable[[], Awaitable[object]] | None = None

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        interruption, self.interruption = self.interruption, None
        if interruption is not None:
            await interruption()
        return await super().embed(texts)


class ProvidersContract(ContractBase):
    @pytest.mark.parametrize(("answer", "error"), UNUSABLE)
    @pytest.mark.parametrize("existing", ["update", "replace"])
    async def test_where_the_embedder_fails_nothing_is_written(
        self, embedded: Memories, embedder: ToyEmbedder, answer: Any, error: type[Exception], existing: Any
    ) -> None:
        await embedded.add("old tea")
        embedder.answers["bad tea"] = answer

        with pytest.raises(error):
            await embedded.add("green tea", "bad tea", "black tea", existing=existing)

        assert await embedded.found("tea", mode="keyword") == ["old tea"]

    @pytest.mark.parametrize(("answer", "error"), UNUSABLE)
    async def test_where_the_embedder_fails_a_single_entry_is_not_written(
        self, embedded: Memories, embedder: ToyEmbedder, answer: Any, error: type[Exception]
    ) -> None:
        embedder.answers["bad tea"] = answer

        with pytest.raises(error):
            await embedded.add_entry("bad tea")

        assert await embedded.found("tea", mode="keyword") == []

    @pytest.mark.parametrize(("answer", "_error"), UNUSABLE)
    async def test_where_the_embedder_fails_a_search_goes_on_by_keyword(
        self, embedded: Memories, embedder: ToyEmbedder, answer: Any, _error: object
    ) -> None:
        await embedded.add("green tea", "black coffee")
        embedder.answers["tea"] = answer

        response = await embedded.search("tea")

        assert [memory.text for memory in response] == ["green tea"]
        assert (response.mode, response.partial) == ("keyword", True)

    @pytest.mark.parametrize("mode", ["vector", "hybrid"])
    @pytest.mark.parametrize(("answer", "error"), UNUSABLE)
    async def test_where_the_embedder_fails_a_search_that_asks_for_similarity_raises(
        self, embedded: Memories, embedder: ToyEmbedder, answer: Any, error: type[Exception], mode: Any
    ) -> None:
        await embedded.add("green tea")
        embedder.answers["tea"] = answer

        with pytest.raises(error):
            await embedded.search("tea", mode=mode)

    @pytest.mark.parametrize("surplus", [-1, 1])
    async def test_a_wrong_number_of_vectors_is_refused(
        self, make_service: MakeService, embedded: Memories, surplus: int
    ) -> None:
        async with make_service(embedder=MiscountingEmbedder(surplus)) as service:
            mine = Memories(service, embedded.can, embedded.app_name)

            with pytest.raises(EmbeddingError):
                await mine.add("green tea", "black tea")

            assert await mine.found("tea", mode="keyword") == []

    async def test_a_write_that_failed_can_be_tried_again(self, embedded: Memories, embedder: ToyEmbedder) -> None:
        embedder.answers["green tea"] = OSError("down")
        with pytest.raises(EmbeddingError):
            await embedded.add("green tea")
        embedder.answers.clear()

        await embedded.add("green tea")

        assert await embedded.found("green tea", mode="vector") == ["green tea"]

    # What happens meanwhile

    @pytest.fixture
    def embedder(self) -> InterruptedEmbedder:
        """Return an embedder that can be interrupted."""
        return InterruptedEmbedder(model=f"toy-{uuid.uuid4().hex}")

    async def test_others_read_and_write_while_the_embedder_works(
        self, embedded: Memories, embedder: InterruptedEmbedder
    ) -> None:
        async def interruption() -> None:
            await embedded.add("black tea", session="s2")
            assert await embedded.found("tea", mode="keyword") == ["black tea"]

        embedder.interruption = interruption
        await embedded.add("green tea", session="s1")

        assert sorted(await embedded.found("tea", mode="keyword")) == ["black tea", "green tea"]

    async def test_an_entry_that_changes_while_the_embedder_works_has_the_vector_of_its_text(
        self, embedded: Memories, embedder: InterruptedEmbedder
    ) -> None:
        await embedded.add(MemoryEntry("green tea", id="mine"))
        embedder.interruption = lambda: embedded.add(MemoryEntry("black coffee", id="mine"))

        await embedded.add(MemoryEntry("loud music", id="mine"), "unrelated remark")

        scores = await embedded.scores("loud music", mode="vector")
        assert scores["loud music"] >= 0.99
        assert set(scores) == {"loud music", "unrelated remark"}

    async def test_an_entry_that_is_erased_while_the_embedder_works_is_added_whole(
        self, embedded: Memories, embedder: InterruptedEmbedder
    ) -> None:
        await embedded.add("green tea")
        embedder.interruption = lambda: embedded.delete_session("s1")

        await embedded.add("green tea", "black tea")

        response = await embedded.search("tea")
        assert sorted(texts(response)) == ["black tea", "green tea"]
        assert response.partial is False
