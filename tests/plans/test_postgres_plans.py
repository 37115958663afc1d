"""A search costs what its own scope holds, whatever else is in the store and however Postgres plans it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from adk_memory import MemoryEntry, PostgresMemoryService, SearchRequest
from adk_memory._scope import Scope
from adk_memory._sql import postgres_find
from adk_memory._sql.postgres_index import create
from adk_memory._sql.scope import fingerprint
from adk_memory.testing import ToyEmbedder
from adk_memory.types import Mode
from plans.support import Sent, Step, plan
from postgres_server import PostgresServer

APP = "app"
SAMPLE = 256
TABLES = {"adk_memory_entry", "adk_memory_embedding", "adk_memory_search_entry"}

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


def _made(url: str, users: dict[str, int]) -> Store:
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


@pytest.fixture(scope="module")
def shared(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Store]:
    """A small and a middle user among many others."""
    with postgres_server.database(postgres_template) as url:
        others = {f"other {number}": 100 for number in range(200)}
        yield _made(url, others | {"small": 100, "middle": 6_000})


@pytest.fixture(scope="module")
def of_few(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Store]:
    """A small user beside a large one, and nobody else."""
    with postgres_server.database(postgres_template) as url:
        yield _made(url, {"small": 100, "large": 20_000})


@pytest.fixture(scope="module")
def large(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Store]:
    """A large user among many others."""
    with postgres_server.database(postgres_template) as url:
        others = {f"other {number}": 100 for number in range(500)}
        yield _made(url, others | {"small": 100, "middle": 6_000, "large": 50_000})


async def _steps(store: Store, user: str, mode: Mode, planning: str, *, indexed: bool = False) -> list[Step]:
    async with PostgresMemoryService(store.url, embedder=ToyEmbedder(384)) as memory:
        await memory.health_check()
        if indexed:
            await create(memory._database._engine, "toy-384", lambda _: None)
        sent: list[Sent] = []

        def note(
            _connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object
        ) -> None:
            sent.append((statement, parameters))

        # The first search of a service asks for its model beforehand.
        request = SearchRequest("rare7 rare11", APP, user, mode=mode)
        await memory.search(request)
        if indexed:
            await memory.search(request)  # the first one has seen that there is an index
        event.listen(memory._database._engine.sync_engine, "before_cursor_execute", note)
        response = await memory.search(request)
        event.remove(memory._database._engine.sync_engine, "before_cursor_execute", note)
        assert response.approximate == (mode != "keyword" and store.sizes[user] > 5_000)
        async with _connected(memory) as connection:
            return await plan(connection, sent[0], planning)


def _connected(memory: PostgresMemoryService) -> AsyncConnection:
    return memory._database._engine.connect()


def _holds(steps: list[Step], size: int, mode: Mode) -> None:
    shown = "\n".join(map(str, steps))
    for step in steps:
        assert not (step.kind.endswith("Seq Scan") and step.table in TABLES), shown
        assert not step.kind.startswith("Gather"), shown
        assert step.rows <= 1.1 * size + 1_000, shown
    kinds = {(step.kind, step.index) for step in steps}
    if mode != "vector":
        assert ("Bitmap Index Scan", "adk_memory_search_entry_lexemes_idx") in kinds, shown
    if mode != "keyword":
        assert ("Index Only Scan", "adk_memory_embedding_pk") in kinds, shown
    # What was found is read by its ids; what has expired, by an index that has nothing else.
    entries = {step.index for step in steps if step.table == "adk_memory_entry"}
    assert entries == {"adk_memory_entry_pk", "adk_memory_entry_scope_id_expires_at_idx"}, shown


PLANNING = pytest.mark.parametrize("planning", ["force_custom_plan", "force_generic_plan"])
MODES = pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])


@PLANNING
@MODES
@pytest.mark.parametrize("user", ["small", "middle"])
async def test_a_search_reads_its_own_scope_alone(shared: Store, user: str, mode: Mode, planning: str) -> None:
    _holds(await _steps(shared, user, mode, planning), shared.sizes[user], mode)


@PLANNING
@MODES
@pytest.mark.parametrize("user", ["small", "large"])
async def test_a_search_in_a_store_of_few_users_reads_its_own_scope_alone(
    of_few: Store, user: str, mode: Mode, planning: str
) -> None:
    _holds(await _steps(of_few, user, mode, planning), of_few.sizes[user], mode)


@pytest.mark.heavy
@PLANNING
@MODES
@pytest.mark.parametrize("user", ["small", "middle", "large"])
async def test_a_search_beside_a_large_user_reads_its_own_scope_alone(
    large: Store, user: str, mode: Mode, planning: str
) -> None:
    _holds(await _steps(large, user, mode, planning), large.sizes[user], mode)


@pytest.mark.heavy
@PLANNING
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
async def test_an_index_is_read_instead_of_the_vectors(
    large: Store, mode: Mode, planning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_find, "INDEXED", 40_000)
    steps = await _steps(large, "large", mode, planning, indexed=True)

    shown = "\n".join(map(str, steps))
    read = [step for step in steps if step.table == "adk_memory_embedding"]
    assert {(step.kind, step.index) for step in read} == {("Index Scan", "adk_memory_search_hnsw_1")}, shown
    assert all(step.rows <= 5_000 for step in read), shown
