"""HNSW indexes of one model's vectors: an operator's option on Postgres, made and dropped beside running searches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_memory._sql.exclusive import exclusive
from adk_memory._sql.failures import translated
from adk_memory._sql.postgres_hnsw import INDEX_PREFIX
from adk_memory.errors import ConfigurationError

_MOST_DIMENSIONS: Final = 4_000  # of a halfvec in an HNSW index
_POLL_SECONDS: Final = 0.5

_MODELS = text("SELECT id, name, dimensions FROM adk_memory_embedding_model ORDER BY id")
_INDEXES = text(
    """
    SELECT c.relname AS name, m.name AS model, i.indisvalid AS valid, pg_relation_size(c.oid) AS bytes
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN adk_memory_embedding_model AS m ON c.relname = concat(CAST(:prefix AS text), m.id)
    WHERE i.indrelid = CAST('adk_memory_embedding' AS regclass) ORDER BY m.id
    """
)
_SCHEMA = text(
    """
    SELECT quote_ident(n.nspname) FROM pg_attribute AS a
    JOIN pg_type AS t ON t.oid = a.atttypid JOIN pg_namespace AS n ON n.oid = t.typnamespace
    WHERE a.attrelid = CAST('adk_memory_embedding' AS regclass) AND a.attname = 'vector' AND t.typname = 'halfvec'
    """
)
_PROGRESS = text(
    """
    SELECT phase, blocks_done, blocks_total FROM pg_stat_progress_create_index
    WHERE relid = CAST('adk_memory_embedding' AS regclass)
    """
)


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An index of the vectors of a model; one that is not ``valid`` is being made, or was left by a failure."""

    name: str
    model: str
    valid: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far Postgres is: the ``share`` is of one phase, 0 to 1."""

    phase: str
    share: float


async def indexes(engine: AsyncEngine) -> list[VectorIndex]:
    """Return the indexes that there are.

    Raises:
        ConfigurationError: the database is not Postgres.
    """
    _require_postgres(engine)
    async with translated(), engine.connect() as connection:
        return await _indexes(connection)


async def create(engine: AsyncEngine, model: str, report: Callable[[Progress], None]) -> VectorIndex:
    """Index the vectors of a model, those to come too; return the index, which may have been there.

    What a failure left behind is dropped first. Searches and writes go on meanwhile; migrations wait.

    Raises:
        ConfigurationError: the database is not Postgres or lacks pgvector, it has no such model, or the vectors are
            too long for such an index.
        StorageError: Postgres refused; what was begun is dropped by the next attempt.
    """
    _require_postgres(engine)
    async with translated(), exclusive(engine) as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        model_id, dimensions = await _model(connection, model)
        name = f"{INDEX_PREFIX}{model_id}"
        there = {index.name: index for index in await _indexes(connection)}
        if name in there and there[name].valid:
            return there[name]
        schema = await connection.scalar(_SCHEMA)
        if schema is None:
            raise ConfigurationError("an HNSW index needs the pgvector extension, which this database lacks")
        if dimensions > _MOST_DIMENSIONS:
            raise ConfigurationError(
                f"vectors of {model} have {dimensions:,} dimensions, and an HNSW index takes {_MOST_DIMENSIONS:,} at "
                "most; searches do without it"
            )
        if name in there:
            await connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY {name}")
        making = asyncio.ensure_future(
            connection.exec_driver_sql(
                # The name of the schema comes quoted from the catalogue, the rest are numbers.
                f"CREATE INDEX CONCURRENTLY {name} ON adk_memory_embedding "
                f"USING hnsw ((vector::{schema}.halfvec({dimensions})) {schema}.halfvec_cosine_ops) "
                f"WHERE model_id = {model_id}"
            )
        )
        try:
            await _watch(engine, making, report)
            await making
        finally:
            making.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({making})
        return next(index for index in await _indexes(connection) if index.name == name)


async def drop(engine: AsyncEngine, model: str) -> bool:
    """Drop the index of a model's vectors, and return whether there was one; raises as `create` does."""
    _require_postgres(engine)
    async with translated(), exclusive(engine) as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        model_id, _ = await _model(connection, model)
        there = {index.name for index in await _indexes(connection)}
        name = f"{INDEX_PREFIX}{model_id}"
        if name in there:
            await connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY {name}")
        return name in there


def _require_postgres(engine: AsyncEngine) -> None:
    if engine.dialect.name != "postgresql":
        raise ConfigurationError("only Postgres has HNSW indexes; on SQLite searches compare all vectors in sight")


async def _indexes(connection: AsyncConnection) -> list[VectorIndex]:
    rows = await connection.execute(_INDEXES, {"prefix": INDEX_PREFIX})
    return [VectorIndex(row.name, row.model, row.valid, row.bytes) for row in rows]


async def _model(connection: AsyncConnection, model: str) -> tuple[int, int]:
    models = {row.name: (row.id, row.dimensions) for row in await connection.execute(_MODELS)}
    if model not in models:
        raise ConfigurationError(f"there are no vectors of {model!r}; there are some of: {', '.join(models) or 'none'}")
    return models[model]


async def _watch(engine: AsyncEngine, making: asyncio.Future[Any], report: Callable[[Progress], None]) -> None:
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as watching:
        while not making.done():
            row = (await watching.execute(_PROGRESS)).first()
            if row is not None:
                report(Progress(row.phase, row.blocks_done / row.blocks_total if row.blocks_total else 0.0))
            await asyncio.wait({making}, timeout=_POLL_SECONDS)
