"""Whatever is handed in: an answer or an error of ours, the same on every backend, and never a hang."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adk_memory import (
    AdkMemoryError,
    Content,
    MemoryEntry,
    MemoryService,
    SearchRequest,
    SessionEntries,
    ValidationError,
)
from adk_memory._content import Value
from conftest import migrate
from fuzz.inputs import Make, calls
from isolation.playing import plain
from postgres_server import PostgresServer
from property.machines import Backends, backends

COMMON: Any = {
    "deadline": timedelta(seconds=60),
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
QUICK = settings(max_examples=60, derandomize=True, phases=[Phase.generate], **COMMON)
HEAVY = settings(max_examples=1_000, print_blob=True, **COMMON)
MADE_ID = re.compile(r"[0-9a-f]{32}")


@pytest.fixture(scope="module")
def side_by_side(
    postgres_server: PostgresServer, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backends]:
    sqlite_url = f"sqlite:///{tmp_path_factory.mktemp('fuzz') / 'memory.db'}"
    migrate(sqlite_url)
    with (
        postgres_server.database(postgres_template) as postgres_url,
        backends(["memory://", sqlite_url, postgres_url], lambda: None) as opened,
    ):
        yield opened


@pytest.mark.parametrize("extent", [QUICK, pytest.param(HEAVY, marks=pytest.mark.heavy)], ids=["quick", "heavy"])
def test_any_input_gets_one_answer_from_every_backend(side_by_side: Backends, extent: settings) -> None:
    @extent
    @given(made=st.lists(calls(), min_size=1, max_size=8))
    def fuzz(made: list[Make]) -> None:
        app = side_by_side.new_app()
        for call in made:
            answers = side_by_side.run(_answers(side_by_side.services, call, app))
            assert answers[1:] == answers[:1] * 2, answers

    fuzz()


async def _answers(services: Any, call: Make, app: str) -> list[Any]:
    return [await asyncio.wait_for(_answer(service, call, app), 60) for service in services]


async def _answer(service: MemoryService, call: Make, app: str) -> Any:
    try:
        answer = await call(service, app)
    except AdkMemoryError as error:  # any other type fails the test
        return type(error), str(error)
    return _alike(plain(answer))


def _alike(answer: Any) -> Any:
    """Return an answer without what may differ: made ids, times that were not given, the last digits of scores."""
    if isinstance(answer, dict):
        return {name: _alike(value) for name, value in answer.items() if name != "timestamp"}
    if isinstance(answer, list | tuple):
        return [_alike(item) for item in answer]
    if isinstance(answer, float):
        return pytest.approx(answer, abs=1e-6)
    return "made" if isinstance(answer, str) and MADE_ID.fullmatch(answer) else answer


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        (MemoryEntry, {"author": "a"}),
        (MemoryEntry, {"content": "a", 1: 2}),
        (MemoryEntry, ["a"]),
        (SearchRequest, {"query": "a"}),
        (SessionEntries, {"app_name": "a"}),
        (SessionEntries, {"app_name": "a", "user_id": "b", "session_id": "c", "entries": [{"author": "a"}]}),
        (SessionEntries, {"app_name": "a", "user_id": "b", "session_id": "c", "entries": [{1: 2}]}),
        (Content, {1: 2}),
    ],
)
def test_a_mapping_that_describes_no_value_is_refused(kind: type[Value], described: Any) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate(described)
    with pytest.raises(ValidationError):
        kind.model_validate_json("[" + json.dumps(str(described)))


@pytest.mark.parametrize("flag", [None, 0, 1, "", "false", "True", [], np.True_, NotImplemented], ids=repr)
def test_what_only_counts_as_true_or_false_is_neither(side_by_side: Backends, flag: Any) -> None:
    app = side_by_side.new_app()

    async def run(service: MemoryService) -> str:
        await service.add_entry(app, "ana", MemoryEntry("tea"))
        with pytest.raises(ValidationError):
            await service.delete_entries(app, "ana", "tea", dry_run=flag)
        with pytest.raises(ValidationError):
            await service.list_page(app, "ana", with_total=flag)
        return (await service.list_recent(app, "ana"))[0].text

    assert side_by_side.ask(run) == ["tea"] * 3
