"""Searches by an operator's HNSW index: when it is asked, what it never decides alone, and what it leaves behind."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import lru_cache
from typing import Any

import pytest
from sqlalchemy import event, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import Author, MemoryEntry, PostgresMemoryService, SearchRequest, SearchResponse
from adk_memory._sql import postgres_find, postgres_hnsw, prepared
from adk_memory._sql.postgres_index import create, drop
from adk_memory.testing import ToyEmbedder
from plans.support import Sent, plan
from sketches.support import APP, USER, notes, remember, run, service, statements

MANY = 2_000
INDEX = "adk_memory_search_hnsw_1"


@pytest.fixture(autouse=True)
def _smaller_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a store of very many is made quickly: of more than 500, the index gives 20."""
    monkeypatch.setattr(postgres_find, "_ALL_COMPARED", 400)
    monkeypatch.setattr(postgres_find, "_COMPARED", 300)
    monkeypatch.setattr(postgres_find, "INDEXED", 500)
    monkeypatch.setattr(postgres_hnsw, "_GIVEN", 20)
    # Statements that are prepared already have the usual limits in them.
    monkeypatch.setattr(prepared, "_compiled", lru_cache(prepared._compiled.__wrapped__))


@pytest.fixture
async def url(migrated_postgres_url: str) -> str:
    """The URL of a database in which nothing is sorted that comes in order, as in a large one nothing is."""
    name = make_url(migrated_postgres_url).database
    await run(migrated_postgres_url, f'ALTER DATABASE "{name}" SET enable_sort = off')
    return migrated_postgres_url


@pytest.fixture
async def memory(url: str) -> AsyncGenerator[PostgresMemoryService]:
    """Very many entries of one user, indexed, and a service that has seen it."""
    async with service(url) as memory:
        await remember(memory, MANY)
        await indexed(memory)
        yield memory


async def indexed(memory: PostgresMemoryService) -> None:
    await create(memory._database._engine, "toy-384", lambda _: None)
    async with memory._database._engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text("VACUUM ANALYZE"))
    await ask(memory, "note1")


async def ask(memory: PostgresMemoryService, query: str, **options: Any) -> SearchResponse:
    return await memory.search(SearchRequest(query, APP, USER, **{"mode": "vector", **options}))


async def ways(memory: PostgresMemoryService, query: str, **options: Any) -> tuple[list[str], SearchResponse]:
    """Return a response, and which of its statements asked the index and which did not."""
    with statements(memory) as sent:
        response = await ask(memory, query, **options)
    return ["index" if "set_config" in statement else "sketches" for statement in sent], response


async def exactly(memory: PostgresMemoryService, query: str, **options: Any) -> list[str]:
    """Return what an exact search finds."""
    known, memory._dialect._sketches._thresholds = memory._dialect._sketches._thresholds, {}  # type: ignore[attr-defined]
    try:
        response = await ask(memory, query, **options)
    finally:
        memory._dialect._sketches._thresholds = known  # type: ignore[attr-defined]
    assert not response.approximate
    return [found.text for found in response]


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
@pytest.mark.parametrize("planning", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("project_id", [None, "book"])
async def test_the_index_is_read_and_nothing_else_of_the_vectors(
    memory: PostgresMemoryService, mode: str, planning: str, project_id: str | None
) -> None:
    await memory.add_session(APP, USER, "pages", notes(20, "page"), project_id="book")
    sent: list[Sent] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object) -> None:
        sent.append((statement, parameters))

    for _ in range(2):
        await ask(memory, "note77", mode=mode, project_id=project_id)
    event.listen(memory._database._engine.sync_engine, "before_cursor_execute", note)
    response = await ask(memory, "note77", mode=mode, project_id=project_id)
    event.remove(memory._database._engine.sync_engine, "before_cursor_execute", note)
    async with memory._database._engine.connect() as connection:
        steps = await plan(connection, sent[0], planning)

    assert len(sent) == 1
    assert response[0].text == "note77"
    assert response.approximate
    shown = "\n".join(map(str, steps))
    read = [step for step in steps if step.table == "adk_memory_embedding"]
    assert {(step.kind, step.index) for step in read} == {("Index Scan", INDEX)}, shown
    assert all(step.rows < MANY for step in read), shown


async def test_what_it_finds_is_what_there_is(memory: PostgresMemoryService) -> None:
    # These vectors are noise, of which an index misses some.
    questions = [f"note{number}" for number in range(0, MANY, 100)]
    found = [await ways(memory, question, limit=5) for question in questions]
    compared = [await exactly(memory, question, limit=5) for question in questions]

    assert all(taken == ["index"] for taken, _ in found)
    assert [response[0].text for _, response in found] == questions
    same = sum(len({m.text for m in some} & set(true)) for (_, some), true in zip(found, compared, strict=True))
    assert same >= 0.9 * 5 * len(questions)


async def test_its_settings_end_with_the_statement(url: str) -> None:
    async with service(url) as operator:
        await remember(operator, 1_000)
        await indexed(operator)
    engine = create_async_engine(url.replace("://", "+asyncpg://", 1), pool_size=1, max_overflow=0)
    async with PostgresMemoryService(engine, embedder=ToyEmbedder(384)) as memory:
        await ask(memory, "note7")

        taken, _ = await ways(memory, "note7")

        async with engine.connect() as connection:
            names = ("iterative_scan", "ef_search", "max_scan_tuples")
            shown = [await connection.scalar(text(f"SELECT current_setting('hnsw.{name}')")) for name in names]
            reset = [
                await connection.scalar(text("SELECT reset_val FROM pg_settings WHERE name = :name"), {"name": name})
                for name in (f"hnsw.{name}" for name in names)
            ]
    await engine.dispose()

    assert taken == ["index"]
    assert shown == reset == ["off", "40", "20000"]


async def test_where_it_meets_too_few_the_sketches_choose(
    memory: PostgresMemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.add_session(APP, "bo", "s", [MemoryEntry(f"theirs {number % 7}") for number in range(1_500)])
    monkeypatch.setattr(postgres_hnsw, "_WALKED", 1)
    prepared._compiled.cache_clear()

    taken, response = await ways(memory, "theirs 3", limit=10)

    assert taken == ["index", "sketches"]
    assert len(response) == 10
    assert [found.text for found in response] == await exactly(memory, "theirs 3", limit=10)


async def test_a_filter_is_kept_and_all_that_pass_it_are_found(memory: PostgresMemoryService) -> None:
    await memory.add_session(APP, USER, "of bo", [MemoryEntry(f"far {n}", author="bo") for n in range(20)])

    few, of_bo = await ways(memory, "note600", filter=Author("bo"), limit=30)
    many, of_all = await ways(memory, "note600", filter=Author("user"))

    assert few == ["index", "sketches"]
    assert sorted(found.text for found in of_bo) == sorted(f"far {n}" for n in range(20))
    assert (many, of_all[0].text) == (["index"], "note600")


async def test_projects_are_searched_together_and_others_never(memory: PostgresMemoryService) -> None:
    await memory.add_session(APP, USER, "pages", notes(200, "page"), project_id="book")
    await memory.add_session(APP, USER, "other", notes(200, "leaf"), project_id="other")
    await memory.add_session(APP, "bo", "theirs", notes(300, "theirs"))
    await ask(memory, "note1", project_id="book")

    found = [await ways(memory, query, project_id="book") for query in ("note77", "page133", "leaf7", "theirs7")]

    assert [taken for taken, _ in found] == [["index"]] * 4
    assert [response[0].text for _, response in found[:2]] == ["note77", "page133"]
    assert {len(response) for _, response in found} == {10}  # nobody else's took a place
    texts = {memory.text for _, response in found for memory in response}
    assert texts
    assert not any(text.startswith(("leaf", "theirs")) for text in texts)


async def test_one_that_is_made_and_dropped_meanwhile_is_noticed_without_a_journey(url: str) -> None:
    seen = []
    async with service(url) as memory, service(url) as operator:
        await remember(memory, 1_000)
        seen += [await ways(memory, "note7") for _ in range(3)]
        await create(operator._database._engine, "toy-384", lambda _: None)
        made = [await ways(memory, "note7") for _ in range(3)]
        await drop(operator._database._engine, "toy-384")
        dropped = [await ways(memory, "note7") for _ in range(3)]

    assert [taken for taken, _ in seen][1:] == [["sketches"]] * 2
    assert [taken for taken, _ in made] == [["sketches"], ["index"], ["index"]]
    assert [taken for taken, _ in dropped] == [["index", "sketches"], ["sketches"], ["sketches"]]
    assert {response[0].text for _, response in (*seen, *made, *dropped)} == {"note7"}


@pytest.mark.parametrize(
    "spoilt",
    [
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{INDEX}'::regclass",
        "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
    ],
    ids=["unfinished", "old"],
)
async def test_one_that_can_not_be_used_is_not(memory: PostgresMemoryService, url: str, spoilt: str) -> None:
    before, _ = await ways(memory, "note7")
    await run(url, spoilt)

    taken, response = await ways(memory, "note7")
    later, _ = await ways(memory, "note7")

    assert (before, taken, later) == (["index"], ["index", "sketches"], ["sketches"])
    assert response[0].text == "note7"


async def test_of_fewer_the_sketches_choose(memory: PostgresMemoryService) -> None:
    await memory.add_session(APP, "bo", "s", notes(450))
    request = SearchRequest("note7", APP, "bo", mode="vector")
    await memory.search(request)
    with statements(memory) as sent:
        response = await memory.search(request)

    assert response.approximate
    assert not any("set_config" in statement for statement in sent)
    assert len(sent) == 1
