"""Entries with words that have no vector of a model: finding them, what to embed of them, storing what came of it.

Who makes their vectors walks through all entries in the dialect's order. While anyone does, the place in `MetaRow`
under the number of the model says how far all of them have come: so they share the work, and a walk goes on where it
was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

import numpy as np
from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, literal, not_, or_, select, update
from sqlalchemy.orm import aliased

from adk_memory._ranking import Vector
from adk_memory._records import Turn, turn_passage
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.models import answered_by
from adk_memory._sql.scope import GLOBAL_KEY, Sight, count, lives, named_entries
from adk_memory._sql.tables import EmbeddingRow, EntryRow, MetaRow, ScopeRow
from adk_memory._sql.walking import beyond, everyones, hold, places

_ENTRIES_AT_A_TIME = 2_000
_VECTORS_AT_A_TIME = 2_000
_CHARACTERS: Final = 500_000
_NOTHING: Final = np.zeros(1, np.float32)
_VECTOR_KEY: Final = (EmbeddingRow.scope_id, EmbeddingRow.model_id, EmbeddingRow.entry_id)
START: Final[tuple[int, ...]] = (0, 0, 0)
"""Before all vectors."""

Key: TypeAlias = tuple[int, int]
"""The ids of an entry's scope and of its row."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a walk: the entries in it that wait for a vector. The first step of a walk is at its ``start``."""

    waiting: Sequence[Key]
    start: bool
    end: bool


def count_pending(connection: Connection, model_id: int | None, now: datetime) -> int:
    """Return how many living entries have words and no vector of the model; `None` is one that has no vector at all."""
    entries = connection.scalar(select(func.coalesce(func.sum(ScopeRow.entry_count), 0))) or 0
    answered = 0
    if model_id is not None:
        answered = connection.scalar(select(func.count()).select_from(EmbeddingRow).where(answered_by(model_id))) or 0
    gone = everyones(func.count()).where(EntryRow.expires_at <= now, EntryRow.term_count > 0)
    if model_id is not None:
        gone = gone.where(not_(_answered(model_id)))
    return max(0, int(entries) - answered - (connection.scalar(gone) or 0))


def next_step(connection: Connection, dialect: Dialect, model_id: int, most: int) -> Step:
    """Take the next part of a walk, in a transaction: at ``most`` so many waiting entries. Its end is forgotten."""
    key = f"embedding:{model_id}"
    start = ":".join("0" for _ in dialect.order)
    # An update that changes nothing locks the row, and returns it, where it is there already.
    begun = dialect.insert(MetaRow).values(key=key, value=start)
    begun = begun.on_conflict_do_update(index_elements=[MetaRow.key], set_={"value": MetaRow.value})
    stored: str = connection.execute(begun.returning(MetaRow.value)).scalar_one()
    walk = places(dialect.order, list(map(int, stored.split(":"))))
    last = connection.execute(walk.offset(_ENTRIES_AT_A_TIME - 1).limit(1)).first()
    some = walk.limit(_ENTRIES_AT_A_TIME).subquery()
    # Not an EXISTS: Postgres may make it a join, for which it reads all vectors.
    answer = select(EmbeddingRow.entry_id).where(
        EmbeddingRow.scope_id == some.c.scope_id, answered_by(model_id), EmbeddingRow.entry_id == some.c.id
    )
    waiting = select(some).where(some.c.term_count > 0, answer.limit(1).scalar_subquery().is_(None))
    rows = connection.execute(waiting.order_by(*(some.c[column.key] for column in dialect.order)).limit(most)).all()
    if last is None and not rows:
        connection.execute(delete(MetaRow).where(MetaRow.key == key))
        return Step([], start=stored == start, end=True)
    if last is None or len(rows) == most:
        last = rows[-1]
    place = ":".join(str(getattr(last, column.key)) for column in dialect.order)
    connection.execute(update(MetaRow).where(MetaRow.key == key).values(value=place))
    return Step([(row.scope_id, row.id) for row in rows], start=stored == start, end=False)


def sight_of(entries: Sequence[Key]) -> Sight:
    return Sight(dict.fromkeys({scope_id for scope_id, _ in entries}))


def waiting_passages(
    connection: Connection,
    dialect: Dialect,
    sight: Sight,
    entries: Sequence[Key],
    model_id: int,
    *,
    turns: bool,
    now: datetime,
) -> dict[Key, str]:
    """Return what is to be embedded of those of the entries that are in sight and still wait: texts, or turns.

    What has expired by ``now`` does not, and comes before none.
    """
    earlier = aliased(EntryRow)
    before = select(func.max(earlier.position)).where(
        earlier.scope_id == EntryRow.scope_id,
        earlier.session_key == EntryRow.session_key,
        earlier.position < EntryRow.position,
        or_(earlier.expires_at.is_(None), earlier.expires_at > now),
    )
    columns = (EntryRow.scope_id, EntryRow.id, EntryRow.session_key, EntryRow.author, EntryRow.text)
    those = dialect.among(EntryRow.id, [entry_id for _, entry_id in entries])
    waiting = and_(those, EntryRow.term_count > 0, lives(now), not_(_answered(model_id)))
    turn_before = before.scalar_subquery() if turns else literal(None)
    statement = sight.entries(*columns, turn_before.label("before")).where(waiting)
    rows = connection.execute(statement).all()
    if not turns:
        return {(row.scope_id, row.id): row.text for row in rows}
    said = _said(connection, dialect, {(row.scope_id, row.session_key, row.before) for row in rows}, now)
    return {
        (row.scope_id, row.id): row.text
        if row.session_key == GLOBAL_KEY
        else turn_passage(row, said.get((row.scope_id, row.session_key, row.before)))
        for row in rows
    }


def _answered(model_id: int) -> ColumnElement[bool]:
    """Return whether an entry has a vector of the model, or is known to get none."""
    return exists().where(
        EmbeddingRow.scope_id == EntryRow.scope_id, answered_by(model_id), EmbeddingRow.entry_id == EntryRow.id
    )


def _said(
    connection: Connection, dialect: Dialect, turns: set[tuple[int, str, int | None]], now: datetime
) -> dict[tuple[int, str, int | None], Turn]:
    """Return turns, which are named by scope, session and position."""
    wanted = [turn for turn in turns if turn[1] != GLOBAL_KEY and turn[2] is not None]
    if not wanted:
        return {}
    place = (EntryRow.scope_id, EntryRow.session_key, EntryRow.position)
    # What has expired may stand at the same place.
    said = named_entries(dialect.given(place, wanted), *place, EntryRow.author, EntryRow.text).where(lives(now))
    rows = connection.execute(said)
    return {(row.scope_id, row.session_key, row.position): row for row in rows}


def few_enough(passages: Mapping[Key, str]) -> list[dict[Key, str]]:
    """Divide passages so that none of the parts has very many characters, unless it is a single passage."""
    parts: list[dict[Key, str]] = []
    characters = _CHARACTERS
    for key, passage in passages.items():
        characters += len(passage)
        if characters > _CHARACTERS:
            parts.append({})
            characters = len(passage)
        parts[-1][key] = passage
    return parts


def store_vectors(
    connection: Connection,
    dialect: Dialect,
    passages: Mapping[Key, str],
    vectors: Mapping[str, Vector | None],
    model_id: int,
    *,
    turns: bool,
    now: datetime,
) -> int:
    """Store the vectors of those entries whose passages are still what was embedded; return how many."""
    entries = sorted(key for key, passage in passages.items() if passage in vectors)
    # Until now entries may have been erased or rewritten, and whole scopes too.
    sight = hold(connection, dialect.among(ScopeRow.id, sorted({scope_id for scope_id, _ in entries})))
    if not sight:
        return 0
    still = waiting_passages(connection, dialect, sight, entries, model_id, turns=turns, now=now)
    found = {key: vectors[passages[key]] for key in entries if still.get(key) == passages[key]}
    made = [(*key, vector) for key, vector in found.items() if vector is not None]
    none = [(*key, _NOTHING) for key, vector in found.items() if vector is None]
    for number, rows in ((model_id, made), (-model_id, none)):
        if rows:
            dialect.add_vectors(connection, number, rows)
    count(connection, dict.fromkeys(sorted({scope_id for scope_id, _ in found}), (0, 0)))
    return len(found)


def drop_some(
    connection: Connection, dialect: Dialect, model_id: int, after: tuple[int, ...]
) -> tuple[int, tuple[int, ...]] | None:
    """Erase the next vectors of a model, in a transaction; return how many and the last, or `None` where none is left.

    ``after`` is the last of those before; it holds a scope, a model and an entry.
    """
    walk = select(*_VECTOR_KEY).where(answered_by(model_id), beyond(_VECTOR_KEY, after))
    rows = connection.execute(walk.order_by(*_VECTOR_KEY).limit(_VECTORS_AT_A_TIME)).all()
    if not rows:
        return None
    last = tuple(rows[-1])
    sight = hold(connection, dialect.among(ScopeRow.id, sorted({row.scope_id for row in rows})))
    those = and_(answered_by(model_id), beyond(_VECTOR_KEY, after), not_(beyond(_VECTOR_KEY, last)))
    connection.execute(sight.drop_vectors(those))
    # Who has seen that all entries of a scope have vectors is to look again.
    count(connection, dict.fromkeys(sight.scope_ids, (0, 0)))
    return sum(row.model_id == model_id for row in rows), last
