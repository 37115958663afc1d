"""Writing: a session is added whole or not at all, and again without harm; a single entry is always added."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from adk_memory import MemoryEntry, ValidationError
from adk_memory.testing._base import ContractBase, Memories, texts

BAD: Final = [
    pytest.param("green tea", id="text"),
    pytest.param({"content": "green tea"}, id="mapping"),
    pytest.param(None, id="None"),
    pytest.param(7, id="int"),
]
NO_LIST: Final = [
    pytest.param("green tea", id="text"),
    pytest.param(MemoryEntry("green tea"), id="one entry"),
    pytest.param(None, id="None"),
    pytest.param(7, id="int"),
]


class WritingContract(ContractBase):
    async def test_ids_are_returned_in_the_order_given(self, memory: Memories) -> None:
        ids = await memory.add("green tea", MemoryEntry("black tea", id="mine"), "white tea")

        found = {entry.text: entry.id for entry in await memory.search("tea")}
        assert ids == [found["green tea"], "mine", found["white tea"]]

    async def test_a_session_without_entries_adds_nothing(self, memory: Memories) -> None:
        assert await memory.add() == []

    @pytest.mark.parametrize("bad", BAD)
    @pytest.mark.parametrize("existing", ["update", "keep", "replace"])
    async def test_one_bad_entry_among_good_ones_and_nothing_is_written(
        self, memory: Memories, bad: Any, existing: Any
    ) -> None:
        await memory.add("old tea")
        entries = [MemoryEntry("green tea"), bad, MemoryEntry("black tea")]

        with pytest.raises((ValidationError, TypeError)):
            await memory.service.add_session(memory.app_name, "ana", "s1", entries, existing=existing)

        assert await memory.found("tea") == ["old tea"]

    @pytest.mark.parametrize("entries", NO_LIST)
    async def test_entries_that_are_no_list_are_refused(self, memory: Memories, entries: Any) -> None:
        with pytest.raises((ValidationError, TypeError)):
            await memory.service.add_session(memory.app_name, "ana", "s1", entries)

        assert await memory.found("tea") == []

    @pytest.mark.parametrize("existing", ["overwrite", "", None])
    async def test_an_unknown_way_with_existing_entries_is_refused(self, memory: Memories, existing: Any) -> None:
        with pytest.raises((ValidationError, TypeError)):
            await memory.add("green tea", existing=existing)

        assert await memory.found("tea") == []

    async def test_a_session_of_a_thousand_entries_is_added_in_one_call(self, memory: Memories) -> None:
        ids = await memory.add(*(f"tea number {number}" for number in range(1_000)))

        assert len(set(ids)) == 1_000
        assert len(await memory.search("tea", limit=1_000)) == 1_000

    async def test_entries_of_one_call_arrive_in_its_order(self, memory: Memories) -> None:
        day = "2024-05-01T12:00:00"
        numbers = [f"tea {number}" for number in range(100, 140)]

        await memory.add(*(MemoryEntry(number, timestamp=day) for number in numbers))

        assert texts(await memory.recent()) == numbers[::-1]

    async def test_concurrent_calls_with_different_sessions_are_all_kept(self, memory: Memories) -> None:
        await asyncio.gather(*(memory.add(f"tea {number}", session=f"s{number}") for number in range(10)))

        assert len(await memory.search("tea", limit=20)) == 10

    async def test_concurrent_calls_that_grow_one_session_leave_one_copy_of_each(self, memory: Memories) -> None:
        lines = [f"tea {number}" for number in range(10)]

        await asyncio.gather(*(memory.add(*lines[: count + 1]) for count in range(10)))

        assert sorted(await memory.found("tea", limit=20)) == lines

    async def test_a_single_entry_has_no_session(self, memory: Memories) -> None:
        entry_id = await memory.add_entry("green tea")

        [found] = await memory.search("tea")
        assert (found.id, found.session_id) == (entry_id, None)

    async def test_a_single_entry_without_an_id_is_always_added(self, memory: Memories) -> None:
        first = await memory.add_entry("green tea")
        second = await memory.add_entry("green tea")

        assert first != second
        assert await memory.found("tea") == ["green tea", "green tea"]

    async def test_concurrent_single_entries_without_an_id_are_all_added(self, memory: Memories) -> None:
        ids = await asyncio.gather(*(memory.add_entry("green tea") for _ in range(10)))

        assert len(set(ids)) == 10
        assert len(await memory.search("tea", limit=20)) == 10

    async def test_a_single_entry_with_an_id_is_known_by_it(self, memory: Memories) -> None:
        await memory.add_entry(MemoryEntry("green tea", id="drink"))

        assert await memory.add_entry(MemoryEntry("black tea", id="drink")) == "drink"

        assert await memory.found("tea") == ["black tea"]

    async def test_a_single_entry_that_is_known_is_left_as_it_is_on_request(self, memory: Memories) -> None:
        await memory.add_entry(MemoryEntry("green tea", id="drink"))

        await memory.add_entry(MemoryEntry("black tea", id="drink"), existing="keep")

        assert await memory.found("tea") == ["green tea"]

    async def test_concurrent_single_entries_with_one_id_leave_one_copy(self, memory: Memories) -> None:
        await asyncio.gather(*(memory.add_entry(MemoryEntry("green tea", id="drink")) for _ in range(10)))

        assert await memory.found("tea") == ["green tea"]

    async def test_a_single_entry_can_not_replace_others(self, memory: Memories) -> None:
        replace: Any = "replace"

        with pytest.raises((ValidationError, TypeError)):
            await memory.add_entry("green tea", existing=replace)

        assert await memory.found("tea") == []

    @pytest.mark.parametrize("bad", BAD)
    async def test_a_bad_single_entry_is_refused(self, memory: Memories, bad: Any) -> None:
        memory.can.need("add_entry")

        with pytest.raises((ValidationError, TypeError)):
            await memory.service.add_entry(memory.app_name, "ana", bad)

        assert await memory.found("tea") == []

    async def test_a_single_entry_and_one_of_a_session_with_one_id_are_two(self, memory: Memories) -> None:
        await memory.add_entry(MemoryEntry("green tea", id="drink"))
        await memory.add(MemoryEntry("black tea", id="drink"))

        assert sorted(await memory.found("tea")) == ["black tea", "green tea"]
