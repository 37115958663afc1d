"""What an identifier, a limit, a text, a JSON value and a time may be: the same checks before every backend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from pydantic import BeforeValidator

from adk_memory.errors import ValidationError

MAX_ID_CHARACTERS: Final = 256
MAX_LIMIT: Final = 1_000
DEFAULT_LIMIT: Final = 10
DEFAULT_PAGE: Final = 50
MAX_JSON_LEVELS: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_INTEGER_BITS: Final = 14_000  # Python itself refuses to read or write more than 4,300 digits

JsonValue: TypeAlias = Any
"""What JSON can hold: objects with string keys, arrays, strings, finite numbers, booleans, null."""


def validate_id(name: str, value: object) -> str:
    """Return ``value`` if it can be an identifier: a string of 1 to 256 characters, no NUL, no lone surrogate.

    Raises:
        ValidationError: it is not; the message holds ``name`` and what is wrong, never the value.
    """
    if not isinstance(value, str):
        raise ValidationError(f"{name} must be a string, got {type(value).__name__}; convert it first")
    if not 1 <= len(value) <= MAX_ID_CHARACTERS:
        raise ValidationError(f"{name} must have 1 to {MAX_ID_CHARACTERS} characters, got {len(value)}")
    if clean_text(value) != value:
        raise ValidationError(f"{name} must not hold a NUL or a lone surrogate")
    return str.__str__(value)


def validate_project_id(project_id: str | None) -> str | None:
    """Return ``project_id`` if it is `None` (global) or an identifier: 1 to 256 characters, no NUL or surrogate.

    Raises:
        ValidationError: it is neither.
    """
    return None if project_id is None else validate_id("project_id", project_id)


def validate_users(app_name: object, prefix: object, after: object) -> None:
    """Check what `MaintainedService.list_users` is given.

    Raises:
        ValidationError: the app is no identifier, or ``prefix`` or ``after`` could not begin or be one.
    """
    validate_id("app_name", app_name)
    if prefix != "":
        validate_id("prefix", prefix)
    if after is not None:
        validate_id("after", after)


def validate_limit(limit: object, default: int = DEFAULT_LIMIT) -> int:
    """Return how many rows ``limit`` asks for: `None` is the default, anything above 1,000 is 1,000.

    Raises:
        ValidationError: it is negative or not an integer.
    """
    if limit is None:
        return default
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ValidationError(f"limit must be an integer, got {type(limit).__name__}")
    if limit < 0:
        raise ValidationError("limit must not be negative; 0 asks for nothing")
    return min(limit, MAX_LIMIT)


def validate_flag(name: str, value: object) -> bool:
    """Return ``value`` if it is true or false, and nothing that only counts as such.

    Raises:
        ValidationError: it is neither.
    """
    if not isinstance(value, bool):
        raise ValidationError(f"{name} must be True or False, got {type(value).__name__}")
    return value


def validate_query(query: object) -> str:
    """Return the text of ``query``, cleaned by `clean_text`.

    Raises:
        ValidationError: it is not a string.
    """
    if not isinstance(query, str):
        raise ValidationError(f"query must be a string, got {type(query).__name__}")
    return clean_text(query)


def validate_vector(vector: Any) -> tuple[float, ...] | None:
    """Return ``vector`` as a tuple, `None` for none: any sequence of numbers, or an array with one dimension.

    Whether it is finite, and of which length, is for the model to judge.

    Raises:
        ValidationError: it is something else.
    """
    if vector is None:
        return None
    try:
        if isinstance(vector, str | bytes | Mapping | Set):
            raise TypeError
        numbers = np.asarray(vector if hasattr(vector, "__array__") else list(vector))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValidationError("vector must be a sequence of numbers") from error
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
        raise ValidationError("vector must be a sequence of numbers")
    return tuple(numbers.astype(np.float64).tolist())


OptionalVector: TypeAlias = Annotated[tuple[float, ...] | None, BeforeValidator(validate_vector)]
"""The type of a field that `validate_vector` checks."""


def clean_text(text: str) -> str:
    """Return ``text`` with each NUL and each lone surrogate replaced by U+FFFD.

    Neither can be stored by every database. Two surrogates that form a pair become the character they encode.
    """
    text = str.__str__(text)
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: object, path: str, levels: int = MAX_JSON_LEVELS) -> JsonValue:
    """Return a copy of ``value`` in plain JSON types, its strings and keys cleaned by `clean_text`.

    Raises:
        ValidationError: JSON can't hold a part of it; the message holds the path to that part.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int | float):
        return _clean_number(value, path)
    if levels == 0:
        raise ValidationError(f"{path} is nested deeper than {MAX_JSON_LEVELS} levels")
    if isinstance(value, Mapping):
        return _clean_object(value, path, levels)
    if isinstance(value, list | tuple):
        return [clean_json(item, f"{path}[{index}]", levels - 1) for index, item in enumerate(value)]
    raise ValidationError(f"{path} is a {type(value).__name__}, which JSON can't hold; encode it first")


def _clean_number(value: float, path: str) -> float:
    if isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise ValidationError(f"{path} is an integer of more than 4,200 digits; store it as a string")
        return int(value)
    if not math.isfinite(value):
        raise ValidationError(f"{path} is {float(value)}, which JSON can't hold; store null or a string")
    return float(value)


def _clean_object(value: Mapping[Any, object], path: str, levels: int) -> dict[str, JsonValue]:
    cleaned: dict[str, JsonValue] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise ValidationError(f"{path} has a key that is a {type(key).__name__}; JSON keys are strings")
        name = clean_text(key)
        if name in cleaned:
            raise ValidationError(f"{path} has two keys that are the same once NUL and surrogates are replaced")
        cleaned[name] = clean_json(item, f"{path}.{name}", levels - 1)
    return cleaned


def microseconds(instant: datetime) -> int:
    """Return the microseconds from 1970 to an aware instant; exact for every year, as a float is not."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


def utc(value: object, name: str = "timestamp") -> datetime:
    """Return the instant that ``value`` names, aware and in UTC, to the microsecond.

    Accepts a `datetime` (naive means UTC), a `date` (its midnight), an ISO 8601 string, or seconds since the epoch.

    Raises:
        ValidationError: it is none of these, or outside the years 1 to 9999.
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            value = datetime.fromtimestamp(value, UTC)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        # What Python says repeats the value.
        raise ValidationError(f"{name} must be an ISO 8601 date and time between the years 1 and 9999") from None
    raise ValidationError(f"{name} must be a datetime, got {type(value).__name__}")
