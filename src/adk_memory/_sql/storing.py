"""Storage: writes batches, all or nothing, with the vectors of what is in them, however others write meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy import Connection

from adk_memory._ranking import Vector
from adk_memory._scope import Scope
from adk_memory._sql.bulk import ScopesErasedError, claim_all, look_at_all, plan_all, store_all
from adk_memory._sql.database import Database
from adk_memory._sql.failures import translated
from adk_memory._sql.reindexing import refuse_newer
from adk_memory._sql.scope import claim, look
from adk_memory._sql.writing import Batch, Plan, plan, store
from adk_memory.embedding import Embedder

_ATTEMPTS = 2
"""So often entries are added by what was seen without a lock, before the scope is locked for it."""


class _MissingVectorsError(Exception):
    """Raised in a transaction, which it undoes: these passages have to be embedded first."""

    def __init__(self, passages: Sequence[str]) -> None:
        super().__init__()
        self.passages = passages


class Storage:
    """Writes batches; what has to be embedded for them is embedded outside of any transaction."""

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self._database = database
        self._dialect = database.dialect
        self._embedder = embedder

    async def store(self, batches: Sequence[Batch]) -> None:
        """Write batches, of which no two are of one session, or hold the same entry, in one transaction."""
        async with translated():
            await self._database.ready()  # what the role may see decides how to write
        model_id = await self._database.registered_model()
        match batches:
            case [batch]:
                await self._store_one(batch, model_id)
            case _ if self._dialect.bound:
                for batch in batches:  # each has a user of its own
                    await self._store_one(batch, model_id)
            case _:
                await self._store_many(batches, model_id)
        if model_id is not None:
            await self._database.tend(model_id)

    async def _store_one(self, batch: Batch, model_id: int | None) -> None:
        vectors: dict[str, Vector | None] = {}
        if self._embedder is not None or self._dialect.plans_ahead:
            for _ in range(_ATTEMPTS):
                planned = await self._database.run(partial(self._plan, batch=batch, model_id=model_id), batch.scope)
                vectors |= await self._embedded(self._missing([planned], vectors))
                by_id = self._by_id(planned, vectors)
                if not self._dialect.plans_ahead or not planned.only_adds(by_id):
                    break
                addition = planned.addition(by_id)
                if not addition.entries or await self._database.run(partial(self._dialect.add, addition=addition)):
                    return
        await self._store_locked(partial(self._store, batch=batch, model_id=model_id), vectors, batch.scope)

    async def _store_many(self, batches: Sequence[Batch], model_id: int | None) -> None:
        vectors: dict[str, Vector | None] = {}
        if self._embedder is not None:
            plans = await self._database.run(partial(self._plan_all, batches=batches, model_id=model_id))
            vectors = await self._embedded(self._missing(plans, vectors))
        await self._store_locked(partial(self._store_all, batches=batches, model_id=model_id), vectors)

    async def _store_locked(
        self, work: Callable[..., None], vectors: dict[str, Vector | None], scope: Scope | None = None
    ) -> None:
        while True:
            try:
                return await self._database.transact(partial(work, vectors=vectors), scope)
            except ScopesErasedError:
                continue
            except _MissingVectorsError as missing:
                # Another writer changed these entries since they were looked at.
                vectors |= await self._embedded(missing.passages)

    def _store(
        self, connection: Connection, batch: Batch, model_id: int | None, vectors: Mapping[str, Vector | None]
    ) -> None:
        sight = claim(connection, self._dialect.insert, batch.scope, batch.project_id)
        refuse_newer(connection)
        planned = plan(connection, self._dialect, sight, batch, model_id)
        self._require(vectors, [planned])
        store(connection, self._dialect, planned, self._by_id(planned, vectors))

    def _store_all(
        self,
        connection: Connection,
        batches: Sequence[Batch],
        model_id: int | None,
        vectors: Mapping[str, Vector | None],
    ) -> None:
        sights = claim_all(connection, self._dialect, batches)
        refuse_newer(connection)
        plans = plan_all(connection, self._dialect, sights, batches, model_id)
        self._require(vectors, plans)
        store_all(connection, self._dialect, plans, [self._by_id(planned, vectors) for planned in plans])

    def _plan(self, connection: Connection, batch: Batch, model_id: int | None) -> Plan:
        return plan(connection, self._dialect, look(connection, batch.scope), batch, model_id)

    def _plan_all(self, connection: Connection, batches: Sequence[Batch], model_id: int | None) -> list[Plan]:
        sights = look_at_all(connection, self._dialect, batches)
        return plan_all(connection, self._dialect, sights, batches, model_id)

    def _require(self, vectors: Mapping[str, Vector | None], plans: Sequence[Plan]) -> None:
        if missing := self._missing(plans, vectors):
            raise _MissingVectorsError(missing)

    def _missing(self, plans: Sequence[Plan], vectors: Mapping[str, Vector | None]) -> list[str]:
        """Return the passages that are to be embedded and not in ``vectors`` yet."""
        passages = (passage for planned in plans for passage in self._passages(planned).values())
        return [passage for passage in passages if passage not in vectors]

    def _by_id(self, planned: Plan, vectors: Mapping[str, Vector | None]) -> dict[str, Vector | None]:
        embedder = self._embedder
        if embedder is None:
            return {}
        given = planned.given()
        units = dict(zip(given, embedder.units(list(given.values())), strict=True))
        return units | {entry_id: vectors[passage] for entry_id, passage in self._passages(planned).items()}

    def _passages(self, planned: Plan) -> Mapping[str, str]:
        embedder = self._embedder
        if embedder is None or not embedder.embeds_texts:
            return {}
        return planned.passages(turns=embedder.embeds_turns)

    async def _embedded(self, passages: Sequence[str]) -> dict[str, Vector | None]:
        return {} if self._embedder is None or not passages else await self._embedder.new_passages(passages)
