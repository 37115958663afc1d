"""MaintainedService: what an operator has a backend do, from its tables to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from adk_memory.errors import OperationNotSupportedError
from adk_memory.types import HealthReport


class MaintainedService:
    """The part of `MemoryService` that is about the whole store, and about no user in particular."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release what the service opened itself; calling it again does nothing."""

    async def migrate(self) -> None:
        """Create the tables, or bring them and the keyword index to this version; safe from several processes at once.

        A backend without a schema has nothing to do.
        """

    async def schema_version(self) -> str | None:
        """Return the revision of the tables, or `None` where there are none."""
        return None

    async def reindex(
        self, *, from_scratch: bool = False, on_progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Make the keyword index anew from the texts of all entries; return how many this call indexed.

        Others may search and write meanwhile. It may be interrupted at any time; the next call goes on from there.
        Several calls at once share the work. ``on_progress`` is called with the number of entries that are done and
        of all. With ``from_scratch=True`` the index is emptied first, as a damaged one needs; entries are found by
        their words again one after the other.

        A backend without a stored index has nothing to do, and returns 0.

        Raises:
            SchemaTooNewError: a newer version made the index.
        """
        return 0

    async def embed_pending(
        self, *, on_progress: Callable[[int, int], None] | None = None, limit: int | None = None
    ) -> int:
        """Make the vectors that entries with text lack, of the configured provider's model; return how many it made.

        They lack one where the provider failed and ``on_embedding_error="defer"``, and after a change of the provider:
        a store has vectors of several models, and a search compares those of the configured one. Others may search
        and write meanwhile, and no transaction is open while the provider is at work. It may be interrupted at any
        time; what is done stays, and the next call makes what is left. Several calls at once share the work.
        ``on_progress`` is called with the number of entries that are done and of all that lacked one; ``limit`` is the
        most to make. An entry for which the provider gives a zero vector is not pending any more.

        Raises:
            OperationNotSupportedError: there is no provider, or it can't embed.
            EmbeddingError: the provider failed for every text, or at last for some: all others have their vectors.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support embed_pending")

    async def drop_model(self, model: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Erase all vectors of the model of that name, and their index if there is one; return how many there were.

        That is for a model that no service is configured with any more. It goes in parts and may be interrupted; the
        next call erases what is left. ``on_progress`` is called with how many are erased so far.

        Raises:
            ConfigurationError: there never was a vector of such a model.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support drop_model")

    async def health_check(self) -> HealthReport:
        """Reach the backend and say what it is.

        Raises:
            StorageUnavailableError: it could not be reached.
            SchemaError: its tables are not what this version needs.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support health_check")
