"""Backlog: makes the vectors that entries lack, and drops those of a model that is used no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

from adk_memory import _clock
from adk_memory._embedding_some import BATCH, Refusals, able, validate_most
from adk_memory._sql.database import Database
from adk_memory._sql.failures import translated
from adk_memory._sql.models import model_named
from adk_memory._sql.pending import (
    START,
    Key,
    count_pending,
    drop_some,
    few_enough,
    next_step,
    sight_of,
    store_vectors,
    waiting_passages,
)
from adk_memory.embedding import Embedder

_REST: Final = 0.5
"""For so much of the time that a part took, others have the database to themselves."""


class Backlog:
    """What is to be done about vectors beside writing entries and searching."""

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self._database = database
        self._dialect = database.dialect
        self._embedder = embedder

    async def count(self) -> int | None:
        """Return how many entries wait for a vector; `None` without a provider."""
        if self._embedder is None:
            return None
        known = self._database.known_model
        async with translated():
            await self._database.ready()
        if self._dialect.bound:
            return None  # whose entries wait is hidden
        return await self._database.run(lambda connection: count_pending(connection, known(connection), _clock.now()))

    async def embed(self, on_progress: Callable[[int, int], None] | None, limit: int | None) -> int:
        """Do what `MemoryService.embed_pending` does."""
        embedder, limit = able(self._embedder), validate_most(limit)
        await self._database.ready_for_all()
        work = _Work(self._database, embedder, cast(int, await self._database.registered_model()))
        total = await self.count() or 0
        # A walk that others have begun, or that was interrupted, may have left entries behind: then one more is due.
        whole = False
        while limit is None or work.embedded < limit:
            most = BATCH if limit is None else min(BATCH, limit - work.embedded)
            step = await self._database.transact(
                partial(next_step, dialect=self._dialect, model_id=work.model_id, most=most)
            )
            whole = whole or step.start
            if step.end:
                if whole:
                    break
                whole = True
            if step.waiting:
                await work.embed(step.waiting)
                if on_progress is not None:
                    on_progress(work.embedded, max(work.embedded, total))
        work.refusals.report(work.embedded)
        return work.embedded

    async def drop(self, model: str, on_progress: Callable[[int], None] | None) -> int:
        """Do what `MemoryService.drop_model` does."""
        engine = await self._database.ready_for_all()
        model_id = await self._database.run(partial(model_named, name=model))
        await self._dialect.drop_vector_index(engine, model)
        dropped, after = 0, START
        while True:
            started = time.monotonic()
            some = await self._database.transact(
                partial(drop_some, dialect=self._dialect, model_id=model_id, after=after)
            )
            if some is None:
                return dropped
            number, after = some
            dropped += number
            if on_progress is not None:
                on_progress(dropped)
            await asyncio.sleep(_REST * (time.monotonic() - started))


class _Work:
    """One call of `Backlog.embed`: what it did, and what it could not."""

    def __init__(self, database: Database, embedder: Embedder, model_id: int) -> None:
        self.model_id = model_id
        self.embedded = 0
        self.refusals = Refusals(embedder)
        self._database = database
        self._dialect = database.dialect
        self._turns = embedder.embeds_turns

    async def embed(self, entries: Sequence[Key]) -> None:
        """Embed entries and store their vectors; no transaction is open while the provider is at work."""
        shape: dict[str, Any] = {
            "dialect": self._dialect,
            "model_id": self.model_id,
            "turns": self._turns,
            "now": _clock.now(),
        }
        passages = await self._database.run(
            partial(waiting_passages, sight=sight_of(entries), entries=entries, **shape)
        )
        passages = {key: passage for key, passage in passages.items() if passage not in self.refusals.texts}
        for part in few_enough(passages):
            vectors = await self.refusals.vectors_of_the_others(list(part.values()))
            if vectors:
                self.embedded += await self._database.transact(
                    partial(store_vectors, passages=part, vectors=vectors, **shape)
                )
                await self._database.tend(self.model_id)
