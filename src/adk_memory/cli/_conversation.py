"""Entries in a file, one JSON object per line: a conversation, read whole or not at all, or an export, as it comes."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn

from adk_memory._sessions import SessionEntries
from adk_memory.cli._output import line_of_json, one_line
from adk_memory.errors import ValidationError
from adk_memory.types import Memory, MemoryEntry

FIELDS: Final = ("content", "author", "timestamp", "id", "metadata", "expires_at")
PLACE_FIELDS: Final = ("session_id", "project_id", "position")
"""What an export says beside the fields of an entry: where it was."""
_OTHER_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENTRIES_PER_ITEM: Final = 1_000


def read_conversation(data: bytes, session_id: str, project_id: str | None) -> list[MemoryEntry]:
    """Return the entries of a JSON Lines document, in order; blank lines are skipped.

    Lines of an export are read too, if they are of this session and project.

    Raises:
        ValidationError: a line is not an entry; the message begins with its number.
    """
    if data.startswith(_OTHER_ENCODINGS):
        raise ValidationError("the text is UTF-16; save it as UTF-8")
    entries = []
    # Only these line breaks count: a JSON string may hold U+2028 and others as they are.
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        if line.strip():
            try:
                fields = _fields(line)
                place = fields.pop("session_id", session_id), fields.pop("project_id", project_id)
                if place != (session_id, project_id):
                    raise ValidationError(
                        "session_id and project_id are not those that it is added to; adk-memory import reads an export"
                    )
                fields.pop("position", None)
                entries.append(MemoryEntry(**fields))
            except ValidationError as error:
                raise ValidationError(f"line {number}: {error}") from error
    if not entries:
        raise ValidationError("there is no entry in it")
    return entries


def export_line(memory: Memory) -> bytes:
    """Return a memory as a line that `read_export` reads."""
    fields = {
        "id": memory.id,
        "session_id": memory.session_id,
        "project_id": memory.project_id,
        "position": memory.position,
        "author": memory.author,
        "timestamp": memory.timestamp.isoformat(),
        "expires_at": None if memory.expires_at is None else memory.expires_at.isoformat(),
        "content": memory.content.as_json(),
        "metadata": memory.metadata,
    }
    return line_of_json(fields).encode() + b"\n"


def read_export(lines: Iterable[bytes], app_name: str, user_id: str) -> Iterator[SessionEntries]:
    """Yield what the lines of an export hold, in their order: runs of entries of one session.

    Raises:
        ValidationError: a line is none of an export; the message begins with its number.
    """
    run: list[tuple[MemoryEntry, int | None]] = []
    place: tuple[str | None, str | None] = None, None
    number = 0

    def item() -> SessionEntries:
        positions = [position for _, position in run if position is not None]
        entries = [entry for entry, _ in run]
        return SessionEntries(
            app_name, user_id, place[0], entries, place[1], positions if len(positions) == len(run) else None
        )

    try:
        for number, line in enumerate(lines, start=1):
            if number == 1 and line.startswith(_OTHER_ENCODINGS):
                raise ValidationError("the text is UTF-16; save it as UTF-8")
            if not line.strip():
                continue
            fields = _fields(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)
            session_id, project_id, position = (fields.pop(name, None) for name in PLACE_FIELDS)
            entry = _checked(MemoryEntry(**fields), session_id, project_id, position)
            if run and (place != (session_id, project_id) or len(run) == _ENTRIES_PER_ITEM):
                yield item()
                run.clear()
            place = session_id, project_id
            run.append((entry, position))
    except ValidationError as error:
        if run:
            yield item()
        raise ValidationError(f"line {number}: {error}") from error
    if run:
        yield item()


def _checked(entry: MemoryEntry, session_id: Any, project_id: Any, position: Any) -> MemoryEntry:
    if entry.id is None:
        raise ValidationError("the field id is missing; a conversation without ids is for adk-memory add")
    SessionEntries("app", "user", session_id, [entry], project_id, None if position is None else [position])
    return entry


def _fields(line: bytes) -> dict[str, Any]:
    fields = _parsed(line)
    if isinstance(fields, list):
        raise ValidationError("this is a JSON array; one JSON object per line is needed (jq -c '.[]' makes it)")
    if not isinstance(fields, dict):
        raise ValidationError("this is not a JSON object")
    unknown = [name for name in fields if name not in FIELDS + PLACE_FIELDS]
    if unknown:
        raise ValidationError(f"unknown field {_shown(unknown[0])}; an entry has {', '.join(FIELDS + PLACE_FIELDS)}")
    if "content" not in fields:
        raise ValidationError("the field content is missing")
    return fields


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise ValidationError(f"byte {error.start + 1} is not UTF-8") from error
    except json.JSONDecodeError as error:
        if line.lstrip()[:1] == b"[":
            return []
        raise ValidationError(f"not one whole JSON object: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise ValidationError("nested too deep") from error
    except ValidationError:
        raise
    except ValueError as error:
        raise ValidationError("an integer of more than 4,300 digits") from error


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValidationError(f"the key {_shown(name)} is there twice")
        fields[name] = value
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValidationError(f"{name} is not JSON")


def _shown(name: str) -> str:
    return one_line(name if len(name) <= 40 else f"{name[:40]}…")
