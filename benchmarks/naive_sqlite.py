"""The form of search that suggests itself on SQLite, with the bare driver: as fast as such a form can be."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stores import Add, Search, Store, megabytes
from synthetic import APP, DIMENSIONS, EMBEDDER, NEAREST, Session, User

_WORD = re.compile(r"\w+")


class NaiveSqlite:
    """One FTS5 table for everyone, joined to the entries; vectors are BLOBs beside them, compared by numpy."""

    name = "naive"
    _SCHEMA = """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = NORMAL;
        CREATE TABLE entry (
            id INTEGER PRIMARY KEY, app_name TEXT, user_id TEXT, session_id TEXT, entry_id TEXT, author TEXT, at TEXT,
            content TEXT, vector BLOB
        );
        CREATE INDEX entry_of_user ON entry (app_name, user_id);
        CREATE VIRTUAL TABLE entry_text USING fts5 (content, content = 'entry', content_rowid = 'id');
        CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN
            INSERT INTO entry_text (rowid, content) VALUES (new.id, new.content);
        END;
        CREATE TRIGGER entry_erased AFTER DELETE ON entry BEGIN
            INSERT INTO entry_text (entry_text, rowid, content) VALUES ('delete', old.id, old.content);
        END;
    """
    _INSERT = "INSERT INTO entry VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
    _MATCH = """
        SELECT entry.entry_id, entry.author, entry.at, entry.content
        FROM entry_text JOIN entry ON entry.id = entry_text.rowid
        WHERE entry_text MATCH ? AND entry.app_name = ? AND entry.user_id = ?
        ORDER BY bm25(entry_text) LIMIT ?
    """

    def __init__(self, path: Path, *, with_vectors: bool) -> None:
        self._path = path
        self._with_vectors = with_vectors
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript(self._SCHEMA)
        self.adds: Mapping[str, Add] = {
            "naive: one INSERT per entry": self._add,
            "naive: one transaction per session": self._add_many,
        }
        self.keyword_searches: Mapping[str, Search] = {"naive: global FTS5, then the user": self._matching}
        self.vector_searches: Mapping[str, Search] = {"bare sqlite3 and numpy": self._nearest} if with_vectors else {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    async def settle(self) -> None:
        self._connection.execute("ANALYZE")

    async def erase(self, user: User) -> None:
        self._connection.execute("DELETE FROM entry WHERE app_name = ? AND user_id = ?", (APP, user.id))

    async def megabytes(self) -> float:
        return await megabytes(f"sqlite:///{self._path}")

    async def _add(self, session: Session) -> None:
        for row in self._rows(session):
            self._connection.execute(self._INSERT, row)

    async def _add_many(self, session: Session) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany(self._INSERT, self._rows(session))
        self._connection.execute("COMMIT")

    async def _matching(self, user: User, query: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(query))
        return [row[0] for row in self._connection.execute(self._MATCH, (words, APP, user.id, NEAREST))]

    async def _nearest(self, user: User, query: str) -> list[str]:
        rows = self._connection.execute(
            "SELECT id, vector FROM entry WHERE app_name = ? AND user_id = ?", (APP, user.id)
        ).fetchall()
        vectors = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), DIMENSIONS)
        scores = vectors @ EMBEDDER.vector(query)
        best = np.argsort(-scores)[:NEAREST]
        one = "SELECT entry_id, author, at, content FROM entry WHERE id = ?"
        return [self._connection.execute(one, (rows[i][0],)).fetchone()[0] for i in best]

    def _rows(self, session: Session) -> list[tuple[Any, ...]]:
        return [
            (
                APP, session.user.id, session.id, entry.id, entry.author, entry.at.isoformat(), entry.text,
                EMBEDDER.vector(entry.text).astype("<f4").tobytes() if self._with_vectors else None,
            )
            for entry in session.entries
        ]  # fmt: skip


@asynccontextmanager
async def naive_sqlite(path: Path, *, with_vectors: bool) -> AsyncGenerator[Store]:
    """Open the naive form on an empty SQLite file."""
    store = NaiveSqlite(path, with_vectors=with_vectors)
    try:
        yield store
    finally:
        store.close()
