"""Conditions on the metadata column, a JSON text, as each database can decide them exactly."""

from __future__ import annotations

import json
import math
import operator
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Numeric, Text, case, cast, false, func, literal, or_, true, type_coerce

from adk_memory._sql.tables import EntryRow
from adk_memory._validation import JsonValue
from adk_memory.filters import Metadata, Scalar

SQLITE_FUNCTION: Final = "adk_memory_metadata_holds"
_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}

# SQLite rounds integers beyond 64 bits, and numbers with a fraction in their last place, when it reads JSON. So the
# filter itself is called there, as a function of the connection.


def sqlite_condition(condition: Metadata) -> ColumnElement[bool]:
    metadata = type_coerce(EntryRow.metadata_, Text)
    asked = json.dumps([condition.path, condition.operator, condition.value])
    holds: ColumnElement[bool] = getattr(func, SQLITE_FUNCTION)(literal(asked, Text), metadata) == 1
    if condition.operator == "ne" or (condition.operator == "exists" and not condition.value):
        return holds
    # Where the key is nowhere in the text, which is quickly seen, there is nothing to read.
    key = json.dumps(condition.path[-1], ensure_ascii=False) + ":"
    return (func.instr(metadata, literal(key, Text)) > 0) & holds


def sqlite_holds(asked: str, metadata: str) -> int:
    """Decide a condition of `sqlite_condition` for one row."""
    return int(_condition(asked).holds(_read(metadata)))


@lru_cache(maxsize=256)
def _condition(asked: str) -> Metadata:
    return Metadata(*json.loads(asked))


@lru_cache(maxsize=16)
def _read(metadata: str) -> JsonValue:
    """Several conditions on one row read its metadata once."""
    return json.loads(metadata)


def postgres_condition(condition: Metadata) -> ColumnElement[bool]:
    parent: ColumnElement[Any] = type_coerce(EntryRow.metadata_, Text)
    for name in condition.path[:-1]:
        parent = parent.op("->")(_text(name))
    value, text = parent.op("->")(_text(condition.path[-1])), parent.op("->>")(_text(condition.path[-1]))
    if condition.operator == "exists":
        return value.is_not(None) if condition.value else value.is_(None)
    kind = func.json_typeof(value)
    if isinstance(condition.value, tuple):
        return _one_of(kind, text, condition.value)
    if condition.operator == "ne":
        return ~_one_of(kind, text, [condition.value])
    if condition.operator == "eq":
        return _one_of(kind, text, [condition.value])
    compare = _COMPARISONS[condition.operator]
    if isinstance(condition.value, str):
        return _of_kind(kind, "string", compare(text.collate("C"), _text(condition.value)))
    assert isinstance(condition.value, int | float)  # noqa: S101 - a condition of another kind can't be made
    return _of_kind(kind, "number", _compared(text, condition.operator, condition.value))


def _one_of(kind: Any, text: Any, values: Sequence[Scalar]) -> ColumnElement[bool]:
    strings = [value for value in values if isinstance(value, str)]
    booleans = sorted({str(value).lower() for value in values if isinstance(value, bool)})
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    found: list[ColumnElement[bool]] = []
    if strings:
        found.append(_of_kind(kind, "string", text.in_([_text(value) for value in strings])))
    if booleans:
        found.append(_of_kind(kind, "boolean", text.in_([_text(value) for value in booleans])))
    if None in values:
        found.append(func.coalesce(kind == "null", false()))
    if numbers:
        found.append(_of_kind(kind, "number", or_(*(_compared(text, "eq", number) for number in numbers))))
    return or_(false(), *found)


def _of_kind(kind: Any, name: str, condition: Any) -> ColumnElement[bool]:
    """A CASE is evaluated in order: no text of another kind is cast, and a missing key is false, not NULL."""
    return case((kind == name, condition), else_=false())


def _compared(text: Any, comparison: str, wanted: float) -> ColumnElement[bool]:
    """Compare a JSON number with ``wanted`` as Python does: exactly.

    An integer is its digits. A number with a fraction is the double that its digits stand for, the shortest that
    do; doubles are in the order of their shortest digits, so those are what is compared.
    """
    number = cast(text, Numeric)
    as_integer = _COMPARISONS[comparison](number, _number(format(Decimal(wanted), "f")))
    return case((text.regexp_match("[.eE]"), _compared_double(number, comparison, wanted)), else_=as_integer)


def _compared_double(number: Any, comparison: str, wanted: float) -> Any:
    double, below = _double(wanted)
    if double is not None:
        return _COMPARISONS[comparison](number, _number(repr(double)))
    if comparison == "eq":
        return false()  # no double is this integer
    if below is None:
        return true() if comparison in ("gt", "gte") else false()
    return number > _number(repr(below)) if comparison in ("gt", "gte") else number <= _number(repr(below))


def _double(wanted: float) -> tuple[float | None, float | None]:
    """Return the double that equals ``wanted``, or else the largest below it; `None` where there is none."""
    try:
        near = float(wanted)
    except OverflowError:
        return None, sys.float_info.max if wanted > 0 else None
    if near == wanted:
        return near, None
    return None, near if near < wanted else math.nextafter(near, -math.inf)


def _text(value: str) -> ColumnElement[str]:
    return cast(literal(value, Text), Text)


def _number(digits: str) -> ColumnElement[Any]:
    return cast(literal(digits, Text), Numeric)
