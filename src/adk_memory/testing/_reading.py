"""Reading without a query: the latest entries, one entry by its id, and the state of the backend."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adk_memory import Content, HealthReport, MemoryEntry, ValidationError
from adk_memory.testing._base import ContractBase, Memories, texts

DAYS: Final = [f"2024-05-{day:02}T12:00:00" for day in range(1, 13)]


class ReadingContract(ContractBase):
    async def test_a_list_has_the_newest_first(self, memory: Memories) -> None:
        await memory.add(*(MemoryEntry(day, timestamp=day) for day in DAYS[::2] + DAYS[1::2]))

        assert texts(await memory.recent()) == DAYS[::-1]

    @pytest.mark.parametrize(("limit", "count"), [(0, 0), (1, 1), (5, 5), (12, 12), (10**9, 12), (None, 10)])
    async def test_a_list_has_the_newest_up_to_its_limit(self, memory: Memories, limit: int | None, count: int) -> None:
        await memory.add(*(MemoryEntry(day, timestamp=day) for day in DAYS))

        assert texts(await memory.recent(limit)) == DAYS[::-1][:count]

    async def test_a_list_has_ten_where_no_limit_is_given(self, memory: Memories) -> None:
        memory.can.need("list_recent")
        await memory.add(*DAYS)

        assert len(await memory.service.list_recent(memory.app_name, "ana")) == 10

    @pytest.mark.parametrize("limit", [-1, "3", 1.5, True])
    async def test_a_negative_limit_or_one_that_is_no_integer_is_refused_by_a_list(
        self, memory: Memories, limit: Any
    ) -> None:
        with pytest.raises((ValidationError, TypeError), match="limit"):
            await memory.recent(limit)

    async def test_a_list_of_nobody_is_empty(self, memory: Memories) -> None:
        assert await memory.user("nobody").everything() == []

    async def test_a_list_has_single_entries_and_those_without_text_too(self, memory: Memories) -> None:
        await memory.add(MemoryEntry(Content("model", [{"function_call": {"name": "f"}}])))
        await memory.add_entry("green tea")

        assert [found.session_id for found in await memory.recent()] == [None, "s1"]

    async def test_outside_of_a_search_a_memory_has_no_score(self, memory: Memories) -> None:
        [entry_id] = await memory.add("green tea")

        got = await memory.get(entry_id)

        assert got is not None
        assert got.score is None

    async def test_list_get_and_search_return_the_same_memory(self, memory: Memories) -> None:
        entry = MemoryEntry(Content("model", ["green tea", {"n": 1}]), "model", DAYS[0], "mine", {"cups": 2})
        await memory.project("A").add(entry)

        [listed] = await memory.project("A").recent()
        got = await memory.project("A").get("mine")
        [found] = await memory.project("A").search("tea")

        assert listed == got == found.model_copy(update={"score": None})
        assert (found.content, found.author, found.timestamp, found.metadata) == (
            entry.content, entry.author, entry.timestamp, entry.metadata,
        )  # fmt: skip

    async def test_get_returns_nothing_for_an_unknown_id(self, memory: Memories) -> None:
        await memory.add("green tea")

        assert await memory.get("unknown' OR '1'='1") is None

    async def test_get_returns_the_newest_where_several_sessions_hold_the_id(self, memory: Memories) -> None:
        for session, day in [("s1", DAYS[0]), ("s2", DAYS[2]), ("s3", DAYS[1])]:
            await memory.add(MemoryEntry(day, timestamp=day, id="mine"), session=session)

        got = await memory.get("mine")

        assert got is not None
        assert got.session_id == "s2"

    async def test_get_finds_a_single_entry(self, memory: Memories) -> None:
        entry_id = await memory.add_entry("green tea")

        got = await memory.get(entry_id)

        assert got is not None
        assert got.text == "green tea"

    async def test_a_healthy_backend_says_what_it_is(self, memory: Memories) -> None:
        memory.can.need("health_check")

        report = await memory.service.health_check()

        assert isinstance(report, HealthReport)
        assert report.backend
        assert report.schema_version == await memory.service.schema_version()
        assert report.embedding_model is None

    async def test_a_healthy_backend_names_its_embedding_model(self, embedded: Memories, embedder: Any) -> None:
        embedded.can.need("health_check")

        report = await embedded.service.health_check()

        assert report.embedding_model == embedder.model

    async def test_migrating_again_changes_nothing(self, memory: Memories) -> None:
        await memory.add("green tea")
        before = await memory.service.schema_version()

        await memory.service.migrate()

        assert await memory.service.schema_version() == before
        assert await memory.found("tea") == ["green tea"]

    async def test_indexing_anew_changes_nothing_that_is_found(self, memory: Memories) -> None:
        await memory.add("green tea", "we were running", "")
        await memory.project("A").add("éclairs and tea")
        queries = ("tea", "runs", "eclair")
        before = [await memory.project("A").scores(query) for query in queries]

        assert await memory.service.reindex() >= 0

        assert [await memory.project("A").scores(query) for query in queries] == before

    async def test_closing_again_does_nothing(self, memory: Memories) -> None:
        await memory.service.close()

        assert await memory.service.close() is None  # type: ignore[func-returns-value]
