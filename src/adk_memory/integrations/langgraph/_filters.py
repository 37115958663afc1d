"""The filters of a LangGraph search: which values pass, and what of that a service can decide by itself.

A filter is a mapping of keys to what is wanted there. A key is a name, or several that lead inside, joined by periods;
a key that is missing holds null. Wanted is a value, or a mapping of operators to values, all of which have to hold, or
a mapping without operators, each of whose keys has to hold inside.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from adk_memory._validation import JsonValue, clean_text
from adk_memory.errors import ValidationError
from adk_memory.filters import AllOf, Filter, Metadata, Operator

Wanted = Mapping[str, Any]

_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS: Final[Mapping[str, Operator]] = {
    "$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte",
}  # fmt: skip


def checked(filter: object) -> Wanted:
    """Return a filter, its texts cleaned as those of stored values are; nothing is asked for by an empty one.

    Raises:
        ValidationError: a key, an operator or a value is none.
    """
    if filter is None:
        return {}
    if not isinstance(filter, Mapping):
        raise ValidationError(f"filter must be a mapping, got {type(filter).__name__}")
    return {_key(key): _checked(wanted) for key, wanted in filter.items()}


def passes(value: Mapping[str, JsonValue], filter: Wanted) -> bool:
    """Return whether the value of an item passes a filter: numbers by size, texts by code points, nothing converted."""
    return all(_holds(_found(value, key), wanted) for key, wanted in filter.items())


def decidable(filter: Wanted, within: str) -> Filter | None:
    """Return what a service can decide of a filter, on metadata that hold the value at ``within``.

    All that passes the filter passes this too.
    """
    conditions: list[Filter] = []
    for key, wanted in filter.items():
        if "." in key:
            continue  # one key, or the names of several
        comparisons = wanted if _has_operators(wanted) else {"$eq": wanted}
        for name, operand in comparisons.items():
            if _is_scalar(operand):
                conditions.append(_condition((within, key), _OPERATORS[name], operand))
    return AllOf(*conditions) if conditions else None


def _condition(path: tuple[str, str], comparison: Operator, operand: Any) -> Filter:
    if operand is not None:
        return Metadata(path, comparison, operand)
    null = Metadata(path, "eq", None) | Metadata(path, "exists", False)
    return null if comparison == "eq" else ~null


def _key(key: object) -> str:
    if not isinstance(key, str) or "$" in key:
        raise ValidationError("Invalid filter key: it must be a name, or names joined by periods, without a $")
    return clean_text(key)


def _checked(wanted: Any) -> Any:
    if not _has_operators(wanted):
        return _clean(wanted)
    for name, operand in wanted.items():
        if name not in _OPERATORS:
            raise ValidationError(f"Unsupported operator: it must be one of {', '.join(_OPERATORS)}")
        if name in _ORDER and _kind(operand) not in ("number", "string"):
            raise ValidationError(f"the value of {name} must be a number or a string, got {type(operand).__name__}")
    return {name: _clean(operand) for name, operand in wanted.items()}


def _clean(wanted: Any) -> Any:
    """Return a value as it would be stored; infinity, which could not be, can be compared with."""
    if isinstance(wanted, str):
        return clean_text(wanted)
    if isinstance(wanted, Mapping):
        return {_key(key): _checked(value) for key, value in wanted.items()}
    if isinstance(wanted, list | tuple):
        return [_checked(value) for value in wanted]
    if wanted is None or isinstance(wanted, bool | int | float):
        return wanted
    raise ValidationError(f"a filter can't hold a {type(wanted).__name__}, only what JSON holds")


def _found(value: Mapping[str, JsonValue], key: str) -> JsonValue:
    if key in value:
        return value[key]
    found: JsonValue = value
    for name in key.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def _holds(found: JsonValue, wanted: Any) -> bool:
    if _has_operators(wanted):
        return all(_compared(found, name, operand) for name, operand in wanted.items())
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_holds(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_holds, found, wanted))
    return _same(found, wanted)


def _compared(found: JsonValue, name: str, operand: Any) -> bool:
    if name in _ORDER:
        return _kind(found) == _kind(operand) and _ORDER[name](found, operand)
    return _same(found, operand) == (name == "$eq")


def _same(found: JsonValue, wanted: Any) -> bool:
    """Return whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and found.keys() == wanted.keys() and all(
            _same(found[key], value) for key, value in wanted.items()
        )  # fmt: skip
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_same, found, wanted))
    return _kind(found) == _kind(wanted) and bool(found == wanted)


def _has_operators(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and any(isinstance(key, str) and key.startswith("$") for key in wanted)


def _is_scalar(operand: Any) -> bool:
    if isinstance(operand, float):
        return math.isfinite(operand)
    return operand is None or isinstance(operand, str | int)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__.replace("str", "string")
