"""Identifiers: strings of 1 to 256 characters, compared exactly, checked before anything else happens."""

# ruff: noqa: RUF001 - names that look alike are the point

from __future__ import annotations

import uuid
from typing import Any, Final

import pytest

from adk_memory import MemoryEntry, SearchRequest, ValidationError, validate_project_id
from adk_memory.testing._base import ContractBase, Memories

INVALID: Final = [
    pytest.param("", id="empty"),
    pytest.param("x" * 257, id="257 characters"),
    pytest.param("a\0b", id="NUL"),
    pytest.param("a\ud800", id="lone surrogate"),
    pytest.param(7, id="int"),
    pytest.param(True, id="bool"),
    pytest.param(b"ana", id="bytes"),
    pytest.param(uuid.UUID(int=7), id="UUID"),
    pytest.param(["ana"], id="list"),
]
VALID: Final = [
    pytest.param("x", id="1 character"),
    pytest.param("x" * 256, id="256 characters"),
    pytest.param("🦊" * 256, id="256 characters of 4 bytes"),
    pytest.param(" ", id="space"),
    pytest.param("%_\\'\";--", id="SQL"),
    pytest.param("None", id="None as text"),
    pytest.param("ALL_PROJECTS", id="ALL_PROJECTS as text"),
    pytest.param("\ufffd\u200b\n", id="odd characters"),
    pytest.param("☂ é 日本 ﷺ", id="scripts"),
]
LOOKALIKES: Final = [
    pytest.param("Ana", id="case"),
    pytest.param("ana ", id="trailing space"),
    pytest.param(" ana", id="leading space"),
    pytest.param("an\u0430", id="Cyrillic letter"),
    pytest.param("ａｎａ", id="full width"),
    pytest.param("a%", id="LIKE pattern"),
    pytest.param("ana\u200b", id="zero-width space"),
]
NFC, NFD = "Ren\u00e9", "Rene\u0301"


class IdentifiersContract(ContractBase):
    @pytest.mark.parametrize("value", INVALID)
    @pytest.mark.parametrize("name", ["app_name", "user_id", "session_id", "project_id"])
    async def test_an_invalid_identifier_is_refused_by_add_session(
        self, memory: Memories, name: str, value: Any
    ) -> None:
        memory.project("A" if name == "project_id" else None)
        ids = {"app_name": memory.app_name, "user_id": "ana", "session_id": "s1", "project_id": None}

        with pytest.raises((ValidationError, TypeError)):
            await memory.service.add_session(**(ids | {name: value}), entries=[MemoryEntry("green tea")])

        assert await memory.found("tea") == []

    @pytest.mark.parametrize("value", [*INVALID, pytest.param(None, id="None")])
    @pytest.mark.parametrize("name", ["app_name", "user_id"])
    @pytest.mark.parametrize(
        "operation", ["add_entry", "delete", "delete_entries", "delete_user", "get", "list_recent"]
    )
    async def test_an_invalid_owner_is_refused_by_every_operation(
        self, memory: Memories, operation: str, name: str, value: Any
    ) -> None:
        memory.can.need(operation)
        third: dict[str, dict[str, Any]] = {
            "add_entry": {"entry": MemoryEntry("green tea")},
            "delete": {"entry_id": "e1"},
            "delete_entries": {"query": "tea"},
            "get": {"entry_id": "e1"},
        }
        arguments = {"app_name": memory.app_name, "user_id": "ana", name: value} | third.get(operation, {})

        with pytest.raises((ValidationError, TypeError)):
            await getattr(memory.service, operation)(**arguments)

    @pytest.mark.parametrize("value", INVALID)
    @pytest.mark.parametrize("operation", ["get", "delete", "delete_session", "delete_project"])
    async def test_an_invalid_name_of_what_is_sought_is_refused(
        self, memory: Memories, operation: str, value: Any
    ) -> None:
        memory.project("A" if operation == "delete_project" else None)
        memory.can.need(operation)

        with pytest.raises((ValidationError, TypeError)):
            await getattr(memory.service, operation)(memory.app_name, "ana", value)

    @pytest.mark.parametrize("value", INVALID)
    @pytest.mark.parametrize("name", ["app_name", "user_id", "project_id"])
    async def test_a_request_can_not_hold_an_invalid_identifier(self, name: str, value: Any) -> None:
        ids: dict[str, Any] = {"app_name": "app", "user_id": "ana", "project_id": None, name: value}

        with pytest.raises((ValidationError, TypeError)):
            SearchRequest("tea", **ids)

    @pytest.mark.parametrize("value", INVALID)
    async def test_validate_project_id_refuses_what_is_no_identifier(self, value: Any) -> None:
        with pytest.raises((ValidationError, TypeError)):
            validate_project_id(value)

    @pytest.mark.parametrize("value", [*VALID, pytest.param(None, id="None")])
    async def test_validate_project_id_returns_what_is_one(self, value: str | None) -> None:
        assert validate_project_id(value) == value

    @pytest.mark.parametrize("value", VALID)
    async def test_any_string_of_1_to_256_characters_is_an_identifier(self, memory: Memories, value: str) -> None:
        mine = memory.user(value)

        [entry_id] = await mine.add(MemoryEntry("green tea", id=value), session=value)

        [found] = await mine.search("tea")
        assert (entry_id, found.id, found.session_id) == (value, value, value)

    @pytest.mark.parametrize("value", VALID)
    async def test_any_string_of_1_to_256_characters_is_a_project(self, memory: Memories, value: str) -> None:
        mine = memory.user(value).project(value)

        await mine.add("green tea", session=value)

        [found] = await mine.search("tea")
        assert found.project_id == value

    async def test_all_identifiers_may_be_as_long_as_allowed_at_once(self, memory: Memories, app_name: str) -> None:
        long = "🦊" * 256
        mine = memory.app(app_name + "🦊" * (256 - len(app_name))).user(long).project(long)

        await mine.add(MemoryEntry("green tea", id=long), session=long)

        assert await mine.found("tea") == ["green tea"]

    @pytest.mark.parametrize("other", LOOKALIKES)
    async def test_users_are_told_apart_exactly(self, memory: Memories, other: str) -> None:
        await memory.user("ana").add("green tea")

        assert await memory.user(other).found("tea") == []

    @pytest.mark.parametrize("other", LOOKALIKES)
    async def test_apps_are_told_apart_exactly(self, memory: Memories, app_name: str, other: str) -> None:
        await memory.app(app_name + "ana").add("green tea")

        assert await memory.app(app_name + other).found("tea") == []

    @pytest.mark.parametrize("other", LOOKALIKES)
    async def test_projects_are_told_apart_exactly(self, memory: Memories, other: str) -> None:
        await memory.project("ana").add("green tea")

        assert await memory.project(other).found("tea") == []

    @pytest.mark.parametrize("other", LOOKALIKES)
    async def test_sessions_are_told_apart_exactly(self, memory: Memories, other: str) -> None:
        await memory.add("green tea", session="ana")
        await memory.add("green tea", session=other)

        assert {found.session_id for found in await memory.search("tea")} == {"ana", other}

    async def test_unicode_forms_of_one_name_are_two_users(self, memory: Memories) -> None:
        await memory.user(NFC).add("green tea")

        assert await memory.user(NFD).found("tea") == []

    async def test_the_parts_of_a_scope_do_not_run_together(self, memory: Memories, app_name: str) -> None:
        await memory.app(app_name + "a").user("bc").add("green tea")

        assert await memory.app(app_name + "ab").user("c").found("tea") == []
