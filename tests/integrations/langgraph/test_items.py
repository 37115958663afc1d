"""A LangGraph store keeps items exactly, namespace by namespace, on every backend."""

from __future__ import annotations

from typing import Any, Final

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph-checkpoint is not installed")

from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from adk_memory import ValidationError
from adk_memory.integrations.langgraph import AdkMemoryStore

VALUES: Final[list[dict[str, Any]]] = [
    {},
    {"a": None, "b": True, "c": -0.5, "d": 10**30, "e": 1.0, "f": "", "g": [], "h": {}},
    {"deep": [{"er": [[1, [2, {"est": "日本語 \U0001f600 é e\u0301"}]]]}]},
    {"key": "x", "value": "y", "expires_at": 0, "created_at": "z", "": {"": ""}},
    {"quotes": "'; DROP TABLE adk_memory_entry; --", "escapes": "\\u0000 \n\t\x7f"},
]


def _keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


@pytest.mark.parametrize("key", ["k", "", "0", "+", "=k", "a/b.c", "日本", "x" * 255, "x" * 256, "x" * 5_000])
def test_an_item_is_read_as_it_was_put(store: AdkMemoryStore, key: str) -> None:
    for value in VALUES:
        store.put(("a", "b"), key, value)

        item = store.get(("a", "b"), key)
        [found] = store.search(("a",))
        assert item is not None
        assert (item.namespace, item.key, item.value) == (("a", "b"), key, value)
        assert (found.namespace, found.key, found.value, found.score) == (("a", "b"), key, value, None)
        assert type(item.value.get("e")) is type(value.get("e"))


def test_long_keys_are_not_taken_for_each_other(store: AdkMemoryStore) -> None:
    keys = ["x" * 256, "x" * 257, "x" * 256 + "y"]
    store.batch([PutOp(("a",), key, {"key": key}) for key in keys])

    assert [item.value["key"] for item in store.batch([GetOp(("a",), key) for key in keys])] == keys
    store.delete(("a",), keys[1])
    assert sorted(_keys(store.search(("a",)))) == [keys[0], keys[2]]


def test_what_is_not_there_is_none(store: AdkMemoryStore) -> None:
    store.put(("a",), "k", {"n": 1})

    assert store.get(("a",), "K") is None
    assert store.get(("a", "b"), "k") is None
    assert store.batch([GetOp((), "k")]) == [None]


def test_an_item_that_is_put_again_keeps_when_it_was_made(store: AdkMemoryStore) -> None:
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")

    assert first is not None
    assert second is not None
    assert first.created_at == first.updated_at == second.created_at < second.updated_at
    assert second.created_at.utcoffset() is not None


def test_a_deleted_item_is_gone_and_comes_back_as_a_new_one(store: AdkMemoryStore) -> None:
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.delete(("a",), "k")

    assert store.get(("a",), "k") is None
    assert store.search(()) == []
    assert store.list_namespaces() == []
    store.delete(("a",), "k")
    store.put(("a",), "k", {"n": 1})
    again = store.get(("a",), "k")
    assert first is not None
    assert again is not None
    assert again.created_at > first.created_at


@pytest.mark.parametrize("value", [{"x": float("nan")}, {1: 2}, {"x": object()}, [1], "text", 7])
def test_what_json_can_not_hold_is_refused(store: AdkMemoryStore, value: Any) -> None:
    with pytest.raises(ValidationError):
        store.put(("a",), "k", value)

    assert store.get(("a",), "k") is None


def test_a_key_that_could_not_be_returned_as_it_is_is_refused(store: AdkMemoryStore) -> None:
    with pytest.raises(ValidationError, match="key"):
        store.put(("a",), "a\0b", {})


def test_items_of_two_apps_are_apart(sqlite_url: str) -> None:
    with AdkMemoryStore(sqlite_url, app_name="one") as one, AdkMemoryStore(sqlite_url, app_name="two") as two:
        one.put(("a",), "k", {"n": 1})

        assert two.get(("a",), "k") is None
        assert two.search(()) == []


def test_what_reads_comes_before_what_writes_and_the_last_put_counts(store: AdkMemoryStore) -> None:
    store.put(("a",), "old", {"n": 0})

    results = store.batch(
        iter(
            [
                PutOp(("a",), "new", {"n": 1}),
                GetOp(("a",), "new"),
                PutOp(("a",), "old", None),
                SearchOp(("a",)),
                PutOp(("a",), "new", {"n": 2}),
                GetOp(("a",), "old"),
                ListNamespacesOp(),
                PutOp(("b",), "other", {"n": 3}),
            ]
        )
    )

    assert [results[number] for number in (0, 1, 2, 4, 7)] == [None] * 5
    assert _keys(results[3]) == ["old"]
    assert isinstance(results[5], Item)
    assert results[6] == [("a",)]
    assert [(item.key, item.value) for item in store.search(())] == [("other", {"n": 3}), ("new", {"n": 2})]


@pytest.mark.parametrize("namespace", [("foo.bar",), ("foo", ""), ("foo", 1), ("\0",), ("\ud800",), ("x" * 257,)])
@pytest.mark.parametrize("kind", ["get", "put", "delete", "search", "prefix", "suffix"])
def test_nothing_of_a_batch_is_written_where_a_namespace_is_wrong(namespace: Any, kind: str) -> None:
    operations = {
        "get": GetOp(namespace, "k"),
        "put": PutOp(namespace, "k", {}),
        "delete": PutOp(namespace, "k", None),
        "search": SearchOp(namespace),
        "prefix": ListNamespacesOp((MatchCondition("prefix", namespace),)),
        "suffix": ListNamespacesOp((MatchCondition("suffix", namespace),)),
    }

    with AdkMemoryStore("memory://") as store:
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("valid",), "k", {}), operations[kind]])

        assert store.get(("valid",), "k") is None


@pytest.mark.parametrize(
    "op",
    [
        PutOp((), "k", {}), PutOp(("a",), "k", {"x": {1, 2}}), PutOp(("a",), "k", {}, ttl=-1), SearchOp((), limit=-1),
        PutOp(("a",), "k", {}, ttl=float("nan")), PutOp(("a",), "k", {}, index="text"), SearchOp((), offset=-1),
        SearchOp((), {"x": {"$in": [1]}}), ListNamespacesOp(limit=-1), ListNamespacesOp(max_depth=-1),
        ListNamespacesOp((MatchCondition("infix", ("a",)),)), "no operation",
    ],
)  # fmt: skip
def test_nothing_of_a_batch_is_written_where_an_operation_is_wrong(op: Any) -> None:
    with AdkMemoryStore("memory://") as store:
        with pytest.raises(ValueError):  # noqa: PT011 - ours and LangGraph's are both one
            store.batch([PutOp(("valid",), "k", {}), op])

        assert store.get(("valid",), "k") is None
