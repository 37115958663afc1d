"""What fails, whatever it is, tells no text, query, id or password: not in an error, its causes, nor in a log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_memory import (
    AdkMemoryError,
    EmbeddingError,
    Memory,
    MemoryEntry,
    MemoryService,
    SearchRequest,
    StorageError,
    ValidationError,
    open_memory,
)
from adk_memory.testing import ToyEmbedder
from canary.canary import CANARY, assert_no_canary, call, failure_of, listen, logged, printed
from isolation.operations import OPERATIONS, READING

WRITING: Final = [name for name in OPERATIONS if name not in READING]
TABLES: Final = ["adk_memory_scope", "adk_memory_entry", "adk_memory_search_entry", "adk_memory_embedding"]


def engine_of(url: str) -> AsyncEngine:
    """Return an engine as an application may have it: nothing is hidden."""
    driver = "sqlite+aiosqlite" if url.startswith("sqlite") else "postgresql+asyncpg"
    return create_async_engine(make_url(url).set(drivername=driver))


async def execute(url: str, *statements: str) -> None:
    engine = engine_of(url)
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        for statement in statements:
            await connection.execute(text(statement))
    await engine.dispose()


def _postgres_trigger(table: str, state: str) -> list[str]:
    return [
        f"""CREATE OR REPLACE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'refused: % %', OLD, NEW
        USING DETAIL = '{CANARY} detail', HINT = '{CANARY} hint', ERRCODE = '{state}'; END $$""",
        f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW "
        f"EXECUTE FUNCTION refuse_{table}()",
    ]


def _sqlite_trigger(table: str) -> list[str]:
    return [
        f"CREATE TRIGGER refuse_{event} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, 'refused {CANARY}'); END"
        for event in ("INSERT", "UPDATE", "DELETE")
    ]


BROKEN: Final[dict[str, dict[str, Sequence[str]]]] = {
    "a trigger on entries": {
        "postgresql": _postgres_trigger("adk_memory_entry", "P0001"),
        "sqlite": _sqlite_trigger("adk_memory_entry"),
    },
    "a trigger that pretends to be about rights": {"postgresql": _postgres_trigger("adk_memory_entry", "42501")},
    "a trigger on scopes": {
        "postgresql": _postgres_trigger("adk_memory_scope", "23514"),
        "sqlite": _sqlite_trigger("adk_memory_scope"),
    },
    "a check": {
        "postgresql": ["ALTER TABLE adk_memory_entry ADD CHECK (length(text) < 3) NOT VALID"],
    },
    "a unique index": {
        "postgresql": ["CREATE UNIQUE INDEX ON adk_memory_entry (author)"],
        "sqlite": ["CREATE UNIQUE INDEX one_author ON adk_memory_entry (author)"],
    },
    "a column of another type": {
        "postgresql": ["ALTER TABLE adk_memory_entry ALTER COLUMN author TYPE integer USING 0"],
    },
    "a value that can't be cast": {
        "postgresql": ["ALTER TABLE adk_memory_entry ADD CHECK (author::integer > 0) NOT VALID"],
    },
    "a column that is gone": {
        "postgresql": ["ALTER TABLE adk_memory_entry DROP COLUMN text CASCADE"],
        "sqlite": ["ALTER TABLE adk_memory_entry RENAME COLUMN text TO words"],
    },
    "tables that are gone": {
        "postgresql": [f"DROP TABLE {table} CASCADE" for table in TABLES],
        "sqlite": [f"DROP TABLE {table}" for table in reversed(TABLES)],
    },
    "no search structure": {
        "postgresql": ["DROP TABLE adk_memory_search_entry"],
        "sqlite": ["DROP TABLE adk_memory_search_entry"],
    },
    "no schema": {
        "postgresql": ["DROP TABLE adk_memory_schema_version"],
        "sqlite": ["DROP TABLE adk_memory_schema_version"],
    },
}  # fmt: skip


@pytest.mark.parametrize("owner", ["ours", "the host's"])
@pytest.mark.parametrize("broken", BROKEN)
async def test_a_database_that_refuses_tells_nothing(
    sql_url: str, broken: str, owner: str, caplog: pytest.LogCaptureFixture
) -> None:
    statements = BROKEN[broken].get(make_url(sql_url).get_backend_name())
    if statements is None:
        return
    async with open_memory(sql_url, embedder=ToyEmbedder(16)) as service:
        await OPERATIONS["add_session"][1](call(service, "add_session"))
    await execute(sql_url, *statements)
    listen(caplog)
    engine = sql_url if owner == "ours" else engine_of(sql_url)
    failures = {}
    async with open_memory(engine, embedder=ToyEmbedder(16)) as service:
        for operation in OPERATIONS:
            error = await failure_of(service, operation, f"{CANARY} reworded")
            if error is not None:
                failures[operation] = error
                assert isinstance(error, AdkMemoryError), operation
                assert_no_canary(printed(error), operation=operation)
    if isinstance(engine, AsyncEngine):
        await engine.dispose()
    assert any(isinstance(error, (StorageError, AdkMemoryError)) for error in failures.values()), "nothing failed"
    assert_no_canary(logged(caplog), broken=broken)


@pytest.mark.parametrize("owner", ["ours", "the host's"])
async def test_what_succeeds_logs_nothing_of_it(sql_url: str, owner: str, caplog: pytest.LogCaptureFixture) -> None:
    listen(caplog)
    engine = sql_url if owner == "ours" else engine_of(sql_url)
    async with open_memory(engine, embedder=ToyEmbedder(16)) as service:
        await service.migrate()
        for operation in OPERATIONS:
            await failure_of(service, operation)
        await service.reindex(from_scratch=True)
    if isinstance(engine, AsyncEngine):
        await engine.dispose()
    assert_no_canary(logged(caplog))
    assert any(record.name.startswith("sqlalchemy") for record in caplog.records)


async def test_a_database_that_is_gone_tells_nothing(
    sql_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    async with open_memory(sql_url, embedder=ToyEmbedder(16)) as service:
        await OPERATIONS["add_session"][1](call(service, "add_session"))
    if sql_url.startswith("sqlite"):
        (tmp_path / "memory.db").rename(tmp_path / "elsewhere.db")
        (tmp_path / "memory.db").mkdir()
        url = sql_url
    else:
        url = make_url(sql_url).set(password=f"{CANARY}-pass", database="gone").render_as_string(hide_password=False)
    listen(caplog)
    async with open_memory(url, embedder=ToyEmbedder(16)) as service:
        for operation in OPERATIONS:
            error = await failure_of(service, operation)
            if operation != "list_page after another's cursor":
                assert isinstance(error, StorageError), operation
            assert error is not None
            assert_no_canary(printed(error), operation=operation)
    await asyncio.sleep(0.05)  # threads of aiosqlite that could not connect end a little later
    assert_no_canary(logged(caplog))


def _overwritten(file: Path) -> None:
    damaged = bytearray(file.read_bytes())
    damaged[8192:] = b"\xa5" * (len(damaged) - 8192)
    file.write_bytes(damaged)


def _no_database(file: Path) -> None:
    file.write_bytes(f"{CANARY} ".encode() * 4096)


@pytest.mark.parametrize("damage", [_overwritten, _no_database])
async def test_a_disk_that_fails_tells_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with open_memory(url, embedder=ToyEmbedder(16)) as service:
        await service.migrate()
        await OPERATIONS["add_session"][1](call(service, "add_session"))
        await service.close()
    damage(tmp_path / "memory.db")
    listen(caplog)
    failed = 0
    async with open_memory(url, embedder=ToyEmbedder(16)) as service:
        for operation in OPERATIONS:
            error = await failure_of(service, operation)
            if error is not None:
                failed += 1
                assert_no_canary(printed(error), operation=operation)
    assert failed > 10
    assert_no_canary(logged(caplog))


class _Failing:
    model, dimensions = "toy", 16

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def embed(self, texts: Sequence[str]) -> Any:
        if isinstance(self._answer, type):
            raise self._answer(f"can't embed {texts}")
        return [self._answer for _ in texts]


@pytest.mark.parametrize("answer", [OSError, ValueError, KeyError, [CANARY] * 16, {CANARY: 1}, [float("nan")] * 16])
async def test_an_embedder_that_raises_the_text_tells_nothing(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    listen(caplog)
    service = open_memory("memory://", embedder=_Failing(answer))

    for operation in ("add_session", "add_entry", "add_many"):
        error = await failure_of(service, operation)
        assert isinstance(error, EmbeddingError), operation
        assert_no_canary(printed(error))
    with pytest.raises(EmbeddingError) as caught:
        await service.search(SearchRequest(CANARY, "app", CANARY, mode="vector"))
    assert_no_canary(printed(caught.value))
    assert await failure_of(service, "search") is None
    assert_no_canary(logged(caplog))


async def test_a_reranker_that_raises_the_text_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def reranker(query: str, memories: Sequence[Memory]) -> list[float]:
        raise ValueError(query, memories)

    listen(caplog)
    service = open_memory("memory://", reranker=reranker)
    await OPERATIONS["add_session"][1](call(service, "add_session"))

    assert await failure_of(service, "search") is None
    assert "ValueError" in logged(caplog)
    assert_no_canary(logged(caplog))


BAD: Final[dict[str, Callable[[], Any]]] = {
    "a time": lambda: MemoryEntry("x", timestamp=CANARY),
    "an id": lambda: MemoryEntry("x", id=f"{CANARY}\0"),
    "bytes in metadata": lambda: MemoryEntry("x", metadata={"k": CANARY.encode()}),
    "content": lambda: MemoryEntry(CANARY.encode()),
    "another field": lambda: MemoryEntry.model_validate({"content": "x", "author": [CANARY]}),
    "a part": lambda: MemoryEntry({"parts": [{"text": [CANARY]}, {"x": CANARY.encode()}]}),
    "a limit": lambda: SearchRequest(CANARY, "app", CANARY, limit=CANARY),  # type: ignore[arg-type]
    "a mode": lambda: SearchRequest(CANARY, "app", CANARY, mode=CANARY),  # type: ignore[arg-type]
    "a user": lambda: SearchRequest(CANARY, "app", CANARY * 100),
    "a filter": lambda: SearchRequest(CANARY, "app", CANARY, filter=CANARY),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_without_being_repeated(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        BAD[name]()

    assert_no_canary(printed(caught.value))


@pytest.mark.parametrize(
    "call_badly",
    [
        lambda service: service.get("app", CANARY * 99, "x"),
        lambda service: service.add_session("app", CANARY, "s", [CANARY]),
        lambda service: service.add_many([CANARY]),
        lambda service: service.list_page("app", CANARY, after=f"{CANARY}é"),
        lambda service: service.delete_entries("app", CANARY, [CANARY]),
        lambda service: service.delete_project("app", CANARY, [CANARY]),
    ],
)
async def test_bad_arguments_are_refused_without_being_repeated(call_badly: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        await call_badly(open_memory("memory://"))

    assert_no_canary(printed(caught.value))


def test_the_password_of_a_url_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service: MemoryService = open_memory(f"postgresql://someone:{CANARY}@localhost:1/none?sslpassword={CANARY}")

    assert_no_canary(f"{service!r} {vars(service)}")
    with pytest.raises(AdkMemoryError) as caught:
        open_memory(f"nosuch://someone:{CANARY}@localhost")
    assert_no_canary(printed(caught.value))
