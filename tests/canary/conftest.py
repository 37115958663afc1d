"""Databases that are migrated, and can be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import migrate


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a migrated database of either kind, without entries."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'memory.db'}"
        migrate(url)
        return url
    return str(request.getfixturevalue("migrated_postgres_url"))
