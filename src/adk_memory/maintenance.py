"""MaintainedService: what an operator has a backend do, from its tables to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from adk_memory._observing import observe_operations
from adk_memory.erasure import ScrubReport
from adk_memory.errors import OperationNotSupportedError
from adk_memory.types import HealthReport


class MaintainedService:
    """The part of `MemoryService` that is about the whole store, and about no user in particular.

    Where the database hides the entries of others from the role that asks, whatever looks after all of them raises a
    `ConfigurationError` before it does anything.
    """

    backend_name: str = ""
    """What logs and telemetry call this backend; the name of its class where it says nothing."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        observe_operations(cls)

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

    async def list_users(
        self, app_name: str, *, prefix: str = "", after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Return the ids of the users of one app that have entries, in the order of their code points.

        Only those that begin with ``prefix``, compared exactly, and come ``after`` an id; at most 1,000 at once, so
        call it again after the last of so many. The ids are data of those users: a caller answers for who sees them.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support list_users")

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
            ConfigurationError: nothing was ever stored with such a model.
            ValidationError: ``model`` is not a string of 1 to 256 characters.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support drop_model")

    async def purge_expired(self, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Erase, for good, the entries of all users that have expired; return what this call erased.

        No read returns them any more, and none answers otherwise for their being there or gone: this only makes room.
        Very many go in parts, after each of which ``on_progress`` is called with the number so far; others may read and
        write meanwhile. It may be interrupted at any time, and several calls at once don't disturb each other.

        A backend on which nothing expires has nothing to do, and returns 0.
        """
        return 0

    async def scrub(self, *, on_progress: Callable[[int, int], None] | None = None) -> ScrubReport:
        """Remove what erased entries left behind in the files of the store, where nobody finds it but a look at them.

        It is about entries that are erased already, of all users, and erases none. On SQLite it merges the keyword
        index in short steps, then rewrites the whole file, for which other writers wait and as much again of disk is
        needed, and empties the write-ahead log. On Postgres it vacuums the tables; what Postgres keeps nevertheless
        is in docs/erasure.md. Others may read and write meanwhile. It may be interrupted at any time, and called
        again. ``on_progress`` is called with the number of steps that are done and of all. What could not be removed,
        for others who are in the way, is in the report.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support scrub")

    async def health_check(self) -> HealthReport:
        """Reach the backend and say what it is.

        Raises:
            StorageUnavailableError: it could not be reached.
            SchemaError: its tables are not what this version needs.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support health_check")
