"""Short words for the calls that most field reports make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from adk_memory import EmbeddingProvider, Memory, MemoryEntry, MemoryService, SearchRequest, SearchResponse
from adk_memory.types import Existing, Mode

APP = "app"
USER = "ana"


class MakeService(Protocol):
    """Opens the store of one backend."""

    def __call__(self, embedder: EmbeddingProvider | None = None) -> MemoryService: ...


async def remember(
    service: MemoryService,
    *entries: str | MemoryEntry,
    app: str = APP,
    user: str = USER,
    session: str = "s1",
    project: str | None = None,
    existing: Existing = "update",
) -> list[str]:
    """Add entries to a session; a text is an entry without an id."""
    return await service.add_session(
        app,
        user,
        session,
        [entry if isinstance(entry, MemoryEntry) else MemoryEntry(entry) for entry in entries],
        project_id=project,
        existing=existing,
    )


async def ask(
    service: MemoryService,
    query: str,
    *,
    app: str = APP,
    user: str = USER,
    project: str | None = None,
    limit: int | None = 1_000,
    min_score: float | None = None,
    mode: Mode | None = None,
) -> SearchResponse:
    """Search with every option in reach."""
    return await service.search(SearchRequest(query, app, user, project, limit, min_score, mode))


async def found(
    service: MemoryService,
    query: str,
    *,
    app: str = APP,
    user: str = USER,
    project: str | None = None,
    limit: int | None = 1_000,
    mode: Mode | None = None,
) -> list[str]:
    """Return the texts that a search finds, best first."""
    return texts(await ask(service, query, app=app, user=user, project=project, limit=limit, mode=mode))


async def recent(service: MemoryService, *, app: str = APP, user: str = USER, limit: int = 1_000) -> list[str]:
    """Return the texts of everything that a user has, newest first."""
    return texts(await service.list_recent(app, user, limit))


async def missed(service: MemoryService, queries: Iterable[str], text: str) -> list[str]:
    """Return those of the queries that do not find ``text``."""
    return [query for query in queries if text not in await found(service, query)]


def texts(memories: Iterable[Memory]) -> list[str]:
    """Return the text of each memory."""
    return [memory.text for memory in memories]
