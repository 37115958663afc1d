"""Every public operation of a service as the leak hunt calls it: a new operation is one line in `OPERATIONS`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from adk_memory import (
    Filter,
    InMemoryMemoryService,
    Memory,
    MemoryEntry,
    MemoryService,
    Page,
    SearchRequest,
    SessionEntries,
)
from adk_memory._paging import Place, cursor
from adk_memory._scope import Scope
from adk_memory._validation import utc


class Reach(Enum):
    """Which projects an operation can be asked to touch."""

    ONE = auto()
    """The global entries or one project."""
    ANY = auto()
    """These, or `ALL_PROJECTS`."""
    NAMED = auto()
    """A project."""
    USER = auto()
    """The whole user."""


@dataclass(frozen=True)
class Call:
    """One call of one user: what every operation may need, whether it takes all of it or not."""

    service: MemoryService
    app: str
    user: str
    project: Any
    session: str
    entry_id: str
    entries: list[MemoryEntry]
    query: str
    limit: int
    mode: Any
    filter: Filter | None
    flag: bool
    existing: Any
    foreign_cursor: str | None

    @property
    def scope(self) -> tuple[str, str]:
        return self.app, self.user

    def request(self) -> SearchRequest:
        return SearchRequest(
            self.query, *self.scope, self.project, self.limit, None, self.mode,
            explain=True, recency=0.2 if self.flag else 0.0, filter=self.filter,
        )  # fmt: skip

    def item(self) -> SessionEntries:
        return SessionEntries(*self.scope, self.session if self.flag else None, self.entries, self.project)

    @property
    def at(self) -> dict[str, Any]:
        return {"project_id": self.project}

    @property
    def rewriting(self) -> Any:
        return "keep" if self.existing == "keep" else "update"


async def _pages(c: Call) -> list[Page]:
    """Return every page of a list."""
    pages: list[Page] = []
    after = None
    while not pages or after is not None:
        page = await c.service.list_page(
            *c.scope, project_id=c.project, filter=c.filter, limit=max(c.limit, 1), after=after, with_total=True
        )
        pages.append(page)
        after = page.next
    return pages


async def _exported(c: Call) -> list[Memory]:
    return [memory async for memory in c.service.export_user(*c.scope)]


async def _erased(c: Call) -> int:
    """Return what went, and not the rest of the proof: what cannot be removed while others are there is no answer."""
    return (await c.service.erase_user(*c.scope)).erased


async def _page_after_anothers(c: Call) -> Page:
    after = c.foreign_cursor or cursor(Place(utc(0), 1), Scope("nobody", "nobody", None), None)
    return await c.service.list_page(*c.scope, project_id=c.project, filter=c.filter, after=after)


OPERATIONS: Final[dict[str, tuple[Reach, Callable[[Call], Awaitable[Any]]]]] = {
    "add_session": (
        Reach.ONE,
        lambda c: c.service.add_session(*c.scope, c.session, c.entries, **c.at, existing=c.existing),
    ),
    "add_session_to_project": (
        Reach.NAMED,
        lambda c: c.service.add_session_to_project(*c.scope, c.session, c.project, c.entries),
    ),
    "add_entry": (Reach.ONE, lambda c: c.service.add_entry(*c.scope, c.entries[0], **c.at, existing=c.rewriting)),
    "add_entry_to_project": (
        Reach.NAMED,
        lambda c: c.service.add_entry_to_project(*c.scope, c.project, c.entries[0]),
    ),
    "add_many": (Reach.ONE, lambda c: c.service.add_many([c.item()], existing=c.rewriting)),
    "search": (Reach.ONE, lambda c: c.service.search(c.request())),
    "get": (Reach.ONE, lambda c: c.service.get(*c.scope, c.entry_id, **c.at)),
    "list_recent": (Reach.ANY, lambda c: c.service.list_recent(*c.scope, c.limit, **c.at, filter=c.filter)),
    "list_page": (Reach.ANY, _pages),
    "list_page after another's cursor": (Reach.ANY, _page_after_anothers),
    "delete": (Reach.ANY, lambda c: c.service.delete(*c.scope, c.entry_id, **c.at)),
    "delete_entries": (Reach.ONE, lambda c: c.service.delete_entries(*c.scope, c.query, **c.at)),
    "delete_entries, dry run": (
        Reach.ONE,
        lambda c: c.service.delete_entries(*c.scope, c.query, **c.at, dry_run=True),
    ),
    "delete_entries_in_project": (
        Reach.NAMED,
        lambda c: c.service.delete_entries_in_project(*c.scope, c.project, c.query, dry_run=c.flag),
    ),
    "delete_session": (Reach.ANY, lambda c: c.service.delete_session(*c.scope, c.session, **c.at)),
    "delete_project": (Reach.NAMED, lambda c: c.service.delete_project(*c.scope, c.project)),
    "delete_user": (Reach.USER, lambda c: c.service.delete_user(*c.scope)),
    "erase_user": (Reach.USER, _erased),
    "export_user": (Reach.USER, _exported),
}
"""By the name of the operation, and after it, where there are several, which form of it."""

READING: Final = tuple(
    name for name in OPERATIONS if name.startswith(("search", "get", "list", "export")) or "dry" in name
)

OF_NO_USER: Final = frozenset(
    {
        "close",
        "drop_model",
        "embed_pending",
        "health_check",
        "list_users",
        "migrate",
        "purge_expired",
        "reindex",
        "schema_version",
        "scrub",
    }
)
"""Operations of an operator, who is given no entry of a user; `list_users` names those of one app."""


def hunted() -> set[str]:
    """Return the names of the operations that the hunt calls."""
    return {name.replace(",", " ").split()[0] for name in OPERATIONS}


def public_operations() -> set[str]:
    """Return the names of the operations that a service has."""
    members = inspect.getmembers(InMemoryMemoryService, inspect.isroutine)  # it has all
    return {name for name, member in members if not name.startswith("_") and _is_operation(member)}


def _is_operation(member: Any) -> bool:
    return inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
