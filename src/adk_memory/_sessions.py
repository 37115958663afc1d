"""SessionEntries: what `MemoryService.add_many` takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Self

import pydantic
from pydantic import field_validator, model_validator

from adk_memory._content import Value
from adk_memory._validation import validate_id, validate_project_id
from adk_memory.errors import ValidationError
from adk_memory.types import MemoryEntry

_LAST_POSITION: Final = 1_000_000_000  # half of what a database's integer can hold: others come after it


class SessionEntries(Value):
    """Entries with what they belong to, for `MemoryService.add_many`.

    Attributes:
        app_name: whose memory.
        user_id: whose memory.
        session_id: the session of which these are the entries; `None` for single ones.
        entries: in their order.
        project_id: their project; `None` for global.
        positions: their numbers in the session, as `Memory.position` has them, so that gaps are kept: an entry that is
            new gets the number that is given here, or the next one where the session has come as far already.
    """

    app_name: str
    user_id: str
    session_id: str | None
    entries: tuple[MemoryEntry, ...]
    project_id: str | None = None
    positions: tuple[int, ...] | None = None

    def __init__(
        self,
        /,
        app_name: str,
        user_id: str,
        session_id: str | None,
        entries: Iterable[MemoryEntry],
        project_id: str | None = None,
        positions: Iterable[int] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(
            app_name=app_name, user_id=user_id, session_id=session_id, entries=entries, project_id=project_id,
            positions=positions, **others,
        )  # fmt: skip

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

    @field_validator("positions", mode="before")
    @classmethod
    def _plain_positions(cls, positions: Any) -> tuple[int, ...] | None:
        if positions is None:
            return None
        if not isinstance(positions, Iterable):
            raise ValidationError(f"positions must be whole numbers, got {type(positions).__name__}")
        numbers = tuple(positions)
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _LAST_POSITION:
                raise ValidationError(f"positions must be whole numbers from 1 to {_LAST_POSITION}")
        return numbers

    @model_validator(mode="after")
    def _position_of_each(self) -> Self:
        if self.positions is not None and (self.session_id is None or len(self.positions) != len(self.entries)):
            raise ValidationError("positions are one for each entry, and there are none without a session")
        return self
