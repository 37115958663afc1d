"""Searching Postgres in one statement: each is a journey."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias

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
    literal_column,
    null,
    select,
    true,
)

from adk_memory._ranking import Candidate, Question
from adk_memory._scope import Scope
from adk_memory._sql.dialect import POOL, Found
from adk_memory._sql.postgres_hnsw import INDEXED, Sorting, indexed, usable
from adk_memory._sql.postgres_sketch import Seen, Sketches
from adk_memory._sql.postgres_text import SEARCH, any_of, holding
from adk_memory._sql.prepared import execute
from adk_memory._sql.recall import CANDIDATE_COLUMNS, candidate
from adk_memory._sql.scope import Sight, living, look, project_of, scope_parameters, scopes_of_parameters
from adk_memory._sql.tables import EmbeddingModelRow, EmbeddingRow, EntryRow

_SMALL_BYTES = 2_048
"""What an entry holds comes along with it unless it is larger; of many found, few are answers."""
_ALL_COMPARED = 5_000
"""Where at most so many entries are in sight, all vectors are compared: about there, choosing begins to be faster."""
_COMPARED = 1_000
_COMPARED_FOR_EACH = 5
_COMPARED_SHARE = 50
"""Sketches choose so many vectors to compare, or so many for each that is wanted, or one of so many in sight."""


_Way: TypeAlias = Literal["all", "few", "chosen", "indexed"]
"""Which vectors are compared: all; all, but none where there are many in sight; those that the sketches choose, or an
HNSW index."""


class Measures(Sorting, Protocol):
    """How far a stored vector is from a parameter, and whether the role is bound by row-level security."""

    bound: bool

    def distance(self, vector: Any) -> Any:
        """Return one minus the cosine."""
        ...

    def hamming(self, sketch: Any) -> Any:
        """Return by how many bits its sketch differs; NULL where it has none."""
        ...


def find(
    connection: Connection,
    measures: Measures,
    sketches: Sketches,
    scope: Scope,
    question: Question,
    model_id: int | None,
    now: datetime,
    passing: ColumnElement[bool] | None,
) -> Found:
    """Look up what answers a question."""
    by_words = question.mode != "vector"
    by_vector = question.vector is not None and model_id is not None
    if not by_words and not by_vector:
        return Found(
            living(connection, look(connection, scope, now)), matches={}, cosines={}, near={}, vectors=0, rows={}
        )
    projects = scope.projects or ()
    sketch = sketches.of(model_id, question.vector)
    seen = sketches.of_many.get(scope)
    values: dict[str, Any] = {
        **scope_parameters(scope),
        "now": now,
        "words": any_of(question.terms),
        "model": model_id,
        "vector": None if question.vector is None else question.vector.tolist(),
        "sketch": sketch,
        "complete": seen and seen.complete,
    }

    def answer(way: _Way) -> Sequence[Any]:
        index = (model_id, len(values["vector"])) if way == "indexed" else None
        shape = (measures, len(projects), by_words, question.nearest if by_vector else None, way, index, passing)
        return execute(connection, _finding, shape, values, reused=passing is None).all()

    way: _Way = "all" if sketch is None else "few" if seen is None else "indexed" if seen.indexed else "chosen"
    rows = answer(way)
    fitting = _fitting(way, rows[0], question.nearest)
    if fitting != way:
        # Seldom, as it is remembered: the statement that compares all has less to do where there are few.
        way, rows = fitting, answer(fitting)
    many = way in ("chosen", "indexed")
    if sketch is not None:
        sketches.remember(scope, _seen(rows[0]) if many else None)
    found = [row for row in rows if row.id is not None]  # where nothing is found, there still is a row
    held = rows[0]
    few = held.matches <= POOL
    if held.have_thresholds and sketch is None:
        sketches.learn(connection)  # for the next question: this one is answered already, exactly
    matches = {
        row.id: _candidate(row, row.terms.split(" "), passes=row.passes) for row in found if row.terms is not None
    }
    return Found(
        sight=Sight(
            {row.scope_id: project_of(row.project_key) for row in found},
            entry_count=held.entry_count,
            term_count=held.term_count,
        ),
        matches=matches if few else None,
        cosines={row.id: cosine(row.distance) for row in found if row.distance is not None},
        near={row.id: _candidate(row) for row in found if row.terms is None},
        vectors=held.vectors,
        rows={row.id: row for row in found if row.content is not None and row.metadata is not None},
        approximate=many and held.vectors > held.compared >= held.size,
    )


def _fitting(way: _Way, held: Any, nearest: int) -> _Way:
    """Return the way that what a statement found asks for: another one than was taken where it gave no answer."""
    if way == "all":
        return "all"
    if held.entry_count <= _ALL_COMPARED:
        return "few"
    if way == "few" or (way == "indexed" and held.compared < nearest):
        return "chosen"
    return way


def _seen(held: Any) -> Seen:
    # To count the vectors again would take as long as to find the nearest.
    complete = held.state if held.vectors >= held.entry_count else None
    return Seen(complete, indexed=held.usable and held.entry_count > INDEXED)


def cosine(distance: float) -> float:
    return min(1.0, max(0.0, 1.0 - distance))


def _compared(nearest: int) -> int:
    return max(_COMPARED, _COMPARED_FOR_EACH * nearest)


def _candidate(row: Any, terms: Sequence[str] = (), *, passes: bool = True) -> Candidate:
    return candidate(
        row.id, row.scope_id, row.session_key, row.position, row.author, row.timestamp, terms, passes=passes
    )


def _finding(
    measures: Measures,
    projects: int,
    by_words: bool,
    nearest: int | None,
    way: _Way,
    index: tuple[int, int] | None,
    passing: ColumnElement[bool] | None,
) -> Select[Any]:
    """Return the statement of a search: each entry that was found, beside what its scopes hold in all.

    ``index`` names the model and its dimensions where its HNSW index is to be asked.
    """
    scopes = scopes_of_parameters(projects).cte("scopes")
    sight = Sight.of_scopes(scopes)
    expired_entries, expired_terms = sight.expired_counts()
    entry_count = func.coalesce(func.sum(scopes.c.entry_count), 0) - expired_entries
    matches: Any = literal(0)
    vectors: Any = literal(0)
    compared: Any = literal(0)
    size: Any = null()
    have_thresholds: Any = null()
    state: Any = null()
    index_is_usable: Any = null()
    if by_words:
        matched = _matched(scopes, sight, bound=measures.bound)
        matches = select(func.count()).select_from(matched).scalar_subquery()
        found: FromClause = select(matched, null().label("distance")).where(matches <= POOL).subquery("few")
    if nearest is not None:
        model = bindparam("model", type_=Integer)
        vectors = sight.vectors(model, func.count()).scalar_subquery()
        if way in ("chosen", "indexed"):
            state = func.concat(func.sum(scopes.c.version), " ", func.max(scopes.c.id))
            vectors = case((state == bindparam("complete", type_=Text), cast(entry_count, BigInteger)), else_=vectors)
            index_is_usable = usable()
        if index is not None:
            size = literal(nearest)
            pool = indexed(measures, sight.narrowed(passing), _away(measures), nearest, *index)
            compared = select(func.count()).select_from(pool).scalar_subquery()
            nearing = select(pool)
        elif way == "chosen":
            size = cast(func.greatest(_compared(nearest), entry_count / _COMPARED_SHARE), BigInteger)
            pool = _pool(measures, sight, passing, model, select(size).scalar_subquery())
            compared = select(func.count()).select_from(pool).scalar_subquery()
            nearing = _measured(measures, pool, model)
        else:
            columns = (EmbeddingRow.scope_id, EmbeddingRow.entry_id, _away(measures))
            nearing = sight.narrowed(passing).vectors(model, *columns)
        if way == "few":
            nearing = nearing.where(select(entry_count <= _ALL_COMPARED).scalar_subquery())
        if way == "all":
            known = EmbeddingModelRow.thresholds.is_not(None)
            have_thresholds = select(known).where(EmbeddingModelRow.id == model).scalar_subquery()
        near = nearing.order_by("distance").fetch(nearest, with_ties=True).cte("near")
        found = _both(found, near) if by_words else select(near, cast(null(), Text).label("terms")).subquery("found")
    held = select(
        entry_count.cast(BigInteger).label("entry_count"),
        (func.coalesce(func.sum(scopes.c.term_count), 0) - expired_terms).cast(BigInteger).label("term_count"),
        matches.label("matches"),
        vectors.label("vectors"),
        compared.label("compared"),
        size.label("size"),
        have_thresholds.label("have_thresholds"),
        state.label("state"),
        index_is_usable.label("usable"),
    ).subquery("held")
    entries = sight.narrowed(None).entries(
        *CANDIDATE_COLUMNS,
        EntryRow.entry_key,
        _small(EntryRow.content).label("content"),
        _small(EntryRow.metadata_).label("metadata"),
        EntryRow.expires_at,
        sight.narrowed(passing).passes,
        scopes.c.project_key,
        found.c.terms,
        found.c.distance,
        scope_id=EntryRow.scope_id + 0,  # a mere check: it is left to the ids which index is used
    )
    entries = entries.where(
        EntryRow.scope_id == found.c.scope_id, EntryRow.id == found.c.entry_id, scopes.c.id == found.c.scope_id
    )
    those = entries.subquery("those")
    return select(held, those).select_from(held.outerjoin(those, true()))


def _matched(scopes: CTE, sight: Sight, *, bound: bool) -> CTE:
    """Select the entries that hold any of the words, up to one more than will all be looked at."""
    names = func.string_agg(func.concat("'@", scopes.c.id, "'"), " | ")
    query = func.concat("(", names, ") & (", bindparam("words", type_=Text), ")")
    # Without any scope there is no name, and the concatenation with nothing would be a query.
    asked = select(case((func.count() > 0, query))).select_from(scopes).scalar_subquery()
    matched = select(SEARCH.c.scope_id, SEARCH.c.entry_id, SEARCH.c.terms)
    matched = sight.narrow(matched.where(holding(sight, asked, bound=bound)), SEARCH.c.entry_id)
    return matched.limit(POOL + 1).cte("matched")


def _pool(measures: Measures, sight: Sight, passing: ColumnElement[bool] | None, model: Any, size: Any) -> CTE:
    """Select the vectors whose sketches are the nearest, and beside them all that have none.

    The sketches are read in the index of the key, those of the scopes in sight and no others.
    """
    unsketched = sight.vectors(model, func.count()).where(EmbeddingRow.sketch.is_(None)).scalar_subquery()
    far = measures.hamming(bindparam("sketch", type_=Text))
    those = sight.narrowed(passing).vectors(model, EmbeddingRow.scope_id, EmbeddingRow.entry_id)
    return those.order_by(far.nulls_first()).limit(size + unsketched).cte("pool")


def _measured(measures: Measures, pool: CTE, model: Any) -> Select[Any]:
    of_pool = (
        EmbeddingRow.scope_id == pool.c.scope_id,
        EmbeddingRow.model_id == model,
        EmbeddingRow.entry_id == pool.c.entry_id,
    )
    # Joined, the planner may prefer to read all vectors once. The offset keeps it to one after the other.
    measured = select(_away(measures)).where(*of_pool).offset(literal_column("0")).lateral("measured")
    return select(pool.c.scope_id, pool.c.entry_id, measured.c.distance).select_from(pool.join(measured, true()))


def _away(measures: Measures) -> Any:
    return measures.distance(bindparam("vector", type_=ARRAY(REAL))).label("distance")


def _both(few: FromClause, near: FromClause) -> FromClause:
    joined = few.outerjoin(near, few.c.entry_id == near.c.entry_id, full=True)
    return (
        select(
            # Not a coalesce(), which under row-level security counts as what might tell of rows that are hidden: the
            # entries would not be looked up by it.
            *(
                case((few.c[name].is_(None), near.c[name]), else_=few.c[name]).label(name)
                for name in ("scope_id", "entry_id")
            ),
            few.c.terms,
            near.c.distance,
        )
        .select_from(joined)
        .subquery("found")
    )


def _small(value: Any) -> Any:
    return case((func.pg_column_size(value) <= _SMALL_BYTES, cast(value, Text)))
