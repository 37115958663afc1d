"""The sketches of Postgres: when a model gets its thresholds, and how what was stored before gets its sketches.

The first service that finds `SAMPLE` vectors of a model sets its thresholds, for good. To look costs a statement, so a
service looks after its first write, and then whenever it has written as many vectors as a sample has. What others
write meanwhile, who don't know the thresholds yet, has no sketch: every search takes it in, and it gets one when the
statement by which it was written says that there are thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, select, text, update

from adk_memory._ranking import Vector
from adk_memory._scope import Scope
from adk_memory._sql.sketch import SAMPLE, Thresholds, bits_of_a_dimension, packed, sketch, thresholds_of, unpacked
from adk_memory._sql.tables import EmbeddingModelRow

_BATCH: Final = 1_000
_REMEMBERED: Final = 10_000

_COUNT = text(
    """
    SELECT dimensions, (
        SELECT count(*) FROM (
            SELECT FROM adk_memory_embedding WHERE model_id = :model_id AND sketch IS NULL LIMIT :enough
        ) AS counted
    ) AS vectors
    FROM adk_memory_embedding_model WHERE id = :model_id
    """
)
# Of every scope one, then of every scope another one: no user's vectors set the thresholds alone.
_DRAW = text(
    """
    SELECT CAST(vector AS real[]) FROM adk_memory_embedding JOIN (
        SELECT scope_id, entry_id FROM (
            SELECT scope_id, entry_id, row_number() OVER (PARTITION BY scope_id ORDER BY random()) AS turn
            FROM adk_memory_embedding WHERE model_id = :model_id AND sketch IS NULL
        ) AS shuffled
        ORDER BY turn, random() LIMIT :size
    ) AS drawn USING (scope_id, entry_id)
    WHERE model_id = :model_id
    """
)
# What another one is sketching, or erasing, is left to it.
_UNSKETCHED = text(
    """
    SELECT scope_id, entry_id, CAST(vector AS real[]) AS floats FROM adk_memory_embedding
    WHERE model_id = :model_id AND sketch IS NULL
    ORDER BY scope_id, entry_id LIMIT :batch FOR UPDATE SKIP LOCKED
    """
)
_SKETCH = text(
    """
    UPDATE adk_memory_embedding AS stored SET sketch = CAST(made.sketch AS bit varying)
    FROM unnest(CAST(:scope_ids AS bigint[]), CAST(:entry_ids AS bigint[]), CAST(:sketches AS text[]))
        AS made (scope_id, entry_id, sketch)
    WHERE stored.scope_id = made.scope_id AND stored.model_id = :model_id AND stored.entry_id = made.entry_id
    """
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a search saw of a scope of many entries.

    ``complete`` is the state in which all of them had vectors: whatever takes one away changes it. ``indexed`` says
    whether there was an HNSW index that is worth asking.
    """

    complete: str | None
    indexed: bool


class Sketches:
    """The thresholds of a database's models, as one service knows them, and what it owes to the others.

    ``of_many`` are those of the last scopes that were searched in which there are many entries.
    """

    def __init__(self) -> None:
        self.of_many: dict[Scope, Seen] = {}
        self._thresholds: dict[int, Thresholds] = {}
        self._unsketched = SAMPLE  # the first write is one to look after

    def learn(self, connection: Connection) -> None:
        """Read what thresholds there are, and forget all else."""
        self.of_many.clear()
        models = select(EmbeddingModelRow.id, EmbeddingModelRow.dimensions, EmbeddingModelRow.thresholds)
        self._thresholds = {
            row.id: unpacked(row.thresholds, row.dimensions)
            for row in connection.execute(models.where(EmbeddingModelRow.thresholds.is_not(None)))
        }

    def knows(self, model_id: int | None) -> bool:
        return model_id in self._thresholds

    def of(self, model_id: int | None, vector: Vector | None) -> str | None:
        """Return the sketch of a vector; `None` while its model is not known to have thresholds."""
        if vector is None or model_id is None or model_id not in self._thresholds:
            return None
        return sketch(vector, self._thresholds[model_id])

    def remember(self, scope: Scope, seen: Seen | None) -> None:
        """Note what was seen of a scope; `None` where there are few entries."""
        self.of_many.pop(scope, None)
        if seen is not None:
            if len(self.of_many) >= _REMEMBERED:
                self.of_many.clear()
            self.of_many[scope] = seen

    def wrote(self, connection: Connection, model_id: int | None, vectors: int, *, have_thresholds: bool) -> None:
        """Note that vectors were written, and whether their model turned out to have thresholds."""
        if self.knows(model_id):
            return
        self._unsketched += vectors
        if have_thresholds:
            self.learn(connection)
            self._unsketched = SAMPLE

    def take_turn(self) -> bool:
        """Return whether it is time to `calibrate` and to `sketch_some`, and don't say so again at once."""
        due = self._unsketched >= SAMPLE
        if due:
            self._unsketched = 0
        return due

    def calibrate(self, connection: Connection, model_id: int) -> None:
        """Set the thresholds of a model that has none, and vectors enough; whoever is first sets them for all."""
        self.learn(connection)
        if self.knows(model_id):
            return
        model = connection.execute(_COUNT, {"model_id": model_id, "enough": SAMPLE}).one()
        if model.vectors < SAMPLE or not bits_of_a_dimension(model.dimensions):
            return
        drawn = connection.execute(_DRAW, {"model_id": model_id, "size": SAMPLE}).scalars().all()
        thresholds = thresholds_of(np.array(drawn, np.float32))
        still_none = EmbeddingModelRow.id == model_id, EmbeddingModelRow.thresholds.is_(None)
        connection.execute(update(EmbeddingModelRow).where(*still_none).values(thresholds=packed(thresholds)))
        self.learn(connection)

    def sketch_some(self, connection: Connection, model_id: int) -> bool:
        """Sketch, in a transaction, a batch of vectors that have no sketch; return whether there may be more."""
        if not self.knows(model_id):
            return False
        rows = connection.execute(_UNSKETCHED, {"model_id": model_id, "batch": _BATCH}).all()
        if rows:
            made: dict[str, Any] = {
                "model_id": model_id,
                "scope_ids": [row.scope_id for row in rows],
                "entry_ids": [row.entry_id for row in rows],
                "sketches": [self.of(model_id, np.array(row.floats, np.float32)) for row in rows],
            }
            connection.execute(_SKETCH, made)
        return len(rows) == _BATCH
