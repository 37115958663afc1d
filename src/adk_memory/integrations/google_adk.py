"""Google ADK: a memory service for its runners and its command line, which keeps memories with adk-memory.

    Runner(..., memory_service=AdkMemoryService("sqlite:///memory.db"))

`register_uri_schemes` makes ``adk web --memory_service_uri`` take the URLs of `adk_memory.open_memory`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from urllib.parse import unquote_plus

import pydantic

from adk_memory._packages import require
from adk_memory._sessions import SessionEntries
from adk_memory._validation import DEFAULT_LIMIT, MAX_LIMIT, validate_id
from adk_memory.errors import ConfigurationError, ValidationError
from adk_memory.filters import Session as InSession
from adk_memory.integrations._services import Services
from adk_memory.service import MemoryService
from adk_memory.types import Memory, MemoryEntry, SearchRequest

require("google.adk", __name__, "google-adk")

from google.adk.memory import base_memory_service, memory_entry  # noqa: E402
from google.genai import types  # noqa: E402

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from adk_memory.embedding import EmbeddingProvider
    from adk_memory.reranking import Reranker

__all__ = ["URI_SCHEMES", "AdkMemoryService", "from_uri", "register_uri_schemes"]

URI_SCHEMES: Final = ("memory", "sqlite", "sqlite+aiosqlite", "postgres", "postgresql", "postgresql+asyncpg")
"""The schemes that `register_uri_schemes` takes over."""

_DELETED: Final = "adk-memory:deleted"
"""The session of the tombstones: each is an entry without content, whose id is a digest of the deleted one's."""


class AdkMemoryService(base_memory_service.BaseMemoryService):  # type: ignore[misc]
    """Keeps the memories of an ADK app in any backend of adk-memory.

    A URL is opened by the first call, and once more for each further event loop that runs at the same time: ADK's
    ``Runner.run`` starts a loop of its own. A `MemoryService` that is given instead stays the caller's to migrate and
    to close, and is for one loop at a time.

    Args:
        memory: a URL as for `adk_memory.open_memory`, or a service.
        project_id: store in this project, and search it and the global memories; `None` is global.
        limit: a search returns at most so many memories, 0 to 1,000.
        min_score: leave out of a search what scores less, 0 to 1.
        migrate: make or upgrade the tables before the first call; `None` does so for a SQLite URL only.
        embedder: search by similarity too; for a URL.
        reranker: has the last word on the order; for a URL.

    Raises:
        ConfigurationError: the URL names no backend, or a package for it is missing.
        ValidationError: ``project_id``, ``limit`` or ``min_score`` is none.
    """

    def __init__(
        self,
        memory: str | MemoryService,
        *,
        project_id: str | None = None,
        limit: int = DEFAULT_LIMIT,
        min_score: float | None = None,
        migrate: bool | None = None,
        embedder: EmbeddingProvider | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._request = SearchRequest("", "app", "user", project_id, limit, min_score)  # whose fields are checked
        self._project_id = project_id
        self._services = Services(memory, migrate, embedder, reranker)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release what was opened for a URL; the next call opens it anew."""
        await self._services.close()

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember the events of a session; adding it again, longer, adds what is new.

        An event that changed is rewritten. One that the session no longer holds stays: what is given may be only the
        end of a session. Partial events, those without text and those that `delete_memory` erased are left out.
        """
        entries = _entries(session.events, {})
        await self._remember(session.app_name, session.user_id, session.id, entries, "update")

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember some events of a session, or, without ``session_id``, of none; a known event stays as it is.

        ``custom_metadata`` is kept with each event and comes back with it from a search; it has to be JSON.
        """
        entries = _entries(events, custom_metadata or {})
        await self._remember(app_name, user_id, session_id, entries, "keep")

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[memory_entry.MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember single memories; one with a known id is rewritten, one without an id is always added.

        A time is ISO 8601, in UTC where it does not say. ``custom_metadata`` goes to each, under what it has itself.

        Raises:
            ValidationError: a memory has no text, so that no search could find it, or a time that can't be read.
        """
        entries = []
        for index, memory in enumerate(memories):
            if not _has_text(memory.content):
                raise ValidationError(f"memories[{index}] has no text, so that no search could find it")
            metadata = {**(custom_metadata or {}), **memory.custom_metadata}
            entries.append(_entry(memory.content, memory.author, memory.timestamp, memory.id, metadata))
        service = await self._services.ready()
        await service.add_many([SessionEntries(app_name, user_id, None, entries, self._project_id)])

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> base_memory_service.SearchMemoryResponse:
        """Return the memories that match the query, best first; times are ISO 8601, in UTC."""
        request = self._request
        asked = SearchRequest(query, app_name, user_id, request.project_id, request.limit, request.min_score)
        found = await (await self._services.ready()).search(asked)
        return base_memory_service.SearchMemoryResponse(memories=[_memory(memory) for memory in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase the memory of that id, as a search returned it; an empty or unknown id does nothing.

        An event of that id is not remembered again when its session is added again. For that a digest of the id
        stays, until the user or the project is erased; nothing of what was erased does.
        """
        if not memory_id or not _is_id(memory_id):
            return
        service = await self._services.ready()
        # In a project, the same id may be there and among the global memories: a search returned either.
        while (memory := await service.get(app_name, user_id, memory_id, project_id=self._project_id)) is not None:
            # In this order, an event that is added meanwhile goes, see `_remember`; and whoever is interrupted
            # between the two finds the memory and calls again.
            tombstone = MemoryEntry({"role": None}, author="", timestamp=0, id=_digest([app_name, user_id, memory_id]))
            await service.add_session(app_name, user_id, _DELETED, [tombstone], project_id=memory.project_id)
            await service.delete(app_name, user_id, memory_id, project_id=memory.project_id)

    async def _remember(
        self,
        app_name: str,
        user_id: str,
        session_id: str | None,
        entries: list[MemoryEntry],
        existing: Literal["update", "keep"],
    ) -> None:
        if not entries:
            return
        service = await self._services.ready()
        names = {entry.id: _digest([app_name, user_id, entry.id]) for entry in entries}
        deleted = await self._deleted(service, app_name, user_id)
        entries = [entry for entry in entries if names[entry.id] not in deleted]
        if not entries:
            return
        if session_id:
            await service.add_session(
                app_name, user_id, session_id, entries, project_id=self._project_id, existing=existing
            )
        else:
            await service.add_many(
                [SessionEntries(app_name, user_id, None, entries, self._project_id)], existing=existing
            )
        meanwhile = await self._deleted(service, app_name, user_id)
        for entry in entries:
            if names[entry.id] in meanwhile and entry.id is not None:
                await service.delete(app_name, user_id, entry.id, project_id=self._project_id)

    async def _deleted(self, service: MemoryService, app_name: str, user_id: str) -> set[str]:
        found: set[str] = set()
        after = None
        while True:
            page = await service.list_page(
                app_name, user_id, project_id=self._project_id, filter=InSession(_DELETED), limit=MAX_LIMIT, after=after
            )
            found.update(tombstone.id for tombstone in page)
            after = page.next
            if after is None:
                return found


def from_uri(
    uri: str, *, embedder: EmbeddingProvider | None = None, reranker: Reranker | None = None, **_adk: object
) -> AdkMemoryService:
    """Return the service for a URL that may hold options: ``sqlite:///memory.db?project_id=A&limit=5&min_score=0.2``.

    They are ``project_id``, ``limit``, ``min_score`` and ``migrate`` (``true`` or ``false``), and mean what the
    arguments of `AdkMemoryService` do; all others are the database's. What else ADK passes is not needed.

    Raises:
        ConfigurationError: an option can't be read, or as for `AdkMemoryService`.
        ValidationError: an option is out of bounds.
    """
    base, _, query = uri.strip().partition("?")
    options: dict[str, Any] = {}
    rest = []
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name in _OPTIONS:
            try:
                options[name] = _OPTIONS[name](unquote_plus(value))
            except (ValueError, KeyError):
                raise ConfigurationError(f"{name} in the memory service URI can't be read") from None
        elif pair:
            rest.append(pair)
    url = "?".join([base, "&".join(rest)] if rest else [base])
    return AdkMemoryService(url, embedder=embedder, reranker=reranker, **options)


def register_uri_schemes() -> None:
    """Have ADK open memory service URIs of the schemes in `URI_SCHEMES` with `from_uri`, in this process.

    ADK has memory services of its own for ``memory`` and ``sqlite``; these are replaced. Sessions and artifacts are
    not concerned. Call it in the ``services.py`` beside your agents.
    """
    from google.adk.cli.service_registry import get_service_registry

    for scheme in URI_SCHEMES:
        get_service_registry().register_memory_service(scheme, from_uri)


_OPTIONS: Final[dict[str, Any]] = {
    "project_id": str,
    "limit": int,
    "min_score": float,
    "migrate": {"true": True, "false": False}.__getitem__,
}


def _entries(events: Sequence[Event], metadata: Mapping[str, object]) -> list[MemoryEntry]:
    return [
        _entry(event.content, event.author, event.timestamp, event.id or _event_digest(event), metadata)
        for event in events
        # Partial events come again whole. Those without text hold calls of tools and their results, copies of
        # recalled memories among them, which would outlive these.
        if not event.partial and _has_text(event.content)
    ]


def _entry(
    content: types.Content, author: str | None, timestamp: object, entry_id: str | None, metadata: Mapping[str, object]
) -> MemoryEntry:
    return MemoryEntry(_plain(content), author or "", timestamp, entry_id, metadata)


def _memory(memory: Memory) -> memory_entry.MemoryEntry:
    return memory_entry.MemoryEntry(
        content=_genai_content(memory),
        author=memory.author or None,
        timestamp=memory.timestamp.isoformat(),
        id=memory.id,
        custom_metadata=dict(memory.metadata),
    )


def _plain(content: types.Content) -> dict[str, Any]:
    # What a tool returned may hold anything; a turn is not lost for that.
    plain: dict[str, Any] = content.model_dump(mode="json", exclude_none=True, fallback=str)
    return {"role": None, **plain}


def _genai_content(memory: Memory) -> types.Content:
    stored = memory.content.as_json()
    try:
        # As JSON, in which bytes stand in base64.
        return types.Content.model_validate_json(json.dumps(stored))
    except pydantic.ValidationError:  # stored by another way, with parts that genai does not have
        return types.Content(role=memory.content.role, parts=[types.Part(text=memory.text)])


def _has_text(content: types.Content | None) -> bool:
    parts = (content.parts if content else None) or []
    return any(part.text and part.text.strip() for part in parts)


def _event_digest(event: Event) -> str:
    return _digest([event.author, event.timestamp, _plain(event.content)])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _is_id(value: object) -> bool:
    try:
        validate_id("memory_id", value)
    except ValidationError:
        return False
    return True
