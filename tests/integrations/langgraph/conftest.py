"""Stores on each backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from adk_memory.integrations.langgraph import AdkMemoryStore, AsyncAdkMemoryStore


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a database without items."""
    if request.param == "memory":
        return "memory://"
    found: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "migrated_postgres_url")
    return found


@pytest.fixture
def make_store(url: str) -> Iterator[Callable[..., AdkMemoryStore]]:
    """Makes a store with the options of its constructor; it is closed at the end of the test."""
    from adk_memory.integrations.langgraph import AdkMemoryStore

    made: list[AdkMemoryStore] = []

    def make(**options: Any) -> AdkMemoryStore:
        made.append(AdkMemoryStore(url, **options))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(make_store: Callable[[], AdkMemoryStore]) -> AdkMemoryStore:
    return make_store()


@pytest.fixture
async def async_store(url: str) -> AsyncIterator[AsyncAdkMemoryStore]:
    from adk_memory.integrations.langgraph import AsyncAdkMemoryStore

    async with AsyncAdkMemoryStore(url) as store:
        yield store
