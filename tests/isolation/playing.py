"""Playing scenarios on a service: all users at once, and each of them alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel

from adk_memory import ALL_PROJECTS, AdkMemoryError, MemoryService, Page
from adk_memory.testing import ToyEmbedder
from isolation.operations import OPERATIONS, Call
from isolation.scenarios import FAILING, Scenario, Step

TOKEN: Final = re.compile(r"zq\d+p\d+qz")


def embedder() -> ToyEmbedder:
    """Return an embedder that fails for one query, and says so with the query."""
    made = ToyEmbedder(16)
    made.answers[FAILING] = OSError(FAILING)
    return made


class Player:
    """Plays a scenario; answers are what came back, in plain values, and where it failed, with which words."""

    def __init__(self, service: MemoryService, scenario: Scenario) -> None:
        self._service = service
        self._scenario = scenario
        self._cursors: dict[int, str] = {}

    async def play(self, steps: Iterable[int]) -> dict[int, Any]:
        """Return the answers to some of the steps, one after the other."""
        return {number: await self._answer(self._scenario.steps[number]) for number in steps}

    async def play_at_once(self) -> dict[int, Any]:
        """Return the answers to all steps: users do theirs at the same time as all others."""
        users = range(len(self._scenario.users))
        played = await asyncio.gather(*(self.play(self._scenario.alone(user, ALL_PROJECTS)) for user in users))
        return {number: answer for answers in played for number, answer in answers.items()}

    async def clear(self) -> None:
        """Erase what the users have."""
        for app, user in self._scenario.users:
            await self._service.delete_user(app, user)

    async def _answer(self, step: Step) -> Any:
        app, user = self._scenario.users[step.user]
        others = [cursor for number, cursor in self._cursors.items() if number != step.user]
        call = Call(
            self._service, app, user, step.project, step.session, step.entry_id, list(step.entries), step.query,
            step.limit, step.mode, step.filter, step.flag, step.existing, others[-1] if others else None,
        )  # fmt: skip
        try:
            answer = await OPERATIONS[step.operation][1](call)
        except AdkMemoryError as error:
            return type(error), str(error)
        if isinstance(answer, list) and answer and isinstance(answer[0], Page) and answer[0].next:
            self._cursors[step.user] = answer[0].next
        return plain(answer)


def plain(answer: Any) -> Any:
    """Return an answer as plain values; of a cursor only whether there is one, for it holds numbers of rows."""
    if isinstance(answer, Page):
        return {**answer.model_dump(), "next": answer.next is not None}
    if isinstance(answer, BaseModel):
        return answer.model_dump()
    return [plain(item) for item in answer] if isinstance(answer, list | tuple) else answer


def tokens_in(answer: Any) -> set[str]:
    """Return the owners' words in an answer."""
    return set(TOKEN.findall(repr(answer)))


async def hunt(service: MemoryService, scenario: Scenario) -> int:
    """Play a scenario, then once more for each one who sees something, and compare; return how many answers."""
    player = Player(service, scenario)
    answers = await player.play(range(len(scenario.steps)))
    await player.clear()
    compared = 0
    for user in range(len(scenario.users)):
        for project in (ALL_PROJECTS, None, *scenario.projects):
            compared += await _compare(player, scenario, answers, user, project)
    return compared


async def hunt_at_once(service: MemoryService, scenario: Scenario) -> int:
    """Play a scenario with all users at the same time, then with each of them alone; return how many answers."""
    player = Player(service, scenario)
    answers = await player.play_at_once()
    await player.clear()
    users = range(len(scenario.users))
    return sum([await _compare(player, scenario, answers, user, ALL_PROJECTS) for user in users])


async def _compare(player: Player, scenario: Scenario, answers: dict[int, Any], user: int, project: Any) -> int:
    alone = await player.play(scenario.alone(user, project))
    await player.clear()
    compared = 0
    for number, answer in alone.items():
        step = scenario.steps[number]
        if scenario.sees(step, project):
            assert tokens_in(answers[number]) <= scenario.tokens(user, project), (scenario.users, step)
            assert answers[number] == answer, (scenario.users, step)
            compared += 1
    return compared
