"""Choosing the nearest by the HNSW index of a model, where the operator made one and very many entries are in sight.

The index knows no scopes: it is walked from the nearest on until enough of those in sight are met, or too many others.
Who asks has to see how many it gave; where they are too few, sketches choose.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from sqlalchemy import (
    ARRAY,
    CTE,
    REAL,
    Boolean,
    ColumnElement,
    Integer,
    ScalarSelect,
    Text,
    bindparam,
    column,
    func,
    literal,
    literal_column,
    text,
)

from adk_memory._sql.scope import Sight
from adk_memory._sql.tables import EmbeddingRow

INDEX_PREFIX: Final = "adk_memory_search_hnsw_"
"""The index of a model has the name that its number makes of this."""
INDEXED: Final = 200_000
"""Of more entries in sight the index chooses. Of fewer it meets too many others, and sketches are fast."""
_GIVEN = 400
_GIVEN_FOR_EACH = 2
"""It gives so many, or so many for each that is wanted, in a rough order: the last are the ones it misses."""
_MOST_KEPT = 1_000  # while it looks for nearer ones; pgvector allows no more
_WALKED = 20_000
"""Where so many do not hold enough that are in sight, it ends; sketches take about as long then."""

# A pgvector before 0.8 would not go on where too few are in sight.
_USABLE = text(
    f"""
    SELECT count(*) > 0 AS usable
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid, pg_extension AS e
    WHERE i.indrelid = CAST('adk_memory_embedding' AS regclass) AND i.indisvalid
    AND c.relname = concat('{INDEX_PREFIX}', CAST(:model AS integer)) AND e.extname = 'vector'
    AND (CAST(split_part(e.extversion, '.', 1) AS integer), CAST(split_part(e.extversion, '.', 2) AS integer)) >= (0, 8)
    """  # noqa: S608
).columns(column("usable", Boolean))


class Sorting(Protocol):
    """How an index sorts vectors."""

    def distance_in_index(self, vector: Any, dimensions: int, prepared: ColumnElement[bool]) -> Any:
        """Return the distance of a stored vector as an index has it, to a parameter that is made by ``prepared``."""
        ...


def usable() -> ScalarSelect[bool]:
    """Return whether there is an index of the parameter ``model`` that can be asked."""
    return _USABLE.subquery().select().scalar_subquery()


def indexed(sorting: Sorting, sight: Sight, distance: Any, nearest: int, model_id: int, dimensions: int) -> CTE:
    """Select about the nearest vectors in sight, each with its ``distance``: more than are wanted.

    There may be fewer where the index met too few, and are none where it is not `usable`.
    """
    size = max(_GIVEN, _GIVEN_FOR_EACH * nearest)
    settings = {
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(min(size, _MOST_KEPT)),
        "hnsw.max_scan_tuples": str(_WALKED),
    }
    # They last as long as the statement, which is a transaction by itself, and are made before the index can be asked,
    # as it has to know what for: a SET would need a transaction, which takes journeys.
    made = func.concat(
        *(func.set_config(literal(name, Text), literal(value, Text), True) for name, value in settings.items())
    )
    away = sorting.distance_in_index(bindparam("vector", type_=ARRAY(REAL)), dimensions, made != literal("", Text))
    # The index is of this model alone; a parameter would not tell a plan that serves all models. And without the sum
    # the planner may prefer the key.
    model = literal_column(str(model_id), Integer)
    columns = (EmbeddingRow.scope_id, EmbeddingRow.entry_id, distance)
    those = sight.vectors(model, *columns, scope_id=EmbeddingRow.scope_id + 0).where(usable())
    return those.order_by(away).limit(size).cte("pool")
