"""A store on Postgres whose vectors have 384 dimensions, and looks at what is in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from adk_memory import MemoryEntry, MemoryService, PostgresMemoryService
from adk_memory.testing import ToyEmbedder

APP, USER = "app", "ana"
ENOUGH = 256
"""So many vectors of a model set its thresholds."""


def service(url: str, dimensions: int = 384, embedder: ToyEmbedder | None = None) -> PostgresMemoryService:
    return PostgresMemoryService(url, embedder=embedder or ToyEmbedder(dimensions))


def notes(count: int, about: str = "note") -> list[MemoryEntry]:
    """Entries each of which has a vector of its own."""
    return [MemoryEntry(f"{about}{number}", id=f"{about}{number}") for number in range(count)]


async def remember(memory: MemoryService, count: int, *, user: str = USER, about: str = "note") -> None:
    await memory.add_session(APP, user, about, notes(count, about))


@asynccontextmanager
async def looking(url: str) -> AsyncGenerator[AsyncConnection]:
    engine = create_async_engine(url.replace("://", "+asyncpg://", 1), isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


async def fetch(url: str, statement: str) -> list[tuple[Any, ...]]:
    async with looking(url) as connection:
        return [tuple(row) for row in await connection.execute(text(statement))]


async def run(url: str, statement: str) -> None:
    async with looking(url) as connection:
        await connection.execute(text(statement))


async def sketched(url: str) -> tuple[int, int]:
    """Return how many vectors there are, and how many of them have a sketch."""
    [(vectors, sketches)] = await fetch(url, "SELECT count(*), count(sketch) FROM adk_memory_embedding")
    return vectors, sketches


@contextmanager
def statements(memory: PostgresMemoryService) -> Iterator[list[str]]:
    """Collect what is sent to the database meanwhile."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    engine = memory._database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    yield sent
    event.remove(engine, "before_cursor_execute", note)
