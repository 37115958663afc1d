"""The stores that the field reports are tried on: every backend, migrated and empty."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from adk_memory import EmbeddingProvider, MemoryService, open_memory
from field_reports.calls import MakeService
from field_reports.processes import run_script

BACKENDS = ("memory", "sqlite", "postgresql")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file that is only ever copied."""
    file = tmp_path_factory.mktemp("sqlite-template") / "memory.db"

    async def migrate() -> None:
        async with open_memory(f"sqlite:///{file}") as service:
            await service.migrate()

    asyncio.run(migrate())
    return file


@pytest.fixture
def migrated_sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a migrated SQLite file without entries."""
    shutil.copyfile(sqlite_template, tmp_path / "migrated.db")
    return f"sqlite:///{tmp_path / 'migrated.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database of either kind, without entries."""
    url: str = request.getfixturevalue(f"migrated_{'postgres' if request.param == 'postgresql' else 'sqlite'}_url")
    return url


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty, migrated store of each backend."""
    if request.param == "memory":
        return "memory://"
    name = {"sqlite": "migrated_sqlite_url", "postgresql": "migrated_postgres_url"}[request.param]
    found: str = request.getfixturevalue(name)
    return found


@pytest.fixture
def make_service(url: str) -> MakeService:
    """What opens the store of one backend, with an embedder or without; the test enters and leaves it."""

    def make(embedder: EmbeddingProvider | None = None) -> MemoryService:
        return open_memory(url, embedder=embedder)

    return make


@pytest.fixture
async def service(make_service: MakeService) -> AsyncIterator[MemoryService]:
    """An empty service of each backend, without an embedder."""
    async with make_service() as opened:
        yield opened


@pytest.fixture
async def sql_service(sql_url: str) -> AsyncIterator[MemoryService]:
    """An empty service of each database, without an embedder."""
    async with open_memory(sql_url) as opened:
        yield opened


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., str]:
    """What runs a script in a process of its own and returns what it printed."""
    return lambda script, *arguments, **environment: run_script(tmp_path, script, arguments, environment)
