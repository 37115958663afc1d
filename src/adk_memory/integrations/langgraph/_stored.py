"""An item of a LangGraph store as the entries of a session that it is, one for each of its texts.

Each entry holds all of the item, in its metadata, so that a search needs no second look.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from langgraph.store.base import Item, PutOp, SearchItem

from adk_memory._content import Content
from adk_memory._validation import MAX_ID_CHARACTERS
from adk_memory.integrations.langgraph._operations import Namespace
from adk_memory.types import Memory, MemoryEntry

FIRST: Final = ""
"""The author of the first entry of an item. It holds no word that a query could name."""
FURTHER: Final = "+"
TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Stored:
    """An item as it is read back; ``ttl`` is in minutes, ``rows`` says how many entries it is."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl: float | None
    rows: int
    score: float | None

    @property
    def place(self) -> tuple[Namespace, str]:
        return self.namespace, self.key

    def item(self) -> Item:
        return Item(
            namespace=self.namespace,
            key=self.key,
            value=self.value,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )

    def search_item(self) -> SearchItem:
        return SearchItem(self.namespace, self.key, self.value, self.created_at, self.updated_at, self.score)


def entries_of(op: PutOp, rows: Sequence[list[str]], before: Stored | None, now: datetime) -> list[MemoryEntry]:
    """Return the entries of an item, one for each of the ``rows`` of texts; ``before`` is the item that it replaces."""
    created_at = now
    if before is not None:
        created_at, now = before.created_at, max(now, before.updated_at + TICK)  # clocks may differ
    metadata: dict[str, Any] = {
        "key": op.key, "value": op.value, "created_at": created_at.isoformat(), "rows": len(rows)
    }  # fmt: skip
    if op.ttl is not None:
        metadata["ttl"] = op.ttl
    return [
        MemoryEntry(
            Content(None, texts),
            author=FURTHER if number else FIRST,
            timestamp=now,
            id=str(number) if number else id_of(op.key),
            metadata=metadata,
            expires_at=None if op.ttl is None else end_of(now, op.ttl),
        )
        for number, texts in enumerate(rows)
    ]


def id_of(key: str) -> str:
    """Return the id of the session, and of the first entry, of an item: no other entry's, and never too long."""
    if len(key) < MAX_ID_CHARACTERS:
        return f"={key}"
    return f"#{hashlib.sha256(key.encode()).hexdigest()}"


def read_item(namespace: Namespace, memory: Memory, score: float | None = None) -> Stored:
    metadata = memory.metadata
    return Stored(
        namespace=namespace,
        key=metadata["key"],
        value=metadata["value"],
        created_at=datetime.fromisoformat(metadata["created_at"]),
        updated_at=memory.timestamp,
        ttl=metadata.get("ttl"),
        rows=metadata["rows"],
        score=score,
    )


def end_of(start: datetime, minutes: float) -> datetime:
    return start + timedelta(minutes=minutes)
