"""Identity: what makes two entries one, and what adding does with one that is there already."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from adk_memory import Content, MemoryEntry
from adk_memory.testing._base import ContractBase, Memories

NOON: Final = datetime(2024, 5, 1, 12, tzinfo=UTC)
ONE: Final = datetime(2024, 5, 1, 13, tzinfo=UTC)
WAYS: Final = ["update", "keep", "replace"]
SCOPES: Final = [None, "A"]
DIFFERENT: Final = [
    pytest.param(MemoryEntry("green teas"), id="content"),
    pytest.param(MemoryEntry(Content("model", ["green tea"])), id="role"),
    pytest.param(MemoryEntry("green tea", author="model"), id="author"),
    pytest.param(MemoryEntry("green tea", timestamp=NOON), id="given timestamp"),
    pytest.param(MemoryEntry("green tea", id="mine"), id="id of the caller"),
]


class IdentityContract(ContractBase):
    @pytest.mark.parametrize("project", SCOPES)
    @pytest.mark.parametrize("existing", WAYS)
    async def test_adding_a_session_again_leaves_one_copy(
        self, memory: Memories, project: str | None, existing: Any
    ) -> None:
        mine = memory.project(project)
        lines = [
            MemoryEntry("green tea"),
            MemoryEntry("black tea", id="b"),
            MemoryEntry("white tea", timestamp=NOON),
        ]
        first = await mine.add(*lines)

        again = await mine.add(*lines, existing=existing)

        assert again == first
        assert sorted(await mine.found("tea")) == ["black tea", "green tea", "white tea"]

    @pytest.mark.parametrize("project", SCOPES)
    @pytest.mark.parametrize("existing", WAYS)
    async def test_ten_concurrent_calls_leave_one_copy(
        self, memory: Memories, project: str | None, existing: Any
    ) -> None:
        mine = memory.project(project)
        lines = ["green tea", "green tea", "black tea"]

        ids = await asyncio.gather(*(mine.add(*lines, existing=existing) for _ in range(10)))

        assert ids == [ids[0]] * 10
        assert sorted(await mine.found("tea", limit=40)) == ["black tea", "green tea", "green tea"]

    async def test_a_grown_session_appends_what_is_new(self, memory: Memories) -> None:
        lines = [f"tea {number}" for number in range(5)]
        for count in (2, 3, 5):
            await memory.add(*lines[:count])

        assert sorted(await memory.found("tea")) == lines

    async def test_identical_twins_of_one_call_are_all_kept(self, memory: Memories) -> None:
        ids = await memory.add("tea", "tea", "tea")

        assert len(set(ids)) == 3
        assert await memory.found("tea") == ["tea", "tea", "tea"]

    async def test_twins_are_known_by_their_number_when_added_again(self, memory: Memories) -> None:
        first = await memory.add("tea", "tea")

        again = await memory.add("tea", "tea", "tea")

        assert again[:2] == first
        assert len(await memory.search("tea")) == 3

    @pytest.mark.parametrize("other", DIFFERENT)
    async def test_entries_that_differ_are_two(self, memory: Memories, other: MemoryEntry) -> None:
        [first] = await memory.add("green tea")
        [second] = await memory.add(other)

        assert first != second
        assert len(await memory.search("tea")) == 2

    async def test_metadata_is_no_part_of_what_an_entry_is_known_by(self, memory: Memories) -> None:
        first = await memory.add(MemoryEntry("green tea", metadata={"cups": 1}))
        again = await memory.add(MemoryEntry("green tea", metadata={"cups": 2}))

        [found] = await memory.search("tea")
        assert (again, found.metadata) == (first, {"cups": 2})

    async def test_one_entry_in_two_sessions_is_two(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", id="mine"), session="s1")
        await memory.add(MemoryEntry("green tea", id="mine"), session="s2")

        assert {found.session_id for found in await memory.search("tea")} == {"s1", "s2"}

    async def test_one_entry_in_two_projects_is_two(self, memory: Memories) -> None:
        for project in (None, "A"):
            await memory.project(project).add(MemoryEntry("green tea", id="mine"))

        found = await memory.project("A").search("tea")

        assert {(entry.id, entry.project_id) for entry in found} == {("mine", None), ("mine", "A")}

    @pytest.mark.parametrize("entry", [MemoryEntry("green tea", id="mine"), MemoryEntry("green tea")])
    async def test_one_entry_of_two_users_is_two(self, memory: Memories, entry: MemoryEntry) -> None:
        for user in ("ana", "ben"):
            await memory.user(user).add(entry)

        assert [await memory.user(user).found("tea") for user in ("ana", "ben")] == [["green tea"]] * 2

    # What happens to an entry that is there already

    async def test_update_rewrites_what_differs(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", "user", NOON, "mine", {"cups": 1}))
        changed = MemoryEntry(Content("model", ["black coffee"]), "model", ONE, "mine", {"cups": 2})

        await memory.add(changed)

        [found] = await memory.search("coffee")
        assert (found.content, found.author, found.timestamp, found.metadata) == (
            changed.content, "model", ONE, {"cups": 2},
        )  # fmt: skip

    async def test_words_that_an_update_removed_no_longer_match(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", id="mine"))

        await memory.add(MemoryEntry("black coffee", id="mine"))

        assert (await memory.found("tea"), await memory.found("coffee")) == ([], ["black coffee"])

    async def test_a_timestamp_that_was_not_given_is_left_alone_by_an_update(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", timestamp=NOON, id="mine"))

        await memory.add(MemoryEntry("black tea", id="mine"))

        [found] = await memory.search("tea")
        assert (found.text, found.timestamp) == ("black tea", NOON)

    async def test_update_erases_nothing(self, memory: Memories) -> None:
        await memory.add("green tea")

        await memory.add("black tea", existing="update")

        assert sorted(await memory.found("tea")) == ["black tea", "green tea"]

    async def test_keep_leaves_the_first_as_it_is(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", "user", NOON, "mine", {"cups": 1}))

        await memory.add(MemoryEntry("black coffee", "model", ONE, "mine", {"cups": 2}), existing="keep")

        [found] = await memory.search("tea coffee")
        assert (found.text, found.author, found.timestamp, found.metadata) == (
            "green tea", "user", NOON, {"cups": 1},
        )  # fmt: skip

    async def test_keep_appends_what_is_new(self, memory: Memories) -> None:
        await memory.add("green tea")

        await memory.add("green tea", "black tea", existing="keep")

        assert sorted(await memory.found("tea")) == ["black tea", "green tea"]

    async def test_replace_makes_the_session_exactly_these_entries(self, memory: Memories) -> None:
        await memory.add("green tea", MemoryEntry("black tea", id="mine"), "white tea")

        await memory.add("white tea", MemoryEntry("red tea", id="mine"), "blue tea", existing="replace")

        assert sorted(await memory.found("tea")) == ["blue tea", "red tea", "white tea"]

    async def test_replace_with_nothing_empties_the_session(self, memory: Memories) -> None:
        await memory.add("green tea")

        await memory.add(existing="replace")

        assert await memory.found("tea") == []

    async def test_replace_leaves_other_sessions_and_users_alone(self, memory: Memories) -> None:
        await memory.add("old tea", session="s2")
        await memory.user("ben").add("ben's tea")

        await memory.add("new tea", existing="replace")

        assert sorted(await memory.found("tea")) == ["new tea", "old tea"]
        assert await memory.user("ben").found("tea") == ["ben's tea"]

    async def test_replace_leaves_single_entries_alone(self, memory: Memories) -> None:
        await memory.add_entry("single tea")

        await memory.add("new tea", existing="replace")

        assert sorted(await memory.found("tea")) == ["new tea", "single tea"]

    @pytest.mark.parametrize(("replaced", "left"), [(None, "A"), ("A", None)])
    async def test_replace_leaves_other_projects_of_the_session_alone(
        self, memory: Memories, replaced: str | None, left: str | None
    ) -> None:
        for project in (None, "A"):
            await memory.project(project).add(f"tea of {project}")

        await memory.project(replaced).add("new tea", existing="replace")

        assert sorted(await memory.project("A").found("tea")) == sorted(["new tea", f"tea of {left}"])

    @pytest.mark.parametrize(
        ("existing", "kept"), [("update", "black tea"), ("keep", "green tea"), ("replace", "black tea")]
    )
    async def test_of_two_with_one_id_in_a_call_the_last_counts_or_with_keep_the_first(
        self, memory: Memories, existing: Any, kept: str
    ) -> None:
        twins = [MemoryEntry("green tea", id="mine"), MemoryEntry("black tea", id="mine")]

        ids = await memory.add(*twins, existing=existing)

        assert ids == ["mine", "mine"]
        assert await memory.found("tea") == [kept]
