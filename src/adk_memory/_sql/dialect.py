"""Dialect: the few things that the two databases do differently; everything else is written once, in the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Delete, Insert, Select, Subquery
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_memory._ranking import Vector
from adk_memory._sql.scope import Sight
from adk_memory.filters import Metadata


class Dialect(Protocol):
    """What one database does in its own way."""

    name: str
    connections_need_their_loop: bool

    def reading(self, engine: AsyncEngine) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a connection that sees one state of the database from its first statement to its last."""
        ...

    def writing(self, engine: AsyncEngine) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a transaction that is committed at the end, and rolled back where the block is left by an error."""
        ...

    def insert(self, row: type[Any]) -> Any:
        """Return an INSERT that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
        ...

    def index(self, scope_id: int, entry_id: int, terms: Sequence[str]) -> Mapping[str, object]:
        """Return the parameters with which `index_statement` makes an entry findable by its terms."""
        ...

    @property
    def index_statement(self) -> Insert: ...

    def unindex(self, sight: Sight, entry_ids: Select[Any]) -> Delete:
        """Take entries in sight out of the keyword index."""
        ...

    def metadata_condition(self, condition: Metadata) -> ColumnElement[bool]:
        """Return the condition on rows of entries; it is true or false for every row, never NULL."""
        ...

    def matching(self, sight: Sight, terms: Sequence[str], *, every: bool) -> Subquery:
        """Select ``entry_id`` of the entries in sight that hold any, or every, of the terms."""
        ...

    def weightiest(self, sight: Sight, weights: Mapping[str, float], limit: int) -> Subquery:
        """Select ``entry_id`` of about the ``limit`` entries in sight that BM25 puts first, by weights of terms."""
        ...

    def with_terms(self, entries: Select[Any]) -> Select[Any]:
        """Add the column ``terms``, which `read_terms` reads, to a selection of entries; those without any drop out."""
        ...

    def read_terms(self, stored: str) -> list[str]:
        """Return the terms of an entry as the analyser gave them."""
        ...

    async def check_vectors(self, connection: AsyncConnection) -> None:
        """Raise a ConfigurationError if this database can't hold vectors, with what to do about it."""
        ...

    def vector_insert(self, scope_id: int, model_id: int) -> Insert:
        """Return an INSERT of vectors, whose parameters `vector_parameters` gives."""
        ...

    def vector_parameters(self, entry_id: int, vector: Vector) -> Mapping[str, object]: ...

    async def nearest(
        self, connection: AsyncConnection, sight: Sight, model_id: int, vector: Vector, count: int
    ) -> dict[int, float]:
        """Return the cosine, 0 to 1, of the ``count`` entries in sight nearest to ``vector``; ties beyond that too."""
        ...
