"""What the speed benchmark asks of a store, and adk-memory as one: through its public interface only."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Protocol

import asyncpg
from sqlalchemy import make_url

from adk_memory import MemoryEntry, MemoryService, SearchRequest, open_memory
from adk_memory.types import Mode
from synthetic import APP, EMBEDDER, NEAREST, Session, User

_VECTOR_MODES: tuple[Mode, ...] = ("vector", "hybrid")

Add = Callable[[Session], Awaitable[None]]
Search = Callable[[User, str], Awaitable[list[str]]]
"""The ids of the entries that were found, best first."""


class Store(Protocol):
    """A database with entries in it.

    Attributes:
        name: what it is called in the tables.
        adds: its ways to add a session, by name; the last is the fastest.
        keyword_searches, vector_searches: its ways to search, by name.
    """

    name: str
    adds: Mapping[str, Add]
    keyword_searches: Mapping[str, Search]
    vector_searches: Mapping[str, Search]

    async def settle(self) -> None:
        """Do what a database does by itself in time: build indexes, vacuum, analyse."""
        ...

    async def erase(self, user: User) -> None:
        """Erase all entries of a user."""
        ...

    async def megabytes(self) -> float:
        """Return the size of the database."""
        ...


class OurStore:
    """adk-memory itself."""

    name = "adk-memory"

    def __init__(self, url: str, service: MemoryService, *, with_vectors: bool) -> None:
        self._url = url
        self._service = service
        self.adds: Mapping[str, Add] = {"adk-memory": self._add}
        self.keyword_searches: Mapping[str, Search] = {"adk-memory": self._search("keyword")}
        vector_searches = {f"adk-memory, {mode}": self._search(mode) for mode in _VECTOR_MODES}
        self.vector_searches: Mapping[str, Search] = vector_searches if with_vectors else {}

    async def settle(self) -> None:
        if self._url.startswith("postgresql"):
            await vacuum(self._url)

    async def erase(self, user: User) -> None:
        await self._service.delete_user(APP, user.id)

    async def megabytes(self) -> float:
        return await megabytes(self._url)

    async def _add(self, session: Session) -> None:
        entries = [MemoryEntry(entry.text, entry.author, entry.at, entry.id) for entry in session.entries]
        await self._service.add_session(APP, session.user.id, session.id, entries)

    def _search(self, mode: Mode) -> Search:
        async def search(user: User, query: str) -> list[str]:
            found = await self._service.search(SearchRequest(query, APP, user.id, limit=NEAREST, mode=mode))
            return [memory.id for memory in found]

        return search


@asynccontextmanager
async def our_store(url: str, *, with_vectors: bool) -> AsyncGenerator[Store]:
    """Open adk-memory on an empty database."""
    async with open_memory(url, embedder=EMBEDDER if with_vectors else None) as service:
        await service.migrate()
        yield OurStore(url, service, with_vectors=with_vectors)


async def vacuum(url: str) -> None:
    """Do what autovacuum does in time: a Postgres of the benchmark has it off."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def megabytes(url: str) -> float:
    """Return the size of the database at ``url``."""
    if not url.startswith("postgresql"):
        return _file_megabytes(Path(make_url(url).database or ""))
    connection = await asyncpg.connect(url)
    try:
        return float(await connection.fetchval("SELECT pg_database_size(current_database())")) / 1e6
    finally:
        await connection.close()


def _file_megabytes(path: Path) -> float:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size / 1e6
