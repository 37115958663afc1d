"""A look at everything that a database holds, past the library."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

OWN_ROWS = ("adk_memory_meta", "adk_memory_schema_version", "adk_memory_embedding_model")
"""Tables that hold nothing of any user."""

_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'adk_memory%'"
_POSTGRES_TABLES = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'adk_memory%'"
# What an empty FTS5 table leaves in its shadow tables.
_FTS5_SHADOWS = ("_config", "_data", "_idx")


@asynccontextmanager
async def looking(url: str) -> AsyncGenerator[AsyncConnection]:
    """Open a connection of our own to the database at ``url``; it commits by itself."""
    driver = "+aiosqlite://" if url.startswith("sqlite") else "+asyncpg://"
    engine = create_async_engine(url.replace("://", driver, 1), isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


async def every_table(connection: AsyncConnection) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables of the library, FTS5's shadow tables included."""
    listing = _SQLITE_TABLES if connection.dialect.name == "sqlite" else _POSTGRES_TABLES
    names = list(await connection.scalars(text(listing)))
    return {
        name: [tuple(row) for row in await connection.execute(text(f'SELECT * FROM "{name}"'))]
        for name in sorted(names)
    }


async def rows_of_users(url: str) -> dict[str, int]:
    """Return how many rows each table holds that can be a user's."""
    async with looking(url) as connection:
        tables = await every_table(connection)
    return {
        name: len(rows) for name, rows in tables.items() if name not in OWN_ROWS and not name.endswith(_FTS5_SHADOWS)
    }


async def tables_that_hold(url: str, canaries: Iterable[str]) -> list[str]:
    """Return the tables in which one of the strings is, in any column and any encoding that is used."""
    async with looking(url) as connection:
        if connection.dialect.name == "sqlite":
            # Merges the index, or what was deleted stays in it as a mark until the next merge.
            merge = "INSERT INTO adk_memory_search_entry (adk_memory_search_entry) VALUES ('optimize')"
            await connection.execute(text(merge))
        tables = await every_table(connection)
    wanted = [form for canary in canaries for form in (canary.encode(), canary.encode().hex().encode())]
    return [name for name, rows in tables.items() if any(form in _bytes(row) for row in rows for form in wanted)]


async def fts5_is_sound(url: str) -> bool:
    """Run FTS5's own check of its index, its content compared; it raises where they differ."""
    async with looking(url) as connection:
        check = "INSERT INTO adk_memory_search_entry (adk_memory_search_entry, rank) VALUES ('integrity-check', 1)"
        await connection.execute(text(check))
        return bool(await connection.scalar(text("PRAGMA integrity_check")) == "ok")


async def index_differences(url: str) -> list[tuple[Any, ...]]:
    """Return the entries with words that are not in the index, and the index entries without an entry."""
    column = "rowid" if url.startswith("sqlite") else "entry_id"
    async with looking(url) as connection:
        rows = await connection.execute(
            text(
                f"""
                SELECT e.id, s.{column} FROM adk_memory_entry AS e
                FULL JOIN adk_memory_search_entry AS s ON s.{column} = e.id
                WHERE (e.id IS NULL) OR (s.{column} IS NULL) <> (e.term_count = 0)
                """
            )
        )
        return [tuple(row) for row in rows]


def _bytes(row: tuple[Any, ...]) -> bytes:
    return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
