"""The contract, kept by every backend of ours. Tests share one database of each kind; each has an app of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from adk_memory import InMemoryMemoryService, PostgresMemoryService, SqliteMemoryService
from adk_memory.testing import MakeService, MemoryServiceContract
from conftest import migrate
from postgres_server import PostgresServer


@pytest.fixture(scope="module")
def shared_sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('contract') / 'memory.db'}"
    migrate(url)
    return url


@pytest.fixture(scope="module")
def shared_postgres_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    with postgres_server.database(postgres_template) as url:
        yield url


class TestInMemory(MemoryServiceContract):
    durable = False

    @pytest.fixture
    def make_service(self) -> MakeService:
        return InMemoryMemoryService


class TestSqlite(MemoryServiceContract):
    @pytest.fixture
    def make_service(self, shared_sqlite_url: str) -> MakeService:
        return partial(SqliteMemoryService, shared_sqlite_url)


class TestPostgres(MemoryServiceContract):
    @pytest.fixture
    def make_service(self, shared_postgres_url: str) -> MakeService:
        return partial(PostgresMemoryService, shared_postgres_url)
