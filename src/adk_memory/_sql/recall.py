"""Finding the entries that answer a query: candidates from the database, scores from the shared ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, literal, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from adk_memory import _analysis
from adk_memory._ranking import (
    NEAREST,
    Candidate,
    Collection,
    Vector,
    add_surroundings,
    best,
    blend,
    document_frequency,
    keyword_shares,
    nearest,
)
from adk_memory._records import Record
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.scope import GLOBAL_KEY, Sight
from adk_memory._sql.tables import EmbeddingRow, EntryRow
from adk_memory._validation import microseconds
from adk_memory.types import Memory, Mode

_POOL = 1_000
"""Up to so many matching entries are all scored exactly; of more, the database's own ranking picks so many."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query, ready to be answered: its distinct terms and words, and its vector where one takes part."""

    mode: Mode
    terms: Sequence[str]
    words: Sequence[str]
    vector: Vector | None
    span: tuple[float, float]
    limit: int
    min_score: float | None


async def recall(
    connection: AsyncConnection, dialect: Dialect, sight: Sight, question: Question, model_id: int | None
) -> tuple[list[Memory], bool]:
    """Return the memories that answer the question, best first, and whether some in sight lack a vector."""
    if not sight:
        return [], False
    shares: dict[int, float] = {}
    candidates: dict[int, Candidate] = {}
    if question.mode != "vector":
        shares, candidates = await _keyword_leg(connection, dialect, sight, question.terms)
    near = await _vector_leg(connection, dialect, sight, question, model_id, candidates)
    if question.mode == "vector":
        scores = dict(near)
    else:
        evidence = blend(shares, near, question.span)
        add_surroundings(evidence, candidates, question.words)
        scores = {row_id: found.score for row_id, found in evidence.items()}
    found = best(scores, candidates, question.limit, question.min_score)
    partial = question.mode != "keyword" and await _vectors(connection, sight, model_id) < sight.entry_count
    return await _memories(connection, sight, found), partial


def memory(row: Any, sight: Sight, score: float | None = None) -> Memory:
    """Return the memory in a row of `ENTRY_COLUMNS`."""
    record = Record(row.entry_key, row.author, row.timestamp, row.content, "", row.metadata)
    session_id = None if row.session_key == GLOBAL_KEY else row.session_key
    return record.memory(session_id, sight.project_id(row.scope_id), score)


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
    connection: AsyncConnection, dialect: Dialect, sight: Sight, query: Sequence[str]
) -> tuple[dict[int, float], dict[int, Candidate]]:
    matched = dialect.matching(sight, query, every=False, limit=_POOL + 1)
    statement = sight.entries(*_CANDIDATE_COLUMNS, matched.c.terms).join(matched, matched.c.entry_id == EntryRow.id)
    candidates = {row.id: _candidate(row, dialect.read_terms(row.terms)) for row in await connection.execute(statement)}
    # All matches at hand, the frequency of each term is at hand too.
    frequency: Mapping[str, int] = document_frequency(query, (found.terms for found in candidates.values()))
    if len(candidates) > _POOL:
        frequency = await _document_frequency(connection, dialect, sight, query)
    collection = Collection(sight.entry_count, sight.term_count, frequency)
    return keyword_shares(query, candidates.values(), collection), candidates


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
    count = max(NEAREST, question.limit)
    found = await dialect.nearest(connection, sight, model_id, question.vector, count)
    unseen = sorted(found.keys() - candidates.keys())
    if unseen:
        statement = sight.entries(*_CANDIDATE_COLUMNS).where(EntryRow.id.in_(unseen))
        for row in await connection.execute(statement):
            candidates[row.id] = _candidate(row, ())
    return nearest(found, candidates, count)


def _candidate(row: Any, terms: Sequence[str]) -> Candidate:
    return Candidate(
        id=row.id,
        instant=microseconds(row.timestamp),
        session=None if row.session_key == GLOBAL_KEY else (row.scope_id, row.session_key),
        position=row.position,
        author=_analysis.name_words(row.author),
        terms=terms,
    )


async def _document_frequency(
    connection: AsyncConnection, dialect: Dialect, sight: Sight, terms: Sequence[str]
) -> dict[str, int]:
    counts = [
        select(literal(number).label("number"), func.count().label("entries")).select_from(
            dialect.matching(sight, [term], every=False, limit=None)
        )
        for number, term in enumerate(terms)
    ]
    rows = await connection.execute(union_all(*counts))
    return {terms[row.number]: row.entries for row in rows}


async def _memories(connection: AsyncConnection, sight: Sight, found: Sequence[tuple[int, float]]) -> list[Memory]:
    if not found:
        return []
    statement = sight.entries(*ENTRY_COLUMNS).where(EntryRow.id.in_([row_id for row_id, _ in found]))
    rows = {row.id: row for row in await connection.execute(statement)}
    return [memory(rows[row_id], sight, score) for row_id, score in found]


async def _vectors(connection: AsyncConnection, sight: Sight, model_id: int | None) -> int:
    if model_id is None:
        return 0
    counted: int | None = await connection.scalar(sight.vectors(model_id, func.count(EmbeddingRow.entry_id)))
    return counted or 0
