"""Export: everything of one user, in an order in which it can be added again so that nothing tells the copy apart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest

from adk_memory import Content, Memory, MemoryEntry, SearchRequest, SessionEntries, ValidationError
from adk_memory.testing._base import Memories, texts
from adk_memory.testing._clocked import HOUR, Clock, ClockedContract

SAME_DAY = "2024-05-01"


async def _exported(memory: Memories) -> list[Memory]:
    memory.can.need("export_user")
    return [found async for found in memory.service.export_user(memory.app_name, memory.user_id)]


async def _imported(memories: Sequence[Memory], into: Memories) -> int:
    """Add what was exported, as the docstring of `export_user` says."""
    items = []
    for (session_id, project_id), run in groupby(memories, lambda found: (found.session_id, found.project_id)):
        entries = list(run)
        positions = None if session_id is None else [entry.position or 0 for entry in entries]
        items.append(SessionEntries(into.app_name, into.user_id, session_id, entries, project_id, positions))
    return await into.service.add_many(items)


async def _same(copy: Memories, memory: Memories) -> None:
    """Ask both, and compare the answers."""
    answers, scores = await _answers(memory)
    answers_of_copy, scores_of_copy = await _answers(copy)
    assert answers_of_copy == answers
    assert scores_of_copy == pytest.approx(scores, abs=1e-6)


async def _answers(memory: Memories) -> tuple[list[list[Memory]], list[float | None]]:
    service, owner = memory.service, (memory.app_name, memory.user_id)
    found = [await service.list_recent(*owner, 1_000)]
    for project in (None, "A") if memory.can.projects else (None,):
        for query in ("tea", "green tea cup", "milk"):
            found.append(list(await service.search(SearchRequest(query, *owner, project, 1_000))))  # noqa: PERF401
    return [list(map(_without_score, each)) for each in found], [one.score for each in found[1:] for one in each]


def _without_score(memory: Memory) -> Memory:
    return memory.model_copy(update={"score": None})


async def _lived_in(memory: Memories, clock: Clock) -> None:
    """Store what is not in the order of its times, has gaps, and was changed."""
    talk = ["green tea", "yes", "in a cup", "with milk", "tea", "no", "green cup"]
    for session in ("s1", "s2"):
        await memory.add(
            *(MemoryEntry(text, id=f"e{n}", timestamp=SAME_DAY) for n, text in enumerate(talk)), session=session
        )
    await memory.add_entry(MemoryEntry("tea alone", id="single", timestamp=SAME_DAY, metadata={"n": [1, 2.5, None]}))
    await memory.add(MemoryEntry("before all tea", timestamp="1969-07-20"), session="s1")
    await memory.add(MemoryEntry("ends tea", timestamp=SAME_DAY, expires_at=clock.now + HOUR), session="s2")
    await memory.add(MemoryEntry("green tea, again", id="e0", author="bo", timestamp=SAME_DAY), session="s1")
    call = Content("model", [{"f": {"args": {"a": "\\u0000 \u2028"}}}, "tea \ud800"])
    await memory.add(MemoryEntry(call), session="s3")
    memory.can.need("delete")
    for gone in ("e1", "e3"):
        await memory.delete(gone)
    await memory.add_entry(MemoryEntry("tea alone too", id="z", timestamp=SAME_DAY))


class ExportingContract(ClockedContract):
    async def test_a_copy_answers_as_the_original(self, clock: Clock, memory: Memories) -> None:
        await _lived_in(memory, clock)
        copy = memory.user("copy")

        assert await _imported(await _exported(memory), copy) == 15

        await _same(copy, memory)

    async def test_a_copy_of_projects_answers_as_the_original(self, clock: Clock, memory: Memories) -> None:
        await _lived_in(memory, clock)
        await _lived_in(memory.project("A"), clock)
        await _lived_in(memory.project("B"), clock)
        await memory.add(MemoryEntry("milk", timestamp=SAME_DAY), session="s1")
        copy = memory.user("copy")

        assert await _imported(await _exported(memory), copy) == 3 * 15 + 1

        await _same(copy, memory)

    async def test_a_copy_goes_on_as_the_original(self, clock: Clock, memory: Memories) -> None:
        await _lived_in(memory, clock)
        copy = memory.user("copy")
        await _imported(await _exported(memory), copy)

        for those in (memory, copy):
            await those.add(MemoryEntry("green milk", timestamp=SAME_DAY, id="new"), session="s1")

        await _same(copy, memory)

    async def test_adding_it_twice_leaves_one_copy(self, clock: Clock, memory: Memories) -> None:
        await _lived_in(memory, clock)
        exported = await _exported(memory)
        copy = memory.user("copy")

        for _ in range(2):
            await _imported(exported, copy)

        assert await _exported(copy) == exported

    async def test_an_interrupted_copy_can_be_completed(self, clock: Clock, memory: Memories) -> None:
        await _lived_in(memory, clock)
        exported = await _exported(memory)
        copy = memory.user("copy")

        for part in (exported[:5], exported):
            await _imported(part, copy)

        assert await _exported(copy) == exported

    async def test_it_holds_everything_of_the_user_and_nothing_of_another(self, memory: Memories) -> None:
        await memory.add("global")
        await memory.user("ben").add("of ben")
        await memory.app(f"{memory.app_name}-2").add("of another app")

        assert texts(await _exported(memory)) == ["global"]
        assert await _exported(memory.user("nobody")) == []

    async def test_it_holds_every_project(self, memory: Memories) -> None:
        for project in (None, "B", "A", None):
            await memory.project(project).add(f"of {project}", session=f"{project}")

        assert [(found.project_id, found.text) for found in await _exported(memory)] == [
            (None, "of None"), ("B", "of B"), ("A", "of A"),
        ]  # fmt: skip

    async def test_what_has_expired_is_not_part_of_it(self, clock: Clock, memory: Memories) -> None:
        await memory.add("stays", MemoryEntry("goes", expires_at=clock.now + HOUR))
        clock.pass_by()

        assert texts(await _exported(memory)) == ["stays"]

    async def test_it_is_read_in_pages(self, memory: Memories) -> None:
        await memory.add(*(f"{number}" for number in range(1_000)), session="s1")
        await memory.add(*(f"{number}" for number in range(1_000, 2_100)), session="s2")

        assert texts(await _exported(memory)) == [f"{number}" for number in range(2_100)]

    async def test_what_is_there_throughout_is_exported_once(self, memory: Memories) -> None:
        memory.can.need("delete")
        memory.can.need("export_user")
        await memory.add(*(MemoryEntry(f"{number}", id=f"{number}") for number in range(1_500)))
        await memory.user("ben").add("of ben")

        async def change() -> None:
            for number in range(0, 1_500, 100):
                await memory.delete(f"{number}")
                await memory.add(MemoryEntry(f"new {number}"), session="s2")
                await memory.add(MemoryEntry(f"{number + 1}", id=f"{number + 1}", metadata={"changed": True}))

        seen = []
        changing = asyncio.create_task(change())
        async for found in memory.service.export_user(memory.app_name, "ana"):
            seen.append(found.text)
            await asyncio.sleep(0)
        await changing

        stays = [f"{number}" for number in range(1_500) if number % 100]
        assert [text for text in seen if text in set(stays)] == stays

    async def test_an_unfinished_export_leaves_nothing_behind(self, memory: Memories) -> None:
        memory.can.need("export_user")
        await memory.add("one", "two")

        exporting = memory.service.export_user(memory.app_name, "ana")
        assert (await anext(exporting)).text == "one"
        await exporting.aclose()

        await memory.add("three")
        assert len(await _exported(memory)) == 3

    async def test_positions_say_where_an_entry_stands_in_its_session(self, memory: Memories) -> None:
        memory.can.need("delete")
        ids = await memory.add("one", "two", "three")
        await memory.delete(ids[1])
        await memory.add("four")
        await memory.add_entry("single")

        assert [found.position for found in await _exported(memory)] == [1, 3, 4, None]
        assert [found.position for found in await memory.recent()] == [None, 4, 3, 1]

    async def test_a_position_that_is_passed_already_is_the_next_one(self, memory: Memories) -> None:
        await memory.add("one", "two")
        items = [SessionEntries(memory.app_name, "ana", "s1", [MemoryEntry("a"), MemoryEntry("b")], None, [1, 7])]

        await memory.service.add_many(items)
        await memory.add("c")

        assert [found.position for found in await _exported(memory)] == [1, 2, 3, 7, 8]

    @pytest.mark.parametrize("positions", [[0], [-1], [True], ["1"], [1.0], [2**31], [1, 2], [], 7])
    async def test_what_are_no_positions_is_refused(self, positions: Any) -> None:
        with pytest.raises(ValidationError, match="positions"):
            SessionEntries("app", "ana", "s1", [MemoryEntry("tea")], None, positions)

    async def test_single_entries_have_no_positions(self) -> None:
        with pytest.raises(ValidationError, match="positions"):
            SessionEntries("app", "ana", None, [MemoryEntry("tea")], None, [1])
