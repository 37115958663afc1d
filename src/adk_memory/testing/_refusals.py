"""Refusal: what a backend can't do it says, and nothing is ever widened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from adk_memory import (
    Author,
    ConfigurationError,
    MemoryEntry,
    MemoryServiceAdapter,
    OperationNotSupportedError,
    ProjectScopingNotSupportedError,
    SearchRequest,
)
from adk_memory.testing._base import OPTIONAL_OPERATIONS, ContractBase, Memories

Call = Callable[[Memories], Awaitable[object]]
TEA: Final = MemoryEntry("black tea")


async def _all_of(memory: Memories) -> int:
    return len([found async for found in memory.service.export_user(memory.app_name, "ana")])


OPERATIONS: Final[dict[str, Call]] = {
    "add_entry": lambda m: m.service.add_entry(m.app_name, "ana", TEA),
    "delete": lambda m: m.service.delete(m.app_name, "ana", "e1"),
    "delete_entries": lambda m: m.service.delete_entries(m.app_name, "ana", "tea"),
    "delete_session": lambda m: m.service.delete_session(m.app_name, "ana", "s1"),
    "delete_user": lambda m: m.service.delete_user(m.app_name, "ana"),
    "drop_model": lambda m: _known(m.service.drop_model("never")),
    "get": lambda m: m.service.get(m.app_name, "ana", "e1"),
    "health_check": lambda m: m.service.health_check(),
    "export_user": _all_of,
    "list_page": lambda m: m.service.list_page(m.app_name, "ana"),
    "list_recent": lambda m: m.service.list_recent(m.app_name, "ana"),
    "list_users": lambda m: m.service.list_users(m.app_name),
}
IN_A_PROJECT: Final[dict[str, tuple[str, Call]]] = {  # by name: the operation that it needs, and the call
    "add_session": (
        "add_session",
        lambda m: m.service.add_session(m.app_name, "ana", "s1", [TEA], project_id="A"),
    ),
    "add_session_to_project": (
        "add_session",
        lambda m: m.service.add_session_to_project(m.app_name, "ana", "s1", "A", [TEA]),
    ),
    "add_entry": ("add_entry", lambda m: m.service.add_entry(m.app_name, "ana", TEA, project_id="A")),
    "add_entry_to_project": (
        "add_entry",
        lambda m: m.service.add_entry_to_project(m.app_name, "ana", "A", TEA),
    ),
    "search": ("search", lambda m: m.service.search(SearchRequest("tea", m.app_name, "ana", "A"))),
    "get": ("get", lambda m: m.service.get(m.app_name, "ana", "e1", project_id="A")),
    "list_recent": ("list_recent", lambda m: m.service.list_recent(m.app_name, "ana", project_id="A")),
    "list_page": ("list_page", lambda m: m.service.list_page(m.app_name, "ana", project_id="A")),
    "delete": ("delete", lambda m: m.service.delete(m.app_name, "ana", "e1", project_id="A")),
    "delete_entries": (
        "delete_entries",
        lambda m: m.service.delete_entries(m.app_name, "ana", "tea", project_id="A"),
    ),
    "delete_entries_in_project": (
        "delete_entries",
        lambda m: m.service.delete_entries_in_project(m.app_name, "ana", "A", "tea"),
    ),
    "delete_session": (
        "delete_session",
        lambda m: m.service.delete_session(m.app_name, "ana", "s1", project_id="A"),
    ),
    "delete_project": ("delete_project", lambda m: m.service.delete_project(m.app_name, "ana", "A")),
    "adapter.search_in_project": ("search", lambda m: _adapter(m).search_in_project("tea", "A")),
    "adapter.add_to_project": ("add_entry", lambda m: _adapter(m).add_to_project(TEA, "A")),
}


class RefusalsContract(ContractBase):
    async def test_the_backend_says_whether_it_keeps_projects_apart(self, memory: Memories) -> None:
        assert memory.service.supports_project_scoping is self.projects

    @pytest.mark.parametrize("operation", sorted(OPERATIONS))
    async def test_an_operation_is_refused_exactly_where_the_backend_lacks_it(
        self, memory: Memories, operation: str
    ) -> None:
        refusal = await _refusal(OPERATIONS[operation], memory)

        assert (refusal is None) == (operation in self.optional_operations)

    @pytest.mark.parametrize("call", sorted(IN_A_PROJECT))
    async def test_naming_a_project_is_refused_exactly_where_they_are_not_kept_apart(
        self, memory: Memories, call: str
    ) -> None:
        operation, in_a_project = IN_A_PROJECT[call]

        refusal = await _refusal(in_a_project, memory)

        if operation in OPTIONAL_OPERATIONS - self.optional_operations:
            assert isinstance(refusal, OperationNotSupportedError)
        elif self.projects:
            assert refusal is None
        else:
            assert isinstance(refusal, ProjectScopingNotSupportedError)

    @pytest.mark.parametrize("call", sorted(IN_A_PROJECT))
    async def test_a_refusal_widens_nothing_to_global(self, memory: Memories, call: str) -> None:
        _operation, in_a_project = IN_A_PROJECT[call]
        await memory.add(MemoryEntry("green tea", id="e1"))

        await _refusal(in_a_project, memory)

        assert await memory.found("tea") == ["green tea"]

    async def test_require_project_scoping_raises_exactly_where_they_are_not_kept_apart(self, memory: Memories) -> None:
        async def require(memory: Memories) -> None:
            memory.service.require_project_scoping()

        assert (await _refusal(require, memory) is None) == self.projects

    @pytest.mark.parametrize("bind", [{"project_id": "A"}, {}], ids=["constructor", "with_project_id"])
    async def test_an_adapter_can_be_bound_to_a_project_exactly_where_they_are_kept_apart(
        self, memory: Memories, bind: dict[str, Any]
    ) -> None:
        async def adapter(memory: Memories) -> None:
            MemoryServiceAdapter(memory.service, memory.app_name, "ana", **bind).with_project_id("A")

        assert (await _refusal(adapter, memory) is None) == self.projects

    async def test_a_filter_is_refused_exactly_where_the_backend_has_none(self, memory: Memories) -> None:
        async def search(memory: Memories) -> None:
            await memory.service.search(SearchRequest("tea", memory.app_name, "ana", filter=Author("user")))

        assert (await _refusal(search, memory) is None) == self.filters

    @pytest.mark.parametrize("mode", ["vector", "hybrid"])
    async def test_a_search_by_similarity_is_refused_without_an_embedder(self, memory: Memories, mode: Any) -> None:
        await memory.add("green tea")

        with pytest.raises(OperationNotSupportedError):
            await memory.search("tea", mode=mode)


async def _known(call: Awaitable[object]) -> None:
    with suppress(ConfigurationError):  # there is no such model
        await call


def _adapter(memory: Memories) -> MemoryServiceAdapter:
    return MemoryServiceAdapter(memory.service, memory.app_name, "ana")


async def _refusal(call: Call, memory: Memories) -> OperationNotSupportedError | None:
    try:
        await call(memory)
    except OperationNotSupportedError as error:
        return error
    return None
