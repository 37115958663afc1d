"""The forms of search that suggest themselves on Postgres, with the bare driver: as fast as such a form can be."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from stores import Add, Search, Store, megabytes, vacuum
from synthetic import APP, DIMENSIONS, EMBEDDER, NEAREST, Session, User


class NaivePostgres:
    """One GIN index of words and one HNSW index of vectors for everyone, and the user as a filter behind them."""

    name = "naive"
    VECTOR = "vector"
    _QUESTION = "$1::real[]::vector"
    # A prepared statement that is executed often gets a generic plan, which makes no use of an HNSW index.
    PLANS = "force_custom_plan"
    SCHEMA = """
        CREATE TABLE entry (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, app_name text, user_id text, session_id text,
            entry_id text, author text, at timestamptz, content text,
            words tsvector GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED
        );
    """
    _INDEXES = """
        CREATE INDEX ON entry (app_name, user_id);
        CREATE INDEX ON entry USING gin (words);
    """
    _COLUMNS = ("app_name", "user_id", "session_id", "entry_id", "author", "at", "content")
    _MATCH = """
        WITH question AS (SELECT replace(plainto_tsquery('simple', $1)::text, ' & ', ' | ')::tsquery AS words)
        SELECT entry_id, author, at, content FROM entry, question
        WHERE entry.words @@ question.words AND app_name = $2 AND user_id = $3
        ORDER BY ts_rank(entry.words, question.words) DESC LIMIT $4
    """

    def __init__(self, url: str, connections: Mapping[str, asyncpg.Connection], *, with_vectors: bool) -> None:
        self._url = url
        self._connection = connections["off"]
        self._with_vectors = with_vectors
        self.adds: Mapping[str, Add] = {
            "naive: one INSERT per entry": self._add,
            "naive: one executemany per session": self._add_many,
        }
        self.keyword_searches: Mapping[str, Search] = {"naive: global GIN, then the user": self._matching}
        nearest = {
            f"naive: global HNSW, iterative scan {mode}": self._nearest(one) for mode, one in connections.items()
        }
        self.vector_searches: Mapping[str, Search] = nearest if with_vectors else {}

    async def settle(self) -> None:
        await self._connection.execute(self._INDEXES)
        if self._with_vectors:
            await self._connection.execute("SET maintenance_work_mem = '1GB'")
            await self._connection.execute("CREATE INDEX ON entry USING hnsw (vector vector_cosine_ops)")
        await vacuum(self._url)

    async def erase(self, user: User) -> None:
        await self._connection.execute("DELETE FROM entry WHERE app_name = $1 AND user_id = $2", APP, user.id)

    async def megabytes(self) -> float:
        return await megabytes(self._url)

    async def _add(self, session: Session) -> None:
        for row in self._rows(session):
            await self._connection.execute(self._insert, *row)

    async def _add_many(self, session: Session) -> None:
        await self._connection.executemany(self._insert, self._rows(session))

    async def _matching(self, user: User, query: str) -> list[str]:
        return [row[0] for row in await self._connection.fetch(self._MATCH, query, APP, user.id, NEAREST)]

    def _nearest(self, connection: asyncpg.Connection) -> Search:
        statement = f"""
            SELECT entry_id, author, at, content FROM entry WHERE app_name = $2 AND user_id = $3
            ORDER BY vector <=> {self._QUESTION} LIMIT $4
        """

        async def nearest(user: User, query: str) -> list[str]:
            vector = EMBEDDER.vector(query).tolist()
            return [row[0] for row in await connection.fetch(statement, vector, APP, user.id, NEAREST)]

        return nearest

    @property
    def _insert(self) -> str:
        columns, values = list(self._COLUMNS), [f"${i}" for i in range(1, len(self._COLUMNS) + 1)]
        if self._with_vectors:
            columns, values = [*columns, "vector"], [*values, f"${len(values) + 1}::real[]::{self.VECTOR}"]
        return f"INSERT INTO entry ({', '.join(columns)}) VALUES ({', '.join(values)})"

    def _rows(self, session: Session) -> list[tuple[Any, ...]]:
        return [
            (APP, session.user.id, session.id, entry.id, entry.author, entry.at, entry.text)
            + ((EMBEDDER.vector(entry.text).tolist(),) if self._with_vectors else ())
            for entry in session.entries
        ]


class BareVectors(NaivePostgres):
    """The floor of exact vector search: one table, an index on the user, a bare connection, one statement."""

    name = "bare asyncpg"
    VECTOR = "halfvec"
    _QUESTION = "(SELECT $1::real[]::halfvec)"  # under a generic plan it would be made anew for each row
    PLANS = "auto"

    def __init__(self, url: str, connections: Mapping[str, asyncpg.Connection], *, with_vectors: bool) -> None:
        super().__init__(url, connections, with_vectors=with_vectors)
        self.adds = {"bare asyncpg": self._add_many}
        self.vector_searches = {"bare asyncpg, exact": self._nearest(self._connection)}
        self.keyword_searches = {}

    async def settle(self) -> None:
        await self._connection.execute("CREATE INDEX ON entry (app_name, user_id)")
        await vacuum(self._url)


@asynccontextmanager
async def naive_postgres(url: str, form: type[NaivePostgres], *, with_vectors: bool) -> AsyncGenerator[Store]:
    """Open a naive form on an empty Postgres database."""
    connections = {"off": await asyncpg.connect(url), "relaxed": await asyncpg.connect(url)}
    try:
        await connections["off"].execute(NaivePostgres.SCHEMA)
        if with_vectors:
            for connection in connections.values():
                await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            await connections["off"].execute(f"ALTER TABLE entry ADD vector {form.VECTOR}({DIMENSIONS})")
            await connections["relaxed"].execute("LOAD 'vector'; SET hnsw.iterative_scan = relaxed_order")
            for connection in connections.values():
                await connection.execute(f"SET plan_cache_mode = {form.PLANS}")
        yield form(url, connections, with_vectors=with_vectors)
    finally:
        for connection in connections.values():
            await connection.close()
