"""Searching Postgres in one statement: each is a journey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    REAL,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    select,
    true,
)

from adk_memory._ranking import Question
from adk_memory._scope import Scope
from adk_memory._sql.dialect import POOL, Found
from adk_memory._sql.postgres_text import SEARCH, any_of, holding
from adk_memory._sql.prepared import execute
from adk_memory._sql.recall import CANDIDATE_COLUMNS, candidate
from adk_memory._sql.scope import Sight, look, project_of, scope_parameters, scopes_of_parameters
from adk_memory._sql.tables import EmbeddingRow, EntryRow

_FOUND = slice(4, 4 + len(CANDIDATE_COLUMNS))
"""Where a row has its candidate: behind what the scopes hold in all."""
_SMALL_BYTES = 2_048
"""What an entry holds comes along with it unless it is larger; of many found, few are answers."""


def find(
    connection: Connection,
    distance: Callable[[Any], Any],
    scope: Scope,
    question: Question,
    model_id: int | None,
    passing: ColumnElement[bool] | None,
) -> Found:
    """Look up what answers a question; ``distance`` gives that of a stored vector to a parameter."""
    by_words = question.mode != "vector"
    by_vector = question.vector is not None and model_id is not None
    if not by_words and not by_vector:
        return Found(look(connection, scope), matches={}, cosines={}, near={}, vectors=0, rows={})
    projects = scope.projects or ()
    shape = (distance, len(projects), by_words, question.nearest if by_vector else None, passing)
    values = {
        **scope_parameters(scope),
        "words": any_of(question.terms),
        "model": model_id,
        "vector": None if question.vector is None else question.vector.tolist(),
    }
    rows = execute(connection, _finding, shape, values, reused=passing is None).all()
    found = [row for row in rows if row.id is not None]  # where nothing is found, there still is a row
    few = rows[0].matches <= POOL
    matches = {
        row.id: candidate(*row[_FOUND], row.terms.split(" "), row.passes)  # type: ignore[call-arg]
        for row in found
        if row.terms is not None
    }
    return Found(
        sight=Sight(
            {row.scope_id: project_of(row.project_key) for row in found},
            entry_count=rows[0].entry_count,
            term_count=rows[0].term_count,
        ),
        matches=matches if few else None,
        cosines={row.id: cosine(row.distance) for row in found if row.distance is not None},
        near={row.id: candidate(*row[_FOUND]) for row in found if row.terms is None},
        vectors=rows[0].vectors,
        rows={row.id: row for row in found if row.content is not None and row.metadata is not None},
    )


def cosine(distance: float) -> float:
    return min(1.0, max(0.0, 1.0 - distance))


def _finding(
    distance: Callable[[Any], Any],
    projects: int,
    by_words: bool,
    nearest: int | None,
    passing: ColumnElement[bool] | None,
) -> Select[Any]:
    """Return the statement of a search: each entry that was found, beside what its scopes hold in all."""
    scopes = scopes_of_parameters(projects).cte("scopes")
    sight = Sight.of_scopes(scopes)
    matches: Any = literal(0)
    vectors: Any = literal(0)
    if by_words:
        matched = _matched(scopes, sight)
        matches = select(func.count()).select_from(matched).scalar_subquery()
        found: FromClause = select(matched, null().label("distance")).where(matches <= POOL).subquery("few")
    if nearest is not None:
        model = bindparam("model", type_=Integer)
        vectors = sight.vectors(model, func.count()).scalar_subquery()
        away = distance(bindparam("vector", type_=ARRAY(REAL))).label("distance")
        nearing = sight.narrowed(passing).vectors(model, EmbeddingRow.scope_id, EmbeddingRow.entry_id, away)
        near = nearing.order_by(away).fetch(nearest, with_ties=True).cte("near")
        found = _both(found, near) if by_words else select(near, cast(null(), Text).label("terms")).subquery("found")
    held = select(
        func.coalesce(func.sum(scopes.c.entry_count), 0).cast(BigInteger).label("entry_count"),
        func.coalesce(func.sum(scopes.c.term_count), 0).cast(BigInteger).label("term_count"),
        matches.label("matches"),
        vectors.label("vectors"),
    ).subquery("held")
    entries = sight.narrowed(None).entries(
        *CANDIDATE_COLUMNS,
        EntryRow.entry_key,
        _small(EntryRow.content).label("content"),
        _small(EntryRow.metadata_).label("metadata"),
        sight.narrowed(passing).passes,
        scopes.c.project_key,
        found.c.terms,
        found.c.distance,
    )
    entries = entries.where(
        EntryRow.scope_id == found.c.scope_id, EntryRow.id == found.c.entry_id, scopes.c.id == found.c.scope_id
    )
    those = entries.subquery("those")
    return select(held, those).select_from(held.outerjoin(those, true()))


def _matched(scopes: CTE, sight: Sight) -> CTE:
    """Select the entries that hold any of the words, up to one more than will all be looked at."""
    names = func.string_agg(func.concat("'@", scopes.c.id, "'"), " | ")
    query = func.concat("(", names, ") & (", bindparam("words", type_=Text), ")")
    # Without any scope there is no name, and the concatenation with nothing would be a query.
    asked = select(case((func.count() > 0, query))).select_from(scopes).scalar_subquery()
    matched = select(SEARCH.c.scope_id, SEARCH.c.entry_id, SEARCH.c.terms).where(holding(sight, asked))
    return matched.limit(POOL + 1).cte("matched")


def _both(few: FromClause, near: FromClause) -> FromClause:
    joined = few.outerjoin(near, few.c.entry_id == near.c.entry_id, full=True)
    return (
        select(
            func.coalesce(few.c.scope_id, near.c.scope_id).label("scope_id"),
            func.coalesce(few.c.entry_id, near.c.entry_id).label("entry_id"),
            few.c.terms,
            near.c.distance,
        )
        .select_from(joined)
        .subquery("found")
    )


def _small(value: Any) -> Any:
    return case((func.pg_column_size(value) <= _SMALL_BYTES, cast(value, Text)))
