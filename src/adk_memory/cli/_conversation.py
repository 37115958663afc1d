"""A conversation in a file: one JSON object per line, read whole or not at all."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from typing import Any, NoReturn

from adk_memory.cli._output import one_line
from adk_memory.errors import ValidationError
from adk_memory.types import MemoryEntry

FIELDS = ("content", "author", "timestamp", "id", "metadata")
_OTHER_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_conversation(data: bytes) -> list[MemoryEntry]:
    """Return the entries of a JSON Lines document, in order; blank lines are skipped.

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
                entries.append(_entry(line))
            except ValidationError as error:
                raise ValidationError(f"line {number}: {error}") from error
    if not entries:
        raise ValidationError("there is no entry in it")
    return entries


def _entry(line: bytes) -> MemoryEntry:
    fields = _parsed(line)
    if isinstance(fields, list):
        raise ValidationError("this is a JSON array; one JSON object per line is needed (jq -c '.[]' makes it)")
    if not isinstance(fields, dict):
        raise ValidationError("this is not a JSON object")
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        raise ValidationError(
            f"unknown field {_shown(unknown[0])}; an entry has {', '.join(FIELDS)}"
            " (the session and the project are given as options)"
        )
    if "content" not in fields:
        raise ValidationError("the field content is missing")
    return MemoryEntry(**fields)


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
