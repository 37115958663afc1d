from __future__ import annotations

import pytest

from conftest import migrate


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database of either kind, without entries."""
    if request.param == "postgresql":
        found: str = request.getfixturevalue("migrated_postgres_url")
        return found
    made: str = request.getfixturevalue("sqlite_url")
    migrate(made)
    return made
