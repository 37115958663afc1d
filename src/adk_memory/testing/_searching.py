"""Search: any word matches, a query is text and never syntax, and a limit is a limit."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adk_memory import MemoryEntry, SearchRequest, ValidationError
from adk_memory.testing._base import ContractBase, Memories

NOTE: Final = "the deploy script lives in tools/run.py, ask bob@example.com about the multi-agent plan"
HOSTILE: Final = [
    "don't forget deploy", "deploy?", "e=mc2 deploy", "#deploy [x]", "deploy, b", "v1.2.3 deploy", "C++ deploy",
    "(deploy", "deploy)", '"deploy', 'deploy"', '""deploy""', "'deploy", "deploy''", "50% off deploy", "deploy*",
    "*deploy", "^deploy", "deploy^", "-deploy", "+deploy", "!deploy", "~deploy", "deploy~2", "deploy:*", "deploy:",
    ":deploy", "deploy & ", "& deploy", "deploy |", "deploy && x", "deploy <-> x", "deploy <2> x", "!!deploy",
    "NOT deploy", "deploy NOT", "deploy NOT plan", "plan -deploy", "deploy AND", "AND deploy", "deploy AND zebra",
    "OR deploy", "deploy OR OR", "NEAR deploy", "NEAR(deploy x)", "NEAR(deploy, 2)", "deploy NEAR/2 zebra",
    "{text}: deploy", "{author}: deploy", "text: deploy", "text:deploy", "content:deploy", "terms:deploy",
    "-text:deploy", "rowid:deploy", "rank:deploy", "adk_memory_search_entry: deploy", "scope_id:deploy",
    "deploy; DROP TABLE adk_memory_entry; --", "deploy' OR '1'='1", "deploy\\", "\\deploy", "\\'deploy",
    "deploy\\u0000", "deploy\0", "\0deploy", "a\0deploy", "deploy \ud800", "deploy %s %(x)s {} {0} :name $1 ?",
    "%deploy%", "_deploy_", "deploy\n\r\t", "/*deploy*/", "deploy --", "$$deploy$$", "<b>deploy</b>", "&lt;deploy",
    "@7 deploy", "'@7' deploy", "1_deploy deploy", "[deploy]", "{deploy}", "deploy\u202e", "\ufeffdeploy", "DEPLOY",
    "Deploy", "deploy " * 40_000, " ".join(f"w{n}" for n in range(200)) + " deploy",
]  # fmt: skip
QUESTIONS: Final = [
    "tools/run.py", "run.py", "run", "tools", "bob@example.com", "bob", "example", "multi-agent", "multi", "agent",
    "which plan did Bob have?", "zebra plan", "the plan zebra quagga",
]  # fmt: skip
WORDLESS: Final = ["", " ", "\n\t", "!!! ???", '""', "*", "''", "()", "-", "%", "\0", "\ud800", "^:*&|!<->", "…"]
HUGE: Final = [
    pytest.param(" ".join(f"w{number}" for number in range(200_000)), id="200,000 words"),
    pytest.param("a " * 100_000, id="one word 100,000 times"),
    pytest.param("z" * 1_000_000, id="one word of 1,000,000 characters"),
    pytest.param("語" * 50_000, id="50,000 characters without a space"),
    pytest.param('"' * 50_000 + "(" * 50_000, id="brackets"),
]
LIMITS: Final = [pytest.param(-1, id="negative"), "3", 1.5, True, [3]]


class SearchingContract(ContractBase):
    @pytest.mark.parametrize("query", QUESTIONS)
    async def test_any_word_of_the_query_matches(self, memory: Memories, query: str) -> None:
        await memory.add(NOTE, "an unrelated remark")

        assert await memory.found(query) == [NOTE]

    @pytest.mark.parametrize("query", HOSTILE, ids=lambda query: query[:24].encode("unicode-escape").decode())
    async def test_a_query_is_text_and_never_syntax(self, memory: Memories, query: str) -> None:
        await memory.add(NOTE)

        assert await memory.found(query) == [NOTE]

    @pytest.mark.parametrize("query", ["zebra NOT deploy", "zebra -deploy", "zebra AND deploy", "^deploy zebra"])
    async def test_no_word_of_a_query_excludes_requires_or_anchors(self, memory: Memories, query: str) -> None:
        await memory.add("we deploy on Mondays", "a zebra crossing")

        assert set(await memory.found(query)) == {"we deploy on Mondays", "a zebra crossing"}

    @pytest.mark.parametrize("query", ["deploy\ud800", "author ana s1", "1", "entry scope adk memory", "null"])
    async def test_a_query_can_not_address_what_is_stored_beside_the_text(self, memory: Memories, query: str) -> None:
        await memory.add("green tea")

        assert await memory.found(query) == []

    @pytest.mark.parametrize("query", WORDLESS)
    async def test_a_query_without_a_word_matches_nothing(self, memory: Memories, query: str) -> None:
        await memory.add(NOTE, "!!! ???", " ", '""')

        assert await memory.found(query) == []

    @pytest.mark.parametrize("query", ["tea", *WORDLESS])
    async def test_an_empty_store_answers_with_nothing(self, memory: Memories, query: str) -> None:
        response = await memory.search(query)

        assert (len(response), response.mode, response.partial) == (0, "keyword", False)

    @pytest.mark.parametrize("query", HUGE)
    async def test_a_huge_query_is_answered(self, memory: Memories, query: str) -> None:
        await memory.add("green tea")

        assert await memory.found(query) == []

    @pytest.mark.parametrize("query", ["the", "who", "the who", "not", "it is", "and or"])
    async def test_common_words_are_found_where_the_query_has_no_others(self, memory: Memories, query: str) -> None:
        await memory.add("it is not the who and or")

        assert await memory.found(query) == ["it is not the who and or"]

    @pytest.mark.parametrize("query", ["prefer", "preferred", "seats", "flight", "flights", "Windows"])
    async def test_forms_of_a_word_match_each_other(self, memory: Memories, query: str) -> None:
        await memory.add("She prefers a window seat on long flights")

        assert len(await memory.search(query)) == 1

    async def test_an_entry_is_not_found_for_its_neighbours(self, memory: Memories) -> None:
        await memory.add("do you like tea?", "yes, very much", "and with milk?")

        assert await memory.found("tea") == ["do you like tea?"]

    async def test_an_entry_is_not_found_for_its_author(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", author="Charlotte"))

        assert await memory.found("what did Charlotte say?") == []

    async def test_a_response_reads_like_the_list_of_its_memories(self, memory: Memories) -> None:
        await memory.add("green tea", "black tea")

        response = await memory.search("tea")

        assert list(response) == list(response.memories) == list(response.entries)
        assert (response[0], len(response)) == (response.memories[0], 2)

    @pytest.mark.parametrize(("limit", "count"), [(0, 0), (1, 1), (3, 3), (12, 12), (10**9, 12), (None, 10)])
    async def test_a_limit_is_the_most_that_is_returned(self, memory: Memories, limit: int | None, count: int) -> None:
        await memory.add(*(f"tea {number}" for number in range(12)))

        assert len(await memory.search("tea", limit=limit)) == count

    async def test_ten_is_the_limit_where_none_is_given(self, memory: Memories) -> None:
        await memory.add(*(f"tea {number}" for number in range(12)))

        assert len(await memory.service.search(SearchRequest("tea", memory.app_name, "ana"))) == 10

    async def test_a_limit_above_a_thousand_is_a_thousand(self, memory: Memories) -> None:
        await memory.add(*(f"tea {number}" for number in range(1_001)))

        assert len(await memory.search("tea", limit=2_000)) == 1_000

    async def test_a_limit_cuts_the_tail_of_the_same_answer(self, memory: Memories) -> None:
        await memory.add(*("tea " * (number % 7 + 1) + f"cup {number}" for number in range(30)))
        whole = await memory.found("tea cup", limit=30)

        assert [await memory.found("tea cup", limit=limit) for limit in (1, 5, 20)] == [
            whole[:1], whole[:5], whole[:20],
        ]  # fmt: skip

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_a_negative_limit_or_one_that_is_no_integer_is_refused(self, limit: Any) -> None:
        with pytest.raises((ValidationError, TypeError), match="limit"):
            SearchRequest("tea", "app", "ana", limit=limit)

    @pytest.mark.parametrize("query", [None, 7, b"tea", ["tea"]])
    async def test_a_query_that_is_no_text_is_refused(self, query: Any) -> None:
        with pytest.raises((ValidationError, TypeError), match="query"):
            SearchRequest(query, "app", "ana")

    @pytest.mark.parametrize("min_score", [float("nan"), float("inf"), "0.5", True])
    async def test_a_threshold_that_is_no_number_is_refused(self, min_score: Any) -> None:
        with pytest.raises((ValidationError, TypeError), match="min_score"):
            SearchRequest("tea", "app", "ana", min_score=min_score)
