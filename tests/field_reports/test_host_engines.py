"""F20, F24 and F25: an engine of the application's own, set up in its own way, stays as it is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import NullPool, StaticPool, event, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_memory import MemoryEntry, open_memory
from field_reports.calls import APP, USER, ask, found, recent, remember
from field_reports.embedders import HashEmbedder

Make = Callable[[str], AsyncEngine]


def driver_url(url: str) -> str:
    return url.replace("://", "+aiosqlite://" if url.startswith("sqlite") else "+asyncpg://", 1)


def with_begin_recipe(url: str, **options: Any) -> AsyncEngine:
    """What SQLAlchemy's documentation tells users of SQLite to do for savepoints and serializable transactions."""
    engine = create_async_engine(url, **options)

    @event.listens_for(engine.sync_engine, "connect")
    def leave_transactions_alone(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def bytes_dumps(value: Any) -> str:
    return json.dumps({"wrapped": value})


SQLITE_ENGINES: dict[str, Make] = {
    "plain": create_async_engine,
    "BEGIN recipe": with_begin_recipe,
    "BEGIN recipe, static pool": lambda url: with_begin_recipe(url, poolclass=StaticPool),
    "AUTOCOMMIT": lambda url: create_async_engine(url, isolation_level="AUTOCOMMIT"),
    "AUTOCOMMIT by options": lambda url: create_async_engine(url).execution_options(isolation_level="AUTOCOMMIT"),
    "READ UNCOMMITTED": lambda url: create_async_engine(url, isolation_level="READ UNCOMMITTED"),
    "static pool": lambda url: create_async_engine(url, poolclass=StaticPool),
    "null pool": lambda url: create_async_engine(url, poolclass=NullPool),
    "own JSON": lambda url: create_async_engine(
        url, json_serializer=bytes_dumps, json_deserializer=lambda _text: "spoilt"
    ),
    "schema_translate_map": lambda url: create_async_engine(url).execution_options(
        schema_translate_map={"other": "else"}
    ),
}
POSTGRES_ENGINES: dict[str, Make] = {
    "plain": create_async_engine,
    "AUTOCOMMIT": lambda url: create_async_engine(url, isolation_level="AUTOCOMMIT"),
    "AUTOCOMMIT by options": lambda url: create_async_engine(url).execution_options(isolation_level="AUTOCOMMIT"),
    "SERIALIZABLE": lambda url: create_async_engine(url, isolation_level="SERIALIZABLE"),
    "REPEATABLE READ": lambda url: create_async_engine(url, isolation_level="REPEATABLE READ"),
    "null pool": lambda url: create_async_engine(url, poolclass=NullPool),
    "one connection": lambda url: create_async_engine(url, pool_size=1, max_overflow=0),
    "own JSON": lambda url: create_async_engine(url, json_serializer=bytes_dumps,
    json_deserializer=lambda _text: "spoilt"),
    "no statement caches": lambda url: create_async_engine(
        url, connect_args={"statement_cache_size": 0, "prepared_statement_cache_size": 0}
    ),
    "other settings": lambda url: create_async_engine(
        url,
        connect_args={
            "server_settings": {
                "timezone": "Asia/Kolkata", "datestyle": "SQL, DMY", "standard_conforming_strings": "on",
                "default_text_search_config": "pg_catalog.german", "jit": "off",
                "default_transaction_read_only": "off",
                "bytea_output": "escape", "extra_float_digits": "0", "enable_seqscan": "off",
                "intervalstyle": "iso_8601",
            }
        },
    ),
}  # fmt: skip


CASES = [("sqlite", name) for name in SQLITE_ENGINES] + [("postgresql", name) for name in POSTGRES_ENGINES]


@pytest.fixture(params=CASES, ids=[f"{backend}, {name}" for backend, name in CASES])
def host(request: pytest.FixtureRequest) -> tuple[Make, str]:
    """How a host application makes its engine, and the URL of an empty, migrated database."""
    backend, name = request.param
    url = request.getfixturevalue("migrated_sqlite_url" if backend == "sqlite" else "migrated_postgres_url")
    return (SQLITE_ENGINES if backend == "sqlite" else POSTGRES_ENGINES)[name], driver_url(url)


@pytest.fixture
async def engine(host: tuple[Make, str]) -> AsyncIterator[AsyncEngine]:
    """The engine of a host application."""
    make, url = host
    made = make(url)
    yield made
    await made.dispose()


async def test_f25_every_operation_works_on_an_engine_of_the_host(engine: AsyncEngine) -> None:
    entry = MemoryEntry(
        {"parts": ["a note", {"call": {"é": 1.5}}], "x": [1, None]}, id="x", metadata={"k": {"v": True}}, timestamp=0
    )
    async with open_memory(engine, embedder=HashEmbedder()) as service:
        await service.migrate()
        await service.health_check()
        await remember(service, entry, "another note")
        await remember(service, entry, "another note", "a third note")
        await remember(service, "elsewhere", project="p")

        [hit] = [hit for hit in await ask(service, "note") if hit.id == "x"]
        assert (hit.content, hit.metadata, hit.timestamp) == (entry.content, entry.metadata, entry.timestamp)
        assert len(await found(service, "note", mode="vector")) == 3
        assert await service.get(APP, USER, "x") is not None
        assert len(await recent(service)) == 4
        assert await service.delete_entries(APP, USER, "third note") == 1
        assert await service.delete_session(APP, USER, "s1", project_id="p") == 1
        assert await service.delete_user(APP, USER) == 2
        assert await recent(service) == []


async def test_f25_what_fails_is_rolled_back_on_an_engine_of_the_host(engine: AsyncEngine) -> None:
    async with open_memory(engine) as service:
        await remember(service, "kept")
        async with engine.connect() as connection:
            await connection.execute(text("ALTER TABLE adk_memory_search_entry RENAME TO elsewhere"))
            await connection.commit()
        with pytest.raises(Exception, match=r"database|Postgres|SQLite"):
            await remember(service, "lost", "lost too")
        async with engine.connect() as connection:
            await connection.execute(text("ALTER TABLE elsewhere RENAME TO adk_memory_search_entry"))
            await connection.commit()

        assert await recent(service) == ["kept"]
        await remember(service, "kept too")
        assert sorted(await found(service, "kept")) == ["kept", "kept too"]


async def test_f25_the_engine_gets_no_listeners_keeps_its_settings_and_is_not_disposed_of(engine: AsyncEngine) -> None:
    async def settings() -> list[Any]:
        names = (
            ["PRAGMA busy_timeout", "PRAGMA foreign_keys", "PRAGMA secure_delete", "PRAGMA synchronous"]
            if engine.dialect.name == "sqlite"
            else [
                "SHOW search_path",
                "SHOW timezone",
                "SHOW transaction_isolation",
                "SHOW transaction_read_only",
                "SHOW lock_timeout",
            ]
        )
        async with engine.connect() as connection:
            return [await connection.scalar(text(name)) for name in names]

    def listeners() -> list[int]:
        sync_engine: Any = engine.sync_engine
        heard_by = [sync_engine.dispatch, sync_engine.pool.dispatch, sync_engine.dialect.dispatch]
        dispatchers = [getattr(each, "local", each) for each in heard_by]
        return [len(list(getattr(each, name))) for each in dispatchers for name in sorted(each._event_names)]

    before, pool, heard = await settings(), engine.pool, listeners()
    async with open_memory(engine) as service:
        await service.migrate()
        await remember(service, "kept")
        await found(service, "kept")
    await service.close()

    assert engine.pool is pool
    assert listeners() == heard
    assert await settings() == before


async def test_f25_a_transaction_of_the_host_is_its_own(engine: AsyncEngine) -> None:
    only_connection = isinstance(engine.pool, StaticPool) or getattr(engine.pool, "_max_overflow", None) == 0
    async with open_memory(engine) as service:
        await remember(service, "kept")
        async with engine.connect() as connection:
            assert await connection.scalar(text("SELECT count(*) FROM adk_memory_entry")) == 1
            assert only_connection or await recent(service) == ["kept"]  # or the call would wait for the host's
            await connection.rollback()
        await remember(service, "kept too")
        assert await recent(service) == ["kept too", "kept"]
