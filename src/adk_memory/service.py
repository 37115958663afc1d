"""MemoryService: what every backend does. Its docstrings are the contract; `adk_memory.testing` checks it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Literal

from adk_memory._bulk import batches
from adk_memory._sessions import SessionEntries
from adk_memory._validation import DEFAULT_LIMIT, DEFAULT_PAGE, validate_id
from adk_memory.embedding import Embedder
from adk_memory.erasure import ErasureProof
from adk_memory.errors import OperationNotSupportedError, ProjectScopingNotSupportedError, ValidationError
from adk_memory.filters import Filter
from adk_memory.maintenance import MaintainedService
from adk_memory.types import (
    ALL_PROJECTS,
    AllProjects,
    Existing,
    Memory,
    MemoryEntry,
    Page,
    SearchRequest,
    SearchResponse,
)


class MemoryService(MaintainedService, ABC):
    """Long-term memory of many users, kept by ``(app_name, user_id, project_id or none)``.

    **Scope.** Reading with ``project_id=None`` sees the global entries only; with ``"A"`` the global entries and
    those of project A. Erasing with ``None`` touches global entries only; with ``"A"`` those of project A only.
    `ALL_PROJECTS`, where an operation takes it, is everything of that user in that app. No operation ever sees
    another user's or app's entries. A backend that can't keep projects apart leaves `supports_project_scoping`
    false and raises `ProjectScopingNotSupportedError` wherever a project is named.

    **Identifiers** are strings of 1 to 256 characters, compared exactly.

    **Order** is by instant, then by arrival.

    **Erasing** returns how many entries were erased: an `Erasure`, an int that also says how many vectors, index
    entries and scopes went with them, or, where a backend does not count these, a plain int.
    **Expiry.** From its ``expires_at`` on, by the clock of the process, an entry is absent: no read returns it, counts
    it or scores by it, and adding it adds a new one. It is there for the deletes by id, session, project and user,
    which erase it and count it, and for `purge_expired`. A backend on which nothing expires leaves `supports_expiry`
    false and refuses an entry that would.

    **Errors.** Bad input raises `ValidationError` before anything is written. An operation that a backend lacks
    raises `OperationNotSupportedError`. Operations of a database raise `StorageError` and `SchemaError`.

    **Life.** A service is an async context manager; leaving it calls `close`. It may be used by many tasks of one
    event loop at once. What an operator calls is in `MaintainedService`.
    """

    supports_project_scoping: bool = False
    """Whether this backend keeps projects apart."""
    supports_expiry: bool = False
    """Whether entries can expire on this backend."""
    _embedder: Embedder | None = None
    """What checks the vectors that come with entries, in a backend that takes them."""

    # Writing

    @abstractmethod
    async def add_session(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        entries: Sequence[MemoryEntry],
        *,
        project_id: str | None = None,
        existing: Existing = "update",
    ) -> list[str]:
        """Remember the entries of a session, all of them or none; return their ids in the order given.

        An entry is known by its ``id`` inside this session and project; one without an id is known by a digest
        of its author, content and explicitly given timestamp, identical twins of one call by their number. So
        adding a session again, or a longer version of it, leaves one copy of each entry, also when several
        callers do it at once. Known entries are rewritten where they differ (``existing="update"``; a timestamp
        or an ``expires_at`` that was not given is left alone), left as they are (``"keep"``), or, with ``"replace"``,
        rewritten while all others of this session and project are erased.

        A ``vector`` that comes with an entry is stored as the one of the configured provider's model, whatever was
        stored before (but with ``"keep"``); entries without a word have none.

        Raises:
            ValidationError: an entry has a vector and no provider is configured, or it is not finite.
            EmbeddingError: a provider is configured and failed; nothing was written. With
                ``on_embedding_error="defer"`` the entries are, without vectors, which `embed_pending` makes.
            EmbeddingMismatchError: a vector is not of the length that the provider declares.
        """

    async def add_entry(
        self,
        app_name: str,
        user_id: str,
        entry: MemoryEntry,
        *,
        project_id: str | None = None,
        existing: Literal["update", "keep"] = "update",
    ) -> str:
        """Remember a single entry, outside of any session; return its id.

        With an ``id`` it is known by that, as in `add_session`; without one it is always added.
        """
        raise self._refusal("add_entry", project_id)

    async def add_many(
        self,
        items: Iterable[SessionEntries] | AsyncIterable[SessionEntries],
        *,
        existing: Literal["update", "keep"] = "update",
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Remember the entries of many items, of many users, as they come; return how many entries these held.

        The result is what `add_session` for each item in turn would leave, or, where an item has no session,
        `add_entry` for each of its entries; so adding the same items again, after an interruption, leaves one copy of
        each, but for single entries without an id. Items are taken and stored in batches of some 1,000 entries; an
        item is best a whole session. After each batch ``on_progress`` is told how many entries are stored so far;
        whatever fails later, these stay.

        Raises:
            ValidationError: an item is bad; what came before it is stored. The message holds its number, counted from
                0, and how many entries are stored.
            EmbeddingError: a provider is configured and failed; the batches before are stored.
        """
        if existing not in ("update", "keep"):
            raise ValidationError("existing must be update or keep for many items")
        if not isinstance(items, Iterable | AsyncIterable):
            raise ValidationError(f"items must be an iterable of SessionEntries, got {type(items).__name__}")
        entries = 0
        async with aclosing(batches(items, self._embedder)) as taken:
            async for batch in taken:
                await self._add_batch(batch, existing)
                entries += sum(len(item.entries) for item in batch)
                if on_progress is not None:
                    on_progress(entries)
        return entries

    async def _add_batch(self, items: Sequence[SessionEntries], existing: Literal["update", "keep"]) -> None:
        """Store some items of `add_many`; a backend that can do so faster than one by one overrides this."""
        for item in items:
            app_name, user_id, project_id = item.app_name, item.user_id, item.project_id
            if item.session_id is not None:
                await self.add_session(
                    app_name, user_id, item.session_id, item.entries, project_id=project_id, existing=existing
                )
            else:
                for entry in item.entries:
                    await self.add_entry(app_name, user_id, entry, project_id=project_id, existing=existing)

    # Reading

    @abstractmethod
    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return the memories in sight that match any word of the query, or are near to it, best first.

        In keyword mode an entry matches if it holds a word of the query; with an embedding provider also if it
        is among the nearest by cosine similarity. Equal scores come newest first, then in order of arrival. A
        query without a word matches nothing, unless its vector is given; of a very long one the first 256 terms
        count. Entries without text are never matched. With a filter: those of the matches that pass it, with the
        scores that they have without it, and the nearest of the entries that pass.

        Raises:
            ValidationError: the vector of the request is not finite, or no provider is configured.
            EmbeddingMismatchError: it is not of the length that the provider declares.
            OperationNotSupportedError: ``mode`` asks for vectors and no provider is configured, or there is a filter
                and the backend has none; it never ignores one.
            EmbeddingError: ``mode`` asks for vectors and the provider failed. With ``mode=None`` the search goes
                on by keywords and the response is marked ``partial``.
        """

    async def get(self, app_name: str, user_id: str, entry_id: str, *, project_id: str | None = None) -> Memory | None:
        """Return the entry of that id in sight of ``project_id``, or `None`.

        Where several sessions hold the id: the newest.
        """
        raise self._refusal("get", project_id)

    async def list_recent(
        self,
        app_name: str,
        user_id: str,
        limit: int | None = DEFAULT_LIMIT,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
        filter: Filter | None = None,
    ) -> list[Memory]:
        """Return the latest entries that pass the filter, newest first; of one instant, the last to arrive first.

        Unlike a search it sees every project of the user unless ``project_id`` narrows it.
        """
        raise self._refusal("list_recent", project_id)

    async def list_page(
        self,
        app_name: str,
        user_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
        filter: Filter | None = None,
        limit: int | None = DEFAULT_PAGE,
        after: str | None = None,
        with_total: bool = False,
    ) -> Page:
        """Return a page of the list of `list_recent`: from its beginning, or ``after`` the ``next`` of another page.

        Whatever is added, erased or rewritten between two pages, an entry that is there throughout and keeps its
        time is on exactly one of them. ``with_total=True`` counts the whole list too.

        Raises:
            ValidationError: ``after`` is not the ``next`` of a page of this app, user, project and filter.
        """
        raise self._refusal("list_page", project_id)

    def export_user(self, app_name: str, user_id: str) -> AsyncGenerator[Memory]:
        """Yield everything known of a user in one app, in order of arrival, holding a page of it at a time.

        Added by `add_many`, in this order, with their ``positions`` where they have a session, the same entries are
        there once more: the same ids, contents, times and ends, lists in the same order, searches by words with the
        same scores. Vectors are not part of it: the provider of the new place makes them again.

        Each entry that is there throughout is yielded once, as it was when its page was read; one that is added,
        rewritten or erased meanwhile may be missing or not.
        """
        raise self._refusal("export_user")

    # Erasing: entries, their index entries and their vectors; never through the provider.

    async def delete(
        self,
        app_name: str,
        user_id: str,
        entry_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> int:
        """Erase the entry of that id; return what was erased, 0 where there is none.

        Every session of the user that holds the id loses it; ``project_id`` narrows that to the global entries
        (`None`) or to one project.
        """
        raise self._refusal("delete", project_id)

    async def delete_entries(
        self, app_name: str, user_id: str, query: str, *, project_id: str | None = None, dry_run: bool = False
    ) -> int:
        """Erase the entries that hold **every** word of the query; return how many.

        Words are compared without case and accents, but not by their stems. A query without a word erases
        nothing. With ``project_id=None`` only global entries, with a project only its own. ``dry_run=True``
        erases nothing and returns what it would, its parts too.
        """
        raise self._refusal("delete_entries", project_id)

    async def delete_session(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        *,
        project_id: str | AllProjects | None = ALL_PROJECTS,
    ) -> int:
        """Erase a session, in every project of the user unless ``project_id`` narrows it; return how many entries.

        All or none of them; but a backend may erase very many in parts, so call it again where it was interrupted.
        """
        raise self._refusal("delete_session", project_id)

    async def delete_project(self, app_name: str, user_id: str, project_id: str) -> int:
        """Erase everything of one project of one user, never a global entry; return how many entries.

        Very many go in parts, as in `delete_session`.
        """
        raise self._refusal("delete_project", project_id)

    async def delete_user(self, app_name: str, user_id: str) -> int:
        """Erase everything of one user in one app, the ids included; return how many entries.

        Very many go in parts, as in `delete_session`.
        """
        raise self._refusal("delete_user")

    async def erase_user(
        self, app_name: str, user_id: str, *, on_progress: Callable[[int, int], None] | None = None
    ) -> ErasureProof:
        """Erase a user as `delete_user` does, `scrub`, and look for what is left; say what was found.

        Looked for are the rows, vectors and index terms of the scopes that the user had, by their numbers, and, on
        SQLite, the bytes of all that was stored of the user, in the file and in those beside it. A sequence of bytes
        that something else in the file still holds proves nothing, nor does a text or an id of less than 8 bytes. It
        takes some seconds for each 100 MB. ``on_progress`` is that of `scrub`.
        """
        raise self._refusal("erase_user")

    # The project-named forms

    async def add_session_to_project(
        self,
        app_name: str,
        user_id: str,
        session_id: str,
        project_id: str,
        entries: Sequence[MemoryEntry],
        *,
        existing: Existing = "update",
    ) -> list[str]:
        """Call `add_session` for a project."""
        project_id = self._project(project_id)
        return await self.add_session(app_name, user_id, session_id, entries, project_id=project_id, existing=existing)

    async def add_entry_to_project(self, app_name: str, user_id: str, project_id: str, entry: MemoryEntry) -> str:
        """Call `add_entry` for a project."""
        return await self.add_entry(app_name, user_id, entry, project_id=self._project(project_id))

    async def delete_entries_in_project(
        self, app_name: str, user_id: str, project_id: str, query: str, *, dry_run: bool = False
    ) -> int:
        """Call `delete_entries` for a project."""
        project_id = self._project(project_id)
        return await self.delete_entries(app_name, user_id, query, project_id=project_id, dry_run=dry_run)

    def require_project_scoping(self) -> None:
        """Do nothing if this backend keeps projects apart.

        Raises:
            ProjectScopingNotSupportedError: it does not.
        """
        if not self.supports_project_scoping:
            raise ProjectScopingNotSupportedError(
                f"{type(self).__name__} can't keep projects apart; use project_id=None or another backend"
            )

    def _project(self, project_id: object) -> str:
        self.require_project_scoping()
        return validate_id("project_id", project_id)

    def _refusal(self, operation: str, project_id: str | AllProjects | None = None) -> OperationNotSupportedError:
        if isinstance(project_id, str):
            self.require_project_scoping()
        return OperationNotSupportedError(f"{type(self).__name__} does not support {operation}")
