"""Erasing: exactly what was asked for, its index entries and vectors too, and nothing of it comes back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import pytest

from adk_memory import Content, Erasure, MemoryEntry, OperationNotSupportedError, ValidationError
from adk_memory.testing._base import ContractBase, Memories
from adk_memory.testing._embedder import ToyEmbedder
from adk_memory.testing._searching import HOSTILE, WORDLESS

DRINKS: Final = ["green tea", "green tea with milk", "black coffee", "black tea"]
NARROW: Final = [
    ("green", ["green tea", "green tea with milk"]),
    ("tea green", ["green tea", "green tea with milk"]),
    ("milk, GREEN tea!", ["green tea with milk"]),
    ("green coffee", []),
    ("tea zebra", []),
    ("tea tea tea", ["green tea", "green tea with milk", "black tea"]),
    ("gréen", ["green tea", "green tea with milk"]),
    ("greens", []),
    ("gree", []),
]


class ErasingContract(ContractBase):
    @pytest.mark.parametrize(("query", "erased"), NARROW)
    async def test_a_delete_matches_entries_with_every_word_of_the_query(
        self, memory: Memories, query: str, erased: list[str]
    ) -> None:
        await memory.add(*DRINKS)

        count = await memory.delete_entries(query)

        left = await memory.found("green tea milk black coffee")
        assert sorted(left) == sorted(set(DRINKS) - set(erased))
        assert count == len(erased)

    @pytest.mark.parametrize(("query", "erased"), NARROW)
    async def test_a_dry_run_counts_and_erases_nothing(self, memory: Memories, query: str, erased: list[str]) -> None:
        await memory.add(*DRINKS)

        count = await memory.delete_entries(query, dry_run=True)

        assert count == len(erased)
        assert len(await memory.search("green tea milk black coffee")) == len(DRINKS)

    async def test_a_delete_does_not_match_by_stems(self, memory: Memories) -> None:
        await memory.add("we are running", "a run", "two runs")

        assert await memory.delete_entries("run") == 1

        assert sorted(await memory.found("run")) == ["two runs", "we are running"]

    @pytest.mark.parametrize("query", WORDLESS)
    async def test_a_delete_without_a_word_erases_nothing(self, memory: Memories, query: str) -> None:
        await memory.add("green tea", "!!! ???", " ", MemoryEntry(Content()))

        assert await memory.delete_entries(query, dry_run=True) == 0
        assert await memory.delete_entries(query) == 0

    async def test_the_query_of_a_delete_is_text_and_never_syntax(self, memory: Memories) -> None:
        await memory.add("an unrelated remark", "deploy")

        for query in HOSTILE:
            await memory.delete_entries(query)

        assert await memory.found("unrelated deploy") == ["an unrelated remark"]

    @pytest.mark.parametrize(
        ("query", "erased"),
        [
            ("NOT tea", ["tea or not"]),
            ("tea -milk", []),
            ("tea OR coffee", []),
            ("tea*", ["green tea", "tea or not"]),
            ("^tea", ["green tea", "tea or not"]),
            ("t%a", []),
            ("NEAR(tea not)", []),
        ],
    )
    async def test_no_word_of_a_delete_is_an_operator(self, memory: Memories, query: str, erased: list[str]) -> None:
        notes = ["green tea", "coffee", "tea or not", "team"]
        await memory.add(*notes)

        await memory.delete_entries(query)

        assert sorted(await memory.found("tea coffee team")) == sorted(set(notes) - set(erased))

    @pytest.mark.parametrize("query", [None, 7, b"tea", ["tea"]])
    async def test_a_delete_by_what_is_no_text_is_refused(self, memory: Memories, query: Any) -> None:
        await memory.add("green tea")

        with pytest.raises((ValidationError, TypeError)):
            await memory.delete_entries(query)

        assert await memory.found("tea") == ["green tea"]

    async def test_a_delete_is_not_cut_off_by_a_page(self, memory: Memories) -> None:
        await memory.add(*(f"tea {number}" for number in range(1_200)), "coffee")

        assert await memory.delete_entries("tea") == 1_200

        assert await memory.found("tea coffee") == ["coffee"]

    async def test_a_delete_in_a_project_leaves_other_users_alone(self, memory: Memories) -> None:
        for user in ("ana", "ben"):
            await memory.user(user).project("A").add("green tea")

        await memory.user("ana").project("A").delete_entries("tea")

        assert await memory.user("ben").project("A").found("tea") == ["green tea"]

    async def test_what_is_erased_does_not_use_up_the_limit_of_a_search(self, memory: Memories) -> None:
        await memory.add("green tea", *(f"tea tea tea {number}" for number in range(20)))

        await memory.delete_entries("tea 7")
        for number in range(20):
            await memory.delete_entries(f"{number}")

        assert await memory.found("tea", limit=1) == ["green tea"]

    async def test_what_is_erased_does_not_use_up_the_limit_of_a_search_by_similarity(self, embedded: Memories) -> None:
        await embedded.add("green tea", *(f"tea tea tea {number}" for number in range(20)))

        await embedded.delete_session("s1", project_id=None)
        await embedded.add("green tea", session="s2")

        assert await embedded.found("tea tea tea", limit=1, mode="vector") == ["green tea"]

    async def test_a_delete_by_id_erases_that_entry(self, memory: Memories) -> None:
        [green, _black] = await memory.add("green tea", "black tea")

        assert await memory.delete(green) == 1

        assert await memory.found("tea") == ["black tea"]

    async def test_a_delete_by_an_unknown_id_erases_nothing(self, memory: Memories) -> None:
        await memory.add("green tea")

        assert await memory.delete("unknown' OR '1'='1") == 0

    async def test_a_delete_by_id_counts_an_entry_of_another_user_as_absent(self, memory: Memories) -> None:
        [entry_id] = await memory.user("ben").add("green tea")

        assert await memory.user("ana").delete(entry_id) == 0

        assert await memory.user("ben").found("tea") == ["green tea"]

    async def test_a_delete_by_id_erases_it_from_every_session(self, memory: Memories) -> None:
        for session in ("s1", "s2"):
            await memory.add(MemoryEntry(f"tea of {session}", id="mine"), session=session)
        await memory.add_entry(MemoryEntry("single tea", id="mine"))

        assert await memory.delete("mine") == 3

        assert await memory.found("tea") == []

    async def test_a_delete_of_a_session_leaves_other_sessions_and_single_entries(self, memory: Memories) -> None:
        await memory.add("tea one", session="s1")
        await memory.add("tea two", session="s2")
        await memory.add_entry("single tea")

        assert await memory.delete_session("s1") == 1

        assert sorted(await memory.found("tea")) == ["single tea", "tea two"]

    async def test_a_delete_of_an_unknown_session_erases_nothing(self, memory: Memories) -> None:
        await memory.add("green tea")

        assert await memory.delete_session("unknown") == 0

    async def test_a_delete_of_a_user_erases_sessions_and_single_entries(self, memory: Memories) -> None:
        await memory.add("green tea", MemoryEntry(Content("model", [{"n": 1}])))
        await memory.add_entry("single tea")

        assert await memory.delete_user() == 3

        assert await memory.everything() == []

    async def test_a_delete_of_nobody_erases_nothing(self, memory: Memories) -> None:
        assert await memory.user("nobody").delete_user() == 0

    async def test_a_user_who_was_erased_may_come_back(self, memory: Memories) -> None:
        await memory.add("green tea")
        await memory.delete_user()

        await memory.add("black tea")

        assert await memory.found("tea") == ["black tea"]

    async def test_an_entry_that_was_erased_may_be_added_again(self, memory: Memories) -> None:
        [first] = await memory.add("green tea")
        await memory.delete(first)

        [again] = await memory.add("green tea")

        assert again == first
        assert await memory.found("tea") == ["green tea"]

    async def test_a_report_of_a_delete_is_a_number_of_entries(self, memory: Memories) -> None:
        await memory.add("green tea", "black tea", MemoryEntry(Content("model", [{"n": 1}])))

        erased = await memory.delete_user()

        assert isinstance(erased, int)
        assert erased == 3
        if isinstance(erased, Erasure):
            assert (erased.entries, erased.vectors) == (3, 0)

    async def test_a_scrub_erases_no_entry(self, memory: Memories) -> None:
        [green, _black] = await memory.add("green tea", "black tea")
        await memory.delete(green)

        with suppress(OperationNotSupportedError):
            await memory.service.scrub()

        assert await memory.found("tea") == ["black tea"]

    async def test_a_user_who_is_proven_gone_is_gone_and_nobody_else(self, memory: Memories) -> None:
        for user in ("ana", "ben"):
            await memory.user(user).add("green tea", "black tea")

        try:
            proof = await memory.service.erase_user(memory.app_name, "ana")
        except OperationNotSupportedError:
            pytest.skip("this backend does not have erase_user")

        assert (proof.erased, proof.complete) == (2, True)
        assert await memory.user("ana").found("tea") == []
        assert len(await memory.user("ben").found("tea")) == 2

    async def test_reading_goes_on_while_entries_are_erased_and_added(self, memory: Memories) -> None:
        lines = [f"tea {number}" for number in range(20)]

        async def write() -> None:
            for _ in range(5):
                await memory.add(*lines)
                await memory.delete_session()

        async def read() -> set[str]:
            return {text for _ in range(10) for text in await memory.found("tea", limit=20)}

        *_, seen, seen_too = await asyncio.gather(write(), read(), read())

        assert seen | seen_too <= set(lines)

    async def test_concurrent_deletes_count_each_entry_once(self, memory: Memories) -> None:
        await memory.add(*(f"tea {number}" for number in range(10)))

        counts = await asyncio.gather(*(memory.delete_entries("tea") for _ in range(5)))

        assert sum(counts) == 10

    async def test_no_delete_calls_the_embedder(self, embedded: Memories, embedder: ToyEmbedder) -> None:
        embedded.can.need("delete_project")
        ids = await embedded.add("green tea", "black tea", "white tea")
        embedder.asked.clear()

        await embedded.delete(ids[0])
        await embedded.delete_entries("black tea", dry_run=True)
        await embedded.delete_entries("black tea")
        await embedded.delete_project("A")
        await embedded.delete_session("s1")
        await embedded.delete_user()

        assert embedder.asked == []
