"""Searching SQLite step by step: a statement costs no journey there, and vectors are compared here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Integer,
    Select,
    Text,
    bindparam,
    column,
    func,
    select,
    table,
)

from adk_memory._ranking import K1, Candidate, Question, Vector, cosines
from adk_memory._scope import Scope
from adk_memory._sql.dialect import POOL, Dialect, Found
from adk_memory._sql.prepared import execute, tuples
from adk_memory._sql.recall import CANDIDATE_COLUMNS, candidate, candidates_in, those
from adk_memory._sql.scope import Sight, living, look
from adk_memory._sql.tables import TERM_TABLE, EmbeddingRow, EntryRow

_VECTORS_AT_A_TIME = 256  # what a processor keeps at hand: of 2,048, each took three times as long
_NUMBERS = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""The number that each pattern of 16 bits stands for: to look it up is faster than to have it converted."""
_INSTANCES = table(TERM_TABLE, column("term", Text), column("doc", Integer))


def find(
    connection: Connection,
    dialect: Dialect,
    scope: Scope,
    question: Question,
    model_id: int | None,
    now: datetime,
    passing: ColumnElement[bool] | None,
) -> Found:
    """Look up what answers a question."""
    sight = living(connection, look(connection, scope, now))
    matches: Mapping[int, Candidate] | None = {}
    if sight and question.mode != "vector":
        matches = _matches(connection, dialect, sight, question, passing)
    similar: dict[int, float] = {}
    near: dict[int, Candidate] = {}
    vectors = 0
    if sight and question.vector is not None and model_id is not None:
        similar, vectors = _nearest(connection, sight, model_id, question.vector, question.nearest, passing)
        unseen = sorted(similar.keys() - (matches or {}).keys())
        # None of these has expired, and this statement is not a prepared one.
        statement = sight.with_expired().entries(*CANDIDATE_COLUMNS, scope_id=dialect.scope_of_entries_by_id)
        statement = statement.where(dialect.among(EntryRow.id, unseen))
        near = {row.id: candidate(*row) for row in connection.execute(statement)} if unseen else {}
    return Found(sight, matches, similar, near, vectors, {})


def _matches(
    connection: Connection, dialect: Dialect, sight: Sight, question: Question, passing: ColumnElement[bool] | None
) -> dict[int, Candidate] | None:
    """Return the entries that hold any of the words, `None` where there are more than `POOL`."""
    values = {**sight.parameters, "query": dialect.query(sight, question.terms, every=False)}
    scopes = len(sight.scope_ids)
    if sight.entry_count > POOL:
        number = execute(connection, _matched_number, (dialect, scopes, sight.some_expired), values).scalar_one()
        if number > POOL:
            return None
    rows = execute(connection, _matched, (dialect, scopes, passing), values, reused=passing is None)
    return candidates_in(dialect, rows)


def _matched_number(dialect: Dialect, scopes: int, some_expired: bool) -> Select[Any]:
    sight = Sight.of_parameters(scopes, some_expired=some_expired)
    matched = dialect.matching(sight, bindparam("query", type_=Text))
    found = sight.narrow(select(matched), matched.c.entry_id).limit(POOL + 1)
    return select(func.count()).select_from(found.subquery())


def _matched(dialect: Dialect, scopes: int, passing: ColumnElement[bool] | None) -> Select[Any]:
    sight = Sight.of_parameters(scopes)
    matched = dialect.matching(sight, bindparam("query", type_=Text))
    return those(dialect, sight.narrowed(passing), select(matched.c.entry_id))


def _nearest(
    connection: Connection,
    sight: Sight,
    model_id: int,
    vector: Vector,
    count: int,
    passing: ColumnElement[bool] | None,
) -> tuple[dict[int, float], int]:
    """Return the cosines of the entries nearest to ``vector``, ties beyond ``count`` too; how many have a vector."""
    shape, values = (len(sight.scope_ids), sight.some_expired, passing), {**sight.parameters, "model": model_id}
    rows = tuples(execute(connection, _vectors, shape, values, reused=passing is None))
    entry_ids = [entry_id for entry_id, _ in rows]
    scores = []
    for start in range(0, len(rows), _VECTORS_AT_A_TIME):
        blobs = [blob for _, blob in rows[start : start + _VECTORS_AT_A_TIME]]
        stored = np.frombuffer(b"".join(blobs), "<u2").reshape(len(blobs), -1)
        scores.append(cosines(np.take(_NUMBERS, stored), vector))
    vectors = len(entry_ids) if passing is None else connection.scalar(sight.vectors(model_id, func.count())) or 0
    if not scores:
        return {}, vectors
    every_score = np.concatenate(scores)
    floor = np.partition(every_score, -count)[-count] if len(entry_ids) > count else 0.0
    found = np.flatnonzero(every_score >= floor).tolist()
    return {entry_ids[i]: float(every_score[i]) for i in found}, vectors


def _vectors(scopes: int, some_expired: bool, passing: ColumnElement[bool] | None) -> Select[Any]:
    sight = Sight.of_parameters(scopes, some_expired=some_expired).narrowed(passing)
    return sight.vectors(bindparam("model", type_=Integer), EmbeddingRow.entry_id, EmbeddingRow.vector)


def weightiest(
    connection: Connection,
    dialect: Dialect,
    sight: Sight,
    weights: Mapping[str, float],
    frequency: Mapping[str, int],
    limit: int,
) -> Select[Any]:
    """Select the row ids of about the ``limit`` entries in sight that BM25 puts first; see `Dialect.weightiest`.

    How long an entry is would take a look at each. How often it has a term takes the instances of the term: that is
    asked for the weightiest terms only, until enough entries have them. Summed up here, it takes SQLite's half.
    """
    scopes = len(sight.scope_ids)
    found: list[npt.NDArray[np.int64]] = []
    weighed: list[npt.NDArray[np.float64]] = []
    by_weightier = 0
    for term, weight in weights.items():
        if by_weightier < limit:
            tokens = {f"token_{number}": f"{scope_id}_{term}" for number, scope_id in enumerate(sight.scope_ids)}
            instances = _numbers(execute(connection, _instances_of, (scopes,), tokens))
            entry_ids, times = np.unique(instances, return_counts=True)
        else:
            values = {**sight.parameters, "query": dialect.query(sight, [term], every=False)}
            entry_ids = _numbers(execute(connection, _having, (dialect, scopes), values))
            times = np.ones_like(entry_ids)
        found.append(entry_ids)
        weighed.append(weight * times / (times + K1))
        by_weightier += frequency[term]
    entry_ids, places = np.unique(np.concatenate(found), return_inverse=True)
    totals = np.bincount(places, np.concatenate(weighed))
    if sight.passing is not None or sight.some_expired:
        those = _given(entry_ids)
        passing = connection.scalars(sight.narrow(those, those.selected_columns[0])).all()
        totals[~np.isin(entry_ids, passing)] = -1
        limit = min(limit, len(passing))
    return _given(entry_ids[np.lexsort((entry_ids, -totals))[:limit]])


def _numbers(result: CursorResult[*tuple[Any, ...]]) -> npt.NDArray[np.int64]:
    return np.asarray([number for [number] in tuples(result)], np.int64)


def _instances_of(scopes: int) -> Select[Any]:
    tokens = [bindparam(f"token_{number}", type_=Text) for number in range(scopes)]
    return select(_INSTANCES.c.doc).where(_INSTANCES.c.term.in_(tokens))


def _having(dialect: Dialect, scopes: int) -> Select[Any]:
    return select(dialect.matching(Sight.of_parameters(scopes), bindparam("query", type_=Text)))


def _given(entry_ids: npt.NDArray[np.int64]) -> Select[Any]:
    return select(func.json_each(json.dumps(entry_ids.tolist())).table_valued(column("value", Integer)).c.value)
