"""Scores: one number from 0 to 1, the higher the better, that depends on nothing out of sight."""

from __future__ import annotations

from typing import Final

import pytest

from adk_memory import MemoryEntry
from adk_memory.testing._base import ContractBase, Memories

NOTES: Final = [
    "green tea", "black tea with milk and sugar", "tea tea tea tea", "a green house", "green green tea tea",
    "milk", "tea " * 200, "green " + "word " * 500,
]  # fmt: skip
QUERY: Final = "green tea with milk"


class ScoresContract(ContractBase):
    async def test_a_score_is_from_0_to_1(self, memory: Memories) -> None:
        await memory.add(*NOTES)

        scores = await memory.scores(QUERY)

        assert len(scores) == len(NOTES)
        assert all(0 <= score <= 1 for score in scores.values())

    async def test_results_are_ordered_by_score(self, memory: Memories) -> None:
        await memory.add(*NOTES)

        scores = list((await memory.scores(QUERY)).values())

        assert scores == sorted(scores, reverse=True)

    async def test_an_entry_with_all_words_scores_higher_than_one_with_one(self, memory: Memories) -> None:
        await memory.add("tea", "coffee with milk", "green tea with milk", "a green house")

        assert (await memory.found(QUERY))[0] == "green tea with milk"

    async def test_a_rare_word_counts_for_more_than_a_common_one(self, memory: Memories) -> None:
        await memory.add("quinoa number 9", *(f"tea number {number}" for number in range(9)))

        assert (await memory.found("tea quinoa"))[0] == "quinoa number 9"

    async def test_the_only_entry_passes_a_modest_threshold(self, memory: Memories) -> None:
        await memory.add("green tea")

        assert await memory.found("green tea", min_score=0.5) == ["green tea"]

    async def test_the_answer_is_the_same_on_every_run(self, memory: Memories) -> None:
        await memory.add(*NOTES)

        answers = [await memory.search(QUERY) for _ in range(5)]

        assert answers == [answers[0]] * 5

    async def test_a_threshold_keeps_what_scores_at_least_as_much(self, memory: Memories) -> None:
        await memory.add(*NOTES)
        scores = await memory.scores(QUERY)

        for floor in scores.values():
            kept = [text for text, score in scores.items() if score >= floor]
            assert await memory.found(QUERY, min_score=floor) == kept

    @pytest.mark.parametrize("min_score", [0, 0.0, None])
    async def test_a_threshold_of_nothing_leaves_nothing_out(self, memory: Memories, min_score: float | None) -> None:
        await memory.add(*NOTES)

        assert len(await memory.search(QUERY, min_score=min_score)) == len(NOTES)

    async def test_a_limit_is_of_what_passes_the_threshold(self, memory: Memories) -> None:
        await memory.add(*NOTES)
        scores = await memory.scores(QUERY)
        floor = sorted(scores.values())[2]

        passing = [text for text, score in scores.items() if score >= floor]

        assert await memory.found(QUERY, limit=2, min_score=floor) == passing[:2]

    # What is out of sight

    async def test_another_user_s_entries_never_change_a_score(self, memory: Memories) -> None:
        await memory.add(*NOTES)
        before = await memory.scores(QUERY)

        await memory.user("ben").add(*NOTES, *NOTES, "green " * 50)

        assert await memory.scores(QUERY) == before

    async def test_another_app_s_entries_never_change_a_score(self, memory: Memories) -> None:
        await memory.add(*NOTES)
        before = await memory.scores(QUERY)

        await memory.app(memory.app_name + "-other").add(*NOTES, *NOTES, "green " * 50)

        assert await memory.scores(QUERY) == before

    @pytest.mark.parametrize("project", [None, "A"])
    async def test_another_project_s_entries_never_change_a_score(self, memory: Memories, project: str | None) -> None:
        await memory.project(project).add(*NOTES)
        before = await memory.project(project).scores(QUERY)

        await memory.project("B").add(*NOTES, *NOTES, "green " * 50)

        assert await memory.project(project).scores(QUERY) == before

    async def test_global_and_project_entries_in_sight_are_scored_as_one(self, memory: Memories) -> None:
        together, apart = memory.user("ana"), memory.user("ben")
        for number, note in enumerate(NOTES):
            entry = MemoryEntry(note, timestamp=f"2024-05-0{number + 1}")
            await together.add(entry, session=f"s{number}")
            await apart.project("A" if number % 2 else None).add(entry, session=f"s{number}")

        assert await apart.project("A").scores(QUERY) == pytest.approx(await together.scores(QUERY))

    async def test_erased_entries_no_longer_change_a_score(self, memory: Memories) -> None:
        await memory.add(*NOTES)
        before = await memory.scores(QUERY)
        await memory.add(*NOTES, "green " * 50, session="s2")

        await memory.delete_session("s2")

        assert await memory.scores(QUERY) == before

    async def test_rewritten_entries_are_scored_as_they_are_now(self, memory: Memories) -> None:
        entries = [MemoryEntry(note, id=f"e{number}", timestamp="2024-05-01") for number, note in enumerate(NOTES)]
        await memory.user("ben").add(*entries)
        await memory.add(*(MemoryEntry("green " * 30, id=entry.id) for entry in entries))

        await memory.add(*entries)

        assert await memory.scores(QUERY) == await memory.user("ben").scores(QUERY)
