"""An entry between the value that a caller gives and the fields that a backend stores: its identity is decided here."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import repeat
from typing import Final, Protocol, get_args

from adk_memory import _analysis
from adk_memory._content import Content, trusted
from adk_memory._validation import JsonValue
from adk_memory.embedding import Embedder, check_vectors
from adk_memory.errors import ValidationError
from adk_memory.types import Existing, Memory, MemoryEntry

# Made once: json.dumps makes an encoder for every value.
_STORED: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_DIGESTED: Final = json.JSONEncoder(sort_keys=True)


@dataclass(frozen=True, slots=True)
class Record:
    """The stored fields of an entry; ``content`` and ``metadata`` are JSON texts.

    ``vector`` is the one that the caller gave; an entry is the same with and without it.
    """

    id: str
    author: str
    timestamp: datetime
    content: str
    text: str
    metadata: str
    expires_at: datetime | None = None
    timestamp_given: bool = True
    expires_at_given: bool = True
    position: int | None = field(default=None, compare=False)  # of a new one; what is stored keeps its own
    vector: Sequence[float] | None = field(default=None, compare=False, repr=False)

    def rewrites(self, stored: Record) -> bool:
        """Whether storing this over ``stored``, of the same id, would change it."""
        return self.over(stored) != stored

    def over(self, stored: Record) -> Record:
        """This record with the stored times where the caller gave none."""
        record = self
        if not self.timestamp_given:
            record = replace(record, timestamp=stored.timestamp, timestamp_given=stored.timestamp_given)
        if not self.expires_at_given:
            record = replace(record, expires_at=stored.expires_at, expires_at_given=stored.expires_at_given)
        return record

    def lives(self, now: datetime) -> bool:
        return self.expires_at is None or self.expires_at > now

    def memory(
        self,
        session_id: str | None,
        project_id: str | None,
        score: float | None = None,
        explanation: dict[str, float] | None = None,
    ) -> Memory:
        """Return the memory that was stored; what is stored was checked before, and is not checked again."""
        fields = json.loads(self.content)
        content = {"role": fields.pop("role"), "parts": tuple(fields.pop("parts"))}
        return trusted(
            Memory,
            {
                "content": trusted(Content, content, fields),
                "author": self.author,
                "timestamp": self.timestamp,
                "id": self.id,
                "metadata": json.loads(self.metadata),
                "vector": None,
                "expires_at": self.expires_at,
                "session_id": session_id,
                "project_id": project_id,
                "position": self.position,
                "score": score,
                "explanation": explanation,
            },
        )


def session_passages(records: Sequence[Record], before: Record | None, *, turns: bool) -> dict[str, str]:
    """Return the text to embed for each record that holds a word, by its id.

    With ``turns`` it is the author and the text, after those of the record before it; ``before`` is the last of the
    session so far.
    """
    found = {}
    for record in records:
        if _analysis.has_word(record.text):
            found[record.id] = turn_passage(record, before) if turns else record.text
        before = record
    return found


class Turn(Protocol):
    """What is embedded of an entry of a session."""

    @property
    def author(self) -> str: ...

    @property
    def text(self) -> str: ...


def turn_passage(turn: Turn, before: Turn | None) -> str:
    """Return the text to embed for a turn that comes after another one, or is the first."""
    return "\n".join(f"{said.author}: {said.text}" for said in (before, turn) if said is not None)


def session_records(
    entries: object,
    session_id: str,
    project_id: str | None,
    existing: Existing,
    positions: Sequence[int] | None = None,
    embedder: Embedder | None = None,
) -> tuple[list[str], list[Record]]:
    """Return the id of every entry, and one record for each id; of two with one id the last counts, or the first.

    An entry without an id is known by a digest of its author, content and explicitly given timestamp, and by its
    number among its identical twins. ``positions`` are those of new entries, where they are to be kept.
    Vectors that came with entries are checked by the ``embedder``.
    """
    if existing not in get_args(Existing):
        raise ValidationError(f"existing must be one of {', '.join(get_args(Existing))}")
    twins: Counter[str] = Counter()
    ids: list[str] = []
    records: dict[str, Record] = {}
    for entry, position in zip(_checked(entries, embedder), positions or repeat(None), strict=False):
        entry_id = entry.id
        if entry_id is None:
            identity = _identity(entry, session_id, project_id)
            entry_id = _digest([identity, twins[identity]])
            twins[identity] += 1
        ids.append(entry_id)
        if entry_id not in records or existing != "keep":
            records[entry_id] = _record(entry_id, entry, position)
    return ids, list(records.values())


def single_record(entry: MemoryEntry, existing: Existing, embedder: Embedder | None = None) -> Record:
    """Return the record of an entry outside of any session; without an id of its own it is always a new one."""
    if existing not in ("update", "keep"):
        raise ValidationError("existing must be update or keep for a single entry")
    [entry] = _checked([entry], embedder)
    return _record(entry.id or uuid.uuid4().hex, entry)


def single_records(
    entries: Iterable[MemoryEntry], existing: Existing, embedder: Embedder | None = None
) -> list[Record]:
    """Return the records of entries outside of any session; one whose id came before is written over that, or not."""
    records: dict[str, Record] = {}
    for entry in entries:
        record = single_record(entry, existing, embedder)
        earlier = records.get(record.id)
        if earlier is None:
            records[record.id] = record
        elif existing == "update":
            records[record.id] = record.over(earlier)
    return list(records.values())


def _checked(entries: object, embedder: Embedder | None) -> Sequence[MemoryEntry]:
    if isinstance(entries, str | bytes | MemoryEntry) or not isinstance(entries, Iterable):
        raise ValidationError(f"entries must be a list of MemoryEntry, got {type(entries).__name__}")
    entries = list(entries)
    for index, entry in enumerate(entries):
        if not isinstance(entry, MemoryEntry):
            raise ValidationError(f"entries[{index}] must be a MemoryEntry, got {type(entry).__name__}")
    check_vectors(embedder, entries)
    return entries


def _record(entry_id: str, entry: MemoryEntry, position: int | None = None) -> Record:
    return Record(
        id=entry_id,
        author=entry.author,
        timestamp=entry.timestamp,
        content=_STORED.encode(entry.content.as_json()),
        text=entry.text,
        metadata=_STORED.encode(entry.metadata),
        expires_at=entry.expires_at,
        timestamp_given="timestamp" in entry.model_fields_set,
        vector=entry.vector,
        expires_at_given="expires_at" in entry.model_fields_set,
        position=position,
    )


def _identity(entry: MemoryEntry, session_id: str, project_id: str | None) -> str:
    given = entry.timestamp.isoformat() if "timestamp" in entry.model_fields_set else None
    return _digest([project_id, session_id, entry.author, entry.content.as_json(), given])


def _digest(value: JsonValue) -> str:
    return hashlib.sha256(_DIGESTED.encode(value).encode()).hexdigest()[:32]
