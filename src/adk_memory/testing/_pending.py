"""Pending vectors: what entries lack is made later, as it would have been made at first."""

from __future__ import annotations

import uuid
from typing import Any, Final

import pytest

from adk_memory import EmbeddingError, MemoryEntry, OperationNotSupportedError, ValidationError
from adk_memory.embedders import GivenVectors
from adk_memory.testing._base import Capabilities, MakeService, Memories
from adk_memory.testing._clocked import HOUR, Clock, ClockedContract
from adk_memory.testing._deferring import DeferringContract, FailingEmbedder
from adk_memory.testing._providers import InterruptedEmbedder

TALK: Final = [
    MemoryEntry("what will you have", author="Ben"),
    MemoryEntry("green tea", author="Ana"),
    MemoryEntry("!!!", author="Ana"),
    MemoryEntry("a good choice"),
]


class TurnEmbedder(InterruptedEmbedder):
    """Asks for the entries of a session together with their author and the turn before."""

    embeds_turns = True


class FailingTurnEmbedder(FailingEmbedder):
    """Asks for the same, and fails while it is told to."""

    embeds_turns = True


class PendingContract(DeferringContract, ClockedContract):
    async def test_a_turn_is_embedded_later_as_it_would_have_been_at_first(
        self, make_service: MakeService, capabilities: Capabilities, app_name: str
    ) -> None:
        first, later = (TurnEmbedder(model=f"toy-{uuid.uuid4().hex}") for _ in range(2))
        async with self._deferring(make_service, capabilities, first) as service:
            mine = Memories(service, capabilities, app_name)
            await mine.add(*TALK)
            await mine.add("and you", session="s2")
            await mine.add_entry(MemoryEntry("a single entry", author="Ana"))
        later.answers = dict.fromkeys(first.asked, OSError("down"))
        async with self._deferring(make_service, capabilities, later) as service:
            mine = Memories(service, capabilities, f"{app_name}-later")
            await mine.add(*TALK)
            await mine.add("and you", session="s2")
            await mine.add_entry(MemoryEntry("a single entry", author="Ana"))
            assert await mine.found("", vector=[1.0] * 64) == []
            later.answers.clear()
            later.asked.clear()
            await service.embed_pending()

            assert set(first.asked) <= set(later.asked)
            assert {"Ben: what will you have\nAna: green tea", "Ana: !!!\nuser: a good choice"} <= set(later.asked)
            assert (await mine.search("tea")).partial is False

    async def test_the_turn_before_is_never_one_that_has_expired(
        self, make_service: MakeService, capabilities: Capabilities, app_name: str, clock: Clock
    ) -> None:
        embedder = FailingTurnEmbedder(model=f"toy-{uuid.uuid4().hex}")
        async with self._deferring(make_service, capabilities, embedder) as service:
            mine = Memories(service, capabilities, app_name)
            embedder.down = True
            await mine.add("first", MemoryEntry("gone", expires_at=clock.now + HOUR), "last")
            await mine.add(MemoryEntry("also gone", expires_at=clock.now + HOUR), "alone", session="s2")
            await mine.add("one", MemoryEntry("two, gone", expires_at=clock.now + HOUR), session="s3")
            clock.pass_by()
            await mine.add("two", session="s3")
            await mine.add("three", session="s3")
            embedder.down = False
            await service.embed_pending()
            await mine.delete_user()

        assert {"user: first\nuser: last", "user: alone", "user: one\nuser: two", "user: two\nuser: three"} <= set(
            embedder.asked
        )

    async def test_what_has_expired_is_not_shown_to_the_embedder(
        self, make_service: MakeService, capabilities: Capabilities, app_name: str, clock: Clock
    ) -> None:
        embedder = FailingTurnEmbedder(model=f"toy-{uuid.uuid4().hex}")
        async with self._deferring(make_service, capabilities, embedder) as service:
            mine = Memories(service, capabilities, app_name)
            embedder.down = True
            await mine.add(MemoryEntry("gone", expires_at=clock.now + HOUR), session="s1")
            await mine.add("stays", session="s2")
            clock.pass_by()
            embedder.down = False
            embedder.asked.clear()
            await service.embed_pending()
            await mine.delete_user()

        assert "user: stays" in embedder.asked
        assert "user: gone" not in embedder.asked

    async def test_the_health_report_counts_nothing_that_has_expired_as_pending(
        self, deferring: Memories, failing: FailingEmbedder, clock: Clock
    ) -> None:
        failing.down = True
        await deferring.add(MemoryEntry("gone", expires_at=clock.now + HOUR), "stays")
        before = (await deferring.service.health_check()).pending
        clock.pass_by()

        assert before is not None
        assert (await deferring.service.health_check()).pending == before - 1

    async def test_a_text_that_the_embedder_refuses_does_not_keep_the_others_waiting(
        self, deferring: Memories, failing: FailingEmbedder
    ) -> None:
        notes = [f"note {number}" for number in range(20)]
        await deferring.add(*notes[:7], "poison", *notes[7:], "more poison")

        for _ in range(2):
            with pytest.raises(EmbeddingError, match="2 of the texts") as raised:
                await deferring.service.embed_pending()

        assert "note" not in str(raised.value)
        found = await deferring.found("note", mode="vector", limit=1_000)
        assert sorted(found) == sorted(notes)
        assert (await deferring.search("note")).partial is True
        assert len(await deferring.found("poison", mode="keyword")) == 2
        await deferring.delete_user()  # or the next test would come upon them

    async def test_an_embedder_that_fails_whatever_it_is_asked_is_not_asked_for_every_text(
        self, deferring: Memories, failing: FailingEmbedder
    ) -> None:
        failing.down = True
        await deferring.add(*(f"note {number}" for number in range(50)))
        before = failing.calls

        with pytest.raises(EmbeddingError):
            await deferring.service.embed_pending()

        assert failing.calls - before == 2

    async def test_an_entry_with_a_zero_vector_is_not_pending_any_more(
        self, deferring: Memories, failing: FailingEmbedder
    ) -> None:
        failing.answers["zero tea"] = [0.0] * 64
        failing.down = True
        await deferring.add("zero tea", "green tea")
        failing.down = False
        await deferring.service.embed_pending()
        failing.asked.clear()

        assert await deferring.service.embed_pending() == 0
        assert failing.asked == []
        assert await deferring.found("green tea", mode="vector") == ["green tea"]
        assert sorted(await deferring.found("tea", mode="keyword")) == ["green tea", "zero tea"]
        await deferring.add(MemoryEntry("zero tea", vector=[1.0] * 64))
        assert (await deferring.search("tea")).partial is False
        await deferring.add(MemoryEntry("zero tea", vector=[0.0] * 64))
        assert await deferring.service.embed_pending() == 1

    async def test_no_more_are_embedded_than_the_limit(self, deferring: Memories, failing: FailingEmbedder) -> None:
        failing.down = True
        pears = [f"pear {number}" for number in range(10)]
        await deferring.add(*pears)
        failing.down = False

        assert await deferring.service.embed_pending(limit=0) == 0
        assert [await deferring.service.embed_pending(limit=3) for _ in range(3)] == [3, 3, 3]
        await deferring.service.embed_pending()

        assert sorted(text for text in failing.asked if text in pears) == pears
        assert (await deferring.search("pear")).partial is False

    @pytest.mark.parametrize("limit", [-1, 1.5, "3", True])
    async def test_a_limit_is_a_number(self, deferring: Memories, limit: Any) -> None:
        with pytest.raises(ValidationError, match="limit"):
            await deferring.service.embed_pending(limit=limit)

    async def test_progress_goes_up_to_its_end(self, deferring: Memories, failing: FailingEmbedder) -> None:
        failing.down = True
        for session in range(30):
            await deferring.add(*(f"note {number}" for number in range(10)), session=f"s{session}")
        failing.down = False
        steps: list[tuple[int, int]] = []

        embedded = await deferring.service.embed_pending(on_progress=lambda *step: steps.append(step))

        assert embedded >= 300
        assert steps == sorted(steps)
        assert len(steps) > 1
        assert steps[-1][0] == embedded

    async def test_an_entry_that_changes_meanwhile_has_the_vector_of_its_text(
        self, deferring: Memories, failing: FailingEmbedder
    ) -> None:
        failing.down = True
        await deferring.add(MemoryEntry("green tea", id="mine"), MemoryEntry("black tea", id="gone"), "milk")
        failing.down = False

        async def interruption() -> None:
            await deferring.add(MemoryEntry("loud music", id="mine"))
            await deferring.delete("gone")

        failing.interruption = interruption
        await deferring.service.embed_pending()

        scores = await deferring.scores("loud music", mode="vector")
        assert set(scores) == {"loud music", "milk"}
        assert scores["loud music"] >= 0.99
        assert (await deferring.search("milk")).partial is False

    async def test_an_entry_that_is_reworded_and_put_off_meanwhile_waits_for_the_vector_of_its_text(
        self, deferring: Memories, failing: FailingEmbedder
    ) -> None:
        failing.down = True
        await deferring.add(MemoryEntry("green tea", id="mine"), "milk")
        failing.down = False

        async def interruption() -> None:
            failing.down = True
            await deferring.add(MemoryEntry("loud music", id="mine"))
            failing.down = False

        failing.interruption = interruption
        await deferring.service.embed_pending()
        await deferring.service.embed_pending()

        scores = await deferring.scores("loud music", mode="vector")
        assert scores["loud music"] >= 0.99
        assert (await deferring.search("milk")).partial is False

    async def test_others_read_and_write_meanwhile(self, deferring: Memories, failing: FailingEmbedder) -> None:
        failing.down = True
        await deferring.add("green tea")
        failing.down = False

        async def interruption() -> None:
            await deferring.add("black tea", session="s2")
            assert len(await deferring.found("tea", mode="keyword")) == 2

        failing.interruption = interruption
        await deferring.service.embed_pending()

        assert (await deferring.search("tea")).partial is False

    async def test_the_health_report_says_how_many_are_pending(
        self, deferring: Memories, failing: FailingEmbedder, memory: Memories
    ) -> None:
        deferring.can.need("health_check")
        assert (await memory.service.health_check()).pending is None
        before = (await deferring.service.health_check()).pending
        failing.down = True
        await deferring.add("green tea", "!!!", MemoryEntry("black tea", vector=[1.0] * 64), "milk")
        failing.down = False
        after = (await deferring.service.health_check()).pending
        await deferring.service.embed_pending()

        assert before is not None
        assert after == before + 2
        assert (await deferring.service.health_check()).pending == 0

    # Where it can't be done

    async def test_without_an_embedder_that_embeds_there_is_nothing_to_be_made(
        self, make_service: MakeService, deferring: Memories, memory: Memories
    ) -> None:
        with pytest.raises(OperationNotSupportedError, match="embedder"):
            await memory.service.embed_pending()
        async with make_service(embedder=GivenVectors("given", 64)) as service:
            with pytest.raises(OperationNotSupportedError, match="embed"):
                await service.embed_pending()

    async def test_embed_pending_is_refused_where_the_backend_lacks_it(self, embedded: Memories) -> None:
        await embedded.add("green tea")
        if "embed_pending" in self.optional_operations:
            assert await embedded.service.embed_pending(limit=1) in (0, 1)  # of what other tests have left
        else:
            with pytest.raises(OperationNotSupportedError):
                await embedded.service.embed_pending()
