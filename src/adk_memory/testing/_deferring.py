"""Deferring: where a provider fails, entries are stored without their vectors if the service was told to do so."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from adk_memory import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingProvider,
    MemoryEntry,
    MemoryService,
    ValidationError,
)
from adk_memory.testing._base import Capabilities, ContractBase, MakeService, Memories
from adk_memory.testing._providers import UNUSABLE, InterruptedEmbedder, MiscountingEmbedder


class FailingEmbedder(InterruptedEmbedder):
    """Fails whatever it is asked, while it is ``down``; otherwise for a whole list in which there is poison."""

    down = False
    calls = 0

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.calls += 1
        if self.down or any("poison" in text for text in texts):
            raise OSError(f"no vectors of {texts}")
        return await super().embed(texts)


class DeferringContract(ContractBase):
    """The store may hold what others wrote, which `embed_pending` embeds too."""

    @pytest.fixture
    def failing(self) -> FailingEmbedder:
        """Return a provider that fails when it is told to."""
        return FailingEmbedder(model=f"toy-{uuid.uuid4().hex}")

    @pytest_asyncio.fixture
    async def deferring(
        self, make_service: MakeService, capabilities: Capabilities, app_name: str, failing: FailingEmbedder
    ) -> AsyncIterator[Memories]:
        """Yield the memories of a new app, in a service that stores them whether the provider fails or not."""
        async with self._deferring(make_service, capabilities, failing) as service:
            yield Memories(service, capabilities, app_name)

    def _deferring(
        self, make_service: MakeService, capabilities: Capabilities, embedder: EmbeddingProvider
    ) -> MemoryService:
        capabilities.need("embed_pending")
        if not self.embeddings:
            pytest.skip("this backend does not take an embedding provider")
        return make_service(embedder=embedder, on_embedding_error="defer")

    @pytest.mark.parametrize(("answer", "_error"), UNUSABLE)
    async def test_where_the_embedder_fails_entries_are_found_by_their_words_at_once_and_by_similarity_later(
        self, deferring: Memories, failing: FailingEmbedder, answer: Any, _error: object
    ) -> None:
        failing.answers["bad tea"] = answer
        await deferring.add("green tea", "bad tea")
        await deferring.add_entry("bad tea")

        response = await deferring.search("tea")
        assert sorted(memory.text for memory in response) == ["bad tea", "bad tea", "green tea"]
        assert response.partial is True
        failing.answers.clear()
        assert await deferring.service.embed_pending() >= 3

        assert (await deferring.search("tea")).partial is False
        assert len(await deferring.found("bad tea", mode="vector")) == 3
        assert await deferring.service.embed_pending() == 0

    @pytest.mark.parametrize("surplus", [-1, 1])
    async def test_a_wrong_number_of_vectors_leaves_entries_without_any(
        self, make_service: MakeService, capabilities: Capabilities, app_name: str, surplus: int
    ) -> None:
        miscounting = MiscountingEmbedder(surplus)
        miscounting.model = f"toy-{uuid.uuid4().hex}"
        async with self._deferring(make_service, capabilities, miscounting) as service:
            mine = Memories(service, capabilities, app_name)
            await mine.add("green tea", "black tea")

            assert await mine.found("", vector=[1.0] * 64) == []
            assert sorted(await mine.found("tea", mode="keyword")) == ["black tea", "green tea"]
            with pytest.raises(EmbeddingError):
                await service.embed_pending()

    async def test_a_reworded_entry_does_not_keep_the_vector_of_its_old_text(
        self, deferring: Memories, failing: FailingEmbedder
    ) -> None:
        await deferring.add(MemoryEntry("green tea", id="mine"), "black tea")
        failing.down = True

        await deferring.add(MemoryEntry("loud music", id="mine"))

        failing.down = False
        assert await deferring.found("green tea", mode="vector") == ["black tea"]
        await deferring.service.embed_pending()
        assert (await deferring.scores("loud music", mode="vector"))["loud music"] >= 0.99

    async def test_adding_the_session_again_embeds_it_too(self, deferring: Memories, failing: FailingEmbedder) -> None:
        failing.down = True
        await deferring.add("green tea")
        failing.down = False

        await deferring.add("green tea")

        assert (await deferring.search("tea")).partial is False
        assert failing.asked == ["green tea", "tea"]

    async def test_a_bad_vector_of_the_caller_is_not_put_off(self, deferring: Memories) -> None:
        with pytest.raises(ValidationError):
            await deferring.add("green tea", MemoryEntry("black tea", vector=[float("nan")] * 64))

        assert await deferring.found("tea", mode="keyword") == []

    async def test_who_gives_up_on_the_embedder_leaves_nothing_behind(
        self, deferring: Memories, failing: FailingEmbedder
    ) -> None:
        asked = asyncio.Event()

        async def interruption() -> None:
            asked.set()
            await asyncio.sleep(60)

        failing.interruption = interruption
        adding = asyncio.create_task(deferring.add("green tea"))
        await asked.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding

        assert await deferring.found("tea", mode="keyword") == []

    async def test_an_error_policy_that_is_none_is_refused(
        self, make_service: MakeService, capabilities: Capabilities
    ) -> None:
        capabilities.need("embed_pending")
        with pytest.raises(ConfigurationError, match="on_embedding_error"):
            make_service(on_embedding_error="ignore")  # type: ignore[arg-type]
