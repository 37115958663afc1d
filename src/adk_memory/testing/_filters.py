"""Filters: they narrow what is returned, before the limit, and mean the same on every backend."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adk_memory import Author, Filter, MemoryEntry, Metadata, SearchRequest, Session, Time, ValidationError
from adk_memory.filters import AllOf, AnyOf, Not
from adk_memory.testing._base import ContractBase, Memories, texts
from adk_memory.testing._embedder import ToyEmbedder

VALUES: Final[dict[str, Any]] = {  # by text: what the metadata holds under "k"
    "minus": -7, "zero": 0, "minus zero": -0.0, "one": 1, "one point": 1.0, "half": 0.5, "sum": 0.1 + 0.2,
    "big": 2**53 + 1, "big point": 2.0**53, "bigger": 10**30, "bigger point": 1e30, "huge": 10**400, "largest": 1e308,
    "tiny": 5e-324, "true": True, "false": False, "null": None, "empty": "", "text one": "1", "text true": "true",
    "A": "A", "a": "a", "é": "é", "e\u0301": "e\u0301", "ﬀ": "ﬀ", "🍕": "🍕", "list": [1, "a"], "object": {"k": 1},
}  # fmt: skip
MISSING: Final = "missing"
NUMBERS: Final = [
    "minus", "zero", "minus zero", "one", "one point", "half", "sum", "big", "big point", "bigger", "bigger point",
    "huge", "largest", "tiny",
]  # fmt: skip
PASSING: Final[list[tuple[str, Any, list[str]]]] = [  # the operator, its value, and what passes
    ("eq", 1, ["one", "one point"]),
    ("eq", 1.0, ["one", "one point"]),
    ("eq", 0, ["zero", "minus zero"]),
    ("eq", -0.0, ["zero", "minus zero"]),
    ("eq", 0.3, []),
    ("eq", 0.30000000000000004, ["sum"]),
    ("eq", 2**53 + 1, ["big"]),
    ("eq", 2**53, ["big point"]),
    ("eq", 10**30, ["bigger"]),
    ("eq", 1e30, ["bigger point"]),
    ("eq", 10**400, ["huge"]),
    ("eq", "1", ["text one"]),
    ("eq", "", ["empty"]),
    ("eq", True, ["true"]),
    ("eq", False, ["false"]),
    ("eq", None, ["null"]),
    ("eq", "true", ["text true"]),
    ("eq", "a", ["a"]),
    ("eq", "é", ["é"]),
    ("eq", "e\u0301", ["e\u0301"]),
    ("eq", "%", []),
    ("ne", "a", [*(text for text in VALUES if text != "a"), MISSING]),
    ("ne", True, [*(text for text in VALUES if text != "true"), MISSING]),
    ("ne", 1, [*(text for text in VALUES if text not in ("one", "one point")), MISSING]),
    ("ne", None, [*(text for text in VALUES if text != "null"), MISSING]),
    ("in", [1, "a", None], ["one", "one point", "null", "a"]),
    ("in", ("1", True), ["text one", "true"]),
    ("in", [], []),
    ("gt", 1, ["big", "big point", "bigger", "bigger point", "huge", "largest"]),
    ("gte", 1.0, ["one", "one point", "big", "big point", "bigger", "bigger point", "huge", "largest"]),
    ("gt", 2.0**53, ["big", "bigger", "bigger point", "huge", "largest"]),
    ("gte", 10**30, ["bigger", "bigger point", "huge", "largest"]),
    ("gt", 10**30, ["bigger point", "huge", "largest"]),
    ("gt", 1e308, ["huge"]),
    ("gt", 10**401, []),
    ("lt", 10**401, NUMBERS),
    ("gt", -(10**401), NUMBERS),
    ("lt", 0, ["minus"]),
    ("lte", 0, ["minus", "zero", "minus zero"]),
    ("lt", 5e-324, ["minus", "zero", "minus zero"]),
    ("lte", 0.3, ["minus", "zero", "minus zero", "tiny"]),
    ("lt", "A", ["empty", "text one"]),
    ("gte", "a", ["text true", "a", "é", "e\u0301", "ﬀ", "🍕"]),
    ("gt", "é", ["ﬀ", "🍕"]),
    ("gt", "ﬀ", ["🍕"]),
    ("exists", True, [*VALUES]),
    ("exists", False, [MISSING]),
]
KEYS: Final = [
    "", " ", "a.b", "a b", '"', "'", "\\", "$", "$.k", "[0]", "0", "#-1", "%", "_", "%s", "?", ":k", "{}", "é", "緑茶",
    "🍕", "\n", "\u0001", "null", "k' OR '1'='1", "k\0", "k\ud800", "k" * 5_000,
]  # fmt: skip
REFUSED: Final[dict[str, Any]] = {
    "an unknown operator": lambda: Metadata("k", "like", "a"),  # type: ignore[arg-type]
    "a missing value": lambda: Metadata("k", "eq"),
    "a key that is a number": lambda: Metadata(7, "eq", 1),  # type: ignore[arg-type]
    "a path with a number": lambda: Metadata(["k", 0], "eq", 1),  # type: ignore[list-item]
    "an empty path": lambda: Metadata([], "eq", 1),
    "a long path": lambda: Metadata(["k"] * 21, "eq", 1),
    "a value that is a list": lambda: Metadata("k", "eq", [1]),
    "a value that is an object": lambda: Metadata("k", "eq", {"n": 1}),
    "no number": lambda: Metadata("k", "gt", float("nan")),
    "an infinite number": lambda: Metadata("k", "in", [1, float("inf")]),
    "an order of booleans": lambda: Metadata("k", "gt", True),
    "an order of nulls": lambda: Metadata("k", "lte", None),
    "in without a list": lambda: Metadata("k", "in", "abc"),
    "exists with a text": lambda: Metadata("k", "exists", "yes"),
    "no author": Author,
    "an author that is a number": lambda: Author(7),  # type: ignore[arg-type]
    "no session": Session,
    "an empty session": lambda: Session(""),
    "no instant": Time,
    "a text that is no instant": lambda: Time(since="yesterday"),
    "a combination of nothing": AllOf,
    "a combination with a text": lambda: AnyOf(Author("ana"), "ben"),  # type: ignore[arg-type]
    "the negation of nothing": lambda: Not(None),  # type: ignore[arg-type]
    "too many conditions": lambda: AnyOf(*(Author("ana") for _ in range(201))),
    "too many values": lambda: Metadata("k", "in", range(1_001)),
    "too many levels": lambda: _nested(21),
    "a request with a mapping": lambda: SearchRequest("tea", "app", "ana", filter={"k": 1}),  # type: ignore[arg-type]
}


def _nested(levels: int) -> Filter:
    found: Filter = Author("ana")
    for _ in range(levels - 1):
        found = ~found
    return found


class FiltersContract(ContractBase):
    @pytest.mark.parametrize(("operator", "value", "passing"), PASSING, ids=lambda value: repr(value)[:24])
    async def test_metadata_is_compared_by_kind_and_exactly(
        self, memory: Memories, operator: Any, value: Any, passing: list[str]
    ) -> None:
        await memory.add(*(MemoryEntry(text, metadata={"k": held}) for text, held in VALUES.items()), MISSING)

        listed = texts(await memory.recent(filter=Metadata("k", operator, value)))

        assert sorted(listed) == sorted(passing)

    @pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:24].encode("unicode-escape").decode())
    async def test_a_key_is_a_name_and_never_syntax(self, memory: Memories, key: str) -> None:
        await memory.add(
            MemoryEntry("held", metadata={key: "green"}),
            MemoryEntry("in another value", metadata={"other": [key, "green", {key: "green"}]}),
            MemoryEntry("inside", metadata={"k": {key: "green"}, "b": [{"a": {"b": "green"}}]}),
        )

        assert texts(await memory.recent(filter=Metadata(key, "eq", "green"))) == ["held"]
        assert texts(await memory.recent(filter=Metadata(["k", key], "eq", "green"))) == ["inside"]
        assert texts(await memory.recent(filter=~Metadata(["other", key], "exists"))) == [
            "inside",
            "in another value",
            "held",
        ]

    async def test_a_path_leads_into_objects_and_not_into_lists(self, memory: Memories) -> None:
        await memory.add(
            MemoryEntry("object", metadata={"a": {"b": {"0": 7}}}),
            MemoryEntry("list", metadata={"a": {"b": [7]}}),
            MemoryEntry("text", metadata={"a": '{"b": {"0": 7}}'}),
            MemoryEntry("dotted", metadata={"a.b.0": 7}),
        )

        assert texts(await memory.recent(filter=Metadata(("a", "b", "0"), "eq", 7))) == ["object"]

    async def test_authors_are_compared_exactly(self, memory: Memories) -> None:
        names = ["ana", "Ana", "ana ", "", "a_a", "anä", "'"]
        await memory.add(*(MemoryEntry(f"by {name}", author=name) for name in names))

        for name in names:
            assert texts(await memory.recent(filter=Author(name))) == [f"by {name}"]
        assert set(texts(await memory.recent(filter=Author("ana", "Ana", "ben")))) == {"by ana", "by Ana"}

    async def test_a_session_is_that_of_the_entry_and_none_is_no_session(self, memory: Memories) -> None:
        await memory.add("one", session="s1")
        await memory.add("two", session="S1")
        await memory.add_entry("alone")

        assert texts(await memory.recent(filter=Session("s1"))) == ["one"]
        assert texts(await memory.recent(filter=Session(None))) == ["alone"]
        assert texts(await memory.recent(filter=Session("S1", None))) == ["alone", "two"]

    async def test_a_time_window_has_its_beginning_and_not_its_end(self, memory: Memories) -> None:
        instants = ["2024-05-01T12:00:00", "2024-05-01T12:00:00.000001", "2024-05-01T12:00:00.000002"]
        await memory.add(*(MemoryEntry(instant, timestamp=instant) for instant in instants))

        assert texts(await memory.recent(filter=Time(since=instants[1]))) == instants[:0:-1]
        assert texts(await memory.recent(filter=Time(before=instants[1]))) == instants[:1]
        assert texts(await memory.recent(filter=Time(since=instants[1], before=instants[2]))) == [instants[1]]
        assert texts(await memory.recent(filter=Time(since="2024-05-01T14:00:00.000002+02:00"))) == [instants[2]]
        assert texts(await memory.recent(filter=Time(since=instants[2], before=instants[0]))) == []

    async def test_filters_are_combined_with_and_or_and_not(self, memory: Memories) -> None:
        await memory.add(
            *(MemoryEntry(f"{who} {n}", author=who, metadata={"n": n}) for who in ("ana", "ben") for n in range(3))
        )
        ana, two, one = Author("ana"), Metadata("n", "eq", 2), Metadata("n", "eq", 1)

        assert set(texts(await memory.recent(filter=ana & two))) == {"ana 2"}
        assert set(texts(await memory.recent(filter=~ana & (one | two)))) == {"ben 1", "ben 2"}
        assert set(texts(await memory.recent(filter=ana | two))) == {"ana 0", "ana 1", "ana 2", "ben 2"}
        assert set(texts(await memory.recent(filter=~(ana | two)))) == {"ben 0", "ben 1"}
        assert set(texts(await memory.recent(filter=~~two))) == {"ana 2", "ben 2"}

    async def test_an_entry_passes_a_filter_or_its_negation(self, memory: Memories) -> None:
        await memory.add(*(MemoryEntry(text, metadata={"k": held}) for text, held in VALUES.items()), MISSING)
        everything = sorted([*VALUES, MISSING])

        for operator, value, _ in PASSING:
            asked = Metadata("k", operator, value)  # type: ignore[arg-type]
            found = texts(await memory.recent(filter=asked)) + texts(await memory.recent(filter=~asked))
            assert sorted(found) == everything, asked

    async def test_a_filter_of_the_greatest_size_is_answered(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("green tea", metadata={"k": 999, "s": "999"}))

        many = [Metadata("k", "eq", number) for number in range(199)]
        assert await memory.found("tea", filter=AnyOf(*many, Author("user"))) == ["green tea"]
        assert await memory.found("tea", filter=Metadata("k", "in", range(1_000))) == ["green tea"]
        assert await memory.found("tea", filter=Metadata("s", "in", map(str, range(1_000)))) == ["green tea"]
        assert await memory.found("tea", filter=_nested(19)) == []
        assert await memory.found("tea", filter=Author(*map(str, range(999)), "user")) == ["green tea"]

    async def test_a_filter_is_applied_before_the_limit(self, memory: Memories) -> None:
        await memory.add(*(MemoryEntry(f"tea {n}", metadata={"n": n}) for n in range(30)))

        assert len(await memory.search("tea", limit=3, filter=Metadata("n", "lt", 5))) == 3
        assert texts(await memory.recent(2, filter=Metadata("n", "lt", 5))) == ["tea 4", "tea 3"]

    async def test_a_filter_changes_no_score_by_words(self, memory: Memories) -> None:
        remarks = ["where is the green tea?", "in the kitchen, green tin", "and the black tea?", "tea is out, sorry"]
        await memory.add(*(MemoryEntry(text, "ana" if n % 2 == 0 else "bot") for n, text in enumerate(remarks)))
        await memory.add(MemoryEntry("tea tea green", "ana"), session="s2")
        whole = await memory.scores("green tea", mode="keyword")

        narrowed = await memory.scores("green tea", mode="keyword", filter=Author("bot"))

        assert narrowed == {text: score for text, score in whole.items() if text in (remarks[1], remarks[3])}
        assert narrowed

    async def test_a_filter_reaches_beyond_a_thousand_better_matches(self, memory: Memories) -> None:
        await memory.add(*(f"tea tea tea {number}" for number in range(1_200)), session="many")
        await memory.add("a remark in which there is also some tea", session="few")

        few = await memory.found("tea", filter=Session("few"))
        many = await memory.search("tea", limit=1_000, filter=~Session("few"))

        assert few == ["a remark in which there is also some tea"]
        assert [found.session_id for found in many] == ["many"] * 1_000

    async def test_a_filter_never_widens_the_scope(self, memory: Memories) -> None:
        await memory.add("green tea")
        await memory.user("ben").add("black tea")
        anything = Author("user") | ~Author("user")

        assert await memory.found("tea", filter=anything) == ["green tea"]
        assert texts(await memory.recent(filter=anything)) == ["green tea"]

    async def test_a_filter_narrows_projects_like_anything_else(self, memory: Memories) -> None:
        await memory.add(MemoryEntry("global tea", "ana"), MemoryEntry("global coffee", "ben"))
        await memory.project("A").add(MemoryEntry("tea of A", "ana"), MemoryEntry("coffee of A", "ben"))
        await memory.project("B").add(MemoryEntry("tea of B", "ana"))

        assert set(texts(await memory.project("A").recent(filter=Author("ana")))) == {"global tea", "tea of A"}
        assert set(await memory.project("A").found("tea coffee", filter=Author("ben"))) == {
            "global coffee", "coffee of A",
        }  # fmt: skip

    @pytest.mark.parametrize("mode", ["vector", "hybrid"])
    async def test_the_nearest_are_those_of_the_entries_that_pass(
        self, embedded: Memories, embedder: ToyEmbedder, mode: Any
    ) -> None:
        rest = [0.0] * (embedder.dimensions - 2)
        directions = {"far": (0.6, 0.8), "farther": (0.5, 0.866), **{f"near {n}": (1.0, n / 1_000) for n in range(150)}}
        embedder.answers |= {text: [*direction, *rest] for text, direction in directions.items()}
        embedder.answers["query"] = [1.0, 0.0, *rest]
        await embedded.add(MemoryEntry("far", "ana"), session="s1")
        await embedded.add(MemoryEntry("farther", "ana"), session="s2")
        await embedded.add(*(MemoryEntry(text, "ben") for text in directions if text.startswith("near")), session="s3")

        found = await embedded.found("query", limit=5, mode=mode, filter=Author("ana"))

        assert found == ["far", "farther"]

    async def test_a_filter_changes_no_cosine(self, embedded: Memories) -> None:
        await embedded.add(*(MemoryEntry(f"tea number {n}", metadata={"n": n}) for n in range(20)))
        whole = await embedded.scores("tea number 7", mode="vector")

        narrowed = await embedded.scores("tea number 7", mode="vector", filter=Metadata("n", "gte", 5))

        assert narrowed == pytest.approx({f"tea number {n}": whole[f"tea number {n}"] for n in range(5, 20)}, abs=1e-6)

    @pytest.mark.parametrize("case", REFUSED)
    async def test_a_filter_that_means_nothing_is_refused_where_it_is_made(self, case: str) -> None:
        with pytest.raises(ValidationError):
            REFUSED[case]()

    @pytest.mark.parametrize("filter", [{"k": 1}, "author = 'ana'", 7, True])
    async def test_a_list_refuses_a_filter_that_is_none(self, memory: Memories, filter: Any) -> None:
        with pytest.raises(ValidationError, match="filter"):
            await memory.recent(filter=filter)
        with pytest.raises(ValidationError, match="filter"):
            await memory.page(filter=filter)

    async def test_a_filter_is_no_truth_value(self) -> None:
        with pytest.raises(TypeError):
            _ = Author("ana") and Author("ben")
