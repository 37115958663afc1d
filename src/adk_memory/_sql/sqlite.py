"""What is special about SQLite: FTS5 with scope-local terms, exact similarity with numpy, transactions of our own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Delete,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Subquery,
    Text,
    bindparam,
    column,
    delete,
    event,
    func,
    insert,
    literal_column,
    select,
    table,
    union_all,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from adk_memory._ranking import K1, Vector, cosines
from adk_memory._sql.metadata import SQLITE_FUNCTION, sqlite_condition, sqlite_holds
from adk_memory._sql.scope import Sight
from adk_memory._sql.service import SqlMemoryService
from adk_memory._sql.tables import SEARCH_TABLE, TERM_TABLE, EmbeddingRow, EntryRow
from adk_memory._sql.urls import sqlite_url
from adk_memory.embedding import EmbeddingProvider
from adk_memory.filters import Metadata

_BUSY_SECONDS = 30
_SETTINGS = (
    "PRAGMA journal_mode = WAL",  # readers and the writer don't wait for each other
    "PRAGMA synchronous = NORMAL",  # with WAL: survives a killed process; a power cut may lose the last commits
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is erased is overwritten, not only unlinked
)
_search = table(SEARCH_TABLE, column("rowid", Integer), column("terms", Text))
_instances = table(TERM_TABLE, column("term", Text), column("doc", Integer))
_MATCH: ColumnElement[Any] = literal_column(SEARCH_TABLE)


class SqliteMemoryService(SqlMemoryService):
    """Keeps entries in a SQLite file, searched through FTS5; ``sqlite://`` is a private database in memory."""

    def __init__(self, url_or_engine: str | AsyncEngine, *, embedder: EmbeddingProvider | None = None) -> None:
        ours = isinstance(url_or_engine, str)
        engine = open_engine(url_or_engine) if isinstance(url_or_engine, str) else url_or_engine
        super().__init__(engine, SqliteDialect(), owns_engine=ours, embedder=embedder)


def open_engine(url: str) -> AsyncEngine:
    """Return an engine of our own, set up for several processes on one file."""
    target = sqlite_url(url)
    in_memory = target.database in (None, "", ":memory:")
    # A private database lives as long as its one connection.
    pool: dict[str, Any] = {"poolclass": AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0} if in_memory else {}
    connecting = {"timeout": _BUSY_SECONDS, "factory": _Connection}
    engine = create_async_engine(target, hide_parameters=True, connect_args=connecting, **pool)

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for setting in _SETTINGS:
            cursor.execute(setting)
        cursor.close()

    return engine


class _Connection(sqlite3.Connection):
    """Gives its locks back when it is closed, as it is in the middle of a call that was cancelled.

    SQLite puts the closing off, transaction and all, until the last statement is gone; and those of a cancelled
    call stay in the frames of its traceback until the garbage collector comes by.
    """

    def close(self) -> None:
        if self.in_transaction:
            self.rollback()
        super().close()


class SqliteDialect:
    name = "sqlite"
    connections_need_their_loop = False  # the driver has a thread for each
    index_statement: Insert = insert(_search)

    @asynccontextmanager
    async def reading(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        async with self._transaction(engine, "BEGIN") as connection:
            yield connection

    @asynccontextmanager
    async def writing(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        # A transaction that first reads and then writes fails at once, without waiting, if another one wrote
        # in between; so the write lock is taken at the start.
        async with self._transaction(engine, "BEGIN IMMEDIATE") as connection:
            yield connection
            await connection.commit()

    @asynccontextmanager
    async def _transaction(self, engine: AsyncEngine, begin: str) -> AsyncGenerator[AsyncConnection]:
        async with engine.connect() as connection:
            # The driver would begin transactions where it thinks fit, and not for reads.
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.begin()
            pooled = await connection.get_raw_connection()
            driver = pooled.driver_connection
            if driver is not None and driver.in_transaction:
                # The engine's owner has it emit a BEGIN of its own.
                await connection.exec_driver_sql("ROLLBACK")
            if driver is not None and SQLITE_FUNCTION not in pooled.info:
                await driver.create_function(SQLITE_FUNCTION, 2, sqlite_holds, deterministic=True)
                pooled.info[SQLITE_FUNCTION] = True
            await connection.exec_driver_sql(begin)
            yield connection

    def insert(self, row: type[Any]) -> sqlite.Insert:
        return sqlite.insert(row)

    def index(self, scope_id: int, entry_id: int, terms: Sequence[str]) -> Mapping[str, object]:
        return {"rowid": entry_id, "terms": " ".join(f"{scope_id}_{term}" for term in terms)}

    def unindex(self, sight: Sight, entry_ids: Select[Any]) -> Delete:
        return delete(_search).where(_search.c.rowid.in_(entry_ids))

    def metadata_condition(self, condition: Metadata) -> ColumnElement[bool]:
        return sqlite_condition(condition)

    def matching(self, sight: Sight, terms: Sequence[str], *, every: bool) -> Subquery:
        # Terms carry the number of their scope: a query walks the postings of the scopes in sight alone.
        alternatives = [
            "(" + " OR ".join(f'"{scope_id}_{term}"' for scope_id in sight.scope_ids) + ")" for term in terms
        ]
        query = (" AND " if every else " OR ").join(alternatives)
        return select(_search.c.rowid.label("entry_id")).where(_MATCH.op("MATCH")(query)).subquery("matched")

    def weightiest(self, sight: Sight, weights: Mapping[str, float], limit: int) -> Subquery:
        # The instances of a term say how often each entry has it. How long an entry is would take a look at each.
        branches = []
        for term, weight in weights.items():
            times = func.count()
            tokens = [f"{scope_id}_{term}" for scope_id in sight.scope_ids]
            weighed = (weight * times / (times + K1)).label("weighed")
            branches.append(
                select(_instances.c.doc, weighed).where(_instances.c.term.in_(tokens)).group_by(_instances.c.doc)
            )
        found = union_all(*branches).subquery("found")
        total = func.sum(found.c.weighed).label("total")
        summed = select(found.c.doc.label("entry_id"), total).group_by(found.c.doc).subquery("summed")
        heaviest = sight.narrow(select(summed.c.entry_id), summed.c.entry_id)
        return heaviest.order_by(summed.c.total.desc(), summed.c.entry_id).limit(limit).subquery("heaviest")

    def with_terms(self, entries: Select[Any]) -> Select[Any]:
        return entries.add_columns(_search.c.terms).join(_search, _search.c.rowid == EntryRow.id)

    def read_terms(self, stored: str) -> list[str]:
        return [term.partition("_")[2] for term in stored.split(" ")]

    async def check_vectors(self, connection: AsyncConnection) -> None:
        """Every SQLite can hold vectors."""

    def vector_insert(self, scope_id: int, model_id: int) -> Insert:
        return insert(EmbeddingRow).values(
            scope_id=scope_id,
            model_id=model_id,
            entry_id=bindparam("entry"),
            vector=bindparam("blob", type_=LargeBinary),
        )

    def vector_parameters(self, entry_id: int, vector: Vector) -> Mapping[str, object]:
        return {"entry": entry_id, "blob": vector.astype("<f2").tobytes()}

    async def nearest(
        self, connection: AsyncConnection, sight: Sight, model_id: int, vector: Vector, count: int
    ) -> dict[int, float]:
        rows = (await connection.execute(sight.vectors(model_id, EmbeddingRow.entry_id, EmbeddingRow.vector))).all()
        if not rows:
            return {}
        stored = np.frombuffer(b"".join(row.vector for row in rows), "<f2").reshape(len(rows), -1)
        scores = cosines(stored.astype(np.float32), vector)
        floor = np.partition(scores, -count)[-count] if len(rows) > count else 0.0
        return {rows[i].entry_id: float(scores[i]) for i in np.flatnonzero(scores >= floor)}
