"""Dialect: the few things that the two databases do differently; everything else is written once, in the service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar, cast

from sqlalchemy import ColumnElement, Connection, Delete, FromClause, Insert, Select, Subquery
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory._ranking import Candidate, Question, Vector
from adk_memory._records import Record
from adk_memory._scope import Scope
from adk_memory._sql.scope import Sight
from adk_memory._sql.traces import Traces
from adk_memory.erasure import ScrubReport
from adk_memory.filters import Metadata

POOL: Final = 1_000
"""Up to so many matching entries are all scored exactly; of more, the weightiest and what stands around them."""
_KEYS_PER_STATEMENT = 2_000  # a statement can have 32,766 parameters on SQLite

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be stored, with its place in its session, its terms, and its vector where there is one."""

    record: Record
    position: int
    terms: Sequence[str]
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Addition:
    """New entries of one session, for a scope that was seen in some version; ``scope_id`` is `None` where it is new.

    ``scope`` is the row of such a new scope.
    """

    scope: Mapping[str, Any]
    scope_id: int | None
    version: int
    session_key: str
    model_id: int | None
    entries: Sequence[NewEntry]

    @property
    def entry_count(self) -> int:
        return sum(bool(entry.terms) for entry in self.entries)

    @property
    def term_count(self) -> int:
        return sum(len(entry.terms) for entry in self.entries)


def deltas(additions: Iterable[Addition]) -> dict[int, tuple[int, int]]:
    """Return what additions to scopes that are there add to each: entries with terms, and their terms."""
    found: defaultdict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for addition in additions:
        scope_id = cast(int, addition.scope_id)
        entries, terms = found[scope_id]
        found[scope_id] = (entries + addition.entry_count, terms + addition.term_count)
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """What a search meets: ``matches`` by the row ids of their entries, `None` where there are more than `POOL`.

    ``cosines`` are those of the nearest entries, and ``near`` has these where they match nothing. ``rows`` hold all
    entries of which a memory can be made at once. ``vectors`` says how many entries have a vector of the model,
    ``approximate`` whether one of the nearest may be missing.
    """

    sight: Sight
    matches: Mapping[int, Candidate] | None
    cosines: Mapping[int, float]
    near: Mapping[int, Candidate]
    vectors: int
    rows: Mapping[int, Any]
    approximate: bool = False


class Dialect(Protocol):
    """What one database does in its own way."""

    name: str
    connections_need_their_loop: bool
    plans_ahead: bool
    """Whether entries are best added in one statement, by what was seen of the scope before."""
    bound: bool
    """Whether the database shows the rows of one user at a time, who has to be named."""
    order: tuple[Any, ...]
    """The columns of entries by whose index one can walk through all of them."""

    async def run(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], scope: Scope | None = None
    ) -> Result:
        """Call ``work``, each of whose statements sees, or changes, a state of the database by itself.

        It may be called again where a connection turns out to be lost, or where the database undid a statement.
        ``scope`` names the user whose rows it is about, if it is about those of one.
        """
        ...

    async def transact(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], scope: Scope | None = None
    ) -> Result:
        """Call ``work`` in a transaction that is committed at its end, and undone by an error.

        It may be called again where the connection turns out to be lost, or locked, before the commit, or where the
        database undid the transaction; whoever does not learn whether that was done gets a StorageUnavailableError.
        """
        ...

    def look_around(self, connection: Connection) -> None:
        """Learn, before any entry is looked for, what the role may see."""
        ...

    @property
    def scope_of_entries_by_id(self) -> ColumnElement[int]:
        """The column of an entry's scope in a form for entries that are looked up by their row ids."""
        ...

    @property
    def arrival_in_scope(self) -> ColumnElement[int]:
        """The row id of entries in a form for walking through those of a scope, in their order."""
        ...

    def among(self, column: Any, values: Sequence[Any]) -> ColumnElement[bool]:
        """Return whether a column holds one of the values, which `chunks` made few enough."""
        ...

    def given(self, columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> FromClause:
        """Return rows to select from, with the names and the types of ``columns``: numbers and texts."""
        ...

    def add(self, connection: Connection, addition: Addition) -> bool:
        """Store new entries, all or none, with all that is made from them.

        `False` if their scope has changed, or if the index has come to be of a newer analyser; nothing is stored then.
        """
        ...

    def add_all(self, connection: Connection, additions: Sequence[Addition]) -> None:
        """Store new entries of many sessions, whose scopes the caller has locked, with all that is made from them."""
        ...

    def find(
        self,
        connection: Connection,
        scope: Scope,
        question: Question,
        model_id: int | None,
        now: datetime,
        passing: ColumnElement[bool] | None,
    ) -> Found:
        """Look up what answers a question by what lives ``now``; ``passing`` is what answers have to fulfil."""
        ...

    def insert(self, row: type[Any]) -> Any:
        """Return an INSERT that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
        ...

    def index(self, scope_id: int, entry_id: int, terms: Sequence[str]) -> Mapping[str, object]:
        """Return the parameters with which `index_statement` makes an entry findable by its terms."""
        ...

    @property
    def index_statement(self) -> Insert: ...

    def quiesce(self, connection: Connection) -> None:
        """Wait for the transactions that write entries; those to come wait until this one has ended."""
        ...

    def discard_index(self, connection: Connection) -> None:
        """Leave an empty keyword index, whatever there was; the caller made writers wait."""
        ...

    def unindex(self, sight: Sight, entry_ids: Select[Any]) -> Delete:
        """Take entries in sight out of the keyword index."""
        ...

    def metadata_condition(self, condition: Metadata) -> ColumnElement[bool]:
        """Return the condition on rows of entries; it is true or false for every row, never NULL."""
        ...

    def query(self, sight: Sight, terms: Sequence[str], *, every: bool) -> str:
        """Return what to ask the keyword index for: the entries in sight that hold any, or every, of the terms."""
        ...

    def matching(self, sight: Sight, query: Any) -> Subquery:
        """Select ``entry_id`` of the entries that answer a `query`, which may be a parameter."""
        ...

    def weightiest(
        self,
        connection: Connection,
        sight: Sight,
        weights: Mapping[str, float],
        frequency: Mapping[str, int],
        limit: int,
    ) -> Select[Any]:
        """Select the row ids of about the ``limit`` entries in sight that BM25 puts first.

        ``weights`` are those of terms, the greatest first; ``frequency`` says how many entries have each.
        """
        ...

    def with_terms(self, entries: Select[Any], *, outer: bool = False) -> Select[Any]:
        """Add the column ``terms``, which `read_terms` reads, to a selection of entries.

        Those without any drop out, or have NULL in an ``outer`` one.
        """
        ...

    def read_terms(self, stored: str, scope_id: int) -> list[str]:
        """Return the terms of an entry of a scope as the analyser gave them."""
        ...

    def stray_index_entries(self) -> Select[Any]:
        """Select how many index entries there are without an entry."""
        ...

    @property
    def own_checks(self) -> Sequence[Callable[[Connection], int]]:
        """What looks, each in a call of `run`, for damage that shows in this database alone, and returns how much."""
        ...

    def check_vectors(self, connection: Connection) -> None:
        """Raise a ConfigurationError if this database can't hold vectors, with what to do about it."""
        ...

    def add_vectors(self, connection: Connection, model_id: int, vectors: Sequence[tuple[int, int, Vector]]) -> None:
        """Store vectors of entries that have none of the model: the ids of scope and entry, and the vector."""
        ...

    async def drop_vector_index(self, engine: AsyncEngine, model: str) -> None:
        """Drop the index of a model's vectors, where it has one."""
        ...

    async def scrub(self, engine: AsyncEngine, on_progress: Callable[[int, int], None] | None) -> ScrubReport:
        """Remove what erased rows left behind; see `MemoryService.scrub`."""
        ...

    def traces(self, connection: Connection, sight: Sight) -> Traces:
        """Return traces of what is stored of scopes, to be looked for in the files of the database."""
        ...

    def index_remainders(self, connection: Connection, sight: Sight) -> dict[str, int]:
        """Return, by the places, how much the keyword index has of scopes, whether they are still there or not."""
        ...

    async def file_remainders(self, engine: AsyncEngine, traces: Traces) -> dict[str, int]:
        """Return how many of the traces are in each of the files, those that rows of others hold too left aside.

        Nothing where the files can't be read.
        """
        ...

    async def tend(self, engine: AsyncEngine, model_id: int) -> None:
        """Do, after a write, what makes later searches faster and what they can do without."""
        ...


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Cut what a statement is to look up into as much as one can take."""
    return (items[start : start + _KEYS_PER_STATEMENT] for start in range(0, len(items), _KEYS_PER_STATEMENT))
