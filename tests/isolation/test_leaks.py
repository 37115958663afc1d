"""The leak hunt: what a user is answered is what they would be answered if nobody else were there.

Each scenario is played twice: with all users, and with one of them alone (and with one project of theirs alone) in
the same, then empty, database. Every answer has to be the same: what is returned, counted, changed and refused, with
its scores and their explanations.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import ALL_PROJECTS, MemoryEntry, MemoryService, open_memory
from isolation.operations import OF_NO_USER, hunted, public_operations
from isolation.playing import Player, embedder, hunt, hunt_at_once, tokens_in
from isolation.scenarios import HOSTILE, Scenario, scenario, scenarios

COMMON: Any = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
}
QUICK = settings(max_examples=3, derandomize=True, phases=[Phase.generate], **COMMON)
HEAVY = settings(max_examples=40, print_blob=True, **COMMON)
EXTENTS = pytest.mark.parametrize(
    ("extent", "users"), [(QUICK, 3), pytest.param(HEAVY, 5, marks=pytest.mark.heavy)], ids=["quick", "heavy"]
)
NewUrl = Callable[[], str]


def test_the_hunt_knows_every_public_operation() -> None:
    assert hunted() | OF_NO_USER == public_operations(), "add the operation to isolation/operations.py"


@EXTENTS
@pytest.mark.parametrize("embedding", [False, True], ids=["words", "vectors"])
def test_nobody_is_answered_otherwise_because_others_are_there(
    new_url: NewUrl, runner: asyncio.Runner, extent: settings, users: int, *, embedding: bool
) -> None:
    service = open_memory(new_url(), embedder=embedder() if embedding else None)
    compared = 0

    @extent
    @given(played=scenarios(users))
    def play(played: Scenario) -> None:
        nonlocal compared
        compared += runner.run(hunt(service, played))

    try:
        play()
    finally:
        runner.run(service.close())
    print(f"{compared} answers compared")
    assert compared > 100 * extent.max_examples


@pytest.mark.parametrize(
    ("calls", "scenes"), [(6, 1), pytest.param(40, 4, marks=pytest.mark.heavy)], ids=["quick", "heavy"]
)
def test_fifty_users_at_once_on_one_service(new_url: NewUrl, runner: asyncio.Runner, calls: int, scenes: int) -> None:
    service = open_memory(new_url(), embedder=embedder())
    for seed in range(scenes):
        chance = Random(seed)
        users = [(app, user) for user in chance.sample(HOSTILE, 25) for app in ("app", "App")]
        played = scenario(chance, users, chance.sample(HOSTILE, 1), ["x", "X"], ["s", "S"], calls=calls)
        compared = runner.run(hunt_at_once(service, played))
        print(f"{compared} answers compared")
        assert compared >= 50 * calls
    runner.run(service.close())


def test_a_search_structure_that_is_missing_makes_nobody_see_others(new_url: NewUrl, runner: asyncio.Runner) -> None:
    chance = Random(7)
    played = scenario(chance, [("a", "ana"), ("a", "an_")], ["A"], ["x", "y"], ["s", "t"])
    filled = len([step for step in played.steps if step.operation == "add_session"][:4])

    async def answers(url: str, steps: list[int]) -> dict[int, Any]:
        async with open_memory(url, embedder=embedder()) as service:
            player = Player(service, played)
            found = await player.play([number for number in steps if number < filled])
            await _drop_search_structure(url)
            return found | await player.play([number for number in steps if number >= filled])

    together = runner.run(answers(new_url(), list(range(len(played.steps)))))
    for user in range(2):
        steps = played.alone(user, ALL_PROJECTS)
        assert runner.run(answers(new_url(), steps)) == {number: together[number] for number in steps}
        assert set().union(*(tokens_in(together[number]) for number in steps)) <= played.tokens(user, ALL_PROJECTS)


async def _drop_search_structure(url: str) -> None:
    if url == "memory://":
        return
    driver = "sqlite+aiosqlite" if url.startswith("sqlite") else "postgresql+asyncpg"
    engine = create_async_engine(make_url(url).set(drivername=driver))
    async with engine.begin() as connection:
        await connection.execute(text("DROP TABLE adk_memory_search_entry"))
    await engine.dispose()


BY_ID = ["get", "delete", "delete_session", "delete_project", "list_recent", "search", "delete_entries, dry run"]


@pytest.mark.parametrize("operation", BY_ID)
def test_what_another_user_has_is_like_what_nobody_has(
    new_url: NewUrl, runner: asyncio.Runner, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")

    async def ask_for_both(service: MemoryService) -> None:
        for app, user in (("app", "ben"), ("other", "ana")):
            theirs = MemoryEntry("zq9p9qz tea", id="theirs")
            await service.add_session(app, user, "theirs", [theirs], project_id="theirs")
        await service.add_session("app", "ana", "mine", [MemoryEntry("green tea", id="mine")], project_id="mine")
        seen = [await _told(service, operation, name, caplog) for name in ("theirs", "nobodys")]
        assert seen[0] == seen[1]
        for app, user in (("app", "ben"), ("other", "ana")):
            assert await service.get(app, user, "theirs", project_id="theirs") is not None

    async def run(url: str) -> None:
        async with open_memory(url, embedder=embedder()) as service:
            await ask_for_both(service)

    runner.run(run(new_url()))


async def _told(
    service: MemoryService, operation: str, name: str, caplog: pytest.LogCaptureFixture
) -> tuple[Any, list[str]]:
    """Return all that a user can learn from asking for a name: the answer, and what is logged."""
    played = scenario(Random(1), [("app", "ana")], [name], [name], [name])
    step = next(number for number, step in enumerate(played.steps) if step.operation == operation)
    caplog.clear()
    answer = await Player(service, played).play([step])
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("adk_memory")]
    return answer, [re.sub(r"[\d.]+ ms", "", line) for line in logged]
