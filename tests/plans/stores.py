"""Stores of many users, made quickly, and what is sent for a search in one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import MemoryEntry, PostgresMemoryService, SearchRequest, SearchResponse
from adk_memory._scope import Scope
from adk_memory._sql.scope import fingerprint
from adk_memory.testing import ToyEmbedder
from plans.support import Sent

APP = "app"
SAMPLE = 256

# Copies of the entries of one user: their texts, terms, vectors and sketches.
_COPY = """
    WITH scope AS (
        INSERT INTO adk_memory_scope (fingerprint, app_name, user_id, project_key, entry_count, term_count, version)
        VALUES (:fingerprint, :app, :user, '', CAST(:count AS integer), 2 * CAST(:count AS integer), 1) RETURNING id
    ), model AS (
        SELECT number, e.text, s.terms, s.lexemes, v.vector, v.sketch FROM (
            SELECT *, row_number() OVER (ORDER BY id) - 1 AS number FROM adk_memory_entry WHERE session_key = 'model'
        ) AS e
        JOIN adk_memory_search_entry AS s ON s.entry_id = e.id JOIN adk_memory_embedding AS v ON v.entry_id = e.id
    ), copied AS (
        INSERT INTO adk_memory_entry (scope_id, session_key, entry_key, position, author, timestamp, content, text,
            metadata, term_count, created_at)
        SELECT scope.id, 's' || number / 50, 'k' || number, number % 50 + 1, 'user', now(),
            '{"role": "user", "parts": []}', number, '{}', 2, now()
        FROM scope, generate_series(0, CAST(:count AS integer) - 1) AS number
        RETURNING scope_id, id, CAST(text AS integer) % CAST(:sample AS integer) AS number
    ), indexed AS (
        INSERT INTO adk_memory_search_entry
        SELECT scope_id, id, terms,
            CAST(regexp_replace(CAST(lexemes AS text), '@[0-9]+', '@' || scope_id) AS tsvector)
        FROM copied JOIN model USING (number)
    )
    INSERT INTO adk_memory_embedding (scope_id, model_id, entry_id, vector, sketch)
    SELECT scope_id, 1, id, vector, sketch FROM copied JOIN model USING (number)
"""


@dataclass(frozen=True)
class Store:
    """A store: the URL, and the sizes of its users by name."""

    url: str
    sizes: dict[str, int]


def made(url: str, users: dict[str, int]) -> Store:
    async def make() -> None:
        async with PostgresMemoryService(url, embedder=ToyEmbedder(384)) as memory:
            texts = [f"rare{number} common{number % 4}" for number in range(SAMPLE)]
            await memory.add_session(APP, "model", "model", [MemoryEntry(text) for text in texts])
            async with memory._database._engine.begin() as connection:
                for user, count in users.items():
                    named = fingerprint(Scope.reading(APP, user, None), None)
                    values = {"fingerprint": named, "app": APP, "user": user, "count": count, "sample": SAMPLE}
                    await connection.execute(text(_COPY), values)
        engine = create_async_engine(url.replace("://", "+asyncpg://", 1), isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.exec_driver_sql("VACUUM ANALYZE")
        await engine.dispose()

    asyncio.run(make())
    return Store(url, users)


async def statements(
    memory: PostgresMemoryService, request: SearchRequest, *, beforehand: int
) -> tuple[list[Sent], SearchResponse]:
    """Search, after as many searches ``beforehand``; return what was sent, and the response."""
    sent: list[Sent] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object) -> None:
        sent.append((statement, parameters))

    for _ in range(beforehand):
        await memory.search(request)
    event.listen(memory._database._engine.sync_engine, "before_cursor_execute", note)
    response = await memory.search(request)
    event.remove(memory._database._engine.sync_engine, "before_cursor_execute", note)
    return sent, response
