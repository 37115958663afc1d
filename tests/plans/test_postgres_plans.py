"""A search costs what its own scope holds, whatever else is in the store and however Postgres plans it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adk_memory import PostgresMemoryService, SearchRequest
from adk_memory._sql import postgres_find
from adk_memory._sql.postgres_index import create
from adk_memory.testing import ToyEmbedder
from adk_memory.types import Mode
from plans.stores import APP, Store, made, statements
from plans.support import Step, plan
from postgres_server import PostgresServer

TABLES = {"adk_memory_entry", "adk_memory_embedding", "adk_memory_search_entry"}


@pytest.fixture(scope="module")
def shared(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Store]:
    """A small and a middle user among many others."""
    with postgres_server.database(postgres_template) as url:
        others = {f"other {number}": 100 for number in range(200)}
        yield made(url, others | {"small": 100, "middle": 6_000})


@pytest.fixture(scope="module")
def of_few(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Store]:
    """A small user beside a large one, and nobody else."""
    with postgres_server.database(postgres_template) as url:
        yield made(url, {"small": 100, "large": 20_000})


@pytest.fixture(scope="module")
def large(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Store]:
    """A large user among many others."""
    with postgres_server.database(postgres_template) as url:
        others = {f"other {number}": 100 for number in range(500)}
        yield made(url, others | {"small": 100, "middle": 6_000, "large": 50_000})


async def _steps(store: Store, user: str, mode: Mode, planning: str, *, indexed: bool = False) -> list[Step]:
    async with PostgresMemoryService(store.url, embedder=ToyEmbedder(384)) as memory:
        await memory.health_check()
        if indexed:
            await create(memory._database._engine, "toy-384", lambda _: None)
        # The first search of a service asks for its model beforehand; it has seen then that there is an index.
        request = SearchRequest("rare7 rare11", APP, user, mode=mode)
        sent, response = await statements(memory, request, beforehand=2 if indexed else 1)
        assert response.approximate == (mode != "keyword" and store.sizes[user] > 5_000)
        async with memory._database._engine.connect() as connection:
            return await plan(connection, sent[0], planning)


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
