"""Services of two kinds to put a provider behind, and an endpoint to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from adk_memory import EmbeddingProvider, InMemoryMemoryService, MemoryService, SqliteMemoryService
from embedding_endpoint import Endpoint

MakeService = Callable[[EmbeddingProvider], MemoryService]


@pytest.fixture(params=["memory", "sqlite"])
def make_service(request: pytest.FixtureRequest, sqlite_url: str) -> MakeService:
    """Makes a service around a provider; it has to be migrated."""
    if request.param == "memory":
        return lambda embedder: InMemoryMemoryService(embedder=embedder)
    return lambda embedder: SqliteMemoryService(sqlite_url, embedder=embedder)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint().running() as endpoint:
        yield endpoint
