"""Finding the entries that answer a query: candidates from the database, scores from the shared ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, literal, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from adk_memory import _analysis
from adk_memory._ranking import (
    Candidate,
    Collection,
    Question,
    Ranked,
    document_frequency,
    keyword_shares,
    nearest,
    ranked,
)
from adk_memory._records import Record
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.scope import GLOBAL_KEY, Sight
from adk_memory._sql.tables import EmbeddingRow, EntryRow
from adk_memory._validation import microseconds
from adk_memory.types import Memory

_POOL = 1_000
"""Up to so many matching entries are all scored exactly; of more, the database's own ranking picks so many."""


async def recall(
    connection: AsyncConnection,
    dialect: Dialect,
    sight: Sight,
    question: Question,
    model_id: int | None,
    *,
    explain: bool,
) -> tuple[list[Memory], bool]:
    """Return the memories that answer the question, best first, and whether some in sight lack a vector."""
    if not sight:
        return [], False
    shares, candidates = await _keyword_leg(connection, dialect, sight, question)
    near = await _vector_leg(connection, dialect, sight, question, model_id, candidates)
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
    connection: AsyncConnection, dialect: Dialect, sight: Sight, question: Question
) -> tuple[dict[int, float], dict[int, Candidate]]:
    if question.mode == "vector":
        return {}, {}
    matched = dialect.matching(sight, question.terms, every=False, limit=_POOL + 1)
    statement = sight.entries(*_CANDIDATE_COLUMNS, matched.c.terms).join(matched, matched.c.entry_id == EntryRow.id)
    rows = await connection.execute(statement)
    candidates = {row.id: _candidate(row, dialect.read_terms(row.terms)) for row in rows}
    # All matches at hand, the frequency of each term is at hand too.
    frequency: Mapping[str, int] = document_frequency(question.terms, (found.terms for found in candidates.values()))
    if len(candidates) > _POOL:
        frequency = await _document_frequency(connection, dialect, sight, question.terms)
    collection = Collection(sight.entry_count, sight.term_count, frequency)
    return keyword_shares(question.terms, candidates.values(), collection), candidates


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
