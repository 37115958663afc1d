"""Alembic's environment: for adk_memory.migrate at run time, and for the command `alembic` in a checkout."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from alembic import context
from sqlalchemy import Connection, MetaData

from adk_memory._sql.columns import HalfVector
from adk_memory._sql.exclusive import exclusive
from adk_memory._sql.tables import ONLY_ON_POSTGRES, Base
from adk_memory.migrate import VERSION_TABLE, adopt_pgvector, refuse_foreign_tables


def is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Keep autogenerate away from the host application's tables and from search structures.

    The latter exist in one database only and are written by hand, under the prefix
    ``adk_memory_search_``; FTS5's shadow tables inherit it.
    """
    if name is None:
        return True
    if name.startswith("adk_memory_search_"):
        return False
    return kind != "table" or name.startswith("adk_memory_")


def is_on_sqlite(thing: Any, _name: str | None, _kind: str, _reflected: bool, _other: object) -> bool:
    """Keep autogenerate from missing, on SQLite, the columns that only Postgres has."""
    return ONLY_ON_POSTGRES not in thing.info


def run(connection: Connection, command: str) -> None:
    on_sqlite = connection.dialect.name == "sqlite"
    migrating = command in {"upgrade", "downgrade"}
    if migrating:
        refuse_foreign_tables(connection)
        if not on_sqlite:
            connection.rollback()  # one transaction per revision, and so none before the first

    context.configure(
        connection=connection,
        target_metadata=Base.metadata if migrating else comparable_metadata(connection),
        version_table=VERSION_TABLE,
        include_name=is_ours,
        include_object=is_on_sqlite if on_sqlite else None,
        transaction_per_migration=not on_sqlite,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()

    if command == "upgrade":
        adopt_pgvector(connection)


def comparable_metadata(connection: Connection) -> MetaData:
    """Return the tables as autogenerate finds them in the database; the originals stay as they are."""
    if connection.dialect.name == "postgresql":
        # On this engine only: the dialect's class holds the names for all.
        dialect: Any = connection.dialect
        dialect.ischema_names = {**dialect.ischema_names, "halfvec": HalfVector}
        return Base.metadata

    copy = MetaData(naming_convention=Base.metadata.naming_convention)
    for original in Base.metadata.tables.values():
        for column in original.to_metadata(copy).columns:
            column.identity = column.server_default = None  # AUTOINCREMENT on SQLite, which is not compared
    return copy


async def run_from_cli() -> None:
    from adk_memory._open import open_engine

    given = context.get_x_argument(as_dictionary=True).get("url")
    url = given or os.environ.get("ADK_MEMORY_URL") or context.config.get_main_option("sqlalchemy.url")
    command = getattr(context.config.cmd_opts, "cmd", None)
    engine = open_engine(url or "sqlite:///dev.db")
    try:
        async with exclusive(engine) as connection:
            await connection.run_sync(run, command[0].__name__ if command else "")
    finally:
        await engine.dispose()


shared = context.config.attributes.get("connection")
if context.is_offline_mode():
    raise SystemExit("offline mode (--sql) is not supported: migrations look at what the database has")
if shared is not None:
    run(shared, context.config.attributes.get("command", ""))
else:
    asyncio.run(run_from_cli())
