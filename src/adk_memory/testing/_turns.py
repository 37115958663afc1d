"""Turns: what a provider that asks for them is given to embed, and that another is given bare texts."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from adk_memory import MemoryEntry
from adk_memory.testing._base import Capabilities, ContractBase, MakeService, Memories
from adk_memory.testing._embedder import ToyEmbedder


class TurnEmbedder(ToyEmbedder):
    """Asks for the entries of a session together with their author and the turn before."""

    embeds_turns = True


class TurnsContract(ContractBase):
    @pytest.fixture
    def turn_embedder(self) -> TurnEmbedder:
        """Return a provider that asks for turns."""
        return TurnEmbedder(model=f"toy-{uuid.uuid4().hex}")

    @pytest_asyncio.fixture
    async def turns(
        self, make_service: MakeService, capabilities: Capabilities, app_name: str, turn_embedder: TurnEmbedder
    ) -> AsyncIterator[Memories]:
        """Yield the memories of a new app, in a service with ``turn_embedder`` as its provider."""
        if not self.embeddings:
            pytest.skip("this backend does not take an embedding provider")
        async with make_service(embedder=turn_embedder) as service:
            yield Memories(service, capabilities, app_name)

    async def test_an_entry_is_embedded_with_its_author_and_the_turn_before(
        self, turns: Memories, turn_embedder: TurnEmbedder
    ) -> None:
        await turns.add(
            MemoryEntry("what will you have", author="Ben"), MemoryEntry("green tea", author="Ana"), "a good choice"
        )

        assert sorted(turn_embedder.asked) == [
            "Ana: green tea\nuser: a good choice",
            "Ben: what will you have",
            "Ben: what will you have\nAna: green tea",
        ]

    async def test_the_turn_before_the_first_of_a_call_is_the_last_that_is_stored(
        self, turns: Memories, turn_embedder: TurnEmbedder
    ) -> None:
        await turns.add("good morning", "green tea")
        turn_embedder.asked.clear()

        await turns.add("black coffee", "loud music")

        assert sorted(turn_embedder.asked) == [
            "user: black coffee\nuser: loud music",
            "user: green tea\nuser: black coffee",
        ]

    async def test_a_longer_version_of_a_session_embeds_only_what_is_new(
        self, turns: Memories, turn_embedder: TurnEmbedder
    ) -> None:
        await turns.add("good morning", "green tea")
        turn_embedder.asked.clear()

        await turns.add("good morning", "green tea", "black coffee")

        assert turn_embedder.asked == ["user: green tea\nuser: black coffee"]

    async def test_a_turn_of_another_session_is_not_the_turn_before(
        self, turns: Memories, turn_embedder: TurnEmbedder
    ) -> None:
        await turns.add("green tea", session="s1")
        await turns.user("ben").add("black tea", session="s2")
        await turns.app(turns.app_name + "-other").add("white tea", session="s2")
        turn_embedder.asked.clear()

        await turns.add("black coffee", session="s2")

        assert turn_embedder.asked == ["user: black coffee"]

    @pytest.mark.parametrize("home", [None, "A"])
    async def test_a_turn_of_another_project_is_not_the_turn_before(
        self, turns: Memories, turn_embedder: TurnEmbedder, home: str | None
    ) -> None:
        await turns.project(home).add("green tea")
        turn_embedder.asked.clear()

        await turns.project("B").add("black coffee")

        assert turn_embedder.asked == ["user: black coffee"]

    async def test_a_turn_that_a_call_replaces_is_not_the_turn_before(
        self, turns: Memories, turn_embedder: TurnEmbedder
    ) -> None:
        await turns.add("green tea")
        turn_embedder.asked.clear()

        await turns.add("black coffee", existing="replace")

        assert turn_embedder.asked == ["user: black coffee"]

    async def test_an_erased_turn_is_not_the_turn_before(self, turns: Memories, turn_embedder: TurnEmbedder) -> None:
        [_first, last] = await turns.add("good morning", "green tea")
        await turns.delete(last)
        turn_embedder.asked.clear()

        await turns.add("black coffee")

        assert turn_embedder.asked == ["user: good morning\nuser: black coffee"]

    async def test_a_single_entry_is_embedded_bare(self, turns: Memories, turn_embedder: TurnEmbedder) -> None:
        await turns.add_entry("green tea")
        await turns.add_entry(MemoryEntry("black coffee", author="Ana"))

        assert turn_embedder.asked == ["green tea", "black coffee"]

    @pytest.mark.parametrize("mode", ["vector", "hybrid"])
    async def test_a_question_is_embedded_bare(self, turns: Memories, turn_embedder: TurnEmbedder, mode: Any) -> None:
        await turns.add("green tea")
        turn_embedder.asked.clear()

        await turns.search("who has tea", mode=mode)

        assert turn_embedder.asked == ["who has tea"]

    async def test_the_same_words_after_another_turn_have_a_vector_of_their_own(
        self, turns: Memories, turn_embedder: TurnEmbedder
    ) -> None:
        turn_embedder.answers["user: loud music\nuser: yes"] = turn_embedder.answers["query"] = [
            1.0
        ] * turn_embedder.dimensions
        await turns.add(MemoryEntry("yes", id="alone"), "loud music", MemoryEntry("yes", id="after music"))

        response = await turns.search("query", mode="vector")

        assert response[0].id == "after music"
        assert response[0].score == pytest.approx(1, abs=0.01)

    async def test_a_provider_that_does_not_ask_for_turns_is_given_bare_texts(
        self, make_service: MakeService, embedded: Memories
    ) -> None:
        plain = ToyEmbedder(model=f"toy-{uuid.uuid4().hex}")
        async with make_service(embedder=plain) as service:
            await Memories(service, embedded.can, embedded.app_name).add("green tea", "black coffee")

        assert sorted(plain.asked) == ["black coffee", "green tea"]
