from __future__ import annotations

from collections.abc import Iterator

import pytest

from conftest import migrate
from postgres_server import OwnServer, own_postgres


@pytest.fixture
def migrated_sqlite_url(sqlite_url: str) -> str:
    """The URL of a migrated SQLite file without entries."""
    migrate(sqlite_url)
    return sqlite_url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database of either kind, without entries."""
    name = "migrated_postgres_url" if request.param == "postgresql" else "migrated_sqlite_url"
    found: str = request.getfixturevalue(name)
    return found


@pytest.fixture(scope="package")
def own_server() -> Iterator[OwnServer]:
    """A Postgres server that tests may stop, start and fill."""
    with own_postgres() as server:
        yield server
