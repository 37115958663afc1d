"""Pages: every entry of a list on exactly one, whatever happens in between, and never one of another list."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adk_memory import ALL_PROJECTS, Author, MemoryEntry, Metadata, Page, ValidationError
from adk_memory.testing._base import ContractBase, Memories, texts

SAME_DAY: Final = "2024-05-01"
NO_CURSORS: Final = [
    "", " ", "x", "None", "0", "1", "A" * 32, "=" * 32, "-" * 31, "é" * 32, "\0", "\ud800", "A" * 10_000, "' OR '1'='1",
    "_" * 32, b"A" * 32, 7, 0, True, ("2024-05-01", 1), {},
]  # fmt: skip


async def _pages(memory: Memories, limit: int, **options: Any) -> list[Page]:
    pages = [await memory.page(limit, **options)]
    while pages[-1].next is not None and len(pages) < 100:
        pages.append(await memory.page(limit, after=pages[-1].next, **options))
    return pages


class PagingContract(ContractBase):
    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 9, 10, 11])
    async def test_pages_together_are_the_list(self, memory: Memories, limit: int) -> None:
        days = [SAME_DAY] * 5 + [f"2024-05-{day:02}" for day in (3, 2, 7, 1, 9)]
        await memory.add(*(MemoryEntry(f"{n}", timestamp=day) for n, day in enumerate(days)))

        pages = await _pages(memory, limit)

        assert [found for page in pages for found in page] == await memory.recent()
        assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
        assert len(pages[-1]) > 0

    async def test_a_list_of_nothing_is_one_empty_page(self, memory: Memories) -> None:
        page = await memory.page(with_total=True)

        assert (list(page), page.next, page.total) == ([], None, 0)

    async def test_a_page_has_fifty_where_no_limit_is_given_and_a_thousand_at_most(self, memory: Memories) -> None:
        await memory.add(*(f"tea {number}" for number in range(1_002)))

        assert [len(await memory.page(limit)) for limit in (None, 2_000)] == [50, 1_000]

    async def test_a_limit_of_nothing_counts(self, memory: Memories) -> None:
        await memory.add("one", "two")

        page = await memory.page(0, with_total=True)

        assert (list(page), page.next, page.total) == ([], None, 2)

    @pytest.mark.parametrize("limit", [-1, "3", 1.5, True])
    async def test_a_negative_limit_or_one_that_is_no_integer_is_refused_by_a_page(
        self, memory: Memories, limit: Any
    ) -> None:
        with pytest.raises(ValidationError, match="limit"):
            await memory.page(limit)

    async def test_the_total_is_that_of_the_whole_list_and_on_request(self, memory: Memories) -> None:
        await memory.add(*(f"tea {number}" for number in range(7)))

        first = await memory.page(3, with_total=True)
        second = await memory.page(3, after=first.next, with_total=True)

        assert (first.total, second.total, (await memory.page(3)).total) == (7, 7, None)

    async def test_a_page_of_a_filtered_list_holds_what_passes(self, memory: Memories) -> None:
        await memory.add(*(MemoryEntry(f"{n}", metadata={"n": n}) for n in range(20)))

        pages = await _pages(memory, 3, filter=Metadata("n", "gte", 12), with_total=True)

        assert [text for page in pages for text in texts(page.memories)] == [f"{n}" for n in range(19, 11, -1)]
        assert {page.total for page in pages} == {8}

    async def test_what_is_there_throughout_is_on_exactly_one_page(self, memory: Memories) -> None:
        memory.can.need("delete")
        await memory.add(*(MemoryEntry(f"{n}", timestamp=SAME_DAY, id=f"e{n}") for n in range(12)))
        stays = {f"{n}" for n in range(12) if n % 4}

        page = await memory.page(3)
        seen = texts(page.memories)
        for turn in range(20):
            if page.next is None:
                break
            await memory.add(MemoryEntry(f"newer {turn}", timestamp="2024-06-01"), MemoryEntry("x", timestamp=SAME_DAY))
            await memory.add(MemoryEntry(f"older {turn}", timestamp="2023-01-01"))
            await memory.delete(f"e{12 - 4 * (turn + 1)}")  # the first is the last of the page before
            page = await memory.page(3, after=page.next)
            seen += texts(page.memories)

        assert page.next is None
        assert [text for text in seen if text in stays] == sorted(stays, key=int, reverse=True)

    async def test_a_cursor_survives_the_erasing_of_everything_before_it(self, memory: Memories) -> None:
        memory.can.need("delete")
        ids = await memory.add(*(MemoryEntry(f"{n}", timestamp=SAME_DAY) for n in range(4)))
        page = await memory.page(2)

        for entry_id in ids[1:]:
            await memory.delete(entry_id)

        assert texts((await memory.page(2, after=page.next)).memories) == ["0"]

    @pytest.mark.parametrize("after", NO_CURSORS, ids=lambda after: repr(after)[:16])
    async def test_what_is_no_cursor_is_refused(self, memory: Memories, after: Any) -> None:
        await memory.add("one", "two")

        with pytest.raises(ValidationError, match="after"):
            await memory.page(after=after)

    async def test_a_changed_cursor_is_refused(self, memory: Memories) -> None:
        await memory.add("one", "two")
        cursor = (await memory.page(1)).next or ""

        for place in range(len(cursor)):
            changed = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
            with pytest.raises(ValidationError, match="after"):
                await memory.page(after=changed)

    async def test_a_cursor_is_short_and_can_stand_in_a_url(self, memory: Memories) -> None:
        await memory.add("one", "two")

        cursor = (await memory.page(1)).next

        assert cursor is not None
        assert len(cursor) <= 64
        assert cursor.replace("-", "").replace("_", "").isalnum()

    async def test_a_cursor_of_another_list_is_refused(self, memory: Memories) -> None:
        await memory.add("one", "two")
        await memory.user("ben").add("three", "four")
        await memory.app(f"{memory.app_name}-2").add("five", "six")
        cursor = (await memory.page(1)).next

        for other in (memory.user("ben"), memory.app(f"{memory.app_name}-2")):
            with pytest.raises(ValidationError, match="after"):
                await other.page(after=cursor)
        if self.filters:
            with pytest.raises(ValidationError, match="after"):
                await memory.page(after=cursor, filter=Author("user"))

    async def test_a_cursor_of_another_project_is_refused(self, memory: Memories) -> None:
        await memory.add("one", "two")
        await memory.project("A").add("three", "four")
        cursor = (await memory.project("A").page(1)).next

        for project in (None, "B"):
            with pytest.raises(ValidationError, match="after"):
                await memory.project(project).page(after=cursor)

    async def test_a_page_sees_every_project_unless_it_is_narrowed(self, memory: Memories) -> None:
        memory.can.need("list_page")
        await memory.add("global")
        await memory.project("A").add("of A")
        await memory.project("B").add("of B")

        first = await memory.service.list_page(memory.app_name, "ana", limit=2, with_total=True)
        second = await memory.service.list_page(
            memory.app_name, "ana", project_id=ALL_PROJECTS, limit=2, after=first.next
        )

        assert texts([*first, *second]) == ["of B", "of A", "global"]
        assert first.total == 3
        assert texts((await memory.project("A").page()).memories) == ["of A", "global"]
        assert texts((await memory.page()).memories) == ["global"]
