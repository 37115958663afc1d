"""SessionEntries: what `MemoryService.add_many` takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pydantic
from pydantic import field_validator

from adk_memory._content import Value
from adk_memory._validation import validate_id, validate_project_id
from adk_memory.types import MemoryEntry


class SessionEntries(Value):
    """Entries with what they belong to, for `MemoryService.add_many`.

    Attributes:
        app_name: whose memory.
        user_id: whose memory.
        session_id: the session of which these are the entries; `None` for single ones.
        entries: in their order.
        project_id: their project; `None` for global.
    """

    app_name: str
    user_id: str
    session_id: str | None
    entries: tuple[MemoryEntry, ...]
    project_id: str | None = None

    def __init__(
        self,
        /,
        app_name: str,
        user_id: str,
        session_id: str | None,
        entries: Iterable[MemoryEntry],
        project_id: str | None = None,
        **others: Any,
    ) -> None:
        super().__init__(
            app_name=app_name, user_id=user_id, session_id=session_id, entries=entries, project_id=project_id, **others
        )

    @field_validator("app_name", "user_id", mode="before")
    @classmethod
    def _valid_id(cls, value: object, info: pydantic.ValidationInfo) -> str:
        return validate_id(str(info.field_name), value)

    @field_validator("session_id", mode="before")
    @classmethod
    def _valid_session(cls, session_id: object) -> str | None:
        return None if session_id is None else validate_id("session_id", session_id)

    @field_validator("project_id", mode="before")
    @classmethod
    def _valid_project(cls, project_id: Any) -> str | None:
        return validate_project_id(project_id)
