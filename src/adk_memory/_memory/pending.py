"""Embedding what was stored without a vector in memory."""

from __future__ import annotations

from collections.abc import Callable

from adk_memory import _analysis, _clock
from adk_memory._embedding_some import BATCH, Refusals, able, validate_most
from adk_memory._memory.rows import Row, Rows
from adk_memory._records import turn_passage
from adk_memory.embedding import Embedder


async def embed_pending(
    rows: Rows, embedder: Embedder | None, on_progress: Callable[[int, int], None] | None, limit: int | None
) -> int:
    """Do what `MemoryService.embed_pending` does."""
    embedder, limit = able(embedder), validate_most(limit)
    refusals = Refusals(embedder)
    total = rows.pending(_clock.now())
    embedded = 0
    while limit is None or embedded < limit:
        waiting = _passages(rows, embedder, refusals.texts, BATCH if limit is None else min(BATCH, limit - embedded))
        if not waiting:
            break
        vectors = await refusals.vectors_of_the_others([passage for _, passage in waiting])
        for row, passage in waiting:
            # It may have been rewritten or erased meanwhile.
            if row.waits(_clock.now()) and passage in vectors and passage == _passage(rows, row, embedder):
                row.vector = vectors[passage]
                row.unembeddable = row.vector is None
                embedded += 1
        if on_progress is not None:
            on_progress(embedded, max(embedded, total))
    refusals.report(embedded)
    return embedded


def _passages(rows: Rows, embedder: Embedder, refused: set[str], most: int) -> list[tuple[Row, str]]:
    found: list[tuple[Row, str]] = []
    now = _clock.now()
    for row in rows.all():
        if len(found) == most:
            break
        if row.waits(now) and _analysis.has_word(row.record.text):
            passage = _passage(rows, row, embedder)
            if passage not in refused:
                found.append((row, passage))
    return found


def _passage(rows: Rows, row: Row, embedder: Embedder) -> str:
    if row.session_id is None or not embedder.embeds_turns:
        return row.record.text
    before = rows.before(row, _clock.now())
    return turn_passage(row.record, None if before is None else before.record)
