"""A scrub of a Postgres database: VACUUM where the role may, and a plain word where it could not do its work."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import make_url, text

from adk_memory import open_memory
from adk_memory._sql import postgres_scrub
from erasure.files import APP, remember
from field_reports.tables import looking
from postgres_server import PostgresServer

_TABLES = ("entry", "search_entry", "embedding", "scope")


async def pages(url: str) -> int:
    """Return how many pages the tables have; a vacuumed one without rows has none."""
    async with looking(url) as connection:
        sizes = [
            await connection.scalar(text(f"SELECT pg_relation_size('adk_memory_{name}') / 8192")) for name in _TABLES
        ]
    return sum(size or 0 for size in sizes)


async def test_the_rows_of_all_tables_are_vacuumed(migrated_postgres_url: str) -> None:
    seen: list[tuple[int, int]] = []
    async with open_memory(migrated_postgres_url) as service:
        await remember(service, "ana", *(f"green tea {n}" for n in range(50)))
        await service.delete_user(APP, "ana")

        report = await service.scrub(on_progress=lambda done, total: seen.append((done, total)))

    assert report.left == ()
    assert await pages(migrated_postgres_url) == 0
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_rows_that_a_transaction_can_still_see_are_reported(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_scrub, "_PATIENCE_SECONDS", 0.3)
    async with open_memory(migrated_postgres_url) as service, looking(migrated_postgres_url) as reader:
        await remember(service, "ana", "green tea", "black tea")
        await reader.execute(text("BEGIN ISOLATION LEVEL REPEATABLE READ"))
        assert await reader.scalar(text("SELECT count(*) FROM adk_memory_entry")) == 2
        await service.delete_user(APP, "ana")

        report = await service.scrub()

        assert ["transaction" in line for line in report.left] == [True]
        assert await pages(migrated_postgres_url) > 0
        await reader.execute(text("COMMIT"))
        assert (await service.scrub()).complete
    assert await pages(migrated_postgres_url) == 0


@pytest.fixture
async def humble_url(postgres_server: PostgresServer, migrated_postgres_url: str) -> AsyncIterator[str]:
    """The URL of the database for a role that may read and write the tables, and does not own them."""
    name, password = f"adk_role_{secrets.token_hex(4)}", secrets.token_hex(8)
    async with looking(migrated_postgres_url) as connection:
        await connection.execute(text(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'"))
        rights = f"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}"
        await connection.execute(text(f"GRANT {rights}"))
        yield (
            make_url(migrated_postgres_url).set(username=name, password=password).render_as_string(hide_password=False)
        )
        await connection.execute(text(f"DROP OWNED BY {name}"))
        await connection.execute(text(f"DROP ROLE {name}"))


async def test_a_role_that_may_not_vacuum_is_told_so(humble_url: str, migrated_postgres_url: str) -> None:
    async with open_memory(humble_url) as service:
        await remember(service, "ana", "green tea")
        await service.delete_user(APP, "ana")

        report = await service.scrub()

    assert len(report.left) == 4
    assert all("may not vacuum" in line for line in report.left)
    assert await pages(migrated_postgres_url) > 0


async def test_a_role_that_was_granted_it_may(humble_url: str, migrated_postgres_url: str) -> None:
    async with looking(migrated_postgres_url) as connection:
        if int(await connection.scalar(text("SHOW server_version_num")) or 0) < 170_000:
            pytest.skip("this Postgres has no right to vacuum")
        await connection.execute(
            text(f"GRANT MAINTAIN ON ALL TABLES IN SCHEMA public TO {make_url(humble_url).username}")
        )
    async with open_memory(humble_url) as service:
        await remember(service, "ana", "green tea")
        await service.delete_user(APP, "ana")

        assert (await service.scrub()).complete
    assert await pages(migrated_postgres_url) == 0
