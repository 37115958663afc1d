"""Finding the entries that answer a query: candidates from the database, scores from the shared ranker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Subquery,
    Text,
    and_,
    bindparam,
    false,
    func,
    literal,
    or_,
    select,
    union_all,
)

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
from adk_memory._scope import Scope
from adk_memory._sql.columns import instant, instant_number
from adk_memory._sql.dialect import POOL, Dialect, Found
from adk_memory._sql.prepared import execute
from adk_memory._sql.scope import GLOBAL_KEY, Sight, look
from adk_memory._sql.tables import EmbeddingRow, EntryRow
from adk_memory.types import Memory

_WEIGHED = 0.95
"""The share of a query's weight whose terms choose the pool."""
_AROUND = 2_000
"""At most so many entries of the best sessions join a pool that does not hold all matches."""


def recall(
    connection: Connection,
    dialect: Dialect,
    scope: Scope,
    question: Question,
    model_id: int | None,
    *,
    passing: ColumnElement[bool] | None,
    explain: bool,
) -> tuple[list[Memory], bool]:
    """Return the memories that answer the question, best first, and whether some in sight lack a vector.

    What does not fulfil ``passing`` is no answer, but its words take part in the scores of what does.
    """
    found = dialect.find(connection, scope, question, model_id, passing)
    sight = found.sight
    matches = found.matches
    if matches is None:
        sight = look(connection, scope)
        shares, matches = _pooled_keyword_leg(connection, dialect, sight, sight.narrowed(passing), question)
    else:
        # All matches at hand, the frequency of each term is at hand too.
        frequency = document_frequency(question.terms, (match.terms for match in matches.values()))
        collection = Collection(sight.entry_count, sight.term_count, frequency)
        shares = keyword_shares(question.terms, matches.values(), collection)
    candidates = {**found.nearest, **matches}
    near = nearest(found.cosines, candidates, question.nearest)
    answers = ranked(question, shares, near, candidates)
    partial = question.mode != "keyword" and found.vectors < sight.entry_count
    return _memories(connection, dialect, sight, answers, found.rows, explain=explain), partial


def find_by_steps(
    connection: Connection,
    dialect: Dialect,
    scope: Scope,
    question: Question,
    model_id: int | None,
    passing: ColumnElement[bool] | None,
) -> Found:
    """Look up what answers a question, leg by leg: where a statement costs no journey."""
    sight = look(connection, scope)
    narrowed = sight.narrowed(passing)
    matches: dict[int, Candidate] | None = {}
    if sight and question.mode != "vector":
        shape = (dialect, len(sight.scope_ids), passing)
        query = {"query": dialect.query(sight, question.terms, every=False)}
        rows = execute(connection, _matches, shape, sight.parameters | query, reused=passing is None)
        matches = _candidates(dialect, rows)
        if len(matches) > POOL:
            matches = None
    cosines: Mapping[int, float] = {}
    near: dict[int, Candidate] = {}
    vectors = 0
    if sight and question.vector is not None and model_id is not None:
        cosines = dialect.nearest(connection, narrowed, model_id, question.vector, question.nearest)
        unseen = sorted(cosines.keys() - (matches or {}).keys())
        statement = sight.entries(*CANDIDATE_COLUMNS).where(dialect.among(EntryRow.id, unseen))
        near = {row.id: candidate(row, ()) for row in connection.execute(statement)} if unseen else {}
    if sight and question.mode != "keyword" and model_id is not None:
        vectors = connection.scalar(sight.vectors(model_id, func.count(EmbeddingRow.entry_id))) or 0
    return Found(sight, matches, cosines, near, vectors, {})


def _matches(dialect: Dialect, scopes: int, passing: ColumnElement[bool] | None) -> Select[Any]:
    sight = Sight.of_parameters(scopes)
    matched = dialect.matching(sight, bindparam("query", type_=Text))
    return _those(dialect, sight.narrowed(passing), select(matched.c.entry_id).limit(POOL + 1))


def memory(row: Any, sight: Sight, answer: Ranked | None = None, *, explain: bool = False) -> Memory:
    """Return the memory in a row of `ENTRY_COLUMNS`."""
    record = Record(row.entry_key, row.author, instant(row.timestamp), row.content, "", row.metadata)
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
    collection = Collection(sight.entry_count, sight.term_count, frequency)
    weights = term_weights(question.terms, collection)
    weightiest = _weightiest(dialect, sight, weights)
    candidates = _candidates(dialect, connection.execute(_those(dialect, narrowed, select(weightiest.c.entry_id))))
    shares = keyword_shares(question.terms, candidates.values(), collection)
    around = _around(connection, dialect, sight, lenders(shares, candidates), narrowed)
    candidates = around | candidates
    if narrowed.passing is not None:
        candidates |= _passing_candidates(connection, dialect, sight, narrowed, question, weights)
    return keyword_shares(question.terms, candidates.values(), collection), candidates


def _passing_candidates(
    connection: Connection,
    dialect: Dialect,
    sight: Sight,
    narrowed: Sight,
    question: Question,
    weights: Mapping[str, float],
) -> dict[int, Candidate]:
    """Return all matches that pass the filter, or the weightiest of too many."""
    matched = dialect.matching(sight, dialect.query(sight, question.terms, every=False))
    passing = narrowed.narrow(select(matched.c.entry_id), matched.c.entry_id).limit(POOL + 1)
    found = _candidates(dialect, connection.execute(_those(dialect, narrowed, passing)))
    if len(found) > POOL:
        weightiest = _weightiest(dialect, narrowed, weights)
        found = _candidates(dialect, connection.execute(_those(dialect, narrowed, select(weightiest.c.entry_id))))
    return found


def _those(dialect: Dialect, narrowed: Sight, entry_ids: Select[Any]) -> Select[Any]:
    """Select the candidates among the entries in sight, whether they pass the filter that narrows it or not."""
    # Not joined: SQLite may put the entries first, and run a MATCH for each of them.
    in_sight = narrowed.narrowed(None).entries(*CANDIDATE_COLUMNS, narrowed.passes)
    return dialect.with_terms(in_sight.where(EntryRow.id.in_(entry_ids)))


def _candidates(dialect: Dialect, rows: Iterable[Any]) -> dict[int, Candidate]:
    return {
        row.id: candidate(row, dialect.read_terms(row.terms, row.scope_id), passes=bool(row.passes)) for row in rows
    }


def _weightiest(dialect: Dialect, sight: Sight, weights: Mapping[str, float]) -> Subquery:
    """Select the entries whose terms weigh most; the commonest terms, which weigh next to nothing, are left out."""
    heavy: dict[str, float] = {}
    wanted = _WEIGHED * sum(weights.values())
    for term, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        heavy[term] = weight
        wanted -= weight
        if wanted <= 0:
            break
    return dialect.weightiest(sight, heavy, POOL)


def _around(
    connection: Connection,
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
    statement = sight.entries(*CANDIDATE_COLUMNS, narrowed.passes).where(in_them).limit(_AROUND)
    return _candidates(dialect, connection.execute(dialect.with_terms(statement)))


def candidate(row: Any, terms: Sequence[str], *, passes: bool = True) -> Candidate:
    return Candidate(
        id=row.id,
        instant=instant_number(row.timestamp),
        session=None if row.session_key == GLOBAL_KEY else (row.scope_id, row.session_key),
        position=row.position,
        author=_analysis.name_words(row.author),
        terms=terms,
        passes=passes,
    )


def _document_frequency(connection: Connection, dialect: Dialect, sight: Sight, terms: Sequence[str]) -> dict[str, int]:
    counts = [
        select(literal(number).label("number"), func.count().label("entries")).select_from(
            dialect.matching(sight, dialect.query(sight, [term], every=False))
        )
        for number, term in enumerate(terms)
    ]
    rows = connection.execute(union_all(*counts))
    return {terms[row.number]: row.entries for row in rows}


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
        read = execute(connection, _reading, (len(sight.scope_ids), size), sight.parameters | entry_ids)
        rows = {**rows, **{row.id: row for row in read}}
    # One that is gone was erased since it was found.
    return [memory(rows[answer.id], sight, answer, explain=explain) for answer in answers if answer.id in rows]


def _reading(scopes: int, size: int) -> Select[Any]:
    entry_ids = [bindparam(name, type_=BigInteger) for name in _entry_parameters(size)]
    return Sight.of_parameters(scopes).entries(*ENTRY_COLUMNS).where(EntryRow.id.in_(entry_ids))


def _entry_parameters(size: int) -> list[str]:
    return [f"entry_{number}" for number in range(size)]
