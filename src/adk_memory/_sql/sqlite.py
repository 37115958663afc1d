"""What is special about SQLite: FTS5 with scope-local terms, exact similarity with numpy, transactions of our own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    FromClause,
    Insert,
    Integer,
    Select,
    Subquery,
    Text,
    column,
    delete,
    event,
    exc,
    func,
    insert,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from adk_memory._ranking import Question, Vector
from adk_memory._scope import Scope
from adk_memory._sql import sqlite_proof
from adk_memory._sql.dialect import Addition, Found, Result, deltas
from adk_memory._sql.hop import in_one_hop
from adk_memory._sql.metadata import SQLITE_FUNCTION, sqlite_condition, sqlite_holds
from adk_memory._sql.scope import Sight, count
from adk_memory._sql.service import SqlMemoryService
from adk_memory._sql.sqlite_find import find, weightiest
from adk_memory._sql.sqlite_scrub import scrub
from adk_memory._sql.tables import ENTRIES, SEARCH_TABLE, TERM_TABLE, EmbeddingRow, EntryRow, entry_fields
from adk_memory._sql.traces import Traces
from adk_memory._sql.urls import sqlite_url
from adk_memory._sql.walking import everyones
from adk_memory.embedding import EmbeddingProvider, OnEmbeddingError
from adk_memory.erasure import ScrubReport
from adk_memory.filters import Metadata
from adk_memory.reranking import Reranker

_BUSY_SECONDS = 30
_SETTINGS = (
    "PRAGMA journal_mode = WAL",  # readers and the writer don't wait for each other
    "PRAGMA synchronous = NORMAL",  # with WAL: survives a killed process; a power cut may lose the last commits
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is erased is overwritten, not only unlinked
)
_search = table(SEARCH_TABLE, column("rowid", Integer), column("terms", Text))
_MATCH: ColumnElement[Any] = literal_column(SEARCH_TABLE)
_NEW_INDEX = (
    f"DROP TABLE IF EXISTS {TERM_TABLE}",
    f"DROP TABLE IF EXISTS {SEARCH_TABLE}",
    # As the first migration makes them.
    f"""CREATE VIRTUAL TABLE {SEARCH_TABLE} USING fts5(terms, tokenize="ascii tokenchars '_'")""",
    f"CREATE VIRTUAL TABLE {TERM_TABLE} USING fts5vocab('{SEARCH_TABLE}', 'instance')",
)
# With rank 1 its words are compared with its content; without, an index that is out of step may go unnoticed.
_CHECK_INDEX = f"INSERT INTO {SEARCH_TABLE} ({SEARCH_TABLE}, rank) VALUES ('integrity-check', 1)"  # noqa: S608
_LAST_ENTRY = text("SELECT seq FROM sqlite_sequence WHERE name = 'adk_memory_entry'")


class SqliteMemoryService(SqlMemoryService):
    """Keeps entries in a SQLite file, searched through FTS5; ``sqlite://`` is a private database in memory."""

    backend_name = "sqlite"

    def __init__(
        self,
        url_or_engine: str | AsyncEngine,
        *,
        embedder: EmbeddingProvider | None = None,
        reranker: Reranker | None = None,
        on_embedding_error: OnEmbeddingError = "raise",
        default_ttl: timedelta | None = None,
    ) -> None:
        ours = isinstance(url_or_engine, str)
        engine = open_engine(url_or_engine) if isinstance(url_or_engine, str) else url_or_engine
        super().__init__(
            engine, SqliteDialect(), owns_engine=ours, embedder=embedder, reranker=reranker,
            on_embedding_error=on_embedding_error, default_ttl=default_ttl,
        )  # fmt: skip


def open_engine(url: str) -> AsyncEngine:
    """Return an engine of our own, set up for several processes on one file."""
    target = sqlite_url(url)
    in_memory = target.database in (None, "", ":memory:")
    # A private database lives as long as its one connection.
    pool: dict[str, Any] = {"poolclass": AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0} if in_memory else {}
    engine = create_async_engine(
        # What is left open is nobody's but ours, and a reset would cost a hop.
        target, hide_parameters=True, connect_args={"timeout": _BUSY_SECONDS}, pool_reset_on_return=None, **pool
    )  # fmt: skip

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for setting in _SETTINGS:
            cursor.execute(setting)
        cursor.close()

    return engine


class SqliteDialect:
    name = "sqlite"
    connections_need_their_loop = False  # the driver has a thread for each
    bound = False
    plans_ahead = False  # a transaction takes no journeys, and one writer waits for another anyway
    order: tuple[Any, ...] = (EntryRow.id,)
    index_statement: Insert = insert(_search)

    def __eq__(self, other: object) -> bool:
        # Statements that one has prepared serve all.
        return isinstance(other, SqliteDialect)

    def __hash__(self) -> int:
        return hash(SqliteDialect)

    def look_around(self, connection: Connection) -> None:
        pass

    async def run(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], scope: Scope | None = None
    ) -> Result:
        return await self._hop(engine, "BEGIN", work)

    async def transact(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], scope: Scope | None = None
    ) -> Result:
        # A transaction that first reads and then writes fails at once, without waiting, if another one wrote
        # in between; so the write lock is taken at the start.
        return await self._hop(engine, "BEGIN IMMEDIATE", work)

    async def scrub(self, engine: AsyncEngine, on_progress: Callable[[int, int], None] | None) -> ScrubReport:
        return await scrub(partial(self._hop, engine), on_progress)

    def traces(self, connection: Connection, sight: Sight) -> Traces:
        return sqlite_proof.traces(connection, sight)

    def index_remainders(self, connection: Connection, sight: Sight) -> dict[str, int]:
        return sqlite_proof.index_remainders(connection, sight)

    async def file_remainders(self, engine: AsyncEngine, traces: Traces) -> dict[str, int]:
        return await sqlite_proof.file_remainders(partial(self._hop, engine), traces)

    async def _hop(self, engine: AsyncEngine, begin: str | None, work: Callable[[Connection], Result]) -> Result:
        return await in_one_hop(engine, begin, work, set_up=_set_up)

    @property
    def scope_of_entries_by_id(self) -> ColumnElement[int]:
        return EntryRow.scope_id + 0  # a mere check, or it would walk through all entries of the scope

    @property
    def arrival_in_scope(self) -> ColumnElement[int]:
        return EntryRow.id + 0  # or it would walk through the entries of all users, which are in this order

    def among(self, column: Any, values: Sequence[Any]) -> ColumnElement[bool]:
        among: ColumnElement[bool] = column.in_(values)
        return among

    def given(self, columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> FromClause:
        row = func.json_each(json.dumps(rows)).table_valued("value").c.value
        fields = [
            func.json_extract(row, f"$[{number}]").cast(column.type).label(column.key)
            for number, column in enumerate(columns)
        ]
        return select(*fields).subquery()

    def add(self, connection: Connection, addition: Addition) -> bool:
        self.add_all(connection, [addition])  # the transaction has the write lock: nothing has changed since
        return True

    def add_all(self, connection: Connection, additions: Sequence[Addition]) -> None:
        last = connection.scalar(_LAST_ENTRY) or 0  # under the write lock, the next number is ours
        now = datetime.now(UTC)
        numbered = list(
            enumerate(((addition, entry) for addition in additions for entry in addition.entries), last + 1)
        )
        rows = [
            {
                "id": row_id,
                "scope_id": addition.scope_id,
                "session_key": addition.session_key,
                "entry_key": entry.record.id,
                "position": entry.position,
                "created_at": now,
                **entry_fields(entry.record, entry.terms),
            }
            for row_id, (addition, entry) in numbered
        ]
        connection.execute(insert(ENTRIES), rows)
        index = [
            self.index(cast(int, addition.scope_id), row_id, entry.terms)
            for row_id, (addition, entry) in numbered
            if entry.terms
        ]
        if index:
            connection.execute(self.index_statement, index)
        vectors = [
            {
                "scope_id": addition.scope_id,
                "model_id": addition.model_id,
                "entry_id": row_id,
                "vector": _blob(entry.vector),
            }
            for row_id, (addition, entry) in numbered
            if entry.vector is not None
        ]
        if vectors:
            connection.execute(insert(EmbeddingRow), vectors)
        count(connection, deltas(additions))

    def find(
        self,
        connection: Connection,
        scope: Scope,
        question: Question,
        model_id: int | None,
        now: datetime,
        passing: ColumnElement[bool] | None,
    ) -> Found:
        return find(connection, self, scope, question, model_id, now, passing)

    def insert(self, row: type[Any]) -> sqlite.Insert:
        return sqlite.insert(row)

    def index(self, scope_id: int, entry_id: int, terms: Sequence[str]) -> Mapping[str, object]:
        return {"rowid": entry_id, "terms": " ".join(f"{scope_id}_{term}" for term in terms)}

    def quiesce(self, connection: Connection) -> None:
        """There is one writer, and it is this transaction."""

    def discard_index(self, connection: Connection) -> None:
        for statement in _NEW_INDEX:
            connection.exec_driver_sql(statement)

    def unindex(self, sight: Sight, entry_ids: Select[Any]) -> Delete:
        return delete(_search).where(_search.c.rowid.in_(entry_ids))

    def metadata_condition(self, condition: Metadata) -> ColumnElement[bool]:
        return sqlite_condition(condition)

    def query(self, sight: Sight, terms: Sequence[str], *, every: bool) -> str:
        # Terms carry the number of their scope: a query walks the postings of the scopes in sight alone.
        alternatives = [
            "(" + " OR ".join(f'"{scope_id}_{term}"' for scope_id in sight.scope_ids) + ")" for term in terms
        ]
        return (" AND " if every else " OR ").join(alternatives)

    def matching(self, sight: Sight, query: Any) -> Subquery:
        return select(_search.c.rowid.label("entry_id")).where(_MATCH.op("MATCH")(query)).subquery("matched")

    def weightiest(
        self,
        connection: Connection,
        sight: Sight,
        weights: Mapping[str, float],
        frequency: Mapping[str, int],
        limit: int,
    ) -> Select[Any]:
        return weightiest(connection, self, sight, weights, frequency, limit)

    def with_terms(self, entries: Select[Any], *, outer: bool = False) -> Select[Any]:
        return entries.add_columns(_search.c.terms).join(_search, _search.c.rowid == EntryRow.id, isouter=outer)

    def read_terms(self, stored: str, scope_id: int) -> list[str]:
        prefix = f"{scope_id}_"
        return stored[len(prefix) :].split(f" {prefix}")

    def stray_index_entries(self) -> Select[Any]:
        its_entry = everyones(EntryRow.id).where(EntryRow.id == _search.c.rowid)
        return select(func.count()).select_from(_search).where(~its_entry.exists())

    @property
    def own_checks(self) -> Sequence[Callable[[Connection], int]]:
        return (_damage_of_index, _damage_of_file)

    def check_vectors(self, connection: Connection) -> None:
        """Every SQLite can hold vectors."""

    def add_vectors(self, connection: Connection, model_id: int, vectors: Sequence[tuple[int, int, Vector]]) -> None:
        rows = [
            {"scope_id": scope_id, "model_id": model_id, "entry_id": entry_id, "vector": _blob(vector)}
            for scope_id, entry_id, vector in vectors
        ]
        connection.execute(insert(EmbeddingRow), rows)

    async def drop_vector_index(self, engine: AsyncEngine, model: str) -> None:
        """There is none."""

    async def tend(self, engine: AsyncEngine, model_id: int) -> None:
        """Searches are exact, and there is nothing to prepare for them."""


def _blob(vector: Vector) -> bytes:
    return vector.astype("<f2").tobytes()


def _damage_of_index(connection: Connection) -> int:
    try:
        connection.exec_driver_sql(_CHECK_INDEX)
    except exc.DatabaseError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT:
            return 1
        raise
    return 0


def _damage_of_file(connection: Connection) -> int:
    return sum(line != "ok" for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars())


def _set_up(connection: sqlite3.Connection) -> None:
    connection.create_function(SQLITE_FUNCTION, 2, sqlite_holds, deterministic=True)
