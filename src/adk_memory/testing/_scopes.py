"""Scope: who sees what and who erases what, as two literal tables over 2 apps, 2 users, global and 2 projects."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Final

import pytest

from adk_memory import ALL_PROJECTS, MemoryEntry, SearchRequest, ValidationError
from adk_memory.testing._base import ContractBase, Memories, texts

APPS: Final = ("one", "two")
USERS: Final = ("ana", "ben")
PROJECTS: Final = (None, "A", "B")
OWNERS: Final = list(product(APPS, USERS))

SEES: Final = [
    (None, {None}),
    ("A", {None, "A"}),
    ("B", {None, "B"}),
]
SEES_ALL: Final = [*SEES, (ALL_PROJECTS, {None, "A", "B"})]
ERASES: Final = [
    ("delete_entries", {"query": "note"}, {None}),
    ("delete_entries", {"query": "note", "project_id": "A"}, {"A"}),
    ("delete_entries", {"query": "note", "project_id": "B"}, {"B"}),
    ("delete_entries_in_project", {"query": "note", "project_id": "A"}, {"A"}),
    ("delete_project", {"project_id": "A"}, {"A"}),
    ("delete_project", {"project_id": "B"}, {"B"}),
    ("delete_session", {"session_id": "s1"}, {None, "A", "B"}),
    ("delete_session", {"session_id": "s1", "project_id": ALL_PROJECTS}, {None, "A", "B"}),
    ("delete_session", {"session_id": "s1", "project_id": None}, {None}),
    ("delete_session", {"session_id": "s1", "project_id": "A"}, {"A"}),
    ("delete", {"entry_id": "e1"}, {None, "A", "B"}),
    ("delete", {"entry_id": "e1", "project_id": ALL_PROJECTS}, {None, "A", "B"}),
    ("delete", {"entry_id": "e1", "project_id": None}, {None}),
    ("delete", {"entry_id": "e1", "project_id": "A"}, {"A"}),
    ("delete_user", {}, {None, "A", "B"}),
]


class ScopesContract(ContractBase):
    @pytest.fixture
    def kept(self) -> tuple[str | None, ...]:
        """Return the projects that the backend can hold entries of."""
        return PROJECTS if self.projects else (None,)

    @pytest.mark.parametrize(("project", "seen"), SEES)
    async def test_a_search_sees_its_scope_and_nothing_else(
        self, memory: Memories, kept: Any, project: str | None, seen: set[str | None]
    ) -> None:
        reader = memory.project(project)
        await _fill(memory, kept)

        found = {owner: sorted(await _owner(reader, *owner).found("note", limit=100)) for owner in OWNERS}

        assert found == {owner: _notes([owner], seen & set(kept)) for owner in OWNERS}

    @pytest.mark.parametrize(("project", "seen"), SEES_ALL)
    async def test_a_list_sees_its_scope_and_nothing_else(
        self, memory: Memories, kept: Any, project: Any, seen: set[str | None]
    ) -> None:
        memory.can.need("list_recent")
        reader = memory.project(project if isinstance(project, str) else None)
        await _fill(memory, kept)

        listed = {}
        for owner in OWNERS:
            theirs = _owner(reader, *owner)
            memories = await reader.service.list_recent(theirs.app_name, theirs.user_id, 100, project_id=project)
            listed[owner] = sorted(texts(memories))

        assert listed == {owner: _notes([owner], seen & set(kept)) for owner in OWNERS}

    @pytest.mark.parametrize(("project", "seen"), SEES)
    async def test_get_sees_its_scope_and_nothing_else(
        self, memory: Memories, kept: Any, project: str | None, seen: set[str | None]
    ) -> None:
        reader = memory.project(project)
        ids = await _fill(memory, kept)

        got = {}
        for owner in OWNERS:
            memories = [await _owner(reader, *owner).get(entry_id) for entry_id in ids]
            got[owner] = sorted(memory.text for memory in memories if memory is not None)

        assert got == {owner: _notes([owner], seen & set(kept)) for owner in OWNERS}

    @pytest.mark.parametrize(("app", "user"), [("one", "ana"), ("two", "ben")])
    @pytest.mark.parametrize(("operation", "arguments", "erased"), ERASES)
    async def test_a_delete_erases_its_scope_and_nothing_else(
        self,
        memory: Memories,
        kept: Any,
        app: str,
        user: str,
        operation: str,
        arguments: dict[str, Any],
        erased: set[str | None],
    ) -> None:
        memory.can.need(operation.removesuffix("_in_project"))
        named = arguments.get("project_id")
        eraser = _owner(memory, app, user).project(named if isinstance(named, str) else None)
        await _fill(memory, kept, entry_id="e1")

        count = await getattr(memory.service, operation)(eraser.app_name, user, **arguments)

        left = [note for owner in OWNERS for note in await _owner(memory, *owner).everything()]
        gone = set(_notes([(app, user)], erased & set(kept)))
        assert sorted(left) == [note for note in _notes(OWNERS, kept) if note not in gone]
        assert count == len(gone)

    async def test_a_project_of_another_user_has_nothing_to_do_with_mine(self, memory: Memories) -> None:
        await memory.user("ana").project("A").add("green tea")

        assert await memory.user("ben").project("A").found("tea") == []

    async def test_a_memory_tells_its_project_and_session(self, memory: Memories) -> None:
        await memory.project("A").add("green tea", session="s7")

        [found] = await memory.project("A").search("tea")
        assert (found.project_id, found.session_id) == ("A", "s7")

    @pytest.mark.parametrize("operation", ["add_session", "add_entry", "get", "delete_entries", "delete_project"])
    async def test_all_projects_is_refused_where_one_scope_is_needed(self, memory: Memories, operation: str) -> None:
        memory.project("A")
        await memory.add("green tea")
        third: dict[str, dict[str, Any]] = {
            "add_session": {"session_id": "s1", "entries": [MemoryEntry("black tea")]},
            "add_entry": {"entry": MemoryEntry("black tea")},
            "get": {"entry_id": "e1"},
            "delete_entries": {"query": "tea"},
            "delete_project": {},
        }
        if operation != "add_session":
            memory.can.need(operation)

        with pytest.raises((ValidationError, TypeError)):
            await getattr(memory.service, operation)(
                memory.app_name, "ana", **third[operation], project_id=ALL_PROJECTS
            )

        assert await memory.found("tea") == ["green tea"]

    async def test_a_request_is_for_one_project_at_most(self) -> None:
        every: Any = ALL_PROJECTS

        with pytest.raises((ValidationError, TypeError)):
            SearchRequest("tea", "app", "ana", every)

    async def test_a_project_may_have_the_name_of_all_projects(self, memory: Memories) -> None:
        await memory.add("green tea")
        await memory.project("A").add("black tea")

        assert await memory.project("ALL_PROJECTS").found("tea") == ["green tea"]


def _owner(memory: Memories, app: str, user: str) -> Memories:
    return memory.app(f"{memory.app_name}-{app}").user(user)


def _notes(owners: Iterable[tuple[str, str]], projects: Iterable[str | None]) -> list[str]:
    return sorted(f"note of {app} {user} {project}" for (app, user), project in product(owners, projects))


async def _fill(memory: Memories, projects: Iterable[str | None], entry_id: str | None = None) -> list[str]:
    """Add one entry to every scope; return their ids."""
    ids = []
    for (app, user), project in product(OWNERS, projects):
        entry = MemoryEntry(f"note of {app} {user} {project}", id=entry_id)
        ids += await _owner(memory, app, user).project(project).add(entry)
    return ids
