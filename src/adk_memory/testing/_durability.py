"""Durability: what one service wrote, the next one reads, with another provider too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from adk_memory import EmbeddingProvider, MemoryEntry
from adk_memory.testing._base import Capabilities, ContractBase, MakeService, Memories
from adk_memory.testing._embedder import ToyEmbedder

Opened = Callable[..., AbstractAsyncContextManager[Memories]]


class DurabilityContract(ContractBase):
    @pytest.fixture
    def opened(self, make_service: MakeService, capabilities: Capabilities, app_name: str) -> Opened:
        """Return what opens the same memories in a new service."""
        if not self.durable:
            pytest.skip("this backend forgets everything at its end")

        @asynccontextmanager
        async def opened(embedder: EmbeddingProvider | None = None) -> AsyncIterator[Memories]:
            if embedder is not None and not self.embeddings:
                pytest.skip("this backend does not take an embedding provider")
            async with make_service(embedder=embedder) as service:
                yield Memories(service, capabilities, app_name)

        return opened

    async def test_what_was_written_is_there_when_the_service_is_opened_again(self, opened: Opened) -> None:
        entry = MemoryEntry("green tea", "model", "2024-05-01T12:00:00.000001", "mine", {"cups": [1, None]})
        async with opened() as memory:
            await memory.add(entry)
            before = await memory.search("tea")

        async with opened() as memory:
            assert await memory.search("tea") == before

    async def test_what_was_erased_does_not_come_back(self, opened: Opened) -> None:
        async with opened() as memory:
            await memory.add("green tea", "black tea")
            await memory.delete_entries("green")

        async with opened() as memory:
            assert await memory.found("tea") == ["black tea"]

    async def test_a_session_is_known_when_the_service_is_opened_again(self, opened: Opened) -> None:
        async with opened() as memory:
            first = await memory.add("green tea", "green tea")

        async with opened() as memory:
            assert await memory.add("green tea", "green tea", "black tea") != first
            assert sorted(await memory.found("tea")) == ["black tea", "green tea", "green tea"]

    async def test_two_services_that_write_at_once_leave_one_copy(self, opened: Opened) -> None:
        async with opened() as one, opened() as other:
            await asyncio.gather(*(memory.add("green tea", "black tea") for memory in [one, other] * 5))

            assert sorted(await one.found("tea")) == ["black tea", "green tea"]

    async def test_one_service_sees_what_another_wrote_and_erased(self, opened: Opened) -> None:
        async with opened() as one, opened() as other:
            await one.add("green tea", "black tea")
            assert len(await other.search("tea")) == 2
            await one.delete_entries("green")

            assert await other.found("tea") == ["black tea"]

    async def test_entries_written_without_an_embedder_are_found_by_keyword_and_marked_partial(
        self, opened: Opened, embedder: ToyEmbedder
    ) -> None:
        async with opened() as memory:
            await memory.add("green tea")

        async with opened(embedder) as memory:
            response = await memory.search("tea")
            assert [found.text for found in response] == ["green tea"]
            assert response.partial is True

    async def test_an_entry_without_a_vector_gets_one_when_it_is_added_again(
        self, opened: Opened, embedder: ToyEmbedder
    ) -> None:
        async with opened() as memory:
            await memory.add("green tea")

        async with opened(embedder) as memory:
            await memory.add("green tea")
            response = await memory.search("green tea", mode="vector")
            assert ([found.text for found in response], response.partial) == (["green tea"], False)

    async def test_vectors_of_two_models_are_never_compared(self, opened: Opened, embedder: ToyEmbedder) -> None:
        async with opened(embedder) as memory:
            await memory.add("green tea")

        async with opened(ToyEmbedder(model=embedder.model + "-next")) as memory:
            response = await memory.search("green tea", mode="vector")
            assert (len(response), response.partial) == (0, True)

    async def test_models_of_two_widths_live_side_by_side(self, opened: Opened, embedder: ToyEmbedder) -> None:
        async with opened(embedder) as memory:
            await memory.add("green tea", session="s1")

        async with opened(ToyEmbedder(32, embedder.model + "-next")) as memory:
            await memory.add("green coffee", session="s2")
            assert await memory.found("green tea", mode="vector") == ["green coffee"]

        async with opened(embedder) as memory:
            assert await memory.found("green tea", mode="vector") == ["green tea"]

    async def test_what_was_erased_without_an_embedder_is_near_to_nothing(
        self, opened: Opened, embedder: ToyEmbedder
    ) -> None:
        async with opened(embedder) as memory:
            await memory.add("green tea", "black coffee")
        async with opened() as memory:
            await memory.delete_entries("tea")

        async with opened(embedder) as memory:
            assert await memory.found("green tea", mode="vector") == ["black coffee"]

    async def test_what_was_rewritten_without_an_embedder_is_near_to_nothing_it_was(
        self, opened: Opened, embedder: ToyEmbedder
    ) -> None:
        async with opened(embedder) as memory:
            await memory.add(MemoryEntry("green tea", id="mine"))
        async with opened() as memory:
            await memory.add(MemoryEntry("loud music", id="mine"))

        async with opened(embedder) as memory:
            assert await memory.found("green tea", mode="vector") == []
