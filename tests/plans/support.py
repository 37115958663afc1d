"""Plans: what Postgres does for a statement that was executed, as a list of its steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

Sent = tuple[str, Sequence[Any]]
"""A statement and its parameters."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a plan: what it does, on which table, by which index, and how many rows it went through."""

    kind: str
    table: str | None
    index: str | None
    rows: float

    def __str__(self) -> str:
        return f"{self.kind} on {self.table} by {self.index}: {self.rows:,.0f} rows"


async def plan(connection: AsyncConnection, sent: Sent, mode: str) -> list[Step]:
    """Execute a statement in one of Postgres' ways to plan what is prepared, and return the steps that were taken."""
    statement, parameters = sent
    given = ", ".join(map(_literal, parameters))
    await connection.exec_driver_sql(f"SET plan_cache_mode = {mode}")
    await connection.exec_driver_sql(f"PREPARE explained AS {statement}")
    explained = await connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained ({given})")
    found = explained.scalar_one()
    await connection.exec_driver_sql("DEALLOCATE explained")
    [document] = json.loads(found) if isinstance(found, str) else found
    return list(_steps(document["Plan"]))


def _steps(node: dict[str, Any]) -> Iterator[Step]:
    loops = node["Actual Loops"]
    if loops:
        left_out = ("Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter")
        rows = (node["Actual Rows"] + sum(node.get(name, 0) for name in left_out)) * loops
        yield Step(node["Node Type"], node.get("Relation Name"), node.get("Index Name"), rows)
    for child in node.get("Plans", ()):
        yield from _steps(child)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ",".join(f'"{item}"' for item in value) + "}'"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
