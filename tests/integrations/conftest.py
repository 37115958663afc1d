"""The databases behind an integration."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a backend without entries; a Postgres database has its tables, as an operator makes them."""
    if request.param == "memory":
        return "memory://"
    fixture = "sqlite_url" if request.param == "sqlite" else "migrated_postgres_url"
    found: str = request.getfixturevalue(fixture)
    return found
