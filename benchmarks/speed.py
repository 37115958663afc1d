"""How fast adk-memory is, beside the forms of storage and search that suggest themselves; see README.md here."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Final, Literal

import asyncpg
import numpy as np

import synthetic
from measuring import PeakMemory, ServerClock, Timings, side_by_side, timed
from naive_postgres import BareVectors, NaivePostgres, naive_postgres
from naive_sqlite import naive_sqlite
from report import Cell, Report, Table, say
from stores import Add, OurStore, Search, Store, our_store
from synthetic import Session, Truth, User, World

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from postgres_server import PostgresServer, running_postgres

Backend = Literal["sqlite", "postgresql"]
Asked = tuple[User, str]
Label = tuple[str, int]
"""The way in which something was done, and the number of entries in the store."""

_LAST_SESSIONS: Final = 60
_ERASED_USERS: Final = 20
_LIGHT_USERS: Final = 5
_CLOCKS: Final = Timings.columns()


@dataclass(frozen=True, slots=True)
class Place:
    """A world in a store."""

    world: World
    store: Store


@dataclass(slots=True)
class Benchmark:
    """Worlds of several sizes, each in several stores on one database, all open at once.

    Every table is measured side by side: question by question, all stores in turn.
    """

    title: str
    places: Sequence[Place]
    questions: int
    report: Report
    server: PostgresServer | None = None

    async def fill(self) -> None:
        """Add each world to its stores, the last sessions in all the ways that there are."""
        bulk: list[list[Cell]] = []
        last: dict[Label, _Added] = {}
        for world, stores in self._stores_by_world():
            say(f"{self.title}: adding {world.entries:,} entries to {len(stores)} stores")
            sessions = world.sessions()
            first = max(world.session_count - _LAST_SESSIONS, world.session_count // 2)
            bulk.append([world.entries, *await _fill(stores, islice(sessions, first))])
            for store in stores:
                await store.settle()
            last |= await _add_in_turn(world, stores, sessions, await self._clock())
        columns = (
            "entries", "entries/s in 50s", "CPU us/entry in 50s", "entries/s in 12s", "CPU us/entry in 12s",
            "client memory MB",
        )  # fmt: skip
        self._add("bulk ingest by adk-memory, from empty, one session after the other", columns, bulk)
        rows = [[*label, added.entries, *added.rates()] for label, added in last.items()]
        columns = ("form", "entries in store", "added", "entries/s", "CPU us/entry", "server CPU us/entry")
        self._add("ingest into the full store", columns, rows)

    async def search_keywords(self) -> None:
        """Search by words, in scopes of every size."""
        rows: list[list[Cell]] = []
        growth: list[list[Cell]] = []
        for scope in self._scopes():
            for kind, ask in (("8 words", synthetic.messages), ("3 common words", synthetic.common_words)):
                timings, _ = await self._search("keyword", scope, ask)
                rows += _rows(scope, kind, timings)
                growth += _growth(kind, timings) if len(scope) > 1 else []
        self._add("keyword search", _SEARCH_COLUMNS, rows)
        self._add_growth(growth)

    async def search_vectors(self) -> None:
        """Search by similarity, and both ways; see how many of the truly nearest are found."""
        rows: list[list[Cell]] = []
        growth: list[list[Cell]] = []
        for scope in self._scopes():
            truths = {user: Truth(user) for user in scope}
            for kind, ask in (("on topic", synthetic.own_questions), ("off topic", synthetic.foreign_questions)):
                timings, answers = await self._search("vector", scope, ask)
                for label, row in zip(timings, _rows(scope, kind, timings), strict=True):
                    found = [truths[user].recall(text, ids) for (user, text), ids in answers[label]]
                    recall = None if "hybrid" in label[0] else float(np.mean(found))
                    rows.append([*row, float(np.mean([len(ids) for _, ids in answers[label]])), recall])
                growth += _growth(kind, timings) if len(scope) > 1 else []
        self._add("vector search, 384 dimensions", (*_SEARCH_COLUMNS, "found", f"recall@{synthetic.NEAREST}"), rows)
        self._add_growth(growth)

    async def search_memory(self) -> None:
        """See what the first search of every kind costs in memory, from small scopes to large ones."""
        rows: list[list[Cell]] = []
        place = next(place for place in reversed(self.places) if isinstance(place.store, OurStore))
        for scope in self._scopes():
            for way, search in {**place.store.keyword_searches, **place.store.vector_searches}.items():
                peak = PeakMemory()
                await search(scope[0], synthetic.own_questions(scope[0], 1)[0])
                rows.append([scope[0].entries, way, peak()])
        self._add("client memory of one search", ("entries in scope", "form", "peak MB over the start"), rows)

    async def erase(self) -> None:
        """Erase users with 100 entries."""
        ways = {
            (place.store.name, place.world.entries): _eraser(place.store, place.world.users[-_ERASED_USERS:])
            for place in self.places
        }
        erasable = min(len(place.world.users) for place in self.places) - len(self._scopes()[0])
        timings, _ = await side_by_side(ways, range(min(_ERASED_USERS, erasable)), await self._clock())
        rows = [[*label, *taken.milliseconds()] for label, taken in timings.items()]
        self._add("erasing a user with 100 entries", ("form", "entries in store", *_CLOCKS), rows)

    async def weigh(self) -> None:
        """See how large the databases are."""
        rows: list[list[Cell]] = []
        for place in self.places:
            megabytes = await place.store.megabytes()
            rows.append([place.store.name, place.world.entries, megabytes, 1e6 * megabytes / place.world.entries])
        self._add("size of the database", ("form", "entries", "MB", "bytes/entry"), rows)

    async def _search(
        self, kind: Literal["keyword", "vector"], scope: Sequence[User], ask: Callable[[User, int], list[str]]
    ) -> tuple[dict[Label, Timings], dict[Label, list[tuple[Asked, list[str]]]]]:
        each = -(-(self.questions + 1) // len(scope))
        asked = [(user, text) for texts in zip(*(ask(user, each) for user in scope), strict=True)
                 for user, text in zip(scope, texts, strict=True)]  # fmt: skip
        ways = {
            (way, place.world.entries): _answering(search)
            for place in self.places
            if scope[0] in (*place.world.users, *place.world.heavy_users)
            for way, search in getattr(place.store, f"{kind}_searches").items()
        }
        return await side_by_side(ways, asked, await self._clock())

    async def _clock(self) -> ServerClock:
        """Return a clock of the server processes of all connections that are open now."""
        if self.server is None:
            return ServerClock()
        connection = await asyncpg.connect(self.server.url)
        try:
            rows = await connection.fetch("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        finally:
            await connection.close()
        return ServerClock(row["pid"] for row in rows)

    def _scopes(self) -> list[list[User]]:
        largest = max((place.world for place in self.places), key=lambda world: world.entries)
        smallest = min((place.world for place in self.places), key=lambda world: world.entries)
        light = smallest.users[: min(_LIGHT_USERS, len(smallest.users) - 2)]
        return [light, *([user] for user in largest.heavy_users)]

    def _stores_by_world(self) -> list[tuple[World, list[Store]]]:
        worlds = dict.fromkeys(place.world for place in self.places)
        return [(world, [place.store for place in self.places if place.world is world]) for world in worlds]

    def _add_growth(self, rows: Sequence[Sequence[Cell]]) -> None:
        columns = ("form", "question", "CPU ms, smallest store", "CPU ms, largest", "growth")
        self._add("growth of a 100-entry user's search with the store, all CPU", columns, rows)

    def _add(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        # A column that nothing was measured for says nothing.
        kept = [i for i in range(len(columns)) if any(row[i] is not None for row in rows)]
        self.report.add(
            Table(f"{self.title}: {title}", [columns[i] for i in kept], [[row[i] for i in kept] for row in rows])
        )


_SEARCH_COLUMNS: Final = ("entries in scope", "question", "form", "entries in store", *_CLOCKS, "CPU / ours")


@dataclass(slots=True)
class _Added:
    """How many entries were added in some way, and what it took."""

    entries: int = 0
    taken: Timings = field(default_factory=Timings)

    async def add(self, add: Add, session: Session, clock: ServerClock | None = None) -> None:
        """Add a session, on the clock."""
        await timed(self.taken, add, session, clock)
        self.entries += len(session.entries)

    def rates(self) -> tuple[float | None, ...]:
        """Return the entries a second, and the microseconds of CPU, here and on the server, for each."""
        cpu, server = (1e6 * sum(used) / self.entries if used else None for used in (self.taken.cpu, self.taken.server))
        return self.entries / sum(self.taken.wall), cpu, server


async def _fill(stores: Sequence[Store], sessions: Iterable[Session]) -> list[Cell]:
    added = {50: _Added(), 12: _Added()}
    memory = PeakMemory()
    for session in sessions:
        for store in stores:
            fastest = [*store.adds.values()][-1]
            if isinstance(store, OurStore):
                await added[session.user.session_length].add(fastest, session)
            else:
                await fastest(session)
    return [*added[50].rates()[:2], *added[12].rates()[:2], memory()]


async def _add_in_turn(
    world: World, stores: Sequence[Store], sessions: Iterable[Session], clock: ServerClock
) -> dict[Label, _Added]:
    added: dict[Label, _Added] = {}
    for number, session in enumerate(sessions):
        for store in stores:
            way = [*store.adds][number % len(store.adds)]
            await added.setdefault((way, world.entries), _Added()).add(store.adds[way], session, clock)
    return added


def _answering(search: Search) -> Callable[[Asked], Awaitable[tuple[Asked, list[str]]]]:
    async def answer(asked: Asked) -> tuple[Asked, list[str]]:
        return asked, await search(*asked)

    return answer


def _eraser(store: Store, users: Sequence[User]) -> Callable[[int], Awaitable[None]]:
    return lambda number: store.erase(users[-1 - number])


def _rows(scope: Sequence[User], kind: str, timings: dict[Label, Timings]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for (way, entries), taken in timings.items():
        ours = next(taken for (way, size), taken in timings.items() if size == entries and way.startswith("adk-memory"))
        rows.append([scope[0].entries, kind, way, entries, *taken.milliseconds(), taken.all_cpu() / ours.all_cpu()])
    return rows


def _growth(kind: str, timings: dict[Label, Timings]) -> list[list[Cell]]:
    sizes = sorted({entries for _, entries in timings})
    if len(sizes) < 2:
        return []
    rows: list[list[Cell]] = []
    for way in dict.fromkeys(way for way, _ in timings):
        first, last = (timings[way, size].all_cpu() for size in (sizes[0], sizes[-1]))
        rows.append([way, kind, first, last, last / first])
    return rows


async def measure(
    title: str, stores: Sequence[tuple[World, AbstractAsyncContextManager[Store]]], questions: int, report: Report,
    server: PostgresServer | None,
) -> None:  # fmt: skip
    """Run everything on one database."""
    async with AsyncExitStack() as stack:
        places = [Place(world, await stack.enter_async_context(store)) for world, store in stores]
        benchmark = Benchmark(title, places, questions, report, server)
        await benchmark.fill()
        await benchmark.weigh()
        await benchmark.search_memory()
        if any(place.store.vector_searches for place in places):
            await benchmark.search_vectors()
        else:
            await benchmark.search_keywords()
            await benchmark.erase()


def run(
    sizes: Sequence[int], backends: Sequence[Backend], parts: Sequence[str], questions: int, save_to: Path | None
) -> None:
    """Run the benchmark; the report is saved after each part."""
    report = Report()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adk-memory-benchmark-")))
        server = stack.enter_context(running_postgres()) if "postgresql" in backends else None
        for backend in backends:
            for part in parts:
                with ExitStack() as databases:
                    stores = [
                        (world, store)
                        for world in map(World, sorted(sizes))
                        for store in _stores(backend, part == "vectors", directory, server, databases)
                    ]
                    title = f"{_TITLES[backend]}, {part}"
                    asyncio.run(measure(title, stores, questions, report, server if backend == "postgresql" else None))
                if save_to is not None:
                    report.save(save_to)


_TITLES: Final[dict[Backend, str]] = {"sqlite": "SQLite", "postgresql": "Postgres"}
_numbers = count()


def _stores(
    backend: Backend, with_vectors: bool, directory: Path, server: PostgresServer | None, databases: ExitStack
) -> list[AbstractAsyncContextManager[Store]]:
    if server is None or backend == "sqlite":
        ours, naive = (directory / f"{next(_numbers)}.db" for _ in range(2))
        return [
            our_store(f"sqlite:///{ours}", with_vectors=with_vectors),
            naive_sqlite(naive, with_vectors=with_vectors),
        ]
    forms = [NaivePostgres, BareVectors] if with_vectors else [NaivePostgres]
    url, *urls = [databases.enter_context(server.database()) for _ in range(1 + len(forms))]
    return [
        our_store(url, with_vectors=with_vectors),
        *(naive_postgres(url, form, with_vectors=with_vectors) for url, form in zip(urls, forms, strict=True)),
    ]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000, 10_000], help="sizes of the stores")
    parser.add_argument("--backend", nargs="+", choices=[*_TITLES], default=[*_TITLES])
    parser.add_argument("--part", nargs="+", choices=["keywords", "vectors"], default=["keywords", "vectors"])
    parser.add_argument("--questions", type=int, default=30, help="of each kind, in each scope")
    parser.add_argument("--json", type=Path, help="where to save the figures")
    options = parser.parse_args()
    run(options.entries, options.backend, options.part, options.questions, options.json)


if __name__ == "__main__":
    main()
