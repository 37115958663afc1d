"""MaintainedService: what an operator has a backend do, from its tables to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from adk_memory._observing import observe_operations
from adk_memory.errors import OperationNotSupportedError
from adk_memory.types import HealthReport


class MaintainedService:
    """The part of `MemoryService` that is about the whole store, and about no user in particular."""

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

    async def health_check(self) -> HealthReport:
        """Reach the backend and say what it is.

        Raises:
            StorageUnavailableError: it could not be reached.
            SchemaError: its tables are not what this version needs.
        """
        raise OperationNotSupportedError(f"{type(self).__name__} does not support health_check")
