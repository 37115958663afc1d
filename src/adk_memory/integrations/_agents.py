"""What the adapters to agent frameworks share: whose memory a run has, and how a turn of it is stored."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from adk_memory.adapter import MemoryServiceAdapter
from adk_memory.errors import ConfigurationError
from adk_memory.service import MemoryService
from adk_memory.types import MemoryEntry

MemoryOf: TypeAlias = MemoryServiceAdapter | Callable[[Any], MemoryServiceAdapter]
"""An adapter, or a function that finds one in the context of a run: an agent may serve many users."""


def checked(memory: MemoryOf) -> MemoryOf:
    """Return ``memory``; a mistake is better told where an agent is made than in the middle of a run."""
    if not isinstance(memory, MemoryServiceAdapter) and (isinstance(memory, MemoryService) or not callable(memory)):
        raise ConfigurationError(
            f"memory must be a MemoryServiceAdapter, or a function that finds one, got {type(memory).__name__}"
        )
    return memory


def memory_of(memory: MemoryOf, context: Any) -> MemoryServiceAdapter:
    return memory if isinstance(memory, MemoryServiceAdapter) else memory(context)


async def store_turn(memory: MemoryServiceAdapter, session_id: str, said: Iterable[tuple[str, str]]) -> list[str]:
    """Append what was said, as authors and texts: each call is a turn of its own, as words may be said again."""
    turn = uuid.uuid4().hex
    entries = [MemoryEntry(text, author, id=f"{turn}-{number}") for number, (author, text) in enumerate(said) if text]
    return await memory.add_session(session_id, entries)
