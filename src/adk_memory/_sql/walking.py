"""Walking through the entries of every user, some at a time, in an order for which there is an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, not_

from adk_memory._sql.scope import beyond, places

_ENTRIES_PER_STEP = 500
_TERMS_PER_STEP = 50_000


@dataclass(frozen=True, slots=True)
class Step:
    """The next entries: their ``rows`` as `places` selects them, the place of the last, and who is one of them."""

    rows: Sequence[Any]
    last: tuple[int, ...]
    passed: ColumnElement[bool]


def step(connection: Connection, order: Sequence[Any], after: Sequence[int]) -> Step | None:
    """Return the entries that come after a place, no more than can be held at once; `None` at the end."""
    rows = _bounded(connection.execute(places(order, after).limit(_ENTRIES_PER_STEP)).all())
    if not rows:
        return None
    last = tuple(getattr(rows[-1], column.key) for column in order)
    return Step(rows, last, and_(beyond(order, after), not_(beyond(order, last))))


def _bounded(found: Sequence[Any]) -> Sequence[Any]:
    """Return the first of the entries, at least one, that have as many terms as a step may: texts can be long."""
    terms = accumulate(row.term_count for row in found)
    return found[: max(1, sum(total <= _TERMS_PER_STEP for total in terms))]
