"""A host application shares the database, the engine and the process: what is its own stays as it is."""

from __future__ import annotations

import io
import logging
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Column, Connection, Integer, MetaData, StaticPool, Table, event, text
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from adk_memory import migrate
from adk_memory._sql import exclusive
from adk_memory._sql.tables import Base
from adk_memory.errors import ConfigurationError, SchemaError, StorageUnavailableError
from migrations.support import (
    Scripts,
    check_models,
    execute,
    fetch,
    host_engine,
    store_two_entries,
    table_names,
)

HOST_ENV = """
from alembic import context
from sqlalchemy import MetaData, Table, Column, Integer
from adk_memory import migrate
from adk_memory._sql import exclusive

metadata = MetaData()
Table("users", metadata, Column("id", Integer, primary_key=True))
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata,
                  include_name=migrate.include_name)
with context.begin_transaction():
    context.run_migrations()
"""
HOST_REVISION = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0001", None
def upgrade(): op.create_table("users", sa.Column("id", sa.Integer, primary_key=True))
def downgrade(): op.drop_table("users")
"""


@pytest.fixture
def host_config(tmp_path: Path) -> Config:
    """The host's own Alembic, whose revision happens to be called like ours."""
    scripts = tmp_path / "host"
    (scripts / "versions").mkdir(parents=True)
    (scripts / "env.py").write_text(HOST_ENV)
    (scripts / "versions" / "0001_users.py").write_text(HOST_REVISION)
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(scripts))
    config.set_main_option("path_separator", "os")
    return config


async def run_host(engine: AsyncEngine, config: Config, name: str, *arguments: str) -> None:
    def run(connection: Connection) -> None:
        config.attributes["connection"] = connection
        getattr(command, name)(config, *arguments)

    async with engine.begin() as connection:
        await connection.run_sync(run)


async def test_two_chains_of_revisions_live_side_by_side(engine: AsyncEngine, host_config: Config) -> None:
    await run_host(engine, host_config, "upgrade", "head")
    await migrate.upgrade(engine)
    await store_two_entries(engine)
    await run_host(engine, host_config, "upgrade", "head")
    await run_host(engine, host_config, "current")
    await migrate.upgrade(engine)
    await run_host(engine, host_config, "check")

    await run_host(engine, host_config, "downgrade", "base")
    await migrate.require_head(engine)
    assert await fetch(engine, "SELECT count(*) FROM adk_memory_entry") == [(2,)]

    await run_host(engine, host_config, "upgrade", "head")
    await migrate.downgrade(engine, "base")
    assert await fetch(engine, "SELECT version_num FROM alembic_version") == [("0001",)]
    assert {"users", "alembic_version"} <= await table_names(engine)


async def test_the_filter_keeps_our_tables_out_of_the_autogenerate_of_a_host(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)
    await execute(engine, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    host_metadata = MetaData()
    Table("users", host_metadata, Column("id", Integer, primary_key=True))

    def differences(connection: Connection, /, **options: Any) -> set[tuple[str, str]]:
        context = MigrationContext.configure(connection, opts=options)
        found: Any = compare_metadata(context, host_metadata)
        return {(difference[0], difference[1].name) for difference in found}

    async with engine.connect() as connection:
        filtered = await connection.run_sync(differences, include_name=migrate.include_name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # halfvec is unknown to a host without pgvector's package
            unfiltered = await connection.run_sync(differences)
    assert filtered == {("add_table", "users"), ("remove_table", "orders")}
    assert ("remove_table", "adk_memory_entry") in unfiltered


def test_the_filter_lets_through_what_is_not_a_table_of_ours() -> None:
    assert migrate.include_name("users", "table", {})
    assert migrate.include_name(None, "schema", {"schema_name": None})
    assert migrate.include_name("adk_memory_id", "column", {"table_name": "users"})
    assert not migrate.include_name("adk_memory_entry", "table", {"schema_name": None})
    assert not migrate.include_name(migrate.VERSION_TABLE, "table", {})


async def test_our_check_does_not_see_the_tables_of_the_host(engine: AsyncEngine) -> None:
    await execute(engine, "CREATE TABLE users (id INTEGER PRIMARY KEY)", "CREATE INDEX by_id ON users (id)")

    await migrate.upgrade(engine)

    await check_models(engine)


async def test_tables_that_no_migration_made_are_reported_and_left(engine: AsyncEngine) -> None:
    only_two = [Base.metadata.tables["adk_memory_scope"], Base.metadata.tables["adk_memory_entry"]]
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all, tables=only_two)
    before = await table_names(engine)

    with pytest.raises(
        SchemaError, match=r"adk_memory_entry, adk_memory_scope but no revision.*create_all.*adk-memory upgrade"
    ):
        await migrate.upgrade(engine)

    assert await table_names(engine) == before
    assert await migrate.current(engine) is None


async def test_a_table_of_the_host_with_our_prefix_is_no_obstacle(engine: AsyncEngine) -> None:
    await execute(engine, "CREATE TABLE adk_memory_notes (id INTEGER PRIMARY KEY)")

    await migrate.upgrade(engine)

    assert "adk_memory_notes" in await table_names(engine)


async def test_dangling_rows_of_the_host_are_no_obstacle(sqlite_engine: AsyncEngine) -> None:
    await execute(
        sqlite_engine,
        "CREATE TABLE users (id INTEGER PRIMARY KEY)",
        "CREATE TABLE orders (user_id INTEGER REFERENCES users)",
        "INSERT INTO orders VALUES (7)",
    )

    await migrate.upgrade(sqlite_engine)

    await migrate.require_head(sqlite_engine)


async def test_the_logging_of_the_host_is_not_configured(engine: AsyncEngine) -> None:
    host_logger = logging.getLogger("host.application")
    before = (list(logging.root.handlers), logging.root.level)

    await migrate.upgrade(engine)

    assert (list(logging.root.handlers), logging.root.level) == before
    assert not host_logger.disabled


async def test_the_engine_of_the_host_is_not_set_up(engine: AsyncEngine) -> None:
    seen: list[str] = []
    event.listen(engine.sync_engine, "begin", lambda _connection: seen.append("begin"))
    known = dict(vars(engine.sync_engine.dispatch))

    await migrate.upgrade(engine)

    assert dict(vars(engine.sync_engine.dispatch)).keys() == known.keys()
    assert "ischema_names" not in vars(engine.dialect)
    assert seen


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN IMMEDIATE"])
async def test_an_engine_that_emits_begin_itself(sqlite_url: str, begin: str, scripts: Scripts) -> None:
    # As SQLAlchemy's documentation advises for savepoints and transactional DDL.
    engine = host_engine(sqlite_url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0)

    @event.listens_for(engine.sync_engine, "connect")
    def no_begin_of_the_driver(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine.sync_engine, "begin")
    def emit_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    await migrate.upgrade(engine)
    await store_two_entries(engine)
    scripts.add("0002", "0001", 'op.create_table("adk_memory_junk", sa.Column("a"))\nop.execute("SELECT no FROM no")')
    with pytest.raises(Exception, match="refused"):
        await migrate.upgrade(engine)

    assert "adk_memory_junk" not in await table_names(engine)
    async with engine.connect() as connection:
        await connection.execute(text("DELETE FROM adk_memory_entry"))
        await connection.rollback()
    assert await fetch(engine, "SELECT count(*) FROM adk_memory_entry") == [(2,)]
    await engine.dispose()


async def test_a_transaction_of_the_host_may_be_open(engine: AsyncEngine) -> None:
    await execute(engine, "CREATE TABLE users (id INTEGER PRIMARY KEY)", "INSERT INTO users VALUES (1)")
    if engine.dialect.name == "sqlite":
        await execute(engine, "PRAGMA journal_mode = WAL")

    async with engine.connect() as reading:
        await reading.execute(text("SELECT * FROM users"))
        await migrate.upgrade(engine)
        assert (await reading.execute(text("SELECT count(*) FROM users"))).scalar_one() == 1
    await migrate.require_head(engine)


async def test_an_uncommitted_transaction_on_postgres_is_neither_waited_for_nor_ended(
    postgres_engine: AsyncEngine,
) -> None:
    async with postgres_engine.connect() as writing:
        await writing.execute(text("CREATE TABLE users (id INTEGER PRIMARY KEY)"))
        await migrate.upgrade(postgres_engine)
        await writing.rollback()

    assert "users" not in await table_names(postgres_engine)
    await migrate.require_head(postgres_engine)


async def test_a_writer_that_does_not_end_makes_sqlite_unavailable(
    sqlite_engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exclusive, "_SQLITE_WAIT_SECONDS", 0.2)
    await execute(sqlite_engine, "CREATE TABLE users (id INTEGER PRIMARY KEY)")

    async with sqlite_engine.connect() as writing:
        await writing.execute(text("INSERT INTO users VALUES (1)"))
        with pytest.raises(StorageUnavailableError, match="stayed locked"):
            await migrate.upgrade(sqlite_engine)
        await writing.commit()

    await migrate.upgrade(sqlite_engine)
    assert await fetch(sqlite_engine, "SELECT id FROM users") == [(1,)]


async def test_a_transaction_on_the_only_connection_is_not_ended() -> None:
    engine = host_engine("sqlite://", poolclass=StaticPool)
    await execute(engine, "CREATE TABLE users (id INTEGER PRIMARY KEY)")

    async with engine.connect() as writing:
        await writing.execute(text("INSERT INTO users VALUES (1)"))
        with pytest.raises(StorageUnavailableError, match="inside a transaction"):
            await migrate.upgrade(engine)
        await writing.rollback()

    await migrate.upgrade(engine)
    assert await fetch(engine, "SELECT id FROM users") == []
    await engine.dispose()


async def test_other_databases_are_refused_by_name() -> None:
    engine = host_engine("sqlite://")
    engine.sync_engine.dialect.name = "mysql"

    with pytest.raises(ConfigurationError, match="no tables for mysql: use SQLite or Postgres"):
        await migrate.upgrade(engine)
    await engine.dispose()


async def test_no_message_shows_a_password(tmp_path: Path) -> None:
    engine = host_engine(f"sqlite:///{tmp_path / 'x.db'}")
    secret = engine.url.set(username="me", password="hunter2", query={"password": "hunter3"})
    engine.sync_engine.url = secret

    with pytest.raises(SchemaError) as caught:
        await migrate.require_head(engine)

    assert re.search("hunter", str(caught.value)) is None
    await engine.dispose()
