"""adk-memory row-security: switching the policies on and off."""

from __future__ import annotations

import pytest

from cli.shell import Run


def test_it_is_switched_on_and_off(run: Run, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADK_MEMORY_URL", migrated_postgres_url)

    said = [run("row-security", action).out for action in ("status", "enable", "status", "disable", "status")]

    on, off = "Row-level security is on.\n", "Row-level security is off.\n"
    assert said == [off, on, on, off, off]
    assert run("row-security", "enable", "--json").document == {"on": True, "partly": False, "bound": False}


def test_sqlite_has_none(run: Run, database: str) -> None:
    outcome = run("row-security", "enable")

    assert outcome.code == 1
    assert "only Postgres has row-level security" in outcome.err


def test_tables_are_needed(run: Run, postgres_url: str) -> None:
    assert run("row-security", "enable", "--url", postgres_url).code == 3
