"""Under a policy a search reads what its user has, by the keys, and never a table from end to end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adk_memory import Author, Filter, PostgresMemoryService, SearchRequest
from adk_memory.testing import ToyEmbedder
from adk_memory.types import Mode
from plans.stores import APP, made, statements
from plans.support import Step, plan
from postgres_server import PostgresServer
from row_security.support import Secured, secured

TABLES = {"adk_memory_entry", "adk_memory_embedding", "adk_memory_search_entry"}
SIZES = {"small": 100, "middle": 6_000}


@pytest.fixture(scope="module")
def of_many(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Secured]:
    """A small and a middle user among many others."""
    with secured(postgres_server, postgres_template) as database:
        made(database.owner, {f"other {number}": 100 for number in range(200)} | SIZES)
        yield database


@pytest.fixture(scope="module")
def of_few(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Secured]:
    """A small user and a middle one beside a large one, and nobody else."""
    with secured(postgres_server, postgres_template) as database:
        made(database.owner, {"large": 20_000} | SIZES)
        yield database


@pytest.fixture(params=["of_many", "of_few"])
def database(request: pytest.FixtureRequest) -> Secured:
    database: Secured = request.getfixturevalue(request.param)
    return database


@pytest.mark.parametrize("planning", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("filter", [None, Author("user")], ids=["all", "filtered"])
@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("user", SIZES)
async def test_a_search_reads_its_own_scope_alone_by_the_keys(
    database: Secured, user: str, mode: Mode, filter: Filter | None, planning: str
) -> None:
    query = "rare7 common1" if user == "middle" else "rare7 rare11"  # more than 1,000 entries of it have common1
    steps = await _steps(database, SearchRequest(query, APP, user, mode=mode, filter=filter), planning)
    assert mode == "vector" or "adk_memory_search_entry_pk" in {step.index for step, _ in steps}
    for step, shown in steps:
        assert not (step.kind.endswith("Seq Scan") and step.table in TABLES), shown
        assert not step.kind.startswith("Gather"), shown
        assert step.rows <= 1.1 * SIZES[user] + 1_000, shown


async def _steps(database: Secured, request: SearchRequest, planning: str) -> list[tuple[Step, str]]:
    """Return the steps of all statements of a search, and beside each its plan."""
    async with PostgresMemoryService(database.role, embedder=ToyEmbedder(384)) as memory:
        sent, _ = await statements(memory, request, beforehand=2)
        async with memory._database._engine.connect() as connection:
            shown, *searched = [(sql, values) for sql, values in sent]
            assert "set_config" in shown[0]
            await connection.exec_driver_sql(*shown)
            found = [await plan(connection, statement, planning) for statement in searched]
        return [(step, "\n".join(map(str, steps))) for steps in found for step in steps]
