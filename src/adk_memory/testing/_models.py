"""Models: a store has vectors of several, which are never compared; it moves to another one while it is in use."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from adk_memory import ConfigurationError, ValidationError
from adk_memory.testing._base import ContractBase, MakeService, Memories
from adk_memory.testing._embedder import ToyEmbedder


class ModelsContract(ContractBase):
    async def test_a_store_moves_to_another_model_and_the_old_one_can_be_dropped(
        self, make_service: MakeService, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        embedded.can.need("embed_pending")
        embedded.can.need("drop_model")
        if not self.durable:
            pytest.skip("this backend forgets everything at its end")
        await embedded.add("green tea", "black coffee")
        for dimensions in (embedder.dimensions, embedder.dimensions + 1):
            other = ToyEmbedder(dimensions, model=f"toy-{uuid.uuid4().hex}")
            other.answers = {"green tea": [1.0] * dimensions, "loud music": [1.0] * dimensions}
            async with make_service(embedder=other) as service:
                moved = Memories(service, embedded.can, embedded.app_name)
                before = await moved.search("tea")
                await service.embed_pending()
                after = await moved.search("tea")

                assert (len(before), before.mode, before.partial) == (1, "hybrid", True)
                assert (len(after), after.mode, after.partial) == (2, "hybrid", False)
                assert (await moved.scores("loud music", mode="vector"))["green tea"] >= 0.99
                assert (await embedded.scores("green tea", mode="vector"))["green tea"] >= 0.99
                assert (await embedded.scores("loud music", mode="vector"))["green tea"] < 0.9
                assert (await embedded.search("tea")).partial is False
        dropped: list[int] = []
        assert await embedded.service.drop_model(embedder.model, on_progress=dropped.append) >= 2

        assert dropped[-1] >= 2
        assert await embedded.found("green tea", mode="vector") == []
        assert (await embedded.search("tea")).partial is True
        async with make_service(embedder=other) as service:
            moved = Memories(service, embedded.can, embedded.app_name)
            assert (await moved.search("tea")).partial is False
        await embedded.service.embed_pending()
        assert (await embedded.search("tea")).partial is False

    async def test_the_vectors_of_a_model_can_be_dropped(self, embedded: Memories, embedder: ToyEmbedder) -> None:
        embedded.can.need("drop_model")
        await embedded.add("green tea", "black coffee", "!!!")

        assert await embedded.service.drop_model(embedder.model) == 2

        assert await embedded.found("green tea", mode="vector") == []
        assert await embedded.found("green tea", mode="keyword") == ["green tea"]
        assert await embedded.service.drop_model(embedder.model) == 0

    async def test_a_model_that_never_was_is_not_dropped(self, embedded: Memories) -> None:
        embedded.can.need("drop_model")
        with pytest.raises(ConfigurationError, match="no model 'never'"):
            await embedded.service.drop_model("never")

    async def test_a_model_with_which_nothing_was_stored_is_not_dropped(
        self, make_service: MakeService, embedded: Memories
    ) -> None:
        embedded.can.need("drop_model")
        fresh = ToyEmbedder(model=f"toy-{uuid.uuid4().hex}")
        async with make_service(embedder=fresh) as service:
            with pytest.raises(ConfigurationError, match="no model"):
                await service.drop_model(fresh.model)

    @pytest.mark.parametrize("bad", ["", "m" * 257, None, 5, ["toy"]], ids=repr)
    async def test_what_names_no_model_is_refused(self, embedded: Memories, bad: Any) -> None:
        embedded.can.need("drop_model")
        with pytest.raises(ValidationError, match="model"):
            await embedded.service.drop_model(bad)
