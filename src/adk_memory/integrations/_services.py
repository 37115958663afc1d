"""Services: for a framework that runs event loops in several threads, a service for each that runs at a time."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

from adk_memory import _open
from adk_memory._sql.urls import backend_of, sqlite_url
from adk_memory.embedding import EmbeddingProvider
from adk_memory.errors import ConfigurationError
from adk_memory.reranking import Reranker
from adk_memory.service import MemoryService


@dataclass(eq=False, slots=True)
class _Opened:
    service: MemoryService
    loop: asyncio.AbstractEventLoop | None = None
    migrated: bool = False


class Services:
    """The services for a URL, opened when they are needed; or the one that a caller has opened, and closes."""

    def __init__(
        self,
        memory: str | MemoryService,
        migrate: bool | None,
        embedder: EmbeddingProvider | None,
        reranker: Reranker | None,
    ) -> None:
        if not isinstance(memory, str) and (embedder is not None or reranker is not None):
            raise ConfigurationError("embedder and reranker belong to a URL; a service has its own")
        if not isinstance(memory, str | MemoryService):
            raise ConfigurationError(f"memory must be a URL or a MemoryService, got {type(memory).__name__}")
        self._memory = memory
        self._migrates = migrate if migrate is not None else isinstance(memory, str) and backend_of(memory) == "sqlite"
        self._embedder = embedder
        self._reranker = reranker
        self._is_one = not isinstance(memory, str) or _is_in_memory(memory)
        self._lock = threading.Lock()  # loops have threads of their own
        self._opened = [_Opened(self._open())]  # which connects later, but tells a wrong URL now

    async def ready(self) -> MemoryService:
        """Return the service for the running loop, with its tables."""
        opened = self._of(asyncio.get_running_loop())
        if self._migrates and not opened.migrated:
            await opened.service.migrate()
            opened.migrated = True
        return opened.service

    async def close(self) -> None:
        if isinstance(self._memory, str):
            with self._lock:
                opened, self._opened = self._opened, [_Opened(self._open())]
            for one in opened:
                await one.service.close()

    def _of(self, loop: asyncio.AbstractEventLoop) -> _Opened:
        with self._lock:
            if self._is_one:
                return self._opened[0]
            for opened in self._opened:
                if opened.loop is loop:
                    return opened
            for opened in self._opened:
                if opened.loop is None or opened.loop.is_closed():  # a service may go on in a loop after its own
                    opened.loop = loop
                    return opened
            self._opened.append(_Opened(self._open(), loop))
            return self._opened[-1]

    def _open(self) -> MemoryService:
        if not isinstance(self._memory, str):
            return self._memory
        return _open.open_memory(self._memory, embedder=self._embedder, reranker=self._reranker)


def _is_in_memory(url: str) -> bool:
    return backend_of(url) == "memory" or (
        backend_of(url) == "sqlite" and sqlite_url(url).database in (None, "", ":memory:")
    )
