"""Finding the entries that answer a query: candidates from the database, scores from the shared ranker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, Subquery, and_, false, func, literal, or_, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from adk_memory import _analysis
from adk_memory._ranking import (
    Candidate,
    Collection,
    Question,
    Ranked,
    document_frequency,
    keyword_shares,
    lenders,
    nearest,
    ranked,
    term_weights,
)
from adk_memory._records import Record
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.scope import GLOBAL_KEY, Sight
from adk_memory._sql.tables import EmbeddingRow, EntryRow
from adk_memory._validation import microseconds
from adk_memory.types import Memory

_POOL = 1_000
"""Up to so many matching entries are all scored exactly; of more, the weightiest and what stands around them."""
_WEIGHED = 0.95
"""The share of a query's weight whose terms choose the pool."""
_AROUND = 2_000
"""At most so many entries of the best sessions join a pool that does not hold all matches."""


async def recall(
    connection: AsyncConnection,
    dialect: Dialect,
    sight: Sight,
    question: Question,
    model_id: int | None,
    *,
    passing: ColumnElement[bool] | None,
    explain: bool,
) -> tuple[list[Memory], bool]:
    """Return the memories that answer the question, best first, and whether some in sight lack a vector.

    What does not fulfil ``passing`` is no answer, but its words take part in the scores of what does.
    """
    if not sight:
        return [], False
    narrowed = sight.narrowed(passing)
    shares, candidates = await _keyword_leg(connection, dialect, sight, narrowed, question)
    near = await _vector_leg(connection, dialect, narrowed, question, model_id, candidates)
    answers = ranked(question, shares, near, candidates)
    partial = question.mode != "keyword" and await _vectors(connection, sight, model_id) < sight.entry_count
    return await _memories(connection, sight, answers, explain=explain), partial


def memory(row: Any, sight: Sight, answer: Ranked | None = None, *, explain: bool = False) -> Memory:
    """Return the memory in a row of `ENTRY_COLUMNS`."""
    record = Record(row.entry_key, row.author, row.timestamp, row.content, "", row.metadata)
    session_id = None if row.session_key == GLOBAL_KEY else row.session_key
    score = None if answer is None else answer.score
    explanation = answer.evidence.parts() if explain and answer is not None else None
    return record.memory(session_id, sight.project_id(row.scope_id), score, explanation)


ENTRY_COLUMNS = (
    EntryRow.id,
    EntryRow.scope_id,
    EntryRow.session_key,
    EntryRow.entry_key,
    EntryRow.author,
    EntryRow.timestamp,
    EntryRow.content,
    EntryRow.metadata_,
)


_CANDIDATE_COLUMNS = (
    EntryRow.id,
    EntryRow.scope_id,
    EntryRow.session_key,
    EntryRow.position,
    EntryRow.author,
    EntryRow.timestamp,
)


async def _keyword_leg(
    connection: AsyncConnection, dialect: Dialect, sight: Sight, narrowed: Sight, question: Question
) -> tuple[dict[int, float], dict[int, Candidate]]:
    if question.mode == "vector":
        return {}, {}
    matched = dialect.matching(sight, question.terms, every=False)
    candidates = await _candidates(connection, dialect, sight, select(matched.c.entry_id).limit(_POOL + 1), narrowed)
    if len(candidates) > _POOL:
        return await _pooled_keyword_leg(connection, dialect, sight, narrowed, question)
    # All matches at hand, the frequency of each term is at hand too.
    frequency = document_frequency(question.terms, (found.terms for found in candidates.values()))
    collection = Collection(sight.entry_count, sight.term_count, frequency)
    return keyword_shares(question.terms, candidates.values(), collection), candidates


async def _pooled_keyword_leg(
    connection: AsyncConnection, dialect: Dialect, sight: Sight, narrowed: Sight, question: Question
) -> tuple[dict[int, float], dict[int, Candidate]]:
    """Score the entries that hold most of the query's weight, and then what stands around the best of them."""
    frequency = await _document_frequency(connection, dialect, sight, question.terms)
    collection = Collection(sight.entry_count, sight.term_count, frequency)
    weights = term_weights(question.terms, collection)
    weightiest = _weightiest(dialect, sight, weights)
    candidates = await _candidates(connection, dialect, sight, select(weightiest.c.entry_id), narrowed)
    shares = keyword_shares(question.terms, candidates.values(), collection)
    around = await _around(connection, dialect, sight, lenders(shares, candidates), narrowed)
    candidates = around | candidates
    if narrowed.passing is not None:
        candidates |= await _passing_candidates(connection, dialect, sight, narrowed, question, weights)
    return keyword_shares(question.terms, candidates.values(), collection), candidates


async def _passing_candidates(
    connection: AsyncConnection,
    dialect: Dialect,
    sight: Sight,
    narrowed: Sight,
    question: Question,
    weights: Mapping[str, float],
) -> dict[int, Candidate]:
    """Return all matches that pass the filter, or the weightiest of too many."""
    matched = dialect.matching(sight, question.terms, every=False)
    passing = narrowed.narrow(select(matched.c.entry_id), matched.c.entry_id).limit(_POOL + 1)
    found = await _candidates(connection, dialect, sight, passing, narrowed)
    if len(found) > _POOL:
        weightiest = _weightiest(dialect, narrowed, weights)
        found = await _candidates(connection, dialect, sight, select(weightiest.c.entry_id), narrowed)
    return found


async def _candidates(
    connection: AsyncConnection, dialect: Dialect, sight: Sight, pool: Select[Any], narrowed: Sight
) -> dict[int, Candidate]:
    # Not joined: SQLite may put the entries first, and run a MATCH for each of them.
    statement = sight.entries(*_CANDIDATE_COLUMNS, narrowed.passes).where(EntryRow.id.in_(pool))
    rows = await connection.execute(dialect.with_terms(statement))
    return {row.id: _candidate(row, dialect.read_terms(row.terms), passes=bool(row.passes)) for row in rows}


def _weightiest(dialect: Dialect, sight: Sight, weights: Mapping[str, float]) -> Subquery:
    """Select the entries whose terms weigh most; the commonest terms, which weigh next to nothing, are left out."""
    heavy: dict[str, float] = {}
    wanted = _WEIGHED * sum(weights.values())
    for term, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        heavy[term] = weight
        wanted -= weight
        if wanted <= 0:
            break
    return dialect.weightiest(sight, heavy, _POOL)


async def _around(
    connection: AsyncConnection,
    dialect: Dialect,
    sight: Sight,
    lending: Sequence[Candidate],
    narrowed: Sight,
) -> dict[int, Candidate]:
    """Return the entries of the sessions of the best ones: what these lend is lent to them too."""
    sessions: defaultdict[int, list[str]] = defaultdict(list)
    for session in dict.fromkeys(found.session for found in lending):
        scope_id, session_key = cast(tuple[int, str], session)
        sessions[scope_id].append(session_key)
    in_them = or_(
        false(),
        *(and_(EntryRow.scope_id == scope_id, EntryRow.session_key.in_(keys)) for scope_id, keys in sessions.items()),
    )
    statement = sight.entries(*_CANDIDATE_COLUMNS, narrowed.passes).where(in_them).limit(_AROUND)
    rows = await connection.execute(dialect.with_terms(statement))
    return {row.id: _candidate(row, dialect.read_terms(row.terms), passes=bool(row.passes)) for row in rows}


async def _vector_leg(
    connection: AsyncConnection,
    dialect: Dialect,
    sight: Sight,
    question: Question,
    model_id: int | None,
    candidates: dict[int, Candidate],
) -> list[tuple[int, float]]:
    """Return the nearest entries and their cosines, and add them to ``candidates``."""
    if question.vector is None or model_id is None:
        return []
    found = await dialect.nearest(connection, sight, model_id, question.vector, question.nearest)
    unseen = sorted(found.keys() - candidates.keys())
    if unseen:
        statement = sight.entries(*_CANDIDATE_COLUMNS).where(EntryRow.id.in_(unseen))
        for row in await connection.execute(statement):
            candidates[row.id] = _candidate(row, ())
    return nearest(found, candidates, question.nearest)


def _candidate(row: Any, terms: Sequence[str], *, passes: bool = True) -> Candidate:
    return Candidate(
        id=row.id,
        instant=microseconds(row.timestamp),
        session=None if row.session_key == GLOBAL_KEY else (row.scope_id, row.session_key),
        position=row.position,
        author=_analysis.name_words(row.author),
        terms=terms,
        passes=passes,
    )


async def _document_frequency(
    connection: AsyncConnection, dialect: Dialect, sight: Sight, terms: Sequence[str]
) -> dict[str, int]:
    counts = [
        select(literal(number).label("number"), func.count().label("entries")).select_from(
            dialect.matching(sight, [term], every=False)
        )
        for number, term in enumerate(terms)
    ]
    rows = await connection.execute(union_all(*counts))
    return {terms[row.number]: row.entries for row in rows}


async def _memories(
    connection: AsyncConnection, sight: Sight, answers: Sequence[Ranked], *, explain: bool
) -> list[Memory]:
    if not answers:
        return []
    statement = sight.entries(*ENTRY_COLUMNS).where(EntryRow.id.in_([answer.id for answer in answers]))
    rows = {row.id: row for row in await connection.execute(statement)}
    return [memory(rows[answer.id], sight, answer, explain=explain) for answer in answers]


async def _vectors(connection: AsyncConnection, sight: Sight, model_id: int | None) -> int:
    if model_id is None:
        return 0
    counted: int | None = await connection.scalar(sight.vectors(model_id, func.count(EmbeddingRow.entry_id)))
    return counted or 0
