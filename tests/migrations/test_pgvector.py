"""pgvector is used wherever it is, made where that is allowed, done without where it is not; never dropped."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import MemoryEntry, SearchRequest, migrate, open_memory
from adk_memory.testing import ToyEmbedder
from migrations.support import check_models, execute, fetch, host_engine, matching, store_two_entries

COLUMN = """
    SELECT n.nspname, t.typname, a.attstorage FROM pg_attribute a
    JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = CAST('adk_memory_embedding' AS regclass) AND a.attname = 'vector'
"""
EXTENSIONS = "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"


@pytest.fixture
def admin(postgres_engine: AsyncEngine) -> AsyncEngine:
    """The engine of a superuser."""
    return postgres_engine


@pytest.fixture
async def humble(admin: AsyncEngine, postgres_url: str) -> AsyncGenerator[AsyncEngine]:
    """The engine of a role that may create tables, and no extension."""
    name, password = f"adk_memory_test_{secrets.token_hex(6)}", secrets.token_hex(6)
    await execute(
        admin, f"CREATE ROLE {name} LOGIN PASSWORD '{password}'", f"GRANT CREATE, USAGE ON SCHEMA public TO {name}"
    )
    url = make_url(postgres_url).set(username=name, password=password)
    engine = host_engine(url.render_as_string(hide_password=False))
    yield engine
    await engine.dispose()
    await execute(admin, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def role(engine: AsyncEngine) -> str:
    return str(engine.url.username)


async def column(engine: AsyncEngine) -> tuple[object, ...]:
    [found] = await fetch(engine, COLUMN)
    return tuple(found)


async def test_a_role_that_may_creates_the_extension(admin: AsyncEngine) -> None:
    await migrate.upgrade(admin)

    assert await column(admin) == ("public", "halfvec", b"m")
    assert await fetch(admin, EXTENSIONS) == [("public",)]


async def test_an_extension_that_is_there_is_used_without_any_right(admin: AsyncEngine, humble: AsyncEngine) -> None:
    await execute(admin, "CREATE EXTENSION vector")

    await migrate.upgrade(humble)

    assert await column(humble) == ("public", "halfvec", b"m")


async def test_an_extension_in_a_schema_off_the_search_path_is_used(admin: AsyncEngine, humble: AsyncEngine) -> None:
    await execute(
        admin,
        'CREATE SCHEMA "Ext 1"',
        'CREATE EXTENSION vector SCHEMA "Ext 1"',
        f'GRANT USAGE ON SCHEMA "Ext 1" TO {role(humble)}',
    )

    await migrate.upgrade(humble)
    await migrate.upgrade(humble)

    assert await column(humble) == ("Ext 1", "halfvec", b"m")
    assert await fetch(admin, EXTENSIONS) == [("Ext 1",)]


async def test_without_the_right_to_the_schema_of_the_extension_it_is_done_without(
    admin: AsyncEngine, humble: AsyncEngine
) -> None:
    await execute(admin, "CREATE SCHEMA ext", "CREATE EXTENSION vector SCHEMA ext")
    await migrate.upgrade(humble)
    assert await column(humble) == ("pg_catalog", "_float4", b"x")

    await execute(admin, f"GRANT USAGE ON SCHEMA ext TO {role(humble)}")
    await migrate.upgrade(humble)

    assert await column(humble) == ("ext", "halfvec", b"m")


async def test_without_the_extension_keywords_work_and_a_later_upgrade_adopts_it(
    admin: AsyncEngine, humble: AsyncEngine
) -> None:
    await migrate.upgrade(humble)
    await migrate.require_head(humble)
    await store_two_entries(humble)
    assert await matching(humble, "tea") == [1, 2]
    assert await column(humble) == ("pg_catalog", "_float4", b"x")
    await migrate.upgrade(humble)
    assert await column(humble) == ("pg_catalog", "_float4", b"x")
    await execute(humble, "INSERT INTO adk_memory_embedding VALUES (1, 1, 1, ARRAY[0.5, -1])")

    await execute(admin, "CREATE EXTENSION vector")
    await migrate.upgrade(humble)

    assert await column(humble) == ("public", "halfvec", b"m")
    assert await fetch(humble, "SELECT CAST(vector AS text) FROM adk_memory_embedding") == [("[0.5,-1]",)]
    await check_models(humble)


async def test_a_role_that_does_not_own_the_tables_may_still_call_upgrade(
    admin: AsyncEngine, humble: AsyncEngine, postgres_url: str
) -> None:
    await migrate.upgrade(humble)
    await execute(humble, f"GRANT SELECT ON {migrate.VERSION_TABLE} TO PUBLIC")
    await execute(admin, "CREATE EXTENSION vector")
    name, password = f"adk_memory_test_{secrets.token_hex(6)}", secrets.token_hex(6)
    await execute(admin, f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    url = make_url(postgres_url).set(username=name, password=password)
    guest = host_engine(url.render_as_string(hide_password=False))

    await migrate.upgrade(guest)
    await guest.dispose()

    assert await column(humble) == ("pg_catalog", "_float4", b"x")
    await execute(admin, f"DROP ROLE {name}")


async def test_downgrading_keeps_the_extension_and_does_not_create_it(admin: AsyncEngine, humble: AsyncEngine) -> None:
    await migrate.upgrade(humble)
    await migrate.downgrade(admin, "0001")
    assert await fetch(admin, EXTENSIONS) == []

    await migrate.upgrade(admin)
    await execute(admin, "CREATE TABLE places (name text, at vector(3))")
    await migrate.downgrade(admin, "base")

    assert await fetch(admin, EXTENSIONS) == [("public",)]


async def test_a_check_does_not_create_the_extension(admin: AsyncEngine, humble: AsyncEngine) -> None:
    await migrate.upgrade(humble)

    with pytest.raises(Exception, match="modify_type"):
        await check_models(admin)

    assert await fetch(admin, EXTENSIONS) == []


@pytest.mark.parametrize("dimensions", [1, 768, 3072, 4096])
async def test_vectors_of_any_width_are_stored_side_by_side(admin: AsyncEngine, dimensions: int) -> None:
    await migrate.upgrade(admin)
    store = text("INSERT INTO adk_memory_embedding VALUES (1, :model, 1, CAST(CAST(:floats AS real[]) AS halfvec))")

    async with admin.begin() as connection:
        await connection.execute(store, {"model": 1, "floats": [0.5] * dimensions})
        await connection.execute(store, {"model": 2, "floats": [0.5] * 2})
    await migrate.upgrade(admin)

    found = await fetch(admin, "SELECT vector_dims(vector) FROM adk_memory_embedding ORDER BY model_id")
    assert found == [(dimensions,), (2,)]


async def test_a_running_service_follows_the_extension_into_another_schema(
    admin: AsyncEngine, postgres_url: str
) -> None:
    async with open_memory(postgres_url, embedder=ToyEmbedder()) as service:
        await service.migrate()
        await service.add_entry("app", "ana", MemoryEntry("green tea"))
        request = SearchRequest("green tea", "app", "ana", mode="vector")
        assert len(await service.search(request)) == 1

        await execute(admin, "CREATE SCHEMA low", "ALTER EXTENSION vector SET SCHEMA low")
        await service.health_check()

        assert len(await service.search(request)) == 1


async def test_a_table_that_is_altered_under_a_running_service_costs_no_call(
    admin: AsyncEngine, postgres_url: str
) -> None:
    async with open_memory(postgres_url) as service:
        await service.migrate()
        await service.add_entry("app", "ana", MemoryEntry("green tea"))
        request = SearchRequest("green tea", "app", "ana")
        assert len(await service.search(request)) == 1

        await execute(admin, "ALTER TABLE adk_memory_scope ALTER COLUMN project_key TYPE varchar(300)")

        assert len(await service.search(request)) == 1
