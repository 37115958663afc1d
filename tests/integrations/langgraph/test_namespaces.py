"""Namespaces are apart, and listed by their labels; their items are listed from the newest on."""

from __future__ import annotations

from typing import Any, Final

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph-checkpoint is not installed")

from langgraph.store.base import InvalidNamespaceError, PutOp

from adk_memory import InMemoryMemoryService
from adk_memory.integrations.langgraph import AdkMemoryStore

SIBLINGS: Final = [
    ("user",), ("user", "a"), ("user", "a", "b"), ("User",), ("user1",), ("user-a",), ("user a", "b"), ("users", "a"),
    ("us",), ("user_",), ("user%", "a"), ("user*",), ("user\n",), ("a", "user"),
]  # fmt: skip


def test_a_search_stays_within_its_prefix(store: AdkMemoryStore) -> None:
    store.batch([PutOp(namespace, "k", {"text": "tea"}) for namespace in SIBLINGS])

    for prefix in [*SIBLINGS, (), ("u",), ("user", "a", "b", "c"), ("_ser",)]:
        expected = sorted(namespace for namespace in SIBLINGS if namespace[: len(prefix)] == prefix)
        assert sorted(item.namespace for item in store.search(prefix, limit=100)) == expected
        assert sorted(item.namespace for item in store.search(prefix, limit=100, query="tea")) == expected
        assert store.list_namespaces(prefix=prefix) == expected


def test_the_longest_namespace_there_can_be_is_kept_and_found(store: AdkMemoryStore) -> None:
    longest = ("x" * 100, "y" * 155)
    store.put(longest, "k", {})
    store.put(("x" * 256,), "k", {})

    assert [item.namespace for item in store.search(longest[:1])] == [longest]
    assert [item.namespace for item in store.search(longest)] == [longest]
    assert [item.namespace for item in store.search(("x" * 256,))] == [("x" * 256,)]
    with pytest.raises(InvalidNamespaceError, match="256 characters"):
        store.put(("x" * 100, "y" * 156), "k", {})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [("a", "b"), ("a", "b", "c"), ("a", "b", "d", "e"), ("a", "c"), ("b", "c"), ("ab",)]),
        ({"prefix": ("a",)}, [("a", "b"), ("a", "b", "c"), ("a", "b", "d", "e"), ("a", "c")]),
        ({"prefix": ("a", "*", "c")}, [("a", "b", "c")]),
        ({"prefix": ("*", "c")}, [("a", "c"), ("b", "c")]),
        ({"suffix": ("c",)}, [("a", "b", "c"), ("a", "c"), ("b", "c")]),
        ({"suffix": ("b", "*")}, [("a", "b", "c"), ("b", "c")]),
        ({"prefix": ("a",), "suffix": ("c",)}, [("a", "b", "c"), ("a", "c")]),
        ({"max_depth": 2}, [("a", "b"), ("a", "c"), ("ab",), ("b", "c")]),
        ({"max_depth": 1}, [("a",), ("ab",), ("b",)]),
        ({"prefix": ("a", "b"), "max_depth": 3}, [("a", "b"), ("a", "b", "c"), ("a", "b", "d")]),
        ({"prefix": ("a",), "limit": 2, "offset": 1}, [("a", "b", "c"), ("a", "b", "d", "e")]),
        ({"limit": 0}, []),
        ({"prefix": ("nobody",)}, []),
    ],
)
def test_namespaces_are_listed_by_their_labels(
    store: AdkMemoryStore, options: dict[str, Any], expected: list[tuple[str, ...]]
) -> None:
    namespaces = [("ab",), ("b", "c"), ("a", "c"), ("a", "b", "d", "e"), ("a", "b", "c"), ("a", "b")]
    store.batch([PutOp(namespace, "k", {}) for namespace in namespaces])

    assert store.list_namespaces(**options) == sorted(expected)


def test_more_namespaces_than_are_read_at_once_are_all_listed() -> None:
    with AdkMemoryStore("memory://") as store:
        store.batch([PutOp(("many", f"{number:04}"), "k", {}) for number in range(1_001)])

        assert len(store.list_namespaces(limit=2_000)) == 1_001
        assert len(store.search(("many",), limit=2_000)) == 1_001


class Noted(InMemoryMemoryService):
    """Notes whose entries it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    async def search(self, request: Any) -> Any:
        self.asked.add(request.user_id)
        return await super().search(request)

    async def list_page(self, app_name: str, user_id: str, **options: Any) -> Any:
        self.asked.add(user_id)
        return await super().list_page(app_name, user_id, **options)

    async def list_users(self, app_name: str, **options: Any) -> list[str]:
        assert options["prefix"] == "user."
        return await super().list_users(app_name, **options)


def test_a_search_asks_for_no_namespace_outside_of_its_prefix() -> None:
    service = Noted()
    with AdkMemoryStore(service) as store:
        store.batch([PutOp(namespace, "k", {"text": "tea"}) for namespace in SIBLINGS])

        store.search(("user",), query="tea")

    assert service.asked == {"user", "user.a", "user.a.b"}


def _keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


def test_the_newest_come_first_over_all_namespaces_a_part_at_a_time(store: AdkMemoryStore) -> None:
    for number in range(7):
        store.put(("a", str(number % 3)), f"k{number}", {"n": number})
    store.put(("a", "0"), "k0", {"n": 7})
    newest = ["k0", "k6", "k5", "k4", "k3", "k2", "k1"]

    assert _keys(store.search(("a",))) == newest
    parts = [store.search(("a",), limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [_keys(part) for part in parts] == [newest[:3], newest[3:6], newest[6:], []]
    assert store.search(("a",), limit=0) == []


def test_a_list_goes_beyond_what_is_read_at_once() -> None:
    with AdkMemoryStore("memory://") as store:
        store.batch([PutOp(("a",), f"k{number}", {"even": number % 2 == 0}) for number in range(1_100)])

        assert _keys(store.search(("a",), limit=3, offset=1_050)) == ["k49", "k48", "k47"]
        assert _keys(store.search(("a",), filter={"even": True}, limit=3, offset=548)) == ["k2", "k0"]
        assert len(store.search(("a",), query="even", limit=2_000)) == 1_100
