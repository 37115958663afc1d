"""A database with row-level security, and a role that is neither owner nor superuser."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory._open import open_engine
from adk_memory._sql.postgres_row_security import enable
from postgres_server import PostgresServer


@dataclass(frozen=True, slots=True)
class Secured:
    """A database by two URLs: that of the owner of its tables, and that of the role that services have."""

    owner: str
    role: str


@contextmanager
def secured(server: PostgresServer, template: str, *, on: bool = True) -> Iterator[Secured]:
    with role(server) as (name, password), server.database(template) as owner:
        asyncio.run(_grant(owner, name, on=on))
        url = make_url(owner).set(username=name, password=password).render_as_string(hide_password=False)
        yield Secured(owner, url)


@contextmanager
def role(server: PostgresServer) -> Iterator[tuple[str, str]]:
    """Make a role without any privileges; its name and its password come out."""
    name, password = f"adk_role_{secrets.token_hex(4)}", secrets.token_hex(8)
    server._execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    try:
        yield name, password
    finally:
        server._execute(f"DROP ROLE {name}")


async def tables(url: str) -> list[str]:
    """Return the names of our tables."""
    return [name for (name,) in await fetch(url, "SELECT tablename FROM pg_tables WHERE tablename LIKE 'adk_memory%'")]


async def _grant(owner: str, role: str, *, on: bool) -> None:
    await fetch(owner, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    if on:
        engine = open_engine(owner)
        await enable(engine)
        await engine.dispose()


async def fetch(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Execute statements in one transaction, and return the rows of the last."""
    engine = create_async_engine(url.replace("://", "+asyncpg://", 1))
    try:
        async with engine.begin() as connection:
            for statement in statements:
                result = await connection.execute(text(statement))
            return [tuple(row) for row in result] if result.returns_rows else [(result.rowcount,)]
    finally:
        await engine.dispose()
