"""The check that every fault ends with: what is stored agrees with itself."""

from __future__ import annotations

from sqlalchemy import text

from adk_memory._open import dialect_of, open_engine
from adk_memory._sql.integrity import find_faults
from field_reports.tables import looking


async def faults_of(url: str) -> dict[str, int]:
    """Return how many faults of each kind there are, without the kinds of which there are none."""
    engine = open_engine(url)
    try:
        found = await find_faults(engine, dialect_of(engine))
    finally:
        await engine.dispose()
    return {kind: count for kind, count in found.items() if count}


async def assert_sound(url: str) -> None:
    """See that the database has no faults, by the product's own check and by the database's."""
    assert await faults_of(url) == {}
    if url.startswith("sqlite"):
        async with looking(url) as connection:
            assert (await connection.execute(text("PRAGMA foreign_key_check"))).all() == []
