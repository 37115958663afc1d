"""Adding entries to Postgres, with all that is made from them: one statement, one journey, one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from sqlalchemy import BigInteger, Connection, DateTime, Integer, Text, TextClause, bindparam, cast, insert, text
from sqlalchemy.dialects.postgresql import BIT

from adk_memory import _analysis
from adk_memory._ranking import Vector
from adk_memory._sql.dialect import Addition
from adk_memory._sql.postgres_sketch import Sketches
from adk_memory._sql.postgres_text import lexemes
from adk_memory._sql.tables import EmbeddingRow, entry_fields


def add(connection: Connection, addition: Addition, halfvec: str, sketches: Sketches) -> bool:
    """Store new entries, all or none; `False` if what they were planned by has changed.

    ``halfvec`` is the type of the vectors.
    """
    entries = addition.entries
    vectors = [entry.vector for entry in entries if entry.vector is not None]
    rows = [entry_fields(entry.record, entry.terms) for entry in entries]
    number = count(1)
    parameters = {
        **addition.scope,
        "scope_id": addition.scope_id,
        "version": addition.version,
        "analyser": _analysis.VERSION,
        "entries": addition.entry_count,
        "terms_in_all": addition.term_count,
        "session_key": addition.session_key,
        "model_id": addition.model_id,
        "created_at": datetime.now(UTC),
        "entry_keys": [entry.record.id for entry in entries],
        "positions": [entry.position for entry in entries],
        **{f"{name}s": [row[name] for row in rows] for name in rows[0]},
        "terms": [" ".join(entry.terms) for entry in entries],
        "lexemes": [lexemes(entry.terms) for entry in entries],
        "vectors": [next(number) if entry.vector is not None else None for entry in entries],
        "sketches": [sketches.of(addition.model_id, entry.vector) for entry in entries],
        "dimensions": len(vectors[0]) if vectors else 0,
        "floats": np.concatenate(vectors).tolist() if vectors else [],
    }
    statement = _adding(halfvec if vectors else None, new_scope=addition.scope_id is None)
    row = connection.execute(statement, parameters).one()
    added: bool = row.added == len(entries)
    if added and vectors:
        sketches.wrote(connection, addition.model_id, len(vectors), have_thresholds=row.have_thresholds)
    return added


@lru_cache
def _adding(halfvec: str | None, *, new_scope: bool) -> TextClause:
    """Return the statement that adds entries, with vectors where their type is named, or does nothing at all.

    It is a transaction by itself. That the scope still is in the version that was seen is asked of its row, which
    the statement changes: whoever else writes meanwhile comes before, and is noticed, or after. An index that is of a
    newer analyser, or about to be, gets no terms of this one.
    """
    current = """NOT EXISTS (
                SELECT FROM adk_memory_meta
                WHERE key LIKE 'analyser%' AND CAST(split_part(value, ':', 1) AS integer) > :analyser
            )"""
    if new_scope:
        scope = f"""
            INSERT INTO adk_memory_scope
                (fingerprint, app_name, user_id, project_key, entry_count, term_count, version)
            SELECT :fingerprint, :app_name, :user_id, :project_key, :entries, :terms_in_all, 1 WHERE {current}
            ON CONFLICT (fingerprint) DO NOTHING
            RETURNING id"""
    else:
        scope = f"""
            UPDATE adk_memory_scope
            SET entry_count = entry_count + :entries, term_count = term_count + :terms_in_all, version = version + 1
            WHERE id = :scope_id AND version = :version AND {current}
            RETURNING id"""  # noqa: S608
    embedded = ""
    have_thresholds = "NULL"
    if halfvec is not None:
        # The name of the type is quoted.
        embedded = f""",
        embedded AS (
            INSERT INTO adk_memory_embedding (scope_id, model_id, entry_id, vector, sketch)
            SELECT added.scope_id, :model_id, added.id,
                CAST((CAST(:floats AS real[]))[(given.vector - 1) * :dimensions + 1 : given.vector * :dimensions]
                    AS {halfvec}),
                CAST(given.sketch AS bit varying)
            FROM added JOIN given USING (entry_key)
            WHERE given.vector IS NOT NULL
        )"""  # noqa: S608
        have_thresholds = "(SELECT thresholds IS NOT NULL FROM adk_memory_embedding_model WHERE id = :model_id)"
    statement = text(
        f"""
        WITH scope AS ({scope}),
        given AS (
            SELECT * FROM unnest(
                CAST(:entry_keys AS text[]), CAST(:positions AS integer[]), CAST(:authors AS text[]),
                CAST(:timestamps AS timestamptz[]), CAST(:contents AS text[]), CAST(:texts AS text[]),
                CAST(:metadatas AS text[]), CAST(:term_counts AS integer[]), CAST(:expires_ats AS timestamptz[]),
                CAST(:terms AS text[]), CAST(:lexemes AS text[]), CAST(:vectors AS integer[]), CAST(:sketches AS text[])
            ) WITH ORDINALITY AS given (
                entry_key, position, author, timestamp, content, text, metadata, term_count, expires_at, terms,
                lexemes, vector, sketch, number
            )
        ),
        added AS (
            INSERT INTO adk_memory_entry
                (scope_id, session_key, entry_key, position, author, timestamp, content, text, metadata, term_count,
                 expires_at, created_at)
            SELECT scope.id, :session_key, entry_key, position, author, timestamp, CAST(content AS json), text,
                CAST(metadata AS json), term_count, expires_at, :created_at
            FROM scope CROSS JOIN given ORDER BY number
            RETURNING scope_id, id, entry_key
        ),
        indexed AS (
            INSERT INTO adk_memory_search_entry (scope_id, entry_id, terms, lexemes)
            SELECT added.scope_id, added.id, terms,
                CAST(concat('''@', added.scope_id, ''' ', lexemes) AS tsvector)
            FROM added JOIN given USING (entry_key)
            WHERE lexemes <> ''
        ){embedded}
        SELECT count(*) AS added, {have_thresholds} AS have_thresholds FROM added
        """  # noqa: S608
    )
    kinds: dict[str, Any] = {
        **dict.fromkeys(("scope_id", "version", "entries", "terms_in_all"), BigInteger),
        **dict.fromkeys(("model_id", "dimensions", "analyser"), Integer),
        **dict.fromkeys(("session_key", "fingerprint", "app_name", "user_id", "project_key"), Text),
        "created_at": DateTime(timezone=True),
    }
    return statement.bindparams(
        *(bindparam(name, type_=kind) for name, kind in kinds.items() if f":{name}" in statement.text)
    )


def add_vectors(
    connection: Connection, model_id: int, vectors: Sequence[tuple[int, int, Vector]], halfvec: Any, sketches: Sketches
) -> None:
    """Store vectors of entries that have none of the model; ``halfvec`` makes one of the parameter ``floats``."""
    statement = insert(EmbeddingRow).values(
        scope_id=bindparam("scope"),
        model_id=bindparam("model"),
        entry_id=bindparam("entry"),
        vector=halfvec,
        sketch=cast(bindparam("bits", type_=Text), BIT(varying=True)),
    )
    rows = [
        {
            "scope": scope_id,
            "model": model_id,
            "entry": entry_id,
            "floats": vector.tolist(),
            "bits": sketches.of(model_id, vector),
        }
        for scope_id, entry_id, vector in vectors
    ]
    connection.execute(statement, rows)
    # Whether there are thresholds by now is looked up when its turn comes.
    sketches.wrote(connection, model_id, len(rows), have_thresholds=False)
