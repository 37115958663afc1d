"""Adding entries of many sessions to Postgres: the server numbers the entries, what is made from them is copied.

COPY in its binary form spares the server reading lexemes and vectors, which is most of the work of an INSERT.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import numpy as np
from sqlalchemy import Connection, DateTime, bindparam, text
from sqlalchemy.util import await_only

from adk_memory._ranking import Vector
from adk_memory._sql.dialect import Addition
from adk_memory._sql.postgres_sketch import Sketches
from adk_memory._sql.postgres_text import places, scope_lexeme
from adk_memory._sql.tables import SEARCH_TABLE, EmbeddingRow, entry_fields

_BEGINNING: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"
_NULL: Final = b"\xff\xff\xff\xff"
_SHORT: Final = struct.Struct("!H").pack
_INTEGER: Final = struct.Struct("!i").pack
_BIG_INTEGER: Final = struct.Struct("!q").pack
_ENTRIES: Final = text(
    """
    INSERT INTO adk_memory_entry
        (scope_id, session_key, entry_key, position, author, timestamp, content, text, metadata, term_count, expires_at,
        created_at)
    SELECT scope_id, session_key, entry_key, position, author, timestamp, CAST(content AS json), text,
        CAST(metadata AS json), term_count, expires_at, :created_at
    FROM unnest(
        CAST(:scope_ids AS bigint[]), CAST(:session_keys AS text[]), CAST(:entry_keys AS text[]),
        CAST(:positions AS integer[]), CAST(:authors AS text[]), CAST(:timestamps AS timestamptz[]),
        CAST(:contents AS text[]), CAST(:texts AS text[]), CAST(:metadatas AS text[]), CAST(:term_counts AS integer[]),
        CAST(:expires_ats AS timestamptz[])
    ) WITH ORDINALITY AS given (
        scope_id, session_key, entry_key, position, author, timestamp, content, text, metadata, term_count, expires_at,
        number
    )
    ORDER BY number
    RETURNING id
    """
).bindparams(bindparam("created_at", type_=DateTime(timezone=True)))


def add_all(connection: Connection, additions: Sequence[Addition], sketches: Sketches) -> None:
    """Store new entries of many sessions, whose scopes the caller has locked, with all that is made from them."""
    new = [(cast(int, addition.scope_id), addition, entry) for addition in additions for entry in addition.entries]
    fields = [entry_fields(entry.record, entry.terms) for _, _, entry in new]
    parameters = {
        "created_at": datetime.now(UTC),
        "scope_ids": [scope_id for scope_id, _, _ in new],
        "session_keys": [addition.session_key for _, addition, _ in new],
        "entry_keys": [entry.record.id for _, _, entry in new],
        "positions": [entry.position for _, _, entry in new],
        **{f"{name}s": [row[name] for row in fields] for name in fields[0]},
    }
    numbers = sorted(connection.execute(_ENTRIES, parameters).scalars())  # they are given in the order of the entries
    numbered = list(zip(numbers, new, strict=True))
    index = (
        (_BIG_INTEGER(scope_id), _BIG_INTEGER(number), " ".join(entry.terms).encode(), _tsvector(scope_id, entry.terms))
        for number, (scope_id, _, entry) in numbered
        if entry.terms
    )
    _copy(connection, SEARCH_TABLE, ("scope_id", "entry_id", "terms", "lexemes"), index)
    vectors = [
        (
            _BIG_INTEGER(scope_id),
            _INTEGER(cast(int, addition.model_id)),
            _BIG_INTEGER(number),
            _halfvec(entry.vector),
            _varbit(sketches.of(addition.model_id, entry.vector)),
        )
        for number, (scope_id, addition, entry) in numbered
        if entry.vector is not None
    ]
    _copy(connection, EmbeddingRow.__tablename__, ("scope_id", "model_id", "entry_id", "vector", "sketch"), vectors)
    # Whether there are thresholds by now is looked up when its turn comes.
    sketches.wrote(connection, additions[0].model_id, len(vectors), have_thresholds=False)


def _copy(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[bytes | None]]) -> None:
    fields = _SHORT(len(columns))
    sent = [fields + b"".join(map(_sized, row)) for row in rows]
    if not sent:
        return

    async def source() -> AsyncGenerator[bytes]:
        yield b"".join([_BEGINNING, *sent, _END])

    driver: Any = connection.connection.driver_connection
    await_only(driver.copy_to_table(table, source=source(), columns=columns, format="binary"))


def _sized(field: bytes | None) -> bytes:
    return _NULL if field is None else _INTEGER(len(field)) + field


def _tsvector(scope_id: int, terms: Sequence[str]) -> bytes:
    # The order of code points is that of bytes in UTF-8, which a tsvector has.
    lexemes = sorted([(scope_lexeme(scope_id), []), *places(terms).items()])
    sent = [lexeme.encode() + struct.pack(f"!x{1 + len(those)}H", len(those), *those) for lexeme, those in lexemes]
    return _INTEGER(len(lexemes)) + b"".join(sent)


def _halfvec(vector: Vector) -> bytes:
    return _SHORT(len(vector)) + _SHORT(0) + vector.astype(">f2").tobytes()


def _varbit(bits: str | None) -> bytes | None:
    if bits is None:
        return None
    return _INTEGER(len(bits)) + np.packbits(np.frombuffer(bits.encode(), np.uint8) - ord("0")).tobytes()
