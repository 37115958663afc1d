"""Stores are called from any thread and event loop, opened by a URL, and closed."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph-checkpoint is not installed")

from langgraph.store.base import GetOp

from adk_memory import ConfigurationError, InMemoryMemoryService, MemoryEntry, SchemaMissingError, ValidationError
from adk_memory.integrations.langgraph import AdkMemoryStore, AsyncAdkMemoryStore


def _keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


def test_many_threads_may_call_a_store(store: AdkMemoryStore) -> None:
    def work(number: int) -> None:
        store.put(("shared",), "one", {"n": number})
        store.put(("shared", str(number)), "own", {"n": number})
        assert store.search(("shared", str(number)))[0].value == {"n": number}

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(40)))

    assert len(store.search(("shared",), limit=100)) == 41
    assert len(store.search(("shared",), limit=100, filter={"n": {"$gte": 0}})) == 41


async def test_a_store_may_be_called_and_awaited_in_a_loop(store: AdkMemoryStore) -> None:
    store.put(("a",), "k", {"n": 1})
    await asyncio.gather(*(store.aput(("a",), f"k{number}", {"n": number}) for number in range(10)))

    assert (await store.aget(("a",), "k")) == store.get(("a",), "k")
    assert len(await store.asearch(("a",), limit=100)) == 11


async def test_an_asynchronous_store_refuses_plain_calls_in_its_own_thread_alone(
    async_store: AsyncAdkMemoryStore,
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: async_store.put(("a",), "k", {}),
        lambda: async_store.get(("a",), "k"),
        lambda: async_store.delete(("a",), "k"),
        lambda: async_store.search(("a",)),
        async_store.list_namespaces,
        lambda: async_store.batch([GetOp(("a",), "k")]),
    ]
    for call in calls:
        with pytest.raises(asyncio.InvalidStateError):
            call()

    await asyncio.to_thread(async_store.put, ("a",), "k", {"n": 1})
    item = await asyncio.to_thread(async_store.get, ("a",), "k")
    assert item is not None
    assert item.value == {"n": 1}


def test_a_call_of_a_store_in_its_own_loop_is_refused_and_does_not_wait_for_itself() -> None:
    refused: list[Exception] = []

    def embed(texts: Any) -> list[list[float]]:
        return [[1.0] for _ in texts]

    async def asking(texts: Any) -> list[list[float]]:
        try:
            store.get(("a",), "k")
        except asyncio.InvalidStateError as error:
            refused.append(error)
        return embed(texts)

    index: Any = {"dims": 1, "embed": asking}
    with AdkMemoryStore("memory://", index=index) as store:
        store.put(("a",), "k", {"text": "tea"})

    assert len(refused) == 1


async def test_the_calls_of_one_tick_are_one_batch(async_store: AsyncAdkMemoryStore) -> None:
    puts = (async_store.aput(("a",), "k", {"n": number}) for number in range(20))
    gets = (async_store.aget(("a",), "k") for _ in range(20))
    results = await asyncio.gather(*puts, *gets)

    assert results == [None] * 40
    item = await async_store.aget(("a",), "k")
    assert item is not None
    assert item.value == {"n": 19}


async def test_many_concurrent_calls_come_to_their_end(async_store: AsyncAdkMemoryStore) -> None:
    calls: list[Any] = []
    for number in range(150):
        namespace = ("a", str(number % 2))
        calls += [
            async_store.aput(namespace, f"k{number % 30}", {"n": number}),
            async_store.aget(namespace, f"k{number % 30}"),
            async_store.asearch(("a",), filter={"n": {"$lt": 10}}),
            async_store.alist_namespaces(max_depth=1 + number % 2),
            async_store.adelete(namespace, f"k{number % 30}"),
        ]

    assert len(await asyncio.gather(*calls)) == 750
    assert await async_store.asearch(()) == []


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}", "sqlite:{path}"])
def test_a_file_is_opened_by_its_path_or_url_and_needs_no_setup(tmp_path: Path, form: str) -> None:
    spelt = form.format(path=tmp_path / "items.db")
    with AdkMemoryStore.from_conn_string(spelt) as store:
        store.put(("a",), "k", {"n": 1})
    with AdkMemoryStore.from_conn_string(spelt) as store:
        store.setup()
        assert store.get(("a",), "k") is not None

    assert (tmp_path / "items.db").exists()


def test_tables_on_a_server_are_made_by_setup(postgres_url: str) -> None:
    with AdkMemoryStore.from_conn_string(postgres_url) as store:
        with pytest.raises(SchemaMissingError):
            store.get(("a",), "k")
        store.setup()
        store.setup()
        assert store.get(("a",), "k") is None


async def test_a_private_database_in_memory_needs_no_setup() -> None:
    async with AsyncAdkMemoryStore.from_conn_string(":memory:") as store:
        await store.aput(("a",), "k", {"n": 1})
        await store.setup()
        assert await store.aget(("a",), "k") is not None


@pytest.mark.parametrize("name", ["why?.db", "50%20.db", "a#b.db"])
def test_a_path_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    with AdkMemoryStore.from_conn_string(str(tmp_path / name)) as store:
        store.put(("a",), "k", {"n": 1})

    assert (tmp_path / name).exists()


@pytest.mark.parametrize("string", ["host=localhost dbname=x", "dbname = x", "redis://localhost"])
def test_a_string_that_is_no_url_is_refused(string: str) -> None:
    with pytest.raises(ConfigurationError), AdkMemoryStore.from_conn_string(string):
        pass


def test_a_closed_store_leaves_no_thread_and_opens_again(sqlite_url: str) -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "adk-memory-store"]

    store = AdkMemoryStore(sqlite_url)
    store.put(("a",), "k", {"n": 1})
    assert threads() == ["adk-memory-store"]
    store.close()
    store.close()

    assert threads() == []
    assert store.get(("a",), "k") is not None
    store.close()


def test_closing_waits_for_the_calls_of_other_threads(sqlite_url: str) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        begun.set()
        may_end.wait(30)
        return [[1.0, 0.0] for _ in texts]

    store = AdkMemoryStore(sqlite_url, index={"dims": 2, "embed": embed})
    with ThreadPoolExecutor(2) as threads:
        put = threads.submit(store.put, ("a",), "k", {"text": "tea"})
        assert begun.wait(30)
        closed = threads.submit(store.close)
        assert not wait([closed], timeout=0.2).done
        may_end.set()
        assert not wait([put, closed], timeout=30).not_done

    assert store.get(("a",), "k") is not None
    store.close()


async def test_closing_an_asynchronous_store_finishes_what_was_asked_for(url: str) -> None:
    async with AsyncAdkMemoryStore(url) as store:
        await store.aput(("a",), "k", {"n": 1})
        put = asyncio.ensure_future(store.aput(("a",), "k", {"n": 2}))
        wrong = asyncio.ensure_future(store.asearch(("a",), filter={"$x": 1}))
        await asyncio.sleep(0)

    done, _ = await asyncio.wait([put, wrong], timeout=30)
    assert done == {put, wrong}
    assert isinstance(wrong.exception(), ValidationError)
    put.exception()  # they are one batch


async def test_a_service_that_is_given_to_an_asynchronous_store_stays_open() -> None:
    class Service(InMemoryMemoryService):
        closed = False

        async def close(self) -> None:
            self.closed = True

    given, taken = Service(), Service()
    async with AsyncAdkMemoryStore(given, app_name="items") as store:
        await store.aput(("a",), "k", {"n": 1})
    with AdkMemoryStore(taken) as plain:
        plain.put(("a",), "k", {"n": 1})

    assert (given.closed, taken.closed) == (False, True)
    assert await given.list_users("items") == ["a"]


async def test_what_else_is_kept_in_the_app_is_no_item() -> None:
    service = InMemoryMemoryService()
    await service.add_entry("langgraph", "a", MemoryEntry("black tea"))
    async with AsyncAdkMemoryStore(service) as store:
        await store.aput(("a",), "k", {"text": "green tea"})

        assert _keys(await store.asearch(("a",), query="tea")) == ["k"]


def test_a_store_that_is_no_url_or_service_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="URL or a MemoryService"):
        AdkMemoryStore(7)  # type: ignore[arg-type]


def test_a_process_that_does_not_close_its_store_ends(tmp_path: Path) -> None:
    source = (
        "from adk_memory.integrations.langgraph import AdkMemoryStore\n"
        f"store = AdkMemoryStore('sqlite:///{tmp_path / 'items.db'}')\n"
        "store.put(('a',), 'k', {'n': 1})\n"
        "print(store.get(('a',), 'k').value)\n"
    )
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "{'n': 1}\n", "")


def test_the_document_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    document = (Path(__file__).parents[3] / "docs" / "integrations" / "langgraph.md").read_text(encoding="utf-8")
    [source] = re.findall(r"^```py\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    [output] = re.findall(r"^```text\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)

    exec(compile(source, "<document>", "exec"), {})

    assert capsys.readouterr().out == output
