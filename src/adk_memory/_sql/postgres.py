"""What is special about Postgres: prepared lexemes with a lexeme for the scope, and pgvector's ``halfvec``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    ColumnElement,
    Delete,
    Float,
    Insert,
    Select,
    Subquery,
    Text,
    and_,
    bindparam,
    cast,
    column,
    delete,
    func,
    insert,
    literal,
    select,
    table,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adk_memory._ranking import Vector
from adk_memory._sql.columns import HalfVector
from adk_memory._sql.metadata import postgres_condition
from adk_memory._sql.scope import Sight
from adk_memory._sql.service import SqlMemoryService
from adk_memory._sql.tables import SEARCH_TABLE, EmbeddingRow, EntryRow
from adk_memory._sql.urls import postgres_url
from adk_memory.embedding import EmbeddingProvider
from adk_memory.errors import ConfigurationError
from adk_memory.filters import Metadata

_search = table(
    SEARCH_TABLE,
    column("scope_id", BigInteger),
    column("entry_id", BigInteger),
    column("terms", Text),
    column("lexemes", postgresql.TSVECTOR),
)
_LAST_PLACE = 16_383  # a tsvector has no place beyond it, and no more than 256 of one lexeme
_VECTOR_COLUMN = text(
    """
    SELECT t.typname, n.nspname
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = to_regclass('adk_memory_embedding') AND a.attname = 'vector'
    """
)


class PostgresMemoryService(SqlMemoryService):
    """Keeps entries in Postgres: full text everywhere, vectors in pgvector where an embedder is given."""

    def __init__(self, url_or_engine: str | AsyncEngine, *, embedder: EmbeddingProvider | None = None) -> None:
        ours = isinstance(url_or_engine, str)
        engine = open_engine(url_or_engine) if isinstance(url_or_engine, str) else url_or_engine
        super().__init__(engine, PostgresDialect(), owns_engine=ours, embedder=embedder)


def open_engine(url: str) -> AsyncEngine:
    """Return an engine of our own; a connection that died in the pool is replaced before it is used."""
    target, arguments = postgres_url(url)
    try:
        return create_async_engine(target, hide_parameters=True, pool_pre_ping=True, connect_args=arguments)
    except ModuleNotFoundError as error:
        raise ConfigurationError('Postgres needs a driver: pip install "adk-memory[postgres]"') from error


class PostgresDialect:
    name = "postgresql"
    connections_need_their_loop = True
    index_statement: Insert = insert(_search).values(
        lexemes=cast(bindparam("prepared", type_=Text), postgresql.TSVECTOR)
    )

    def __init__(self) -> None:
        self._vector_schema: str | None = None

    @asynccontextmanager
    async def reading(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        async with engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            yield connection

    @asynccontextmanager
    async def writing(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        async with engine.connect() as connection:
            # Locks on scope rows order the writers; each then has to see what the one before it committed.
            await connection.execution_options(isolation_level="READ COMMITTED")
            yield connection
            await connection.commit()

    def insert(self, row: type[Any]) -> postgresql.Insert:
        return postgresql.insert(row)

    def index(self, scope_id: int, entry_id: int, terms: Sequence[str]) -> Mapping[str, object]:
        places: dict[str, list[int]] = {f"@{scope_id}": [1]}
        for place, term in enumerate(terms, 1):
            places.setdefault(term, []).append(min(place, _LAST_PLACE))
        lexemes = " ".join(f"{_lexeme(term)}:{','.join(map(str, found[:256]))}" for term, found in places.items())
        return {"scope_id": scope_id, "entry_id": entry_id, "terms": " ".join(terms), "prepared": lexemes}

    def unindex(self, sight: Sight, entry_ids: Select[Any]) -> Delete:
        return delete(_search).where(_search.c.scope_id.in_(sight.scope_ids), _search.c.entry_id.in_(entry_ids))

    def metadata_condition(self, condition: Metadata) -> ColumnElement[bool]:
        return postgres_condition(condition)

    def matching(self, sight: Sight, terms: Sequence[str], *, every: bool) -> Subquery:
        words = (" & " if every else " | ").join(map(_lexeme, terms))
        return select(_search.c.entry_id).where(self._holding(sight, words)).subquery("matched")

    def _holding(self, sight: Sight, words: str) -> ColumnElement[bool]:
        scopes = " | ".join(_lexeme(f"@{scope_id}") for scope_id in sight.scope_ids)
        # A GIN index knows no scopes, but each entry has a lexeme that names its own: the index then meets the
        # scope's entries only. `+ 0` keeps the equality beside it a mere check of the rows that were found.
        return and_(
            _search.c.lexemes.op("@@")(_tsquery(f"({scopes}) & ({words})")),
            (_search.c.scope_id + 0).in_(sight.scope_ids),
        )

    def weightiest(self, sight: Sight, weights: Mapping[str, float], limit: int) -> Subquery:
        # For one lexeme, ts_rank grows with its number much as BM25 does; of several it knows no rarity.
        weighed = sum(
            (literal(weight, Float) * func.ts_rank(_search.c.lexemes, _tsquery(_lexeme(term)))
             for term, weight in weights.items()),
            start=literal(0.0, Float),
        )  # fmt: skip
        holding = select(_search.c.entry_id).where(self._holding(sight, " | ".join(map(_lexeme, weights))))
        best_first = (weighed.desc(), _search.c.entry_id)
        return sight.narrow(holding, _search.c.entry_id).order_by(*best_first).limit(limit).subquery("heaviest")

    def with_terms(self, entries: Select[Any]) -> Select[Any]:
        same = and_(_search.c.scope_id == EntryRow.scope_id, _search.c.entry_id == EntryRow.id)
        return entries.add_columns(_search.c.terms).join(_search, same)

    def read_terms(self, stored: str) -> list[str]:
        return stored.split(" ")

    async def check_vectors(self, connection: AsyncConnection) -> None:
        kind, schema = (await connection.execute(_VECTOR_COLUMN)).one()
        if kind != "halfvec":
            raise ConfigurationError(
                "an embedder needs the pgvector extension, which this database lacks; have its administrator run "
                "CREATE EXTENSION vector, then run adk-memory upgrade again"
            )
        self._vector_schema = schema

    def vector_insert(self, scope_id: int, model_id: int) -> Insert:
        return insert(EmbeddingRow).values(
            scope_id=scope_id,
            model_id=model_id,
            entry_id=bindparam("entry"),
            vector=self._halfvec(bindparam("floats")),
        )

    def vector_parameters(self, entry_id: int, vector: Vector) -> Mapping[str, object]:
        return {"entry": entry_id, "floats": vector.tolist()}

    async def nearest(
        self, connection: AsyncConnection, sight: Sight, model_id: int, vector: Vector, count: int
    ) -> dict[int, float]:
        distance = self._distance(vector).label("distance")
        rows = await connection.execute(
            sight.vectors(model_id, EmbeddingRow.entry_id, distance).order_by(distance).fetch(count, with_ties=True)
        )
        return {row.entry_id: min(1.0, max(0.0, 1.0 - row.distance)) for row in rows}

    def _distance(self, vector: Vector) -> Any:
        operator = f"OPERATOR({_quoted(self._vector_schema or 'public')}.<=>)"
        # In a query of its own the parameter is cast once, not for each row.
        parameter = select(self._halfvec(literal(vector.tolist(), ARRAY(REAL)))).scalar_subquery()
        return EmbeddingRow.vector.op(operator, return_type=Float())(parameter)

    def _halfvec(self, floats: Any) -> Any:
        # asyncpg sends an array of floats in binary form; pgvector turns it into its own type on the server.
        return cast(cast(floats, ARRAY(REAL)), HalfVector(self._vector_schema))


def _tsquery(query: str) -> ColumnElement[Any]:
    return cast(literal(query, Text), postgresql.TSQUERY)


def _lexeme(term: str) -> str:
    quoted = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
