"""Backends side by side: the same call to each, and one answer. The first of them, in memory, is the oracle."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, ClassVar, Final, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from adk_memory import (
    ALL_PROJECTS,
    Author,
    Content,
    EmbeddingProvider,
    Filter,
    Memory,
    MemoryEntry,
    MemoryService,
    Metadata,
    OperationNotSupportedError,
    SearchRequest,
    SearchResponse,
    Session,
    Time,
    ValidationError,
    _clock,
    open_memory,
)

T = TypeVar("T")
Call = Callable[[MemoryService], Awaitable[Any]]

WORDS: Final = [
    "tea", "teas", "Tea", "green", "café", "cafe", "CAFÉ", "run", "running", "don't", "the", "not", "straße",
    "STRASSE", "緑茶", "茶", "お茶が好き", "ข้าวผัด", "서울에서", "서울", "مُحَمَّد", "محمد", "हिन्दी", "книги", "книга",
    "🍕", "👍🏽", "tools/run.py", "bob@example.com", "42", "1_tea", "@7",
    "NOT", "AND", "OR", "NEAR(", '"', "'", "*", "tea*", "^tea", "-tea", "{text}:", "text:tea", "(", "|", "&", "!",
    "<->", ":*", "%", "\\", "\0", "\ud800", "\u200b", "--", ";",
]  # fmt: skip
DAYS: Final = [
    "2024-05-01T12:00:00", "2024-05-01T12:00:00.000001", "2024-05-01T17:30:00+05:30", "1969-07-20", "2031-01-01",
]  # fmt: skip
ENDS: Final = [datetime(2999, 1, day, tzinfo=UTC) for day in range(1, 6)]
CALL: Final = {"function_call": {"name": "tea", "args": {"n": [1, 2.5, None]}}}

texts = st.one_of(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), st.text(max_size=20))
contents = st.one_of(texts, texts.map(lambda text: Content("model", [CALL, text])), st.just(Content("model", [CALL])))
fields: Final[dict[str, Any]] = {
    "author": st.sampled_from(["user", "model"]),
    "timestamp": st.sampled_from([None, *DAYS]),
    "id": st.sampled_from([None, None, "e1", "e2", "é"]),
    "metadata": st.sampled_from([{}, {"n": 1}, {"\0": ["\ud800"]}]),
}
lasting = st.builds(MemoryEntry, contents, **fields)
entries = lasting | lasting | st.builds(MemoryEntry, contents, expires_at=st.sampled_from([None, *ENDS]), **fields)
lists_of_entries = st.lists(entries, max_size=5)
apps = st.sampled_from(["one", "one", "one", "two"])
users = st.sampled_from(["ana", "ana", "ana", "ben"])
projects = st.sampled_from([None, "A", "A", "B"])
projects_or_all = st.sampled_from([None, "A", "B", ALL_PROJECTS])
sessions = st.sampled_from(["s1", "s1", "s2"])
modes = st.sampled_from([None, None, "keyword", "vector", "hybrid"])
limits = st.sampled_from([None, 0, 1, 3, 1_000])
filters = st.sampled_from(
    [None, None, None, Author("user"), Metadata("n", "gte", 1), ~Session("s1"), Session(None) | Time(since=DAYS[1])]
)
floors = st.sampled_from([None, None, 0.0, 0.123456, 0.654321])

_apps = count()


class Backends:
    """Several services in one event loop."""

    def __init__(self, runner: asyncio.Runner, services: Sequence[MemoryService]) -> None:
        self._runner = runner
        self.services = services

    def new_app(self) -> str:
        """Return the name of an app that is empty."""
        return f"app-{next(_apps)}"

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._runner.run(coroutine)

    def ask(self, call: Call) -> list[Any]:
        """Return the answer of every service to one call, or the type of its refusal."""

        async def answer(service: MemoryService) -> Any:
            try:
                return await call(service)
            except (ValidationError, OperationNotSupportedError) as error:
                return type(error)

        async def answers() -> list[Any]:
            return list(await asyncio.gather(*(answer(service) for service in self.services)))

        return self.run(answers())


@contextmanager
def backends(urls: Sequence[str], make_embedder: Callable[[], EmbeddingProvider | None]) -> Iterator[Backends]:
    """Open a service for each URL, in one event loop."""
    with asyncio.Runner() as runner:
        services = [open_memory(url, embedder=make_embedder()) for url in urls]
        try:
            yield Backends(runner, services)
        finally:
            for service in services:
                runner.run(service.close())


class AgreementMachine(RuleBasedStateMachine):
    """Makes random calls to all backends and compares every answer."""

    backends: ClassVar[Backends]
    tolerance: ClassVar[float] = 1e-6

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self._prefix = self.backends.new_app()
        self._now, self._true_clock = ENDS[0] - timedelta(days=1), _clock.now
        _clock.now = lambda: self._now
        self._singles = count()
        self._touched: set[tuple[str, str]] = set()
        # An id that a backend made up goes by a name that they all share.
        self._names: list[dict[str, str]] = [{} for _ in self.backends.services]
        self._made: defaultdict[str, list[str]] = defaultdict(list)

    @rule(
        target=ids, app=apps, user=users, session=sessions, entries=lists_of_entries, project=projects,
        existing=st.sampled_from(["update", "update", "keep", "replace"]),
    )  # fmt: skip
    def add_session(
        self, app: str, user: str, session: str, entries: list[MemoryEntry], project: str | None, existing: Any
    ) -> Any:
        self._touched.add((app, user))
        ids = self._agree(
            lambda service: service.add_session(
                self._app(app), user, session, entries, project_id=project, existing=existing
            )
        )
        return multiple(*ids)

    @rule(
        target=ids, app=apps, user=users, entry=entries, project=projects, existing=st.sampled_from(["update", "keep"])
    )
    def add_entry(self, app: str, user: str, entry: MemoryEntry, project: str | None, existing: Any) -> str:
        self._touched.add((app, user))
        answers = self.backends.ask(
            lambda service: service.add_entry(self._app(app), user, entry, project_id=project, existing=existing)
        )
        if entry.id is not None:
            assert answers == [entry.id] * len(answers)
            return entry.id
        name = f"single-{next(self._singles)}"
        self._made[name] = answers
        for names, made in zip(self._names, answers, strict=True):
            names[made] = name
        return name

    def teardown(self) -> None:
        """Give the services their clock back."""
        _clock.now = self._true_clock

    @rule()
    def time_passes(self) -> None:
        """Let the next of the ends pass: what expires by then is absent in all backends."""
        self._now += timedelta(days=1)
        self._touched |= {(app, user) for app in ("one", "two") for user in ("ana", "ben")}

    @rule(app=apps, user=users)
    def export(self, app: str, user: str) -> None:
        async def exported(service: MemoryService) -> list[Memory]:
            return [memory async for memory in service.export_user(self._app(app), user)]

        self._agree(exported)

    @rule()
    def purge_expired(self) -> None:
        self.backends.ask(lambda service: service.purge_expired())

    @rule(app=apps, user=users, query=texts, project=projects, limit=limits, floor=floors, mode=modes, filter=filters)
    def search(
        self,
        app: str,
        user: str,
        query: str,
        project: str | None,
        limit: int | None,
        floor: float | None,
        mode: Any,
        filter: Filter | None,
    ) -> None:
        request = SearchRequest(query, self._app(app), user, project, limit, floor, mode, filter=filter)

        oracle, *others = self.backends.ask(lambda service: service.search(request))

        for number, other in enumerate(others, start=1):
            self._compare(oracle, number, other)

    @rule(app=apps, user=users, project=projects_or_all, limit=limits, filter=filters)
    def list_recent(self, app: str, user: str, project: Any, limit: int | None, filter: Filter | None) -> None:
        self._agree(lambda service: service.list_recent(self._app(app), user, limit, project_id=project, filter=filter))

    @rule(app=apps, user=users, project=projects_or_all, limit=st.sampled_from([1, 2, 3, 50]), filter=filters)
    def list_pages(self, app: str, user: str, project: Any, limit: int, filter: Filter | None) -> None:
        async def pages(service: MemoryService) -> list[Any]:
            found, after = [], None
            while True:
                page = await service.list_page(
                    self._app(app), user, project_id=project, filter=filter, limit=limit, after=after, with_total=True
                )
                found.append([page.total, list(page)])
                after = page.next
                if after is None:
                    return found

        self._agree(pages)

    @rule(app=apps, user=users, entry_id=ids, project=projects)
    def get(self, app: str, user: str, entry_id: str, project: str | None) -> None:
        self._agree(lambda service: service.get(self._app(app), user, self._id(service, entry_id), project_id=project))

    @rule(app=apps, user=users, entry_id=consumes(ids), project=projects_or_all)
    def delete(self, app: str, user: str, entry_id: str, project: Any) -> None:
        self._touched.add((app, user))
        self._agree(
            lambda service: service.delete(self._app(app), user, self._id(service, entry_id), project_id=project)
        )

    @rule(app=apps, user=users, query=texts, project=projects, dry_run=st.booleans())
    def delete_entries(self, app: str, user: str, query: str, project: str | None, *, dry_run: bool) -> None:
        self._touched.add((app, user))
        self._agree(
            lambda service: service.delete_entries(self._app(app), user, query, project_id=project, dry_run=dry_run)
        )

    @rule(app=apps, user=users, session=sessions, project=projects_or_all)
    def delete_session(self, app: str, user: str, session: str, project: Any) -> None:
        self._touched.add((app, user))
        self._agree(lambda service: service.delete_session(self._app(app), user, session, project_id=project))

    @rule(app=apps, user=users, project=st.sampled_from(["A", "B"]))
    def delete_project(self, app: str, user: str, project: str) -> None:
        self._touched.add((app, user))
        self._agree(lambda service: service.delete_project(self._app(app), user, project))

    @rule(app=apps, user=users)
    def delete_user(self, app: str, user: str) -> None:
        self._touched.add((app, user))
        self._agree(lambda service: service.delete_user(self._app(app), user))

    @invariant()
    def everything_is_the_same(self) -> None:
        for app, user in sorted(self._touched):
            self.list_recent(app, user, ALL_PROJECTS, 1_000, None)
            self.search(app, user, " ".join(WORDS[:12]), "A", 1_000, None, None, None)
        self._touched.clear()

    def _app(self, app: str) -> str:
        return f"{self._prefix}-{app}"

    def _id(self, service: MemoryService, name: str) -> str:
        return self._made[name][self.backends.services.index(service)] if name in self._made else name

    def _agree(self, call: Call) -> Any:
        """Make a call to every backend; all have to answer as the oracle does."""
        oracle, *others = [self._view(number, answer) for number, answer in enumerate(self.backends.ask(call))]
        assert others == [oracle] * len(others), (oracle, others)
        return oracle

    def _view(self, number: int, answer: Any) -> Any:
        """Return an answer without what may differ: the ids that a backend makes up, and scores."""
        if isinstance(answer, list):
            return [self._view(number, item) for item in answer]
        if isinstance(answer, Memory):
            name = self._names[number].get(answer.id, answer.id)
            return answer.model_copy(update={"id": name, "score": None})
        return answer

    def _compare(self, oracle: Any, number: int, other: Any) -> None:
        if not isinstance(oracle, SearchResponse):
            assert other == oracle
            return
        assert (other.mode, other.partial) == (oracle.mode, oracle.partial)
        expected, found = self._view(0, list(oracle)), self._view(number, list(other))
        scores = [memory.score or 0.0 for memory in oracle]
        assert [memory.score for memory in other] == pytest.approx(scores, abs=self.tolerance), (expected, found)
        assert self._settled(found, scores) == self._settled(expected, scores), (scores, expected, found)

    def _settled(self, memories: list[Memory], scores: list[float]) -> Any:
        return memories


class SimilarityMachine(AgreementMachine):
    """The same with an embedder: entries that are equally near, up to rounding, may stand in any order."""

    tolerance = 1e-5

    def _settled(self, memories: list[Memory], scores: list[float]) -> Any:
        groups: list[set[str]] = []
        previous = None
        for memory, score in zip(memories, scores, strict=True):
            if previous is None or previous - score > 2 * self.tolerance:
                groups.append(set())
            groups[-1].add(memory.model_dump_json())
            previous = score
        return groups[:-1] if len(memories) in (1, 3, 10) else groups  # a limit may cut through the last group
