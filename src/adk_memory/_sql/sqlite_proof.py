"""What is left of erased scopes in a SQLite database: in its index, and as bytes in its files.

Bytes are looked for in pieces. One that some row still holds, which may be another user's, is no remainder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, LargeBinary, cast, select

from adk_memory._sql.fts5 import terms_in_segments
from adk_memory._sql.scope import Sight
from adk_memory._sql.sqlite_scrub import Hop
from adk_memory._sql.tables import SEARCH_TABLE, TERM_TABLE, EmbeddingRow, EntryRow, ScopeRow
from adk_memory._sql.traces import Traces, chunks_of_file, chunks_of_values

_FILES: Final = {"": "file", "-wal": "write-ahead log", "-shm": "shared memory file", "-journal": "journal"}
_ENTRY: Final = (
    EntryRow.session_key,
    EntryRow.entry_key,
    EntryRow.author,
    EntryRow.content,
    EntryRow.text,
    EntryRow.metadata_,
)
_SCOPE: Final = (ScopeRow.fingerprint, ScopeRow.user_id, ScopeRow.project_key)
# What lies side by side in a row of a table, or of an index. Not the segments of the keyword index: they are where
# words of erased entries are looked for.
_LIVE: Final = f"""
    WITH live AS (
        SELECT name FROM sqlite_master
        WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'
        AND name NOT IN ('{SEARCH_TABLE}_data', '{SEARCH_TABLE}_idx')
    )
    SELECT t.name, '' AS "index", c.cid AS place, c.name FROM live AS t, pragma_table_info(t.name) AS c
    UNION ALL
    SELECT t.name, i.name, c.seqno, c.name
    FROM live AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c WHERE c.name IS NOT NULL
    UNION ALL SELECT 'sqlite_master', '', 0, 'sql'
    ORDER BY 1, 2, 3
"""  # noqa: S608


def traces(connection: Connection, sight: Sight) -> Traces:
    """Return traces of all that is stored of the scopes: as the columns hold it, in their encoding."""
    return Traces.of(_stored(connection, sight))


def _stored(connection: Connection, sight: Sight) -> Iterator[bytes | None]:
    if not sight:
        return
    for row in connection.execute(select(*map(_as_bytes, _SCOPE)).where(sight.within(ScopeRow.id))):
        yield from row
    for row in connection.execute(sight.entries(*map(_as_bytes, _ENTRY))):
        yield from row
    yield from connection.scalars(select(_as_bytes(EmbeddingRow.vector)).where(sight.within(EmbeddingRow.scope_id)))
    for scope_id in sight.scope_ids:
        first, end = _terms_of(scope_id)
        terms = f"SELECT DISTINCT CAST(term AS BLOB) FROM {TERM_TABLE} WHERE term >= ? AND term < ?"  # noqa: S608
        yield from connection.exec_driver_sql(terms, (first, end)).scalars()


def index_remainders(connection: Connection, sight: Sight) -> dict[str, int]:
    """Return what the index has of the scopes: rows, terms that it shows, and terms in the pages of its segments."""
    rows = terms = in_segments = 0
    for scope_id in sight.scope_ids:
        first, end = _terms_of(scope_id)
        beginning = f"SELECT count(*) FROM {SEARCH_TABLE} WHERE terms >= ? AND terms < ?"  # noqa: S608
        rows += connection.exec_driver_sql(beginning, (first, end)).scalar_one()
        shown = f"SELECT count(*) FROM {TERM_TABLE} WHERE term >= ? AND term < ?"  # noqa: S608
        terms += connection.exec_driver_sql(shown, (first, end)).scalar_one()
        in_segments += terms_in_segments(connection, SEARCH_TABLE, first)
    return {"index entries": rows, "index terms": terms, "index segments": in_segments}


async def file_remainders(hop: Hop, traces: Traces) -> dict[str, int]:
    """Return how many traces are in each of the files that no row of any table explains."""
    database = await hop("BEGIN", _file)
    if database is None:
        return {}
    files = {name: Path(f"{database}{suffix}") for suffix, name in _FILES.items()}
    suspected = await asyncio.to_thread(_found, files, traces)
    for _ in range(2):  # once more, for what a value that was written meanwhile explains
        united = reduce(Traces.and_those, suspected.values())
        if not united:
            break
        explained = await hop("BEGIN", partial(_explained, suspected=united))
        suspected = await asyncio.to_thread(_found, files, united.without(explained))
    return {name: len(found) for name, found in suspected.items()}


def _found(files: dict[str, Path], traces: Traces) -> dict[str, Traces]:
    return {name: traces.found_in(chunks_of_file(path)) for name, path in files.items()}


def _explained(connection: Connection, *, suspected: Traces) -> Traces:
    """Return those of the traces that a row of some table or index holds."""
    return suspected.found_in(chunks_of_values(_live(connection)))


def _live(connection: Connection) -> Iterator[bytes]:
    columns: dict[tuple[str, str], list[str]] = {}
    for table, index, _place, column in connection.exec_driver_sql(_LIVE).all():
        columns.setdefault((table, index), []).append(f"CAST({_quoted(column)} AS BLOB)")
    for (table, _index), values in columns.items():
        for row in connection.exec_driver_sql(f"SELECT {', '.join(values)} FROM {_quoted(table)}"):  # noqa: S608
            yield b"".join(filter(None, row))


def _file(connection: Connection) -> str | None:
    found = connection.exec_driver_sql("SELECT file FROM pragma_database_list WHERE name = 'main'").scalar()
    return found or None


def _terms_of(scope_id: int) -> tuple[str, str]:
    return f"{scope_id}_", f"{scope_id}`"  # the character that follows the underscore


def _as_bytes(column: Any) -> Any:
    return cast(column, LargeBinary)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
