"""The adapter: one user's memory, whatever the backend."""

from __future__ import annotations

from typing import Any

import pytest

from adk_memory import MemoryEntry, MemoryServiceAdapter, ValidationError
from adk_memory.testing._base import ContractBase, Memories, texts


class AdapterContract(ContractBase):
    @pytest.fixture
    def adapter(self, memory: Memories) -> MemoryServiceAdapter:
        """Return the adapter of the user of `memory`."""
        return _adapter(memory)

    async def test_an_adapter_adds_and_finds_a_session(self, memory: Memories, adapter: MemoryServiceAdapter) -> None:
        ids = await adapter.add_session("s7", [MemoryEntry("green tea")])

        [found] = await memory.search("tea")
        assert ([found.id], found.session_id) == (ids, "s7")
        assert texts(await adapter.search("tea")) == ["green tea"]

    async def test_an_adapter_passes_on_what_to_do_with_existing_entries(self, adapter: MemoryServiceAdapter) -> None:
        await adapter.add_session("s7", [MemoryEntry("green tea")])

        await adapter.add_session("s7", [MemoryEntry("black tea")], existing="replace")

        assert texts(await adapter.search("tea")) == ["black tea"]

    async def test_an_adapter_adds_a_single_entry(self, memory: Memories, adapter: MemoryServiceAdapter) -> None:
        memory.can.need("add_entry")

        entry_id = await adapter.add(MemoryEntry("green tea"))

        [found] = await memory.search("tea")
        assert (found.id, found.session_id) == (entry_id, None)

    async def test_an_adapter_passes_on_limit_and_threshold(self, adapter: MemoryServiceAdapter) -> None:
        await adapter.add_session("s7", [MemoryEntry("green tea"), MemoryEntry("black tea")])

        whole = await adapter.search("green tea")

        assert texts(await adapter.search("green tea", limit=1)) == ["green tea"]
        assert texts(await adapter.search("green tea", min_score=whole[0].score)) == ["green tea"]

    async def test_an_adapter_erases_entries(self, memory: Memories, adapter: MemoryServiceAdapter) -> None:
        memory.can.need("delete_entries")
        await memory.add("green tea", "black tea")

        assert await adapter.delete("green tea", dry_run=True) == 1
        assert await adapter.delete("green tea") == 1

        assert await memory.found("tea") == ["black tea"]

    async def test_an_adapter_never_leaves_its_user(self, memory: Memories) -> None:
        await memory.user("ben").add("green tea")

        assert texts(await _adapter(memory).search("tea")) == []

    async def test_an_adapter_bound_to_a_project_stays_inside(self, memory: Memories) -> None:
        bound = _adapter(memory.project("A"))

        await bound.add_session("s7", [MemoryEntry("green tea")])

        assert await memory.found("tea") == []
        assert texts(await bound.search("tea")) == ["green tea"]

    async def test_an_adapter_bound_to_a_project_erases_nothing_global(self, memory: Memories) -> None:
        memory.can.need("delete_entries")
        await memory.add("green tea")

        assert await _adapter(memory.project("A")).delete("tea") == 0

        assert await memory.found("tea") == ["green tea"]

    async def test_binding_to_a_project_makes_a_new_adapter(self, memory: Memories) -> None:
        await memory.project("A").add("green tea")
        adapter = _adapter(memory)

        bound = adapter.with_project_id("A")

        assert texts(await bound.search("tea")) == ["green tea"]
        assert texts(await adapter.search("tea")) == []
        assert texts(await bound.with_project_id(None).search("tea")) == []

    async def test_an_adapter_searches_in_a_project_that_is_named(self, memory: Memories) -> None:
        await memory.project("A").add("green tea")
        await memory.project("B").add("black tea")

        assert texts(await _adapter(memory).search_in_project("tea", "A")) == ["green tea"]

    async def test_an_adapter_adds_to_a_project_that_is_named(self, memory: Memories) -> None:
        memory.can.need("add_entry")
        in_project = memory.project("A")

        await _adapter(memory).add_to_project(MemoryEntry("green tea"), "A")

        assert (await memory.found("tea"), await in_project.found("tea")) == ([], ["green tea"])

    async def test_an_adapter_reports_health(self, memory: Memories, adapter: MemoryServiceAdapter) -> None:
        memory.can.need("health_check")

        assert await adapter.health_check() == await memory.service.health_check()

    async def test_an_adapter_says_whether_projects_are_kept_apart(self, adapter: MemoryServiceAdapter) -> None:
        assert adapter.supports_project_scoping is self.projects

    @pytest.mark.parametrize("ids", [("", "ana"), ("app", ""), (7, "ana"), ("app", None), ("app", "a\0")])
    async def test_an_adapter_refuses_invalid_identifiers(self, memory: Memories, ids: Any) -> None:
        with pytest.raises((ValidationError, TypeError)):
            MemoryServiceAdapter(memory.service, *ids)

    @pytest.mark.parametrize("project_id", ["", 7, "a\0"])
    async def test_an_adapter_refuses_an_invalid_project(self, memory: Memories, project_id: Any) -> None:
        with pytest.raises((ValidationError, TypeError)):
            _adapter(memory.project("A")).with_project_id(project_id)


def _adapter(memory: Memories) -> MemoryServiceAdapter:
    return MemoryServiceAdapter(memory.service, memory.app_name, memory.user_id, memory.project_id)
