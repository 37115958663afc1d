"""Finding the entries that answer a query: candidates from the database, scores from the shared ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain, repeat
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    CursorResult,
    Select,
    Text,
    bindparam,
    func,
    literal,
    select,
    union_all,
)

from adk_memory import _analysis
from adk_memory._ranking import (
    LENT,
    Candidate,
    Collection,
    Question,
    Ranked,
    keyword_shares,
    lenders,
    nearest,
    ranked,
    term_weights,
)
from adk_memory._records import Record
from adk_memory._scope import Scope
from adk_memory._sql.columns import instant, instant_number
from adk_memory._sql.dialect import POOL, Dialect
from adk_memory._sql.prepared import execute, tuples
from adk_memory._sql.scope import GLOBAL_KEY, Sight, living, look
from adk_memory._sql.tables import EntryRow
from adk_memory.types import Memory, SearchResponse

_WEIGHED = 0.95
"""The share of a query's weight whose terms choose the pool."""


def recall(
    connection: Connection,
    dialect: Dialect,
    scope: Scope,
    question: Question,
    model_id: int | None,
    *,
    now: datetime,
    passing: ColumnElement[bool] | None,
    explain: bool,
) -> SearchResponse:
    """Return the memories that answer the question by what has not expired ``now``, best first.

    What does not fulfil ``passing`` is no answer, but its words take part in the scores of what does.
    """
    found = dialect.find(connection, scope, question, model_id, now, passing)
    sight = found.sight
    matches = found.matches
    if matches is None:
        sight = living(connection, look(connection, scope, now))
        shares, matches = _pooled_keyword_leg(connection, dialect, sight, sight.narrowed(passing), question)
    else:
        collection = Collection(sight.entry_count, sight.term_count)
        shares = keyword_shares(question.terms, list(matches.values()), collection)
    candidates = {**found.near, **matches}
    near = nearest(found.cosines, candidates, question.nearest)
    answers = ranked(question, shares, near, candidates)
    partial = question.mode != "keyword" and found.vectors < sight.entry_count
    memories = _memories(connection, dialect, sight, answers, found.rows, explain=explain)
    return SearchResponse(memories=tuple(memories), mode=question.mode, partial=partial, approximate=found.approximate)


def memory(row: Any, sight: Sight, answer: Ranked | None = None, *, explain: bool = False) -> Memory:
    """Return the memory in a row of `ENTRY_COLUMNS`."""
    session_id = None if row.session_key == GLOBAL_KEY else row.session_key
    record = Record(
        id=row.entry_key,
        author=row.author,
        timestamp=instant(row.timestamp),
        content=row.content,
        text="",
        metadata=row.metadata,
        expires_at=None if row.expires_at is None else instant(row.expires_at),
        position=None if session_id is None else row.position,
    )
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
    EntryRow.expires_at,
    EntryRow.position,
)


CANDIDATE_COLUMNS = (
    EntryRow.id,
    EntryRow.scope_id,
    EntryRow.session_key,
    EntryRow.position,
    EntryRow.author,
    EntryRow.timestamp,
)


def _pooled_keyword_leg(
    connection: Connection, dialect: Dialect, sight: Sight, narrowed: Sight, question: Question
) -> tuple[dict[int, float], dict[int, Candidate]]:
    """Score the entries that hold most of the query's weight, and then what stands around the best of them."""
    frequency = _document_frequency(connection, dialect, sight, question.terms)
    collection = Collection(sight.entry_count, sight.term_count)
    weights = term_weights(question.terms, collection, frequency)
    weightiest = _weightiest(connection, dialect, sight, weights, frequency)
    candidates = candidates_in(dialect, connection.execute(those(dialect, narrowed, weightiest)))
    shares = keyword_shares(question.terms, list(candidates.values()), collection, frequency)
    more = _beside(connection, dialect, sight, lenders(shares, candidates), narrowed)
    if narrowed.passing is not None:
        more |= _passing_candidates(connection, dialect, sight, narrowed, question, weights, frequency)
    more = {entry_id: found for entry_id, found in more.items() if entry_id not in candidates}
    return shares | keyword_shares(question.terms, list(more.values()), collection, frequency), candidates | more


def _passing_candidates(
    connection: Connection,
    dialect: Dialect,
    sight: Sight,
    narrowed: Sight,
    question: Question,
    weights: Mapping[str, float],
    frequency: Mapping[str, int],
) -> dict[int, Candidate]:
    """Return all matches that pass the filter, or the weightiest of too many."""
    matched = dialect.matching(sight, dialect.query(sight, question.terms, every=False))
    passing = narrowed.narrow(select(matched.c.entry_id), matched.c.entry_id).limit(POOL + 1)
    found = candidates_in(dialect, connection.execute(those(dialect, narrowed, passing)))
    if len(found) > POOL:
        weightiest = _weightiest(connection, dialect, narrowed, weights, frequency)
        found = candidates_in(dialect, connection.execute(those(dialect, narrowed, weightiest)))
    return found


def those(dialect: Dialect, narrowed: Sight, entry_ids: Select[Any]) -> Select[Any]:
    """Select the candidates among the entries in sight, whether they pass the filter that narrows it or not."""
    # Not joined: SQLite may put the entries first, and run a MATCH for each of them.
    columns = (*CANDIDATE_COLUMNS, narrowed.passes)
    in_sight = narrowed.narrowed(None).entries(*columns, scope_id=dialect.scope_of_entries_by_id)
    return dialect.with_terms(in_sight.where(EntryRow.id.in_(entry_ids)))


def candidates_in(dialect: Dialect, rows: CursorResult[*tuple[Any, ...]]) -> dict[int, Candidate]:
    found = {}
    for entry_id, scope_id, session_key, position, author, timestamp, passes, terms in tuples(rows):
        found[entry_id] = candidate(
            entry_id, scope_id, session_key, position, author, timestamp, dialect.read_terms(terms, scope_id), passes
        )
    return found


def _weightiest(
    connection: Connection,
    dialect: Dialect,
    sight: Sight,
    weights: Mapping[str, float],
    frequency: Mapping[str, int],
) -> Select[Any]:
    """Select the entries whose terms weigh most; the commonest terms, which weigh next to nothing, are left out."""
    heavy: dict[str, float] = {}
    wanted = _WEIGHED * sum(weights.values())
    for term, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        heavy[term] = weight
        wanted -= weight
        if wanted <= 0:
            break
    return dialect.weightiest(connection, sight, heavy, frequency, POOL)


def _beside(
    connection: Connection,
    dialect: Dialect,
    sight: Sight,
    lending: Sequence[Candidate],
    narrowed: Sight,
) -> dict[int, Candidate]:
    """Return the entries to which the best ones lend, whatever they hold themselves."""
    places = {(*cast(tuple[int, str], lender.session), lender.position + turns) for lender in lending for turns in LENT}
    if not places:
        return {}
    place = dialect.given((EntryRow.scope_id, EntryRow.session_key, EntryRow.position), sorted(places))
    columns = (*CANDIDATE_COLUMNS, narrowed.passes)
    in_places = sight.entries(*columns, scope_id=dialect.scope_of_entries_by_id).where(
        EntryRow.scope_id == place.c.scope_id,
        EntryRow.session_key == place.c.session_key,
        EntryRow.position == place.c.position,
    )
    return candidates_in(dialect, connection.execute(dialect.with_terms(in_places)))


def candidate(
    entry_id: int,
    scope_id: int,
    session_key: str,
    position: int,
    author: str,
    timestamp: int | datetime,
    terms: Sequence[str] = (),
    passes: bool | int = True,
) -> Candidate:
    """Return the candidate in a row of `CANDIDATE_COLUMNS`."""
    session = None if session_key == GLOBAL_KEY else (scope_id, session_key)
    instant = instant_number(timestamp)
    return Candidate(entry_id, instant, session, position, _analysis.name_words(author), terms, bool(passes))


def _document_frequency(connection: Connection, dialect: Dialect, sight: Sight, terms: Sequence[str]) -> dict[str, int]:
    queries = {f"query_{number}": dialect.query(sight, [term], every=False) for number, term in enumerate(terms)}
    shape = (dialect, len(sight.scope_ids), sight.some_expired, len(terms))
    rows = execute(connection, _counting, shape, sight.parameters | queries)
    return {terms[row.number]: row.entries for row in rows}


def _counting(dialect: Dialect, scopes: int, some_expired: bool, terms: int) -> CompoundSelect[Any]:
    sight = Sight.of_parameters(scopes, some_expired=some_expired)
    counts = []
    for number in range(terms):
        matched = dialect.matching(sight, bindparam(f"query_{number}", type_=Text))
        columns: tuple[Any, ...] = (literal(number).label("number"), func.count().label("entries"))
        counts.append(sight.narrow(select(*columns).select_from(matched), matched.c.entry_id))
    return union_all(*counts)


def _memories(
    connection: Connection,
    dialect: Dialect,
    sight: Sight,
    answers: Sequence[Ranked],
    rows: Mapping[int, Any],
    *,
    explain: bool,
) -> list[Memory]:
    unread = [answer.id for answer in answers if answer.id not in rows]
    if unread:
        size = 1 << (len(unread) - 1).bit_length()  # few statements, for all numbers of answers
        entry_ids = dict(zip(_entry_parameters(size), chain(unread, repeat(unread[-1])), strict=False))
        read = execute(connection, _reading, (dialect, len(sight.scope_ids), size), sight.parameters | entry_ids)
        rows = {**rows, **{row.id: row for row in read}}
    # One that is gone was erased since it was found.
    return [memory(rows[answer.id], sight, answer, explain=explain) for answer in answers if answer.id in rows]


def _reading(dialect: Dialect, scopes: int, size: int) -> Select[Any]:
    entry_ids = [bindparam(name, type_=BigInteger) for name in _entry_parameters(size)]
    entries = Sight.of_parameters(scopes).entries(*ENTRY_COLUMNS, scope_id=dialect.scope_of_entries_by_id)
    return entries.where(EntryRow.id.in_(entry_ids))


def _entry_parameters(size: int) -> list[str]:
    return [f"entry_{number}" for number in range(size)]
