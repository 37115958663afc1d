"""adk-memory index: the HNSW indexes of a Postgres database."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_memory import MemoryEntry, open_memory
from adk_memory._open import open_engine
from adk_memory._sql.postgres_index import Progress, create
from adk_memory.testing import ToyEmbedder
from cli.shell import Run


@pytest.fixture
def store(migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with vectors of toy-64 and of toy-4001, which the environment names."""
    for dimensions in (64, 4_001):
        asyncio.run(_store(migrated_postgres_url, ToyEmbedder(dimensions)))
    monkeypatch.setenv("ADK_MEMORY_URL", migrated_postgres_url)
    return migrated_postgres_url


async def _store(url: str, embedder: ToyEmbedder) -> None:
    async with open_memory(url, embedder=embedder) as memory:
        await memory.add_session("app", "ana", embedder.model, [MemoryEntry("green tea"), MemoryEntry("black tea")])


def _execute(url: str, statement: str) -> list[tuple[object, ...]]:
    async def run() -> list[tuple[object, ...]]:
        engine = open_engine(url)
        async with engine.begin() as connection:
            result = await connection.execute(text(statement))
            rows = [tuple(row) for row in result] if result.returns_rows else []
        await engine.dispose()
        return rows

    return asyncio.run(run())


def _definitions(url: str) -> list[object]:
    found = _execute(url, "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'adk_memory_search_hnsw%'")
    return [definition for (definition,) in found]


def test_an_index_is_made_once_listed_and_dropped(run: Run, store: str) -> None:
    none = run("index", "list")
    made = run("index", "create", "--hnsw", "--model", "toy-64")
    again = run("index", "create", "--hnsw", "--model", "toy-64", "--json")
    listed = run("index", "list")
    listed_json = run("index", "list", "--json")

    assert none.out == "No indexes.\n"
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith("The vectors of toy-64 are indexed, in ")
    assert again.document["index"] == listed_json.document["indexes"][0]
    assert (again.document["index"]["model"], again.document["index"]["valid"]) == ("toy-64", True)
    assert listed.out.split("\n")[1].startswith("toy-64")
    [definition] = _definitions(store)
    assert "USING hnsw (((vector)::halfvec(64)) halfvec_cosine_ops) WHERE (model_id = 1)" in str(definition)

    dropped = run("index", "drop", "--model", "toy-64")
    nothing_to_drop = run("index", "drop", "--model", "toy-64", "--json")

    assert dropped.out == "The index of toy-64 was dropped.\n"
    assert nothing_to_drop.document == {"dropped": False}
    assert _definitions(store) == []


def test_what_a_failure_left_is_made_anew(run: Run, store: str) -> None:
    run("index", "create", "--hnsw", "--model", "toy-64")
    _execute(store, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'adk_memory_search_hnsw_1'::regclass")
    left = run("index", "list")

    made = run("index", "create", "--hnsw", "--model", "toy-64")

    assert "unfinished" in left.out
    assert made.code == 0
    assert run("index", "list", "--json").document["indexes"][0]["valid"] is True


def test_searches_and_migrations_do_not_mind_an_index(run: Run, store: str) -> None:
    run("index", "create", "--hnsw", "--model", "toy-64")

    async def found() -> list[str]:
        async with open_memory(store, embedder=ToyEmbedder(64)) as memory:
            await memory.migrate()
            await memory.add_session("app", "ana", "s", [MemoryEntry("white tea")])
            answers = await memory.list_recent("app", "ana")
            return [answer.text for answer in answers]

    assert "white tea" in asyncio.run(found())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["create", "--hnsw", "--model", "other"],
            "no vectors of 'other'; there are some of: toy-64, toy-4001",
        ),
        (["drop", "--model", "other"], "there are no vectors of 'other'"),
        (["create", "--hnsw", "--model", "toy-4001"], "have 4,001 dimensions, and an HNSW index takes 4,000 at most"),
    ],
)
def test_what_can_not_be_indexed(run: Run, store: str, arguments: list[str], message: str) -> None:
    outcome = run("index", *arguments)

    assert outcome.code == 1
    assert message in outcome.err
    assert _definitions(store) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "--hnsw"], "which model? Pass --model to index create"),
        (["create", "--model", "toy-64"], "which kind of index? Pass --hnsw"),
        (["rebuild"], "invalid choice"),
    ],
)
def test_incomplete_commands(run: Run, store: str, arguments: list[str], message: str) -> None:
    outcome = run("index", *arguments)

    assert outcome.code == 2
    assert message in outcome.err


def test_sqlite_has_no_such_index(run: Run, database: str) -> None:
    outcome = run("index", "list")

    assert outcome.code == 1
    assert "only Postgres has HNSW indexes" in outcome.err


def test_a_database_without_tables_is_told_apart(run: Run, postgres_url: str) -> None:
    assert run("index", "list", "--url", postgres_url).code == 3


async def test_how_far_it_is_can_be_watched(migrated_postgres_url: str) -> None:
    await _store(migrated_postgres_url, ToyEmbedder(64))
    engine = open_engine(migrated_postgres_url)
    writing = await _begun(engine, "DELETE FROM adk_memory_embedding WHERE false")
    seen: list[Progress] = []

    def report(progress: Progress) -> None:
        seen.append(progress)
        held.set()

    held = asyncio.Event()
    making = asyncio.ensure_future(create(engine, "toy-64", report))
    await asyncio.wait_for(held.wait(), timeout=30)
    await writing.rollback()
    await writing.close()
    index = await asyncio.wait_for(making, timeout=30)
    await engine.dispose()

    assert index.valid
    assert seen[0].phase.startswith("waiting for writers")


async def test_one_that_is_cancelled_leaves_nothing_that_stays(migrated_postgres_url: str) -> None:
    await _store(migrated_postgres_url, ToyEmbedder(64))
    engine = open_engine(migrated_postgres_url)
    writing = await _begun(engine, "DELETE FROM adk_memory_embedding WHERE false")
    held = asyncio.Event()
    making = asyncio.ensure_future(create(engine, "toy-64", lambda _: held.set()))
    await asyncio.wait_for(held.wait(), timeout=30)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    await writing.rollback()
    await writing.close()

    index = await asyncio.wait_for(create(engine, "toy-64", lambda _: None), timeout=30)
    await engine.dispose()

    assert index.valid


async def _begun(engine: AsyncEngine, statement: str) -> AsyncConnection:
    connection = await engine.connect()
    await connection.execute(text(statement))
    return connection
