"""Expiry: from its instant on an entry is absent, whatever is asked, and the purge changes no answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from adk_memory import (
    MemoryEntry,
    Metadata,
    OperationNotSupportedError,
    SearchRequest,
    SessionEntries,
    ValidationError,
)
from adk_memory.testing._base import Capabilities, MakeService, Memories, texts
from adk_memory.testing._clocked import HOUR, TICK, Clock, ClockedContract
from adk_memory.testing._embedder import ToyEmbedder
from adk_memory.types import Mode


class ExpiryContract(ClockedContract):
    @pytest_asyncio.fixture
    async def forgetful(
        self, clock: Clock, make_service: MakeService, capabilities: Capabilities, app_name: str
    ) -> AsyncIterator[Memories]:
        """Yield the memories of a new app, in a service whose entries live for an hour."""
        async with make_service(default_ttl=HOUR) as service:
            yield Memories(service, capabilities, app_name)

    async def test_whether_entries_can_expire_is_said(self, memory: Memories) -> None:
        assert memory.service.supports_expiry == self.expiry

    async def test_an_entry_that_would_expire_is_taken_or_refused_as_the_backend_says(self, memory: Memories) -> None:
        entry = MemoryEntry("tea", expires_at="2999-01-01")
        if self.expiry:
            await memory.add(entry)
        else:
            with pytest.raises(OperationNotSupportedError):
                await memory.add(entry)
        assert len(await memory.search("tea")) == self.expiry
        assert await memory.service.purge_expired() == 0

    async def test_the_end_of_an_entry_is_read_back(self, clock: Clock, memory: Memories) -> None:
        end = datetime(2999, 12, 31, 23, 59, 59, 999_999, UTC)
        await memory.add(MemoryEntry("tea", expires_at=end), "coffee")

        found = [*await memory.search("tea"), *await memory.search("coffee"), *await memory.recent()]

        assert [memory.expires_at for memory in found] == [end, None, None, end]

    async def test_a_user_is_listed_until_the_end_of_the_last_entry(self, clock: Clock, memory: Memories) -> None:
        memory.can.need("list_users")
        await memory.add(MemoryEntry("green tea", expires_at=clock.now + HOUR))

        clock.pass_by(HOUR - TICK)
        assert await memory.service.list_users(memory.app_name) == ["ana"]
        clock.pass_by(TICK)
        assert await memory.service.list_users(memory.app_name) == []

    @pytest.mark.parametrize("mode", [None, "keyword", "vector", "hybrid"])
    async def test_a_search_finds_an_entry_until_its_end(
        self, clock: Clock, embedded: Memories, mode: Mode | None
    ) -> None:
        await embedded.add(MemoryEntry("green tea", expires_at=clock.now + HOUR), "black tea")

        clock.pass_by(HOUR - TICK)
        assert sorted(await embedded.found("tea", mode=mode)) == ["black tea", "green tea"]
        clock.pass_by(TICK)
        assert await embedded.found("tea", mode=mode) == ["black tea"]

    @pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
    async def test_an_expired_entry_takes_no_place_of_another(
        self, clock: Clock, embedded: Memories, mode: Mode
    ) -> None:
        await embedded.add(*(MemoryEntry("green tea", expires_at=clock.now + HOUR, id=f"e{n}") for n in range(300)))
        await embedded.add("green tea with milk")
        clock.pass_by()

        assert await embedded.found("green tea", limit=1, mode=mode) == ["green tea with milk"]

    async def test_a_list_its_pages_and_their_total_end_with_it(self, clock: Clock, memory: Memories) -> None:
        await memory.add(*(MemoryEntry(f"{n}", expires_at=clock.now + HOUR if n % 2 else None) for n in range(10)))
        page = await memory.page(3, with_total=True)
        assert page.total == 10
        clock.pass_by()

        first = await memory.page(3, with_total=True)
        rest = await memory.page(9, after=first.next, with_total=True)
        second = await memory.page(9, after=page.next)

        assert texts(await memory.recent()) == texts([*first, *rest]) == ["8", "6", "4", "2", "0"]
        assert (first.total, rest.total) == (5, 5)
        assert texts(second.memories) == ["6", "4", "2", "0"]

    async def test_get_returns_an_entry_until_its_end(self, clock: Clock, memory: Memories) -> None:
        await memory.add(MemoryEntry("tea", id="e", expires_at=clock.now + HOUR))

        clock.pass_by(HOUR - TICK)
        assert await memory.get("e") is not None
        clock.pass_by(TICK)
        assert await memory.get("e") is None

    async def test_get_returns_the_older_entry_of_an_id_where_the_newer_has_expired(
        self, clock: Clock, memory: Memories
    ) -> None:
        await memory.add(MemoryEntry("older", id="e", timestamp="2024-01-01"), session="s1")
        await memory.add(MemoryEntry("newer", id="e", timestamp="2025-01-01", expires_at=clock.now), session="s2")

        found = await memory.get("e")

        assert found is not None
        assert found.text == "older"

    async def test_a_filter_does_not_bring_it_back(self, clock: Clock, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", metadata={"n": 1}, expires_at=clock.now))
        await memory.add(MemoryEntry("black tea", metadata={"n": 1}))
        passing = Metadata("n", "eq", 1)

        assert await memory.found("tea", filter=passing) == ["black tea"]
        assert texts(await memory.recent(filter=passing)) == ["black tea"]
        assert (await memory.page(filter=passing, with_total=True)).total == 1

    async def test_scores_are_as_if_it_had_never_been_there(self, clock: Clock, memory: Memories) -> None:
        talk = ["we drink green tea at four", "yes", "no", "milk for the tea", "tea"]
        other = memory.user("ben")
        expiring = [MemoryEntry(text, expires_at=clock.now + HOUR) for text in ("green tea green", "green", "tea milk")]
        await memory.add(*talk)
        await memory.add_entry("green tea")
        await other.add(*talk)
        await other.add(*expiring, session="s2")
        await other.add_entry("green tea")
        await other.add_entry(MemoryEntry("milk milk milk", expires_at=clock.now + HOUR))
        assert await memory.scores("green milk tea") != await other.scores("green milk tea")
        clock.pass_by()

        assert await other.scores("green milk tea") == pytest.approx(await memory.scores("green milk tea"), abs=1e-6)

    async def test_it_lends_its_neighbours_nothing(self, clock: Clock, memory: Memories) -> None:
        other = memory.user("ben")
        for those, end in ((memory, clock.now), (other, None)):
            await those.add("coffee", MemoryEntry("green tea green tea", expires_at=end), "a little tea", "cake")
            await those.add("a little tea", session="s2")

        alone, beside = await memory.search("green tea"), await other.search("green tea")

        scores = [found.score for found in alone if found.text == "a little tea"]
        assert scores[0] == pytest.approx(scores[1], abs=1e-6)
        scores = [found.score for found in beside if found.text == "a little tea"]
        assert scores[0] != pytest.approx(scores[1], abs=1e-3)

    async def test_very_many_matches_are_counted_without_it(self, clock: Clock, memory: Memories) -> None:
        other = memory.user("ben")
        living = [MemoryEntry(f"tea number{n % 7} {'cup ' * (n % 5)}", id=f"l{n}") for n in range(40)]
        gone = [MemoryEntry("tea cup number3", id=f"x{n}", expires_at=clock.now) for n in range(1_200)]
        for those in (memory, other):
            await those.add(*living)
        await other.add(*gone, session="s2")

        scores = [
            [(found.id, found.score) for found in await those.search("tea cup number3", limit=50)]
            for those in (memory, other)
        ]

        assert len(scores[0]) == 40
        assert [entry_id for entry_id, _ in scores[1]] == [entry_id for entry_id, _ in scores[0]]
        assert [score for _, score in scores[1]] == pytest.approx([score for _, score in scores[0]], abs=1e-6)

    async def test_very_many_living_matches_are_pooled_without_it(self, clock: Clock, memory: Memories) -> None:
        living = [MemoryEntry(f"tea number{n}", id=f"l{n}") for n in range(1_100)]
        gone = [MemoryEntry("tea tea number7 number8", id=f"x{n}", expires_at=clock.now) for n in range(1_100)]
        await memory.add(*living, session="s1")
        before = await memory.search("tea number7 number8")
        await memory.add(*gone, session="s2")

        after = await memory.search("tea number7 number8")

        assert {found.text for found in after} == {found.text for found in before}
        assert texts(after)[:2] == texts(before)[:2]

    async def test_similarity_is_not_partial_for_what_has_expired(
        self, clock: Clock, embedded: Memories, make_service: MakeService
    ) -> None:
        if not self.durable:
            pytest.skip("another service would have another store")
        async with make_service() as plain:
            entry = MemoryEntry("green tea", expires_at=clock.now + HOUR)
            await plain.add_session(embedded.app_name, "ana", "s1", [entry])
        await embedded.add("black tea", session="s2")
        assert (await embedded.search("tea")).partial
        clock.pass_by()

        assert not (await embedded.search("tea")).partial

    async def test_a_delete_by_words_does_not_see_it(self, clock: Clock, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", expires_at=clock.now), "black tea")

        assert await memory.delete_entries("tea", dry_run=True) == 1
        assert await memory.delete_entries("tea") == 1

    async def test_the_other_deletes_erase_it_and_count_it(self, clock: Clock, memory: Memories) -> None:
        await clock.purge_alone(memory)
        for session in ("s1", "s2", "s3"):
            await memory.add(MemoryEntry("tea", id=session, expires_at=clock.now), session=session)

        assert await memory.delete("s1") == 1
        assert await memory.delete_session("s2") == 1
        assert await memory.delete_user() == 1
        assert await memory.service.purge_expired() == 0

    @pytest.mark.parametrize("existing", ["update", "keep"])
    async def test_adding_it_again_adds_a_new_entry(self, clock: Clock, memory: Memories, existing: Any) -> None:
        await clock.purge_alone(memory)
        await memory.add(MemoryEntry("old", id="e", timestamp="2024-01-01", expires_at=clock.now + HOUR), "beside")
        await memory.add_entry(MemoryEntry("old", id="f", expires_at=clock.now + HOUR))
        clock.pass_by()

        await memory.add(MemoryEntry("new", id="e"), existing=existing)
        await memory.add_entry(MemoryEntry("new", id="f", expires_at=clock.now + HOUR), existing=existing)

        found = [await memory.get("e"), await memory.get("f")]
        assert [(each.text, each.expires_at) for each in found if each] == [("new", None), ("new", clock.now + HOUR)]
        assert found[0] is not None
        assert found[0].timestamp.year > 2024, "the time of the old one"
        assert sorted(await memory.found("new old")) == ["new", "new"]
        assert await memory.service.purge_expired() == 0

    async def test_adding_it_again_among_many_adds_a_new_entry(self, clock: Clock, memory: Memories) -> None:
        entries = (MemoryEntry("old", id="e", expires_at=clock.now), MemoryEntry("kept", id="k"))
        for session in ("s1", None):
            await memory.service.add_many([SessionEntries(memory.app_name, "ana", session, entries)])

        new = (MemoryEntry("new", id="e"), MemoryEntry("kept", id="k"))
        items = [SessionEntries(memory.app_name, "ana", session, new) for session in ("s1", None)]
        assert await memory.service.add_many(items, existing="keep") == 4

        assert sorted(await memory.everything()) == ["kept", "kept", "new", "new"]

    @pytest.mark.parametrize("turns", [True, False])
    async def test_what_comes_after_it_is_embedded_without_it(
        self, clock: Clock, embedded: Memories, embedder: ToyEmbedder, turns: bool
    ) -> None:
        await embedded.add("first", MemoryEntry("secret", expires_at=clock.now + HOUR))
        clock.pass_by()
        embedder.asked.clear()

        if turns:
            await embedded.add("next")
        else:
            entries = [MemoryEntry("next")]
            await embedded.service.add_many(
                [SessionEntries(embedded.app_name, "ana", session, entries) for session in ("s1", "s2")]
            )

        assert embedder.asked
        assert "secret" not in "".join(embedder.asked)

    async def test_what_comes_after_it_stands_where_it_would_after_a_purge(
        self, clock: Clock, memory: Memories
    ) -> None:
        await memory.add("one", MemoryEntry("two", expires_at=clock.now))

        await memory.add("three")

        assert {found.text: found.position for found in await memory.recent()} == {"one": 1, "three": 2}

    async def test_an_update_keeps_the_end_that_it_does_not_name(self, clock: Clock, memory: Memories) -> None:
        end = clock.now + HOUR
        await memory.add(MemoryEntry("tea", id="e", expires_at=end))

        ends = []
        for entry in (
            MemoryEntry("more tea", id="e"),
            MemoryEntry("tea", id="e", expires_at=end + HOUR),
            MemoryEntry("tea", id="e", expires_at=None),
        ):
            await memory.add(entry)
            found = await memory.get("e")
            ends.append(found and found.expires_at)

        assert ends == [end, end + HOUR, None]

    async def test_a_default_is_for_new_entries_that_name_no_end(self, clock: Clock, forgetful: Memories) -> None:
        end, later = clock.now + HOUR, clock.now + 3 * HOUR
        await forgetful.add(
            MemoryEntry("default", id="d"),
            MemoryEntry("never", id="n", expires_at=None),
            MemoryEntry("later", id="l", expires_at=later),
        )
        await forgetful.add_entry(MemoryEntry("single", id="s"))
        await forgetful.service.add_many(
            [SessionEntries(forgetful.app_name, "ana", session, [MemoryEntry("of many")]) for session in (None, "s9")]
        )
        clock.pass_by(HOUR / 2)
        await forgetful.add(MemoryEntry("default again", id="d"))

        ends = {found.text: found.expires_at for found in await forgetful.recent()}
        assert ends == {"default again": end, "never": None, "later": later, "single": end, "of many": end}
        clock.pass_by(HOUR / 2)
        assert sorted(await forgetful.everything()) == ["later", "never"]

    @pytest.mark.parametrize("default_ttl", [timedelta(0), -HOUR, timedelta.max, 3_600, "1h"])
    async def test_a_default_that_is_no_time_to_live_is_refused(
        self, clock: Clock, make_service: MakeService, default_ttl: Any
    ) -> None:
        with pytest.raises(ValidationError, match="default_ttl"):
            make_service(default_ttl=default_ttl)

    @pytest.mark.parametrize("expires_at", ["soon", True, "10000-01-01", [], timedelta(hours=1)])
    async def test_what_is_no_instant_is_refused(self, expires_at: Any) -> None:
        with pytest.raises(ValidationError, match="expires_at"):
            MemoryEntry("tea", expires_at=expires_at)

    async def test_a_request_is_answered_by_one_instant(self, clock: Clock, memory: Memories) -> None:
        await memory.add(MemoryEntry("tea", expires_at=clock.now + TICK))

        response = await memory.service.search(SearchRequest("tea", memory.app_name, "ana"))

        assert texts(response) == ["tea"]
