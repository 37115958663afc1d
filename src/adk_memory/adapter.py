"""MemoryServiceAdapter: one user's memory, with nothing left to get wrong. It is what an agent holds."""

from __future__ import annotations

from collections.abc import Sequence

from adk_memory._validation import DEFAULT_LIMIT, validate_id, validate_project_id
from adk_memory.filters import Filter
from adk_memory.service import MemoryService
from adk_memory.types import Existing, HealthReport, MemoryEntry, SearchRequest, SearchResponse


class MemoryServiceAdapter:
    """Binds a service to one app and user and, where given, one project; every call stays inside.

    Raises:
        ValidationError: an id is not a string of 1 to 256 characters.
        ProjectScopingNotSupportedError: a project is named and the service can't keep projects apart.
    """

    def __init__(self, service: MemoryService, app_name: str, user_id: str, project_id: str | None = None) -> None:
        self._service = service
        self._app_name = validate_id("app_name", app_name)
        self._user_id = validate_id("user_id", user_id)
        self._project_id = self._checked(project_id)

    def with_project_id(self, project_id: str | None) -> MemoryServiceAdapter:
        """Return a new adapter for the same user, bound to ``project_id``; this one is left as it is."""
        return MemoryServiceAdapter(self._service, self._app_name, self._user_id, project_id)

    @property
    def supports_project_scoping(self) -> bool:
        """Whether the service keeps projects apart."""
        return self._service.supports_project_scoping

    async def search(
        self,
        query: str,
        *,
        limit: int | None = DEFAULT_LIMIT,
        min_score: float | None = None,
        filter: Filter | None = None,
        vector: object = None,
    ) -> SearchResponse:
        """Return the memories in sight that match ``query``, best first; see `MemoryService.search`."""
        return await self._search(query, self._project_id, limit, min_score, filter, vector)

    async def search_in_project(
        self,
        query: str,
        project_id: str,
        *,
        limit: int | None = DEFAULT_LIMIT,
        min_score: float | None = None,
        filter: Filter | None = None,
        vector: object = None,
    ) -> SearchResponse:
        """Return what `search` would if the adapter were bound to ``project_id``."""
        project_id = validate_id("project_id", project_id)
        return await self._search(query, self._checked(project_id), limit, min_score, filter, vector)

    async def add(self, entry: MemoryEntry) -> str:
        """Remember a single entry; return its id."""
        return await self._service.add_entry(self._app_name, self._user_id, entry, project_id=self._project_id)

    async def add_to_project(self, entry: MemoryEntry, project_id: str) -> str:
        """Remember a single entry in ``project_id``; return its id."""
        return await self._service.add_entry_to_project(self._app_name, self._user_id, project_id, entry)

    async def add_session(
        self, session_id: str, entries: Sequence[MemoryEntry], *, existing: Existing = "update"
    ) -> list[str]:
        """Remember the entries of a session; see `MemoryService.add_session`."""
        return await self._service.add_session(
            self._app_name, self._user_id, session_id, entries, project_id=self._project_id, existing=existing
        )

    async def delete(self, query: str, *, dry_run: bool = False) -> int:
        """Erase the entries that hold every word of ``query``; see `MemoryService.delete_entries`."""
        return await self._service.delete_entries(
            self._app_name, self._user_id, query, project_id=self._project_id, dry_run=dry_run
        )

    async def health_check(self) -> HealthReport:
        """Reach the service's backend; see `MemoryService.health_check`."""
        return await self._service.health_check()

    async def _search(
        self,
        query: str,
        project_id: str | None,
        limit: int | None,
        min_score: float | None,
        filter: Filter | None,
        vector: object,
    ) -> SearchResponse:
        request = SearchRequest(
            query, self._app_name, self._user_id, project_id, limit, min_score, filter=filter, vector=vector
        )
        return await self._service.search(request)

    def _checked(self, project_id: str | None) -> str | None:
        if project_id is not None:
            self._service.require_project_scoping()
        return validate_project_id(project_id)
