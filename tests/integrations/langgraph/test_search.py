"""What a search of a LangGraph store finds by filters and words."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph-checkpoint is not installed")

from langgraph.store.base import PutOp

from adk_memory import InMemoryMemoryService, ValidationError
from adk_memory.integrations.langgraph import AdkMemoryStore
from adk_memory.testing import ToyEmbedder

STORED: Final[dict[str, dict[str, Any]]] = {
    "nine": {"n": 9, "s": "apple", "b": True, "tags": ["draft"], "user": {"access-level": "nested", "deep": {"x": 1}}},
    "ten": {"n": 10, "s": "banana", "b": False, "tags": ["draft", "new"], "user.access-level": "nested"},
    "half": {"n": 9.5, "s": "Äpfel", "first name": "Ana", "tags": []},
    "big": {"n": 10**25, "s": "10", "none": None},
    "text": {"n": "9", "s": "O'Brien", "b": 1},
    "nothing": {},
}
ALL: Final = set(STORED)
FILTERS: Final[list[tuple[Any, set[str]]]] = [
    (None, ALL),
    ({}, ALL),
    ({"n": 9}, {"nine"}),
    ({"n": 9.0}, {"nine"}),
    ({"n": "9"}, {"text"}),
    ({"n": {"$eq": 10}}, {"ten"}),
    ({"n": {"$ne": 10}}, ALL - {"ten"}),
    ({"n": {"$gt": 9}}, {"ten", "half", "big"}),
    ({"n": {"$gte": 9.5}}, {"ten", "half", "big"}),
    ({"n": {"$lt": 10}}, {"nine", "half"}),
    ({"n": {"$lte": 9}}, {"nine"}),
    ({"n": {"$gt": 9, "$lt": 10}}, {"half"}),
    ({"n": {"$gte": 10**25}}, {"big"}),
    ({"n": {"$gt": 10**25}}, set()),
    ({"n": {"$lt": math.inf}}, {"nine", "ten", "half", "big"}),
    ({"n": {"$gt": -math.inf}}, {"nine", "ten", "half", "big"}),
    ({"n": {"$eq": math.nan}}, set()),
    ({"n": {"$ne": math.nan}}, ALL),
    ({"n": {"$lt": 10**400}}, {"nine", "ten", "half", "big"}),
    ({"s": {"$gt": "apple"}}, {"ten", "half"}),
    ({"s": {"$lte": "apple"}}, {"nine", "big", "text"}),
    ({"s": "O'Brien"}, {"text"}),
    ({"s": "' OR '1'='1"}, set()),
    ({"s": "public\0' OR '1'='1"}, set()),
    ({"b": True}, {"nine"}),
    ({"b": 1}, {"text"}),
    ({"b": {"$ne": True}}, ALL - {"nine"}),
    ({"none": None}, ALL),
    ({"n": None}, {"nothing"}),
    ({"n": {"$ne": None}}, ALL - {"nothing"}),
    ({"tags": ["draft"]}, {"nine"}),
    ({"tags": ("draft", "new")}, {"ten"}),
    ({"tags": {"$eq": []}}, {"half"}),
    ({"tags": {"$ne": ["draft"]}}, ALL - {"nine"}),
    ({"first name": "Ana"}, {"half"}),
    ({"user.access-level": "nested"}, {"nine", "ten"}),
    ({"user.deep.x": {"$gte": 1}}, {"nine"}),
    ({"user.deep.x.y": 1}, set()),
    ({"user": {"deep": {"x": 1}}}, {"nine"}),
    ({"user": {"deep": {"x": {"$lt": 1}}}}, set()),
    ({"user": {"$eq": {"deep": {"x": 1}}}}, set()),
    ({"n": 9, "s": "apple"}, {"nine"}),
    ({"n": 9, "s": "banana"}, set()),
]


def test_a_filter_passes_what_it_says(store: AdkMemoryStore) -> None:
    store.batch([PutOp(("a",), key, value) for key, value in STORED.items()])

    found = [set(_keys(store.search(("a",), filter=filter))) for filter, _ in FILTERS]
    ranked = [set(_keys(store.search(("a",), query="apple n", filter=filter))) for filter, _ in FILTERS]

    expected = [passing for _, passing in FILTERS]
    assert [(case, got) for case, got in zip(FILTERS, found, strict=True) if got != case[1]] == []
    assert ranked == expected


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({"n": {"$in": [1]}}, "Unsupported operator"),
        ({"n": {"$regex": "x"}}, "Unsupported operator"),
        ({"n": {"$gt": 1, "x": 2}}, "Unsupported operator"),
        ({"user": {"deep": {"$or": []}}}, "Unsupported operator"),
        ({"$or": []}, "Invalid filter key"),
        ({"x') = 'y' OR json_extract(value, '$.": "z"}, "Invalid filter key"),
        ({1: 2}, "Invalid filter key"),
        ({"n": {"$gt": None}}, "number or a string"),
        ({"n": {"$gt": True}}, "number or a string"),
        ({"n": datetime(2024, 5, 1)}, "JSON"),  # noqa: DTZ001
        ([("n", 1)], "mapping"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(filter: Any, message: str) -> None:
    with AdkMemoryStore("memory://") as store, pytest.raises(ValidationError, match=message):
        store.search((), filter=filter)


def _keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


def test_a_query_ranks_and_never_filters(store: AdkMemoryStore) -> None:
    texts = {"tea": "green tea", "coffee": "black coffee", "cat": "a cat", "both": "tea and coffee, and then tea"}
    for key, text in texts.items():
        store.put(("a", key), key, {"text": text})

    found = store.search(("a",), query="tea")

    assert sorted(_keys(found[:2])) == ["both", "tea"]
    assert [(item.key, item.score) for item in found[2:]] == [("cat", None), ("coffee", None)]
    assert found[0].score >= found[1].score > 0
    pages = [store.search(("a",), query="tea", limit=1, offset=offset) for offset in range(5)]
    assert [key for page in pages for key in _keys(page)] == _keys(found)
    assert _keys(store.search(("a",), query="tea", filter={"text": "a cat"})) == ["cat"]


@pytest.mark.parametrize("query", ["", "!!!", "\0", "tea" * 2_000, "NOT (tea OR", "日本"])
def test_any_query_is_a_text(store: AdkMemoryStore, query: str) -> None:
    store.put(("a",), "k", {"text": "green tea"})

    assert _keys(store.search(("a",), query=query)) == ["k"]


def test_what_is_not_indexed_is_not_matched(make_store: Callable[..., AdkMemoryStore]) -> None:
    store = make_store(index={"fields": ["title", "parts[*].text"]})
    value = {"title": "tea", "parts": [{"text": "coffee"}, {"text": "cocoa"}], "other": "water"}
    store.put(("a",), "default", value)
    store.put(("a",), "none", value, index=False)
    store.put(("a",), "own", value, index=["other"])

    def matched(query: str) -> set[str]:
        return {item.key for item in store.search(("a",), query=query) if item.score is not None}

    assert [matched(word) for word in ("tea", "cocoa", "water")] == [{"default"}, {"default"}, {"own"}]
    store.put(("a",), "default", {"title": "milk"})
    assert [matched(word) for word in ("cocoa", "milk")] == [set(), {"default"}]


def test_a_service_ranks_with_its_own_embedder() -> None:
    with AdkMemoryStore(InMemoryMemoryService(embedder=ToyEmbedder())) as store:
        store.put(("a",), "tea", {"text": "green tea"})
        store.put(("a",), "cat", {"text": "a cat"})

        assert _keys(store.search(("a",), query="some tea"))[0] == "tea"
