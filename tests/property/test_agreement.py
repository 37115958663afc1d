"""Every backend answers every call as the in-memory one does."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from statistics import mean

import pytest
from hypothesis import Phase, given, settings
from hypothesis.stateful import run_state_machine_as_test

from adk_memory import MemoryEntry, MemoryService, SearchRequest
from adk_memory.testing import ToyEmbedder
from conftest import migrate
from postgres_server import PostgresServer
from property.machines import AgreementMachine, Backends, SimilarityMachine, backends, lists_of_entries, texts

QUICK = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],  # the heavy run takes its time to shrink what it finds
)
HEAVY = settings(max_examples=40, stateful_step_count=40, deadline=None, database=None, print_blob=True)


@pytest.fixture(scope="module")
def urls(
    postgres_server: PostgresServer, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    sqlite_url = f"sqlite:///{tmp_path_factory.mktemp('property') / 'memory.db'}"
    migrate(sqlite_url)
    with postgres_server.database(postgres_template) as postgres_url:
        yield ["memory://", sqlite_url, postgres_url]


@pytest.fixture(scope="module")
def side_by_side(urls: list[str]) -> Iterator[Backends]:
    with backends(urls, lambda: None) as opened:
        yield opened


@pytest.fixture(scope="module")
def side_by_side_with_embedder(urls: list[str]) -> Iterator[Backends]:
    with backends(urls, lambda: ToyEmbedder(16)) as opened:
        yield opened


@pytest.mark.parametrize("extent", [QUICK, pytest.param(HEAVY, marks=pytest.mark.heavy)], ids=["quick", "heavy"])
def test_backends_agree_on_every_answer(side_by_side: Backends, extent: settings) -> None:
    class Machine(AgreementMachine):
        backends = side_by_side

    run_state_machine_as_test(Machine, settings=extent)


@pytest.mark.parametrize("extent", [QUICK, pytest.param(HEAVY, marks=pytest.mark.heavy)], ids=["quick", "heavy"])
def test_backends_agree_on_every_answer_with_an_embedder(
    side_by_side_with_embedder: Backends, extent: settings
) -> None:
    class Machine(SimilarityMachine):
        backends = side_by_side_with_embedder

    run_state_machine_as_test(Machine, settings=extent)


@given(mine=lists_of_entries, others=lists_of_entries, query=texts)
@settings(QUICK, max_examples=40)
def test_what_others_store_never_shows_in_an_answer(
    side_by_side: Backends, mine: list[MemoryEntry], others: list[MemoryEntry], query: str
) -> None:
    app = side_by_side.new_app()
    request = SearchRequest(query, app, "ana", "A", 1_000)

    async def answers(service: MemoryService) -> list[object]:
        for project in (None, "A"):
            await service.add_session(app, "ana", "s1", mine, project_id=project)
        before = await service.search(request)
        await service.add_session(app, "ana", "s1", others, project_id="B")
        await service.add_session(app, "ben", "s1", others, project_id="A")
        await service.add_session(f"{app}-other", "ana", "s1", others)
        return [before, await service.search(request)]

    for before, after in side_by_side.ask(answers):
        assert after == before


@pytest.mark.heavy
def test_beyond_a_thousand_matches_the_ten_best_are_still_those_of_the_oracle(side_by_side: Backends) -> None:
    app, chance = side_by_side.new_app(), Random(7)
    words = [f"word{number}" for number in range(300)]
    weights = [1 / (number + 1) for number in range(300)]
    remarks = [
        MemoryEntry(" ".join(chance.choices(words, weights, k=chance.randint(4, 40))), timestamp=float(second))
        for second in range(2_500)
    ]
    queries = [" ".join(["word0", *chance.choices(words, weights, k=chance.randint(1, 6))]) for _ in range(40)]

    async def ten_best(service: MemoryService) -> list[set[str]]:
        for start in range(0, len(remarks), 20):
            await service.add_session(app, "ana", f"s{start}", remarks[start : start + 20])
        answers = [await service.search(SearchRequest(query, app, "ana")) for query in queries]
        return [{memory.id for memory in answer} for answer in answers]

    oracle, *others = side_by_side.ask(ten_best)

    agreements = [
        mean(len(found & right) / len(right) for found, right in zip(other, oracle, strict=True)) for other in others
    ]
    assert min(agreements) >= 0.98, agreements
