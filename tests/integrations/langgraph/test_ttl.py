"""How long the items of a LangGraph store live."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph-checkpoint is not installed")

from langgraph.store.base import GetOp, PutOp

from adk_memory import InMemoryMemoryService, ValidationError, _clock
from adk_memory.integrations.langgraph import AdkMemoryStore, AsyncAdkMemoryStore

MakeStore = Callable[..., AdkMemoryStore]


def _keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


class Clock:
    """The time that the store goes by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = timedelta()
        monkeypatch.setattr(_clock, "now", lambda: datetime.now(UTC) + self.ahead)

    def pass_minutes(self, minutes: float) -> None:
        self.ahead += timedelta(minutes=minutes)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def _embed(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, 0.0] if text == "east" else [0.0, 1.0] for text in texts]


REFRESHING: Final[Any] = {"default_ttl": 10, "refresh_on_read": True}


def test_an_expired_item_is_absent_before_it_is_swept(make_store: MakeStore, clock: Clock) -> None:
    store = make_store(ttl={"default_ttl": 10})
    store.put(("a", "short"), "k", {"text": "tea"}, ttl=5)
    store.put(("a", "default"), "k", {"text": "tea"})
    store.put(("a", "ever"), "k", {"text": "tea"}, ttl=None)

    def there() -> list[tuple[str, ...]]:
        listed = {item.namespace for item in store.search(("a",), limit=2)}
        found = {item.namespace for item in store.search(("a",), query="tea", limit=3)}
        got = {ns for ns in [("a", "short"), ("a", "default"), ("a", "ever")] if store.get(ns, "k") is not None}
        namespaces: list[tuple[str, ...]] = store.list_namespaces()
        assert listed <= found == got == set(namespaces)
        return namespaces

    assert there() == [("a", "default"), ("a", "ever"), ("a", "short")]
    clock.pass_minutes(5)
    assert there() == [("a", "default"), ("a", "ever")]
    assert store.sweep_ttl() == 1
    clock.pass_minutes(100)
    assert there() == [("a", "ever")]
    assert store.sweep_ttl() == 1
    assert store.sweep_ttl() == 0
    assert there() == [("a", "ever")]


def test_expired_items_take_no_place_in_a_part_of_a_list(make_store: MakeStore, clock: Clock) -> None:
    store = make_store()
    for number in range(12):
        store.put(("a",), f"k{number}", {"text": "tea"}, ttl=None if number % 4 == 0 else 1)
    clock.pass_minutes(2)

    assert _keys(store.search(("a",), limit=2)) == ["k8", "k4"]
    assert _keys(store.search(("a",), limit=2, offset=2)) == ["k0"]
    assert len(store.search(("a",), query="tea", limit=3)) == 3


@pytest.mark.parametrize("read", ["get", "search"])
def test_reading_extends_a_life_where_that_is_configured(make_store: MakeStore, clock: Clock, read: str) -> None:
    store = make_store(ttl=REFRESHING, index={"dims": 2, "embed": _embed, "fields": ["to", "by[*].to"]})
    value = {"to": "east", "by": [{"to": "north"}]}
    store.put(("a",), "k", value)
    before = store.get(("a",), "k")

    def look(**options: Any) -> list[Any]:
        if read == "search":
            return list(store.search(("a",), query="north", **options))
        item = store.get(("a",), "k", **options)
        return [] if item is None else [item]

    for _ in range(3):
        clock.pass_minutes(7)
        assert len(look()) == 1
    clock.pass_minutes(7)
    assert len(look(refresh_ttl=False)) == 1
    assert store.get(("a",), "k", refresh_ttl=False) == before
    [found] = store.search(("a",), query="north", refresh_ttl=False)
    assert found.score == pytest.approx(1, abs=1e-3)
    clock.pass_minutes(7)
    assert look() == []
    assert store.sweep_ttl() == 2  # one for each text


def test_reading_extends_no_life_where_the_configuration_does_not_say_so(clock: Clock) -> None:
    with AdkMemoryStore("memory://", ttl={"default_ttl": 10}) as store:
        store.put(("a",), "k", {})
        clock.pass_minutes(7)
        assert store.get(("a",), "k") is not None
        clock.pass_minutes(7)
        assert store.get(("a",), "k") is None


def test_an_item_that_is_put_again_has_the_life_of_the_last_put(make_store: MakeStore, clock: Clock) -> None:
    store = make_store()
    store.put(("a",), "k", {"n": 1}, ttl=5)
    store.put(("a",), "k", {"n": 2})
    store.put(("a",), "l", {"n": 1}, ttl=5)
    clock.pass_minutes(6)
    store.put(("a",), "l", {"n": 2}, ttl=5)

    found = store.search(("a",))
    assert [(item.key, item.value["n"]) for item in found] == [("l", 2), ("k", 2)]
    assert found[0].created_at == found[0].updated_at
    assert store.sweep_ttl() == 0


def test_a_read_never_undoes_a_put(make_store: MakeStore) -> None:
    store = make_store(ttl={"default_ttl": 60, "refresh_on_read": True})

    async def race() -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(30):
                tasks.create_task(store.abatch([PutOp(("a",), "k", {"n": number}, ttl=60)]))
                tasks.create_task(store.abatch([GetOp(("a",), "k")]))

    asyncio.run(race())
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"n": 29}


class Interrupted(InMemoryMemoryService):
    """Does something else, once, after it has read an item."""

    afterwards: Callable[[], Awaitable[None]] | None = None

    async def get(self, *arguments: Any, **options: Any) -> Any:
        found = await super().get(*arguments, **options)
        afterwards, self.afterwards = self.afterwards, None
        if afterwards is not None:
            await afterwards()
        return found


async def test_a_read_gives_no_end_to_what_was_put_meanwhile_to_stay(clock: Clock) -> None:
    service = Interrupted()
    async with AsyncAdkMemoryStore(service) as store, AsyncAdkMemoryStore(service) as other:
        await store.aput(("a",), "k", {"n": 1}, ttl=5)
        service.afterwards = lambda: other.aput(("a",), "k", {"n": 2})
        read = await store.aget(("a",), "k")
        clock.pass_minutes(6)
        kept = await store.aget(("a",), "k")

    assert read is not None
    assert kept is not None
    assert (read.value, kept.value) == ({"n": 1}, {"n": 2})


@pytest.mark.parametrize("ttl", [-1, math.inf, math.nan, 1e300, "5", True])
def test_a_life_of_no_length_is_refused(ttl: Any) -> None:
    with AdkMemoryStore("memory://") as store, pytest.raises(ValidationError, match="ttl"):
        store.put(("a",), "k", {}, ttl=ttl)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Purged(InMemoryMemoryService):
    """Counts what it has erased."""

    purged = 0

    async def purge_expired(self, **options: Any) -> Any:
        erased = await super().purge_expired(**options)
        self.purged += erased
        return erased


def test_a_sweeper_erases_from_time_to_time_until_it_is_stopped() -> None:
    service = Purged()
    with AdkMemoryStore(service, ttl={"sweep_interval_minutes": 1}) as store:
        sweeper = store.start_ttl_sweeper(0.001)
        assert store.start_ttl_sweeper() is sweeper
        store.put(("a",), "k", {}, ttl=0)
        _until(lambda: service.purged == 1)
        assert store.stop_ttl_sweeper(timeout=1) is True
        assert sweeper.cancelled()
        store.put(("a",), "k", {}, ttl=0)
        time.sleep(0.2)
        assert service.purged == 1

    with AdkMemoryStore("memory://") as store:
        assert store.start_ttl_sweeper().done()


async def test_an_asynchronous_sweeper_does_the_same() -> None:
    service = Purged()
    async with AsyncAdkMemoryStore(service, ttl={"sweep_interval_minutes": 1}) as store:
        sweeper = await store.start_ttl_sweeper(0.001)
        await store.aput(("a",), "k", {}, ttl=0)
        async with asyncio.timeout(20):
            while not service.purged:
                await asyncio.sleep(0.02)
        assert await store.stop_ttl_sweeper() is True
        assert sweeper.done()
