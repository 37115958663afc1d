"""Scenarios of the leak hunt: users with hostile names who do everything that can be done, by chance."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from adk_memory import ALL_PROJECTS, Author, MemoryEntry, Metadata, Session, Time
from isolation.operations import OPERATIONS, READING, Reach

_CAFE: Final = "caf\u00e9"
HOSTILE: Final = [
    "ana", "Ana", "ANA", "ana ", " ana", "ana\t", "an", "anab", "a", "b", "c", "A",
    "%", "_", "%%", "an_", "an%", "%na", "a\\_b", "*", "?", "[a]", "^a", "a*",
    "a|b", "b|c", "a:b", "b:c", "a/b", "b/c", "a\x1fb", "b\x1fc", "a,b", 'a","b', '"]', '["a","b"]', "{}",
    "a\nb", "'", "''", "a'--",
    "None", "null", "ALL_PROJECTS", "AllProjects.ALL_PROJECTS", "True", "0", "00", "1", "-1", "NaN", "@1", "1_a",
    _CAFE, unicodedata.normalize("NFD", _CAFE), "cafe", "\u0430na", "an\u0430", "\uff41na", "a\u200bna", "\ufeffana",
    "\ufb01", "fi", "stra\u00dfe", "strasse", "\u0130", "i", "\u0131", "\U0001f469", "\U0010ffff", "\u00a0", " ",
    "a" * 256, "a" * 255, "a" * 255 + "b", "\u00e9" * 256, "%" * 256, "_" * 256,
]  # fmt: skip
"""Names that something other than exact comparison takes for each other."""

WORDS: Final = ["tea", "teas", "green", "run", "running", "caf\u00e9", "\u7dd1\u8336", "the", "window", "42"]
FAILING: Final = "make the embedder fail"
"""A query for which the embedder raises."""

names = st.one_of(st.sampled_from(HOSTILE), st.text("aA%_ |:/\x1f\"'\\\u0430\u0301", min_size=1, max_size=3))


def token(user: int, project: int) -> str:
    """Return the word that stands in every entry of one project of one user, and in no other."""
    return f"zq{user}p{project}qz"


@dataclass(frozen=True)
class Step:
    """One user calls one operation."""

    user: int
    operation: str
    project: Any
    session: str
    entry_id: str
    entries: tuple[MemoryEntry, ...]
    query: str
    limit: int
    mode: Any
    filter: Any
    flag: bool
    existing: Any


@dataclass(frozen=True)
class Scenario:
    """Users, by app and name, with the same projects, sessions and ids of entries; and what they do."""

    users: tuple[tuple[str, str], ...]
    projects: tuple[str, ...]
    steps: tuple[Step, ...]

    def alone(self, user: int, project: Any) -> list[int]:
        """Return which steps can have to do with what one sees: a user's project, or `ALL_PROJECTS`."""
        mine = [number for number, step in enumerate(self.steps) if step.user == user]
        if project is ALL_PROJECTS:
            return mine
        return [number for number in mine if self.steps[number].project in (None, project, ALL_PROJECTS)]

    def sees(self, step: Step, project: Any) -> bool:
        """Whether the answer to a step shows nothing but what one sees."""
        return project is ALL_PROJECTS or step.project in (None, project)

    def tokens(self, user: int, project: Any) -> set[str]:
        """Return the words that may come to one's eyes."""
        shown = [None, project] if project is not ALL_PROJECTS else [None, *self.projects]
        return {token(user, self.number_of(name)) for name in shown}

    def number_of(self, project: str | None) -> int:
        return 0 if project is None else self.projects.index(project) + 1


@st.composite
def scenarios(draw: st.DrawFn, users: int) -> Scenario:
    apps = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    called = draw(st.lists(names, min_size=2, max_size=users, unique=True))
    pairs = [(app, user) for app in apps for user in called]
    chance = Random(draw(st.integers(0, 2**32)))
    chosen = chance.sample(pairs, min(users, len(pairs)))
    projects = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    ids, sessions = (draw(st.lists(names, min_size=2, max_size=3, unique=True)) for _ in range(2))
    return scenario(chance, chosen, projects, ids, sessions)


def scenario(
    chance: Random,
    users: Sequence[tuple[str, str]],
    projects: Sequence[str],
    ids: Sequence[str],
    sessions: Sequence[str],
    calls: int | None = None,
) -> Scenario:
    """Everybody stores something everywhere; then all read in every way; then all do everything there is.

    With ``calls`` each makes so many of these calls, whichever.
    """
    maker = _Maker(chance, len(users), projects, ids, sessions)
    everybody = range(len(users))
    steps = [maker.step(user, "add_session", project) for user in everybody for project in (None, *projects)]
    reads = [(user, name, mode) for user in everybody for name in READING for mode in _modes(name)]
    rest = [(user, name, ...) for user in everybody for name in (*OPERATIONS, "add_session", "add_many", "search")]
    if calls is None:
        chance.shuffle(reads)
        chance.shuffle(rest)
        steps += [maker.step(user, name, mode=mode) for user, name, mode in (*reads, *rest)]
    else:
        some = [
            one for user in everybody for one in chance.choices([o for o in (*reads, *rest) if o[0] == user], k=calls)
        ]
        chance.shuffle(some)
        steps += [maker.step(user, name, mode=mode) for user, name, mode in some]
    return Scenario(tuple(users), tuple(projects), tuple(steps))


def _modes(name: str) -> list[Any]:
    return [None, "keyword", "vector", "hybrid"] if name == "search" else [None]


class _Maker:
    def __init__(
        self, chance: Random, users: int, projects: Sequence[str], ids: Sequence[str], sessions: Sequence[str]
    ) -> None:
        self._chance = chance
        self._users = users
        self._projects = projects
        self._ids = ids
        self._sessions = sessions

    def step(self, user: int, operation: str, project: Any = ..., mode: Any = ...) -> Step:
        if project is ...:
            project = self._project(OPERATIONS[operation][0])
        one = self._chance.choice
        mark = token(user, 0 if project in (None, ALL_PROJECTS) else self._projects.index(project) + 1)
        return Step(
            user=user,
            operation=operation,
            project=project,
            session=one(self._sessions),
            entry_id=one(self._ids),
            entries=tuple(self._entry(mark) for _ in range(self._chance.randint(1, 4))),
            query=self._query(),
            limit=one([0, 1, 2, 10, 1_000]),
            mode=one([None, None, "keyword", "vector", "hybrid"]) if mode is ... else mode,
            filter=one([None, None, None, Author(mark), Metadata("owner", "ne", mark), Session(self._sessions[0]),
                        Time(since=2.0)]),
            flag=one([True, False]),
            existing=one(["update", "update", "keep", "replace"]),
        )  # fmt: skip

    def _project(self, reach: Reach) -> Any:
        if reach is Reach.USER:
            return ALL_PROJECTS
        some: list[Any] = list(self._projects)
        if reach is not Reach.NAMED:
            some.append(None)
        if reach is Reach.ANY:
            some.append(ALL_PROJECTS)
        return self._chance.choice(some)

    def _entry(self, mark: str) -> MemoryEntry:
        one = self._chance.choice
        words = " ".join(one(WORDS) for _ in range(self._chance.randint(1, 6)))
        # A time is always given, and so is an id: both would differ between two runs.
        return MemoryEntry(
            f"{mark} {words}", one(["user", mark]), one([0.0, 1.0, 2.0, 3.0]), one(self._ids), {"owner": mark}
        )

    def _query(self) -> str:
        one = self._chance.choice
        anybody = token(self._chance.randrange(self._users), self._chance.randint(0, len(self._projects)))
        words = [one(WORDS) for _ in range(self._chance.randint(1, 3))]
        return one([" ".join(words), " ".join(words), words[0], anybody, f"{anybody} {words[0]}", FAILING, "%", "_ *"])
