"""Proof of an erasure: what there was of a user is noted before, and looked for afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from adk_memory._scope import Scope
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.scope import Sight, look
from adk_memory._sql.tables import EmbeddingRow, EntryRow
from adk_memory._sql.traces import Traces


@dataclass(frozen=True, slots=True)
class Evidence:
    """What there was of a user: the numbers of the scopes, and traces of what was stored in files that can be read."""

    sight: Sight
    traces: Traces


def evidence(connection: Connection, dialect: Dialect, scope: Scope) -> Evidence:
    sight = look(connection, scope)
    return Evidence(sight, dialect.traces(connection, sight))


def remainders(connection: Connection, dialect: Dialect, scope: Scope, before: Sight) -> dict[str, int]:
    """Return how much there is of the scopes, by their numbers, and of the user, by name."""
    entries = before.entries(func.count()).select_from(EntryRow)
    vectors = select(func.count()).select_from(EmbeddingRow).where(before.within(EmbeddingRow.scope_id))
    return {
        "scopes": len(look(connection, scope).scope_ids),
        "entries": connection.execute(entries).scalar_one(),
        "vectors": connection.execute(vectors).scalar_one(),
        **dialect.index_remainders(connection, before),
    }
