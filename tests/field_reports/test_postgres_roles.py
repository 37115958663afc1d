"""F31: roles of few rights, the extension in another schema or missing, search paths without public."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

import postgres_server as servers
from adk_memory import ConfigurationError, MemoryEntry, MemoryService, SessionEntries, open_memory
from field_reports.calls import APP, USER, found, remember
from field_reports.embedders import HashEmbedder
from field_reports.tables import looking


@pytest.fixture
def role(postgres_server: servers.PostgresServer) -> Iterator[tuple[str, str]]:
    """The name and password of a role that may log in, and nothing else."""
    name, password = f"adk_role_{secrets.token_hex(4)}", secrets.token_hex(8)
    postgres_server._execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    yield name, password
    postgres_server._execute(f"DROP ROLE {name}")


@pytest.fixture
async def humble_url(role: tuple[str, str], postgres_url: str) -> AsyncIterator[str]:
    """The URL of an empty database in which that role may create tables in ``public``, but no extension."""
    name, password = role
    await run(postgres_url, f"GRANT CREATE, USAGE ON SCHEMA public TO {name}")
    yield make_url(postgres_url).set(username=name, password=password).render_as_string(hide_password=False)
    await run(postgres_url, f"DROP OWNED BY {name}")


async def run(url: str, *statements: str) -> None:
    async with looking(url) as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def words_and_vectors_work(service: MemoryService) -> None:
    async with service:
        await service.migrate()
        await service.health_check()
        await remember(service, "window seats", "aisle seats")
        assert (await found(service, "window seats", mode="vector"))[0] == "window seats"
        assert (await found(service, "window"))[0] == "window seats"
        assert await service.add_many([SessionEntries(APP, USER, "more", [MemoryEntry("sunny balcony")])]) == 1
        assert (await found(service, "sunny balcony", mode="vector"))[0] == "sunny balcony"
        assert await service.delete_user(APP, USER) == 3


async def test_f31_an_extension_that_is_there_is_enough(humble_url: str, postgres_url: str) -> None:
    await run(postgres_url, "CREATE EXTENSION vector")

    await words_and_vectors_work(open_memory(humble_url, embedder=HashEmbedder()))


@pytest.mark.parametrize("schema", ["extensions", "Ext 1", "we\"ird 'name"])
async def test_f31_the_extension_may_be_in_another_schema(
    humble_url: str, postgres_url: str, role: tuple[str, str], schema: str
) -> None:
    quoted = '"' + schema.replace('"', '""') + '"'
    await run(
        postgres_url,
        f"CREATE SCHEMA {quoted}",
        f"CREATE EXTENSION vector SCHEMA {quoted}",
        f"GRANT USAGE ON SCHEMA {quoted} TO {role[0]}",
    )

    await words_and_vectors_work(open_memory(humble_url, embedder=HashEmbedder()))


async def test_f31_a_missing_extension_is_explained_once_for_the_administrator(
    humble_url: str, postgres_url: str
) -> None:
    async with open_memory(humble_url, embedder=HashEmbedder()) as service:
        await service.migrate()
        for call in (lambda: remember(service, "a note"), lambda: found(service, "note"), service.health_check):
            with pytest.raises(ConfigurationError, match="CREATE EXTENSION vector"):
                await call()

    await run(postgres_url, "CREATE EXTENSION vector")
    await words_and_vectors_work(open_memory(humble_url, embedder=HashEmbedder()))


async def test_f31_without_an_embedder_no_extension_is_needed(humble_url: str, postgres_url: str) -> None:
    async with open_memory(humble_url) as service:
        await service.migrate()
        await remember(service, "a note")
        assert await found(service, "note") == ["a note"]
        assert await service.delete_user(APP, USER) == 1
    async with looking(postgres_url) as connection:
        assert await connection.scalar(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")) == 0


async def test_f31_a_search_path_without_public_is_used_and_left_as_it_is(
    humble_url: str, postgres_url: str, role: tuple[str, str]
) -> None:
    await run(
        postgres_url,
        "CREATE EXTENSION vector",
        f"CREATE SCHEMA mem AUTHORIZATION {role[0]}",
        "CREATE TABLE public.adk_memory_entry (of_the_host integer)",
    )
    engine = create_async_engine(
        humble_url.replace("://", "+asyncpg://"), connect_args={"server_settings": {"search_path": "mem"}}
    )

    await words_and_vectors_work(open_memory(engine, embedder=HashEmbedder()))

    async with engine.connect() as connection:
        assert await connection.scalar(text("SHOW search_path")) == "mem"
        tables = text("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'adk_memory_s%'")
        assert list(await connection.scalars(tables)) == ["mem"]
    await engine.dispose()


async def test_f31_an_application_role_needs_rights_to_rows_only(
    postgres_server: servers.PostgresServer, role: tuple[str, str], migrated_postgres_url: str
) -> None:
    name, password = role
    await run(migrated_postgres_url, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}")
    url = make_url(migrated_postgres_url).set(username=name, password=password).render_as_string(hide_password=False)

    await words_and_vectors_work(open_memory(url, embedder=HashEmbedder()))
    await run(migrated_postgres_url, f"DROP OWNED BY {name}")
