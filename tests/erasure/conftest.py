"""The stores that erasing is tried on: every backend, migrated and empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import migrate


@pytest.fixture
def migrated_sqlite_url(sqlite_url: str) -> str:
    """The URL of a migrated SQLite file without entries."""
    migrate(sqlite_url)
    return sqlite_url


@pytest.fixture
def file(migrated_sqlite_url: str) -> Path:
    """The file of `migrated_sqlite_url`."""
    return Path(migrated_sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database of either kind, without entries."""
    url: str = request.getfixturevalue(f"migrated_{'postgres' if request.param == 'postgresql' else 'sqlite'}_url")
    return url


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty, migrated store of each backend."""
    if request.param == "memory":
        return "memory://"
    found: str = request.getfixturevalue(f"migrated_{'postgres' if request.param == 'postgresql' else 'sqlite'}_url")
    return found
