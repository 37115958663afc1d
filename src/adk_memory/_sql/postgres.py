"""What is special about Postgres: prepared lexemes with a lexeme for the scope, and pgvector's ``halfvec``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    ColumnElement,
    Connection,
    Delete,
    Float,
    FromClause,
    Insert,
    Integer,
    Select,
    Subquery,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_memory._ranking import Question, Vector
from adk_memory._scope import Scope
from adk_memory._sql.columns import HalfVector
from adk_memory._sql.dialect import Addition, Found, Result, deltas
from adk_memory._sql.metadata import postgres_condition
from adk_memory._sql.postgres_add import add, add_vectors
from adk_memory._sql.postgres_bulk import add_all
from adk_memory._sql.postgres_connections import Connections
from adk_memory._sql.postgres_find import find
from adk_memory._sql.postgres_index import drop
from adk_memory._sql.postgres_row_security import is_bound
from adk_memory._sql.postgres_scrub import scrub
from adk_memory._sql.postgres_sketch import Sketches
from adk_memory._sql.postgres_text import (
    SEARCH,
    any_of,
    every_of,
    holding,
    index_remainders,
    lexeme,
    lexemes,
    scope_lexeme,
    tsquery,
    wrong_lexemes,
)
from adk_memory._sql.scope import Sight, count
from adk_memory._sql.service import SqlMemoryService
from adk_memory._sql.tables import EmbeddingRow, EntryRow
from adk_memory._sql.traces import Traces
from adk_memory._sql.urls import postgres_url
from adk_memory._sql.walking import everyones
from adk_memory.embedding import EmbeddingProvider, OnEmbeddingError
from adk_memory.erasure import ScrubReport
from adk_memory.errors import ConfigurationError
from adk_memory.filters import Metadata
from adk_memory.reranking import Reranker

_VECTOR_COLUMN = text(
    """
    SELECT t.typname, n.nspname
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = to_regclass('adk_memory_embedding') AND a.attname = 'vector'
    """
)
# Who writes entries has changed the row of their scope, or made it.
_QUIESCE = text("LOCK TABLE adk_memory_scope IN SHARE MODE")


class PostgresMemoryService(SqlMemoryService):
    """Keeps entries in Postgres: full text everywhere, vectors in pgvector where an embedder is given."""

    backend_name = "postgresql"

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
            engine, PostgresDialect(), owns_engine=ours, embedder=embedder, reranker=reranker,
            on_embedding_error=on_embedding_error, default_ttl=default_ttl,
        )  # fmt: skip


def open_engine(url: str) -> AsyncEngine:
    """Return an engine of our own."""
    target, arguments = postgres_url(url)
    try:
        return create_async_engine(target, hide_parameters=True, connect_args=arguments)
    except ModuleNotFoundError as error:
        raise ConfigurationError('Postgres needs a driver: pip install "adk-memory[postgres]"') from error


class PostgresDialect:
    name = "postgresql"
    connections_need_their_loop = True
    index_statement: Insert = insert(SEARCH).values(
        lexemes=cast(bindparam("prepared", type_=Text), postgresql.TSVECTOR)
    )
    order: tuple[Any, ...] = (EntryRow.scope_id, EntryRow.id)
    bound = False
    plans_ahead = True  # a transaction costs a journey to begin and one to end, and keeps other writers waiting

    def __eq__(self, other: object) -> bool:
        # Statements that one has prepared serve all of its kind.
        return isinstance(other, PostgresDialect) and self._kind == other._kind

    def __hash__(self) -> int:
        return hash(self._kind)

    def __init__(self) -> None:
        self._vector_schema: str | None = None
        self._connections = Connections()
        self._sketches = Sketches()

    @property
    def _kind(self) -> tuple[str | None, bool]:
        return self._vector_schema, self.bound

    def look_around(self, connection: Connection) -> None:
        self.bound = is_bound(connection)
        # Whether a row may be written is asked of the scopes that were there before the statement.
        self.plans_ahead = not self.bound

    async def run(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], scope: Scope | None = None
    ) -> Result:
        if self.bound and scope is not None:
            # What is set for a session would stay on the connection, and a pooler would give it to others.
            return await self._connections.transact(engine, work, shown=scope)
        return await self._connections.run(engine, work)

    async def transact(
        self, engine: AsyncEngine, work: Callable[[Connection], Result], scope: Scope | None = None
    ) -> Result:
        return await self._connections.transact(engine, work, shown=scope if self.bound else None)

    async def scrub(self, engine: AsyncEngine, on_progress: Callable[[int, int], None] | None) -> ScrubReport:
        return await scrub(self, engine, on_progress)

    def traces(self, connection: Connection, sight: Sight) -> Traces:
        return Traces.of(())  # the files are the server's

    def index_remainders(self, connection: Connection, sight: Sight) -> dict[str, int]:
        return index_remainders(connection, sight)

    async def file_remainders(self, engine: AsyncEngine, traces: Traces) -> dict[str, int]:
        return {}

    @property
    def scope_of_entries_by_id(self) -> ColumnElement[int]:
        return EntryRow.scope_id.expression  # it begins the primary key

    @property
    def arrival_in_scope(self) -> ColumnElement[int]:
        return EntryRow.id.expression  # it ends the primary key

    def among(self, column: Any, values: Sequence[Any]) -> ColumnElement[bool]:
        # One parameter, however many values: the statement is prepared once.
        kind = BigInteger if isinstance(column.type, BigInteger) else Text
        among: ColumnElement[bool] = column == any_(literal(list(values), ARRAY(kind)))
        return among

    def given(self, columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> FromClause:
        arrays = (
            literal(list(values), ARRAY(BigInteger if isinstance(column.type, Integer) else Text))
            for column, values in zip(columns, zip(*rows, strict=True), strict=True)
        )
        return func.unnest(*arrays).table_valued(*(column.key for column in columns)).render_derived()

    def add(self, connection: Connection, addition: Addition) -> bool:
        return add(connection, addition, self._halfvec_name, self._sketches)

    def add_all(self, connection: Connection, additions: Sequence[Addition]) -> None:
        add_all(connection, additions, self._sketches)
        count(connection, deltas(additions))

    def insert(self, row: type[Any]) -> postgresql.Insert:
        return postgresql.insert(row)

    def index(self, scope_id: int, entry_id: int, terms: Sequence[str]) -> Mapping[str, object]:
        prepared = f"{lexeme(scope_lexeme(scope_id))} {lexemes(terms)}"
        return {"scope_id": scope_id, "entry_id": entry_id, "terms": " ".join(terms), "prepared": prepared}

    def quiesce(self, connection: Connection) -> None:
        connection.execute(_QUIESCE)

    def discard_index(self, connection: Connection) -> None:
        connection.execute(delete(SEARCH))

    def unindex(self, sight: Sight, entry_ids: Select[Any]) -> Delete:
        return delete(SEARCH).where(SEARCH.c.scope_id.in_(sight.scope_ids), SEARCH.c.entry_id.in_(entry_ids))

    def metadata_condition(self, condition: Metadata) -> ColumnElement[bool]:
        return postgres_condition(condition)

    def query(self, sight: Sight, terms: Sequence[str], *, every: bool) -> str:
        words = every_of(terms) if every else any_of(terms)
        return f"({any_of(map(scope_lexeme, sight.scope_ids))}) & ({words})"

    def matching(self, sight: Sight, query: Any) -> Subquery:
        return select(SEARCH.c.entry_id).where(holding(sight, query, bound=self.bound)).subquery("matched")

    def weightiest(
        self,
        connection: Connection,
        sight: Sight,
        weights: Mapping[str, float],
        frequency: Mapping[str, int],
        limit: int,
    ) -> Select[Any]:
        # For one lexeme, ts_rank grows with its number much as BM25 does; of several it knows no rarity.
        weighed = sum(
            (literal(weight, Float) * func.ts_rank(SEARCH.c.lexemes, tsquery(lexeme(term)))
             for term, weight in weights.items()),
            start=literal(0.0, Float),
        )  # fmt: skip
        any_of_them = self.query(sight, list(weights), every=False)
        found = select(SEARCH.c.entry_id).where(holding(sight, any_of_them, bound=self.bound))
        best_first = (weighed.desc(), SEARCH.c.entry_id)
        return sight.narrow(found, SEARCH.c.entry_id).order_by(*best_first).limit(limit)

    def with_terms(self, entries: Select[Any], *, outer: bool = False) -> Select[Any]:
        same = and_(SEARCH.c.scope_id == EntryRow.scope_id, SEARCH.c.entry_id == EntryRow.id)
        return entries.add_columns(SEARCH.c.terms).join(SEARCH, same, isouter=outer)

    def read_terms(self, stored: str, scope_id: int) -> list[str]:
        return stored.split(" ")

    def stray_index_entries(self) -> Select[Any]:
        its_entry = everyones(EntryRow.id).where(
            EntryRow.scope_id == SEARCH.c.scope_id, EntryRow.id == SEARCH.c.entry_id
        )
        return select(func.count()).select_from(SEARCH).where(~its_entry.exists())

    @property
    def own_checks(self) -> Sequence[Callable[[Connection], int]]:
        return (wrong_lexemes,)

    def check_vectors(self, connection: Connection) -> None:
        kind, schema = connection.execute(_VECTOR_COLUMN).one()
        if kind != "halfvec":
            raise ConfigurationError(
                "an embedder needs the pgvector extension, which this database lacks; have its administrator run "
                "CREATE EXTENSION vector, then run adk-memory upgrade again"
            )
        self._vector_schema = schema
        self._sketches.learn(connection)

    def add_vectors(self, connection: Connection, model_id: int, vectors: Sequence[tuple[int, int, Vector]]) -> None:
        add_vectors(connection, model_id, vectors, self._halfvec(bindparam("floats")), self._sketches)

    async def drop_vector_index(self, engine: AsyncEngine, model: str) -> None:
        await drop(engine, model)

    async def tend(self, engine: AsyncEngine, model_id: int) -> None:
        if self.bound or not self._sketches.take_turn():
            return
        await self.run(engine, partial(self._sketches.calibrate, model_id=model_id))
        while await self.transact(engine, partial(self._sketches.sketch_some, model_id=model_id)):
            pass

    def find(
        self,
        connection: Connection,
        scope: Scope,
        question: Question,
        model_id: int | None,
        now: datetime,
        passing: ColumnElement[bool] | None,
    ) -> Found:
        return find(connection, self, self._sketches, scope, question, model_id, now, passing)

    def distance(self, vector: Any) -> Any:
        """Return the distance of a stored vector to an array of numbers: one minus the cosine, 1 at most."""
        # In a query of its own the parameter is cast once, not for each row.
        parameter = select(self._halfvec(vector)).scalar_subquery()
        return func.least(EmbeddingRow.vector.op(self._operator("<=>"), return_type=Float())(parameter), 1.0)

    def hamming(self, sketch: Any) -> Any:
        """Return by how many bits a stored sketch differs from a text of bits; NULL where there is none."""
        parameter = select(cast(sketch, postgresql.BIT(varying=True))).scalar_subquery()
        return EmbeddingRow.sketch.op(self._operator("<~>"), return_type=Float())(parameter)

    def distance_in_index(self, vector: Any, dimensions: int, prepared: ColumnElement[bool]) -> Any:
        """Return the distance by which an HNSW index sorts; its parameter is made once ``prepared`` is."""
        parameter = select(case((prepared, self._halfvec(vector)))).scalar_subquery()
        stored = cast(EmbeddingRow.vector, HalfVector(self._vector_schema, dimensions))
        return stored.op(self._operator("<=>"), return_type=Float())(parameter)

    def _operator(self, name: str) -> str:
        return f"OPERATOR({_quoted(self._vector_schema or 'public')}.{name})"

    @property
    def _halfvec_name(self) -> str:
        return f"{_quoted(self._vector_schema or 'public')}.halfvec"

    def _halfvec(self, floats: Any) -> Any:
        # asyncpg sends an array of floats in binary form; pgvector turns it into its own type on the server.
        return cast(cast(floats, ARRAY(REAL)), HalfVector(self._vector_schema))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
