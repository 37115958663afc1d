"""Many items at once: what a loop would have left, in batches, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import pytest

from adk_memory import EmbeddingError, MemoryEntry, SearchRequest, SessionEntries, ValidationError
from adk_memory.testing._base import Memories, texts
from adk_memory.testing._embedder import ToyEmbedder
from adk_memory.testing._providers import InterruptedEmbedder, ProvidersContract
from adk_memory.testing._turns import TurnsContract

DAY: Final = datetime(2024, 5, 1)  # noqa: DTZ001 - naive means UTC
ENTRIES: Final = 2_500
"""More than two batches."""
BAD: Final = [
    pytest.param(None, id="none"),
    pytest.param("green tea", id="text"),
    pytest.param(MemoryEntry("green tea"), id="entry"),
    pytest.param({"app_name": "a", "user_id": "ana", "session_id": "s1", "entries": []}, id="mapping"),
]

Existing = Literal["update", "keep"]


def items(memory: Memories) -> list[SessionEntries]:
    """Return items of all kinds for three users: sessions that grow, come again or change, twins, single entries."""

    def item(user: str, session: str | None, *entries: MemoryEntry, project: str | None = None) -> SessionEntries:
        project = project if memory.can.projects else None
        return SessionEntries(memory.app_name, user, session, entries, project)

    def said(text: str, entry_id: str | None = None, **others: Any) -> MemoryEntry:
        return MemoryEntry(text, timestamp=DAY, id=entry_id, **others)

    found = []
    for user in ("ana", "ben", "Ana"):
        found += [
            item(user, "s1", said(f"green tea of {user}"), said("black tea"), said("black tea"), said("")),
            item(user, None, said("one cup", "a"), said("two cups", "b"), said("three cups", "a")),
            item(user, "s2", said("coffee", "c1", author="Ben"), said("more coffee", "c2"), project="A"),
            item(user, "s2", said("milk", "c1")),
            item(user, "s1", said("black tea"), said("white tea", metadata={"cold": True})),
            item(user, None, said("four cups", "b", metadata={"n": 4}), said("one cup", "a"), project="A"),
            item(user, "s2", said("cocoa", "c2", author="Ana"), said("no coffee", "c1"), said("water"), project="A"),
            item(user, None, said("five cups", "b")),
            item(user, "s3"),
            item(user, "s4", said("sugar", "same"), said("honey", "same"), said("lemon")),
        ]
    return found


async def in_a_loop(memory: Memories, items: Iterable[SessionEntries], existing: Existing = "update") -> None:
    for item in items:
        owner = (item.app_name, item.user_id)
        options: dict[str, Any] = {"project_id": item.project_id, "existing": existing}
        if item.session_id is not None:
            await memory.service.add_session(*owner, item.session_id, item.entries, **options)
        else:
            for entry in item.entries:
                await memory.service.add_entry(*owner, entry, **options)


async def are_equal(memory: Memories, other: Memories) -> None:
    """Assert that all that can be read of the three users is equal."""
    for user in ("ana", "ben", "Ana"):
        for project in (None, "A") if memory.can.projects else (None,):
            both = [mine.user(user).project(project) for mine in (memory, other)]
            one, two = [await mine.recent() for mine in both]
            assert one == two
            one, two = [list(await mine.search("tea cups coffee milk", limit=100)) for mine in both]
            assert [found.id for found in one] == [found.id for found in two]
            assert [found.score for found in one] == pytest.approx([found.score for found in two])


def many(memory: Memories, count: int = ENTRIES, of_each: int = 10) -> Iterator[SessionEntries]:
    """Yield sessions that hold so many entries in all, of several users."""
    for first in range(0, count, of_each):
        entries = [MemoryEntry(f"tea {number}", timestamp=DAY) for number in range(first, first + of_each)]
        yield SessionEntries(memory.app_name, f"user-{first % 70}", f"s{first}", entries)


async def as_async(items: Iterable[SessionEntries]) -> AsyncIterator[SessionEntries]:
    for item in items:
        await asyncio.sleep(0)
        yield item


async def stored(memory: Memories) -> int:
    """Return how many entries of `many` there are."""
    counted = 0
    for number in range(0, 70, 10):
        request = SearchRequest("tea", memory.app_name, f"user-{number}", limit=1_000)
        counted += len(await memory.service.search(request))
    return counted


class BulkContract(ProvidersContract, TurnsContract):
    @pytest.mark.parametrize("existing", ["update", "keep"])
    @pytest.mark.parametrize("times", [1, 2])
    async def test_many_items_leave_what_a_loop_would_leave(
        self, memory: Memories, existing: Existing, times: int
    ) -> None:
        memory.can.need("add_entry")
        other = memory.app(f"{memory.app_name}-too")

        for _ in range(times):
            await in_a_loop(other, items(other), existing)
            await memory.service.add_many(items(memory), existing=existing)

        await are_equal(memory, other)

    @pytest.mark.parametrize("existing", ["update", "keep"])
    async def test_many_items_meet_what_is_stored_as_a_loop_would(self, memory: Memories, existing: Existing) -> None:
        memory.can.need("add_entry")
        other = memory.app(f"{memory.app_name}-too")
        for mine in (memory, other):
            await in_a_loop(mine, reversed(items(mine)))

        await in_a_loop(other, items(other), existing)
        await memory.service.add_many(items(memory), existing=existing)

        await are_equal(memory, other)

    async def test_many_items_have_the_vectors_that_a_loop_would_give_them(self, turns: Memories) -> None:
        turns.can.need("add_entry")
        other = turns.app(f"{turns.app_name}-too")
        for mine in (turns, other):
            await in_a_loop(mine, reversed(items(mine)[:7]))

        await in_a_loop(other, items(other))
        await turns.service.add_many(items(turns))

        await are_equal(turns, other)

    @pytest.mark.parametrize("source", [list, iter, as_async], ids=["list", "generator", "async generator"])
    async def test_items_may_come_from_anywhere(
        self, memory: Memories, source: Callable[[Iterable[SessionEntries]], Any]
    ) -> None:
        assert await memory.service.add_many(source(many(memory, 30))) == 30

        assert await stored(memory) == 30

    async def test_many_items_again_add_nothing(self, memory: Memories) -> None:
        first = await memory.service.add_many(many(memory))
        second = await memory.service.add_many(many(memory))

        assert first == second == await stored(memory) == ENTRIES

    async def test_single_entries_without_an_id_are_always_added(self, memory: Memories) -> None:
        memory.can.need("add_entry")
        item = SessionEntries(memory.app_name, "ana", None, [MemoryEntry("green tea")] * 2)

        assert await memory.service.add_many([item, item]) == 4

        assert await memory.found("tea") == ["green tea"] * 4

    async def test_items_are_taken_and_stored_in_batches(self, memory: Memories) -> None:
        taken = 0
        told: list[tuple[int, int]] = []

        def source() -> Iterator[SessionEntries]:
            nonlocal taken
            for item in many(memory):
                taken += len(item.entries)
                yield item

        total = await memory.service.add_many(source(), on_progress=lambda count: told.append((count, taken)))

        counts = [count for count, _ in told]
        assert counts == sorted(set(counts))
        assert counts[-1] == total == ENTRIES
        assert len(counts) >= 3
        assert all(taken - count <= 10 for count, taken in told)

    async def test_what_progress_tells_is_stored(self, memory: Memories) -> None:
        told: list[int] = []

        def enough(count: int) -> None:
            told.append(count)
            raise KeyError(count)

        with pytest.raises(KeyError):
            await memory.service.add_many(many(memory), on_progress=enough)

        assert told == [await stored(memory)]

    async def test_nothing_may_be_many(self, memory: Memories) -> None:
        told: list[int] = []
        empty = SessionEntries(memory.app_name, "ana", "s1", [])

        assert await memory.service.add_many([], on_progress=told.append) == 0
        assert await memory.service.add_many([empty]) == 0
        assert told == []

    @pytest.mark.parametrize(
        "fields",
        [
            {"app_name": ""},
            {"user_id": None},
            {"user_id": 7},
            {"session_id": ""},
            {"session_id": "a" * 257},
            {"project_id": "\0"},
            {"entries": "green tea"},
            {"entries": None},
            {"entries": ["green tea"]},
            {"entries": [None]},
            {"more": 1},
        ],
    )
    async def test_an_item_is_checked_when_it_is_made(self, fields: dict[str, Any]) -> None:
        good: dict[str, Any] = {"app_name": "app", "user_id": "ana", "session_id": "s1", "entries": []}
        SessionEntries(**good)

        with pytest.raises(ValidationError):
            SessionEntries(**(good | fields))

    # What fails

    @pytest.mark.parametrize("before", [0, 30, ENTRIES])
    @pytest.mark.parametrize("bad", BAD)
    async def test_a_bad_item_is_named_and_what_came_before_it_stays(
        self, memory: Memories, bad: Any, before: int
    ) -> None:
        source: Sequence[Any] = [*many(memory, before), bad, *many(memory, before + 10)]

        with pytest.raises(ValidationError, match=rf"items\[{before // 10}\].* {before} entries"):
            await memory.service.add_many(source)

        assert await stored(memory) == before

    async def test_an_item_that_can_not_be_made_is_named_too(self, memory: Memories) -> None:
        def source() -> Iterator[SessionEntries]:
            yield from many(memory, 30)
            yield SessionEntries(memory.app_name, "", "s1", [MemoryEntry("green tea")])

        with pytest.raises(ValidationError, match=r"items\[3\].*user_id.* 30 entries"):
            await memory.service.add_many(source())

        assert await stored(memory) == 30

    @pytest.mark.parametrize("source", [None, 7, len])
    async def test_items_that_can_not_be_iterated_are_refused(self, memory: Memories, source: Any) -> None:
        with pytest.raises(ValidationError):
            await memory.service.add_many(source)

    @pytest.mark.parametrize("existing", ["replace", "", None])
    async def test_many_items_can_not_replace_others(self, memory: Memories, existing: Any) -> None:
        with pytest.raises(ValidationError):
            await memory.service.add_many(many(memory, 30), existing=existing)

        assert await stored(memory) == 0

    async def test_a_source_that_fails_leaves_what_came_before(self, memory: Memories) -> None:
        async def source() -> AsyncIterator[SessionEntries]:
            for item in many(memory, 1_030):
                yield item
            raise OSError("the line is cut")

        with pytest.raises(OSError, match="cut"):
            await memory.service.add_many(source())

        assert await stored(memory) == 1_030

    async def test_after_an_embedder_failed_the_same_items_go_on(
        self, embedded: Memories, embedder: ToyEmbedder
    ) -> None:
        told: list[int] = []
        embedder.answers["tea 1505"] = OSError("down")
        with pytest.raises(EmbeddingError):
            await embedded.service.add_many(many(embedded), on_progress=told.append)
        assert 0 < told[-1] <= await stored(embedded) < 1_510
        embedder.answers.clear()

        assert await embedded.service.add_many(many(embedded)) == ENTRIES

        assert await stored(embedded) == ENTRIES

    async def test_after_it_was_cancelled_the_same_items_go_on(self, memory: Memories) -> None:
        told: list[int] = []
        waiting = asyncio.Event()

        async def source() -> AsyncIterator[SessionEntries]:
            for item in many(memory, 1_530):
                yield item
            waiting.set()
            await asyncio.Event().wait()

        adding = asyncio.create_task(memory.service.add_many(source(), on_progress=told.append))
        await waiting.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert 0 < told[-1] <= await stored(memory) <= 1_530

        await memory.service.add_many(many(memory))

        assert await stored(memory) == ENTRIES

    async def test_several_may_add_the_same_items_at_once(self, memory: Memories) -> None:
        forwards, backwards = list(many(memory, 1_200)), list(many(memory, 1_200))[::-1]

        await asyncio.gather(*(memory.service.add_many(source) for source in (forwards, backwards) * 3))

        assert await stored(memory) == 1_200

    async def test_an_entry_that_changes_while_many_are_embedded_has_the_vector_of_its_text(
        self, embedded: Memories, embedder: InterruptedEmbedder
    ) -> None:
        await embedded.add(MemoryEntry("green tea", id="mine"))
        embedder.interruption = lambda: embedded.add(MemoryEntry("black coffee", id="mine"))
        said = [MemoryEntry("loud music", id="mine"), MemoryEntry("unrelated remark")]

        await embedded.service.add_many([SessionEntries(embedded.app_name, "ana", "s1", said)])

        scores = await embedded.scores("loud music", mode="vector")
        assert scores["loud music"] >= 0.99
        assert set(scores) == {"loud music", "unrelated remark"}

    async def test_a_project_of_many_items_stays_one(self, memory: Memories) -> None:
        memory.project("A")
        said = [MemoryEntry("green tea")]
        app = memory.app_name

        await memory.service.add_many([SessionEntries(app, "ana", "s1", said, project) for project in ("A", "B", None)])

        assert texts(await memory.search("tea")) == ["green tea"]
        assert len(await memory.project("B").search("tea")) == 2
