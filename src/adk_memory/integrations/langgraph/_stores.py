"""AdkMemoryStore and AsyncAdkMemoryStore: LangGraph's interface of a store, in its two forms."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig
from langgraph.store.base.batch import AsyncBatchedBaseStore

from adk_memory._open import open_memory
from adk_memory._sql.urls import backend_of
from adk_memory._validation import validate_id
from adk_memory.errors import AdkMemoryError, ConfigurationError
from adk_memory.integrations.langgraph._indexing import Index
from adk_memory.integrations.langgraph._items import Items
from adk_memory.service import MemoryService

APP_NAME: Final = "langgraph"
_SWEEP_MINUTES: Final = 5

_logger = logging.getLogger(__name__)
_Made = TypeVar("_Made")


class AdkMemoryStore(BaseStore):  # type: ignore[misc]
    """A store whose methods, both the plain ones and those that are awaited, may be called from any thread.

    It has an event loop of its own, in a daemon thread, from the first call until `close`; a plain method that is
    called in another loop blocks that, as any synchronous store does. It is a context manager, which closes it.

    A namespace may have 256 characters, its labels joined by periods. An item that has outlived its ``ttl`` is absent,
    whether it was swept or not. A put of one item is done or not done; those of a batch are written by the thousand,
    items that have several vectors one by one. What adk-memory raises is an `AdkMemoryError`; a wrong namespace is
    LangGraph's ``InvalidNamespaceError``.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: str | MemoryService,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        app_name: str = APP_NAME,
    ) -> None:
        """Take a URL as for `adk_memory.open_memory`, or a service, which is the store's from then on.

        Args:
            memory: where the items are kept.
            index: LangGraph's configuration. With ``embed`` and ``dims``, a search ranks by cosine; without them as
                the service does, by words and with its own embedder. ``fields`` are the paths of the texts to search.
            ttl: LangGraph's configuration: ``default_ttl`` and ``sweep_interval_minutes`` in minutes, and
                ``refresh_on_read``; without it, reading an item that has a ttl extends its life.
            app_name: the app whose users the namespaces are; nothing else should be kept in it.

        Raises:
            ConfigurationError: a URL or a configuration can't be used.
        """
        super().__init__()
        self._core = _Core(memory, index, ttl, app_name, closes=True)
        self._thread = _LoopThread()
        self._sweeper: concurrent.futures.Future[None] | None = None
        self.index_config = index
        self.embeddings = self._core.index.embeddings
        self.ttl_config = ttl

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        app_name: str = APP_NAME,
    ) -> Iterator[Self]:
        """Open the store at a URL, or in a SQLite file of that path or ``:memory:``, and close it at the end."""
        with cls(_url(conn_string), index=index, ttl=ttl, app_name=app_name) as store:
            yield store

    def setup(self) -> None:
        """Make the tables, or bring them to this version; on SQLite the first call does it anyway."""
        self._thread.result(self._core.migrate())

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: first what reads, then what writes, the last of several puts of one item."""
        return self._thread.result(self._core.batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations as `batch` does."""
        return await asyncio.wrap_future(self._thread.submit(self._core.batch(list(ops))))

    def sweep_ttl(self) -> int:
        """Erase what has expired, as `MemoryService.purge_expired` does; return how many entries."""
        return self._thread.result(self._core.sweep())

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> concurrent.futures.Future[None]:
        """Sweep from time to time until `stop_ttl_sweeper`, `close`, or the future's ``cancel``.

        Without a ``ttl`` configuration there is nothing to do, and the future is done.
        """
        if self.ttl_config is None:
            nothing: concurrent.futures.Future[None] = concurrent.futures.Future()
            nothing.set_result(None)
            return nothing
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = self._thread.submit(self._core.sweep_every(sweep_interval_minutes))
        return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping, at once; return `True`."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        return True

    def close(self) -> None:
        """Stop sweeping, and close the service and the event loop; the next call would open both again."""
        self.stop_ttl_sweeper()
        self._thread.stop(self._core.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()


class AsyncAdkMemoryStore(AsyncBatchedBaseStore):  # type: ignore[misc]
    """A store for the event loop that it is made in: the calls of one tick of the loop are one batch.

    Other threads may call its plain methods; in the loop's own thread these raise ``asyncio.InvalidStateError``. It is
    an async context manager, which closes it. What `AdkMemoryStore` says of items and errors holds here too.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: str | MemoryService,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        app_name: str = APP_NAME,
    ) -> None:
        """Take what `AdkMemoryStore` takes; a service that is given stays the caller's to migrate and to close."""
        super().__init__()
        self._core = _Core(memory, index, ttl, app_name, closes=isinstance(memory, str))
        self._sweeper: asyncio.Task[None] | None = None
        self.index_config = index
        self.embeddings = self._core.index.embeddings
        self.ttl_config = ttl

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        app_name: str = APP_NAME,
    ) -> AsyncIterator[Self]:
        """Open the store at a URL, or in a SQLite file of that path or ``:memory:``, and close it at the end."""
        async with cls(_url(conn_string), index=index, ttl=ttl, app_name=app_name) as store:
            yield store

    async def setup(self) -> None:
        """Make the tables, or bring them to this version; on SQLite the first call does it anyway."""
        await self._core.migrate()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: first what reads, then what writes, the last of several puts of one item."""
        return await self._core.batch(list(ops))

    async def sweep_ttl(self) -> int:
        """Erase what has expired, as `MemoryService.purge_expired` does; return how many entries."""
        return await self._core.sweep()

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Task[None]:
        """Sweep from time to time until `stop_ttl_sweeper`, `close`, or the task's ``cancel``.

        Without a ``ttl`` configuration there is nothing to do, and the task ends.
        """
        if self.ttl_config is None:
            return asyncio.create_task(asyncio.sleep(0))
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.create_task(self._core.sweep_every(sweep_interval_minutes))
        return self._sweeper

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - it takes none
        """Stop sweeping, at once; return `True`."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        return True

    async def close(self) -> None:
        """Stop sweeping, finish what was asked for, and close what the store opened itself."""
        await self.stop_ttl_sweeper()
        if self._task is not None and not self._task.done():
            # Batches follow one another: when this one, which asks for nothing, is answered, so are all before it.
            # An error is that of a call that shares its batch.
            await asyncio.gather(self.asearch((), limit=0), return_exceptions=True)
            self._task.cancel()
        await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        await self.close()


class _Core:
    """What both stores are made of, for one event loop."""

    def __init__(
        self,
        memory: str | MemoryService,
        index: IndexConfig | None,
        ttl: TTLConfig | None,
        app_name: str,
        *,
        closes: bool,
    ) -> None:
        config: Mapping[str, Any] = ttl or {}
        self.index = Index(index)
        self._closes = closes
        self._interval = config.get("sweep_interval_minutes") or _SWEEP_MINUTES
        self._migrates = isinstance(memory, str) and backend_of(memory) == "sqlite"
        self._migrating = asyncio.Lock()
        if isinstance(memory, str):
            self._service = open_memory(memory, embedder=self.index.provider)
        elif not isinstance(memory, MemoryService):
            raise ConfigurationError(f"a store needs a URL or a MemoryService, got {type(memory).__name__}")
        elif self.index.provider is not None:
            raise ConfigurationError(
                "index has embed, but a service has an embedder of its own: give a URL, or no embed"
            )
        else:
            self._service = memory
        self._items = Items(
            self._service,
            validate_id("app_name", app_name),
            self.index,
            refreshes=ttl is None or bool(config.get("refresh_on_read", False)),
        )

    async def migrate(self) -> None:
        async with self._migrating:
            await self._service.migrate()
            self._migrates = False

    async def batch(self, ops: list[Op]) -> list[Result]:
        return await (await self._ready()).batch(ops)

    async def sweep(self) -> int:
        await self._ready()
        return int(await self._service.purge_expired())

    async def sweep_every(self, minutes: float | None) -> None:
        while True:
            await asyncio.sleep(60 * float(minutes or self._interval))
            try:
                await self.sweep()
            except AdkMemoryError as error:
                _logger.warning("expired items are left for the next sweep: %s", error)

    async def close(self) -> None:
        if self._closes:
            await self._service.close()

    async def _ready(self) -> Items:
        if self._migrates:
            await self.migrate()
        return self._items


class _LoopThread:
    """An event loop in a daemon thread, started when it is first needed."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Coroutine[Any, Any, _Made]) -> concurrent.futures.Future[_Made]:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="adk-memory-store", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def result(self, work: Coroutine[Any, Any, _Made]) -> _Made:
        """Return what ``work`` returns.

        Raises:
            InvalidStateError: the caller is in the thread of the loop, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise asyncio.InvalidStateError("a synchronous call in the store's own event loop; await its async form")
        return self.submit(work).result()

    def stop(self, last: Callable[[], Awaitable[None]]) -> None:
        """Await what was submitted, then ``last()``, in the loop, and end it, if it was ever needed."""
        if threading.current_thread() is self._thread:
            raise asyncio.InvalidStateError("the store's own event loop can't wait for its end")
        with self._starting:  # whoever submits meanwhile starts the next loop
            if self._loop is None or self._thread is None:
                return
            loop, thread = self._loop, self._thread
            asyncio.run_coroutine_threadsafe(_ended(last), loop).result()
            self._loop = self._thread = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _ended(last: Callable[[], Awaitable[None]]) -> None:
    # Callers in other threads wait for these; a loop that stops before they are done would let them wait for ever.
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)
    await last()
    await asyncio.get_running_loop().shutdown_default_executor()


def _url(conn_string: str) -> str:
    if re.match(r"\s*\w+\s*=", conn_string):
        raise ConfigurationError("a connection string of libpq's must be written as a URL: postgresql://user@host/name")
    if "://" in conn_string or conn_string.startswith("sqlite:"):
        return conn_string
    return "sqlite://" if conn_string == ":memory:" else f"sqlite:///{quote(conn_string)}"
