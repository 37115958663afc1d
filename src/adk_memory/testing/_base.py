"""What the groups of the contract share: the capabilities of a backend, the fixtures, and short words for calls."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar, Final, Literal, Protocol

import pytest
import pytest_asyncio

from adk_memory import (
    ALL_PROJECTS,
    EmbeddingProvider,
    Filter,
    Memory,
    MemoryEntry,
    MemoryService,
    Page,
    SearchRequest,
    SearchResponse,
)
from adk_memory.embedding import OnEmbeddingError
from adk_memory.testing._embedder import ToyEmbedder
from adk_memory.types import AllProjects, Existing, Mode

OPTIONAL_OPERATIONS: Final = frozenset(
    {
        "add_entry",
        "delete",
        "delete_entries",
        "delete_project",
        "delete_session",
        "delete_user",
        "drop_model",
        "embed_pending",
        "export_user",
        "get",
        "health_check",
        "list_page",
        "list_recent",
        "list_users",
    }
)


class MakeService(Protocol):
    """Makes a service; it is entered, used and left by the suite.

    ``on_embedding_error`` is passed where the backend has ``embed_pending``, and nowhere else.
    """

    def __call__(
        self,
        *,
        embedder: EmbeddingProvider | None = None,
        on_embedding_error: OnEmbeddingError = "raise",
        default_ttl: timedelta | None = None,
    ) -> MemoryService: ...


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do, from the attributes of its test class."""

    projects: bool
    embeddings: bool
    filters: bool
    optional_operations: frozenset[str]

    def need(self, operation: str) -> None:
        """Skip the test where the backend is declared to lack ``operation``; that it refuses is tested apart."""
        if operation not in self.optional_operations:
            pytest.skip(f"this backend does not have {operation}")

    def need_filters(self, filter: Filter | None) -> None:
        """Skip the test where there is a filter and the backend is declared to have none."""
        if filter is not None and not self.filters:
            pytest.skip("this backend does not have filters")


@dataclass(frozen=True)
class Memories:
    """The memories of one app, user and project: a service with short words for its operations.

    A test that comes upon something the backend is declared to lack is skipped.
    """

    service: MemoryService
    can: Capabilities
    app_name: str
    user_id: str = "ana"
    project_id: str | None = None

    def app(self, app_name: str) -> Memories:
        """Return the same user's in another app."""
        return replace(self, app_name=app_name)

    def user(self, user_id: str) -> Memories:
        """Return another user's in the same app."""
        return replace(self, user_id=user_id)

    def project(self, project_id: str | None) -> Memories:
        """Return the same user's in a project, or the global ones."""
        if project_id is not None and not self.can.projects:
            pytest.skip("this backend does not keep projects apart")
        return replace(self, project_id=project_id)

    async def add(self, *entries: MemoryEntry | str, session: str = "s1", existing: Existing = "update") -> list[str]:
        return await self.service.add_session(
            self.app_name,
            self.user_id,
            session,
            [_entry(entry) for entry in entries],
            project_id=self.project_id,
            existing=existing,
        )

    async def add_entry(self, entry: MemoryEntry | str, *, existing: Literal["update", "keep"] = "update") -> str:
        self.can.need("add_entry")
        return await self.service.add_entry(
            self.app_name, self.user_id, _entry(entry), project_id=self.project_id, existing=existing
        )

    async def search(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float | None = None,
        mode: Mode | None = None,
        filter: Filter | None = None,
        vector: object = None,
    ) -> SearchResponse:
        self.can.need_filters(filter)
        scope = (self.app_name, self.user_id, self.project_id)
        return await self.service.search(
            SearchRequest(query, *scope, limit, min_score, mode, filter=filter, vector=vector)
        )

    async def found(
        self,
        query: str,
        *,
        limit: int | None = 10,
        min_score: float | None = None,
        mode: Mode | None = None,
        filter: Filter | None = None,
        vector: object = None,
    ) -> list[str]:
        """Return the texts that a search finds, best first."""
        return texts(
            await self.search(query, limit=limit, min_score=min_score, mode=mode, filter=filter, vector=vector)
        )

    async def scores(self, query: str, *, mode: Mode | None = None, filter: Filter | None = None) -> dict[str, float]:
        """Return the score of each text that a search finds, best first."""
        response = await self.search(query, limit=1_000, mode=mode, filter=filter)
        return {memory.text: memory.score for memory in response if memory.score is not None}

    async def recent(self, limit: int | None = 1_000, *, filter: Filter | None = None) -> list[Memory]:
        """Return the latest entries in sight of the project."""
        self.can.need("list_recent")
        self.can.need_filters(filter)
        return await self.service.list_recent(
            self.app_name, self.user_id, limit, project_id=self.project_id, filter=filter
        )

    async def page(
        self,
        limit: int | None = 50,
        *,
        after: str | None = None,
        filter: Filter | None = None,
        with_total: bool = False,
    ) -> Page:
        """Return a page of the entries in sight of the project."""
        self.can.need("list_page")
        self.can.need_filters(filter)
        return await self.service.list_page(
            self.app_name,
            self.user_id,
            project_id=self.project_id,
            filter=filter,
            limit=limit,
            after=after,
            with_total=with_total,
        )

    async def everything(self) -> list[str]:
        """Return the texts of all entries of the user, newest first."""
        self.can.need("list_recent")
        return texts(await self.service.list_recent(self.app_name, self.user_id, 1_000))

    async def get(self, entry_id: str) -> Memory | None:
        self.can.need("get")
        return await self.service.get(self.app_name, self.user_id, entry_id, project_id=self.project_id)

    async def delete(self, entry_id: str, *, project_id: str | AllProjects | None = ALL_PROJECTS) -> int:
        self.can.need("delete")
        return await self.service.delete(self.app_name, self.user_id, entry_id, project_id=project_id)

    async def delete_entries(self, query: str, *, dry_run: bool = False) -> int:
        self.can.need("delete_entries")
        return await self.service.delete_entries(
            self.app_name, self.user_id, query, project_id=self.project_id, dry_run=dry_run
        )

    async def delete_session(
        self, session_id: str = "s1", *, project_id: str | AllProjects | None = ALL_PROJECTS
    ) -> int:
        self.can.need("delete_session")
        return await self.service.delete_session(self.app_name, self.user_id, session_id, project_id=project_id)

    async def delete_project(self, project_id: str) -> int:
        self.can.need("delete_project")
        return await self.service.delete_project(self.app_name, self.user_id, project_id)

    async def delete_user(self) -> int:
        self.can.need("delete_user")
        return await self.service.delete_user(self.app_name, self.user_id)


class ContractBase:
    """The capabilities of the backend under test, and the fixtures of all groups."""

    projects: ClassVar[bool] = True
    embeddings: ClassVar[bool] = True
    filters: ClassVar[bool] = True
    expiry: ClassVar[bool] = True
    durable: ClassVar[bool] = True
    optional_operations: ClassVar[frozenset[str]] = OPTIONAL_OPERATIONS

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def make_service(self) -> MakeService:
        """Return what makes a service; every subclass of the contract overrides this fixture."""
        raise NotImplementedError("override the fixture make_service, see MemoryServiceContract")

    @pytest.fixture
    def capabilities(self) -> Capabilities:
        """Return what the backend is declared to do."""
        return Capabilities(self.projects, self.embeddings, self.filters, self.optional_operations)

    @pytest.fixture
    def app_name(self) -> str:
        """Return the name of an app that no other test uses."""
        return f"app-{uuid.uuid4().hex}"

    @pytest_asyncio.fixture
    async def memory(
        self, make_service: MakeService, capabilities: Capabilities, app_name: str
    ) -> AsyncIterator[Memories]:
        """Yield the memories of a new app, in a service without an embedding provider."""
        async with make_service() as service:
            yield Memories(service, capabilities, app_name)

    @pytest.fixture
    def embedder(self) -> ToyEmbedder:
        """Return an embedding provider whose model no other test uses."""
        return ToyEmbedder(model=f"toy-{uuid.uuid4().hex}")

    @pytest_asyncio.fixture
    async def embedded(
        self,
        make_service: MakeService,
        capabilities: Capabilities,
        app_name: str,
        embedder: ToyEmbedder,
    ) -> AsyncIterator[Memories]:
        """Yield the memories of a new app, in a service with ``embedder`` as its provider."""
        if not self.embeddings:
            pytest.skip("this backend does not take an embedding provider")
        async with make_service(embedder=embedder) as service:
            yield Memories(service, capabilities, app_name)


def texts(memories: Sequence[Memory] | SearchResponse) -> list[str]:
    """Return the text of each memory."""
    return [memory.text for memory in memories]


def _entry(entry: MemoryEntry | str) -> MemoryEntry:
    return entry if isinstance(entry, MemoryEntry) else MemoryEntry(entry)
