from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import migrate
from migrations.support import Scripts, Worker, host_engine


@pytest.fixture
async def engine(database_url: str) -> AsyncGenerator[AsyncEngine]:
    """The engine of a host on an empty database."""
    engine = host_engine(database_url)
    yield engine
    await engine.dispose()


@pytest.fixture
async def sqlite_engine(sqlite_url: str) -> AsyncGenerator[AsyncEngine]:
    engine = host_engine(sqlite_url)
    yield engine
    await engine.dispose()


@pytest.fixture
async def postgres_engine(postgres_url: str) -> AsyncGenerator[AsyncEngine]:
    engine = host_engine(postgres_url)
    yield engine
    await engine.dispose()


@pytest.fixture
def new_worker() -> Iterator[Callable[..., Worker]]:
    """Makes processes that are gone after the test."""
    workers: list[Worker] = []

    def make(url: str, **environment: str) -> Worker:
        workers.append(Worker(url, **environment))
        return workers[-1]

    yield make
    for worker in workers:
        worker.discard()


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripts:
    copy = tmp_path / "migrations of 100%"
    shutil.copytree(migrate.scripts_directory(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(migrate, "scripts_directory", lambda: copy)
    return Scripts(copy, lambda revision: monkeypatch.setattr(migrate, "HEAD", revision))
