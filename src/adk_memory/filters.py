"""Filters: which memories a search or a list may return; what they mean is written once, here, for every backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Literal, Protocol, TypeAlias, get_args

from adk_memory._validation import JsonValue, clean_json, clean_text, utc, validate_id
from adk_memory.errors import ValidationError

__all__ = ["AllOf", "AnyOf", "Author", "Filter", "Filtered", "Metadata", "Not", "Operator", "Session", "Time"]

Operator = Literal["eq", "ne", "in", "gt", "gte", "lt", "lte", "exists"]
"""How `Metadata` compares."""

Scalar: TypeAlias = str | int | float | bool | None

MAX_CONDITIONS: Final = 200
MAX_VALUES: Final = 1_000
MAX_LEVELS: Final = 20
_ORDER: Final = ("gt", "gte", "lt", "lte")


class _NotGiven(Enum):
    NOT_GIVEN = "NOT_GIVEN"


class Filtered(Protocol):
    """What a filter looks at: a `Memory`, or anything that has these fields of one."""

    @property
    def author(self) -> str:
        """Who wrote it."""
        ...

    @property
    def session_id(self) -> str | None:
        """The session it was added with."""
        ...

    @property
    def timestamp(self) -> datetime:
        """When, aware."""
        ...

    @property
    def metadata(self) -> Mapping[str, JsonValue]:
        """A JSON object."""
        ...


class Filter(ABC):
    """A condition on memories: `Metadata`, `Author`, `Session`, `Time`, or several, combined with ``&``, ``|``, ``~``.

    A memory passes a filter or its negation, never both or neither. Filters are immutable; at most 200 conditions
    with 1,000 values in 20 levels make one.
    """

    __slots__ = ()

    @abstractmethod
    def passes(self, memory: Filtered) -> bool:
        """Return whether a memory passes: what every backend has to agree with."""

    def __and__(self, other: Filter) -> Filter:
        return AllOf(self, other) if isinstance(other, Filter) else NotImplemented

    def __or__(self, other: Filter) -> Filter:
        return AnyOf(self, other) if isinstance(other, Filter) else NotImplemented

    def __invert__(self) -> Filter:
        return Not(self)

    def __bool__(self) -> bool:
        # `a and b` would be b, and a filter lost.
        raise TypeError("a filter is neither true nor false; combine filters with &, | and ~")


@dataclass(frozen=True, slots=True, init=False)
class Metadata(Filter):
    """A condition on one value of the metadata.

    ``key`` is a top-level name, or a sequence of names that leads into nested objects; a name is never syntax. Lists
    are not entered. ``value`` is a string, a number, a boolean or `None` (JSON's null).

    - ``eq``: the value is there and is this one. Numbers are compared as numbers, exactly, whether written as
      integers or with a fraction; a boolean is not a number; a string never equals a number.
    - ``ne``: the negation of ``eq``, so an entry without the key passes.
    - ``in``: ``eq`` to one of a list; nothing is in an empty one.
    - ``gt``, ``gte``, ``lt``, ``lte``: numbers by size, strings by code points; values of another kind do not pass.
    - ``exists``: the key is there, even with null; with the value `False`: it is not.
    """

    path: tuple[str, ...]
    operator: Operator
    value: Scalar | tuple[Scalar, ...]

    def __init__(
        self,
        key: str | Sequence[str],
        operator: Operator,
        value: Scalar | Iterable[Scalar] | _NotGiven = _NotGiven.NOT_GIVEN,
    ) -> None:
        if operator not in get_args(Operator):
            raise ValidationError(f"operator must be one of {', '.join(get_args(Operator))}")
        object.__setattr__(self, "path", _path(key))
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "value", _operand(operator, value))
        _check_size(self)

    def passes(self, memory: Filtered) -> bool:
        return self.holds(memory.metadata)

    def holds(self, metadata: Mapping[str, JsonValue]) -> bool:
        """Return whether ``metadata``, a JSON object, fulfils the condition."""
        found: JsonValue = metadata
        for name in self.path:
            if not isinstance(found, Mapping) or name not in found:
                return self.operator == "ne" or (self.operator == "exists" and not self.value)
            found = found[name]
        if self.operator == "exists":
            return bool(self.value)
        if isinstance(self.value, tuple):
            return any(_equal(found, value) for value in self.value)
        if self.operator in ("eq", "ne"):
            return _equal(found, self.value) == (self.operator == "eq")
        return _ordered(found, self.operator, self.value)


@dataclass(frozen=True, slots=True, init=False)
class Author(Filter):
    """The memories of one of these authors, compared exactly."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        for name in names:
            if not isinstance(name, str):
                raise ValidationError(f"an author must be a string, got {type(name).__name__}")
        object.__setattr__(self, "names", tuple(map(clean_text, names)))
        _check_size(self)

    def passes(self, memory: Filtered) -> bool:
        return memory.author in self.names


@dataclass(frozen=True, slots=True, init=False)
class Session(Filter):
    """The memories of one of these sessions; `None` stands for those that were added outside of any."""

    ids: tuple[str | None, ...]

    def __init__(self, *ids: str | None) -> None:
        checked = (None if session_id is None else validate_id("session_id", session_id) for session_id in ids)
        object.__setattr__(self, "ids", tuple(checked))
        _check_size(self)

    def passes(self, memory: Filtered) -> bool:
        return memory.session_id in self.ids


@dataclass(frozen=True, slots=True, init=False)
class Time(Filter):
    """The memories from an instant on, up to but not including another, or both.

    An instant is given like an entry's timestamp: a datetime (naive means UTC), a date (its midnight), ISO 8601.
    """

    since: datetime | None
    before: datetime | None

    def __init__(self, *, since: object = None, before: object = None) -> None:
        if since is None and before is None:
            raise ValidationError("a time filter needs since or before")
        object.__setattr__(self, "since", None if since is None else utc(since, "since"))
        object.__setattr__(self, "before", None if before is None else utc(before, "before"))

    def passes(self, memory: Filtered) -> bool:
        if self.since is not None and memory.timestamp < self.since:
            return False
        return self.before is None or memory.timestamp < self.before


@dataclass(frozen=True, slots=True, init=False)
class AllOf(Filter):
    """What passes every one of some filters: ``a & b & c``."""

    filters: tuple[Filter, ...]

    def __init__(self, *filters: Filter) -> None:
        object.__setattr__(self, "filters", _members(AllOf, filters))
        _check_size(self)

    def passes(self, memory: Filtered) -> bool:
        return all(part.passes(memory) for part in self.filters)


@dataclass(frozen=True, slots=True, init=False)
class AnyOf(Filter):
    """What passes at least one of some filters: ``a | b | c``."""

    filters: tuple[Filter, ...]

    def __init__(self, *filters: Filter) -> None:
        object.__setattr__(self, "filters", _members(AnyOf, filters))
        _check_size(self)

    def passes(self, memory: Filtered) -> bool:
        return any(part.passes(memory) for part in self.filters)


@dataclass(frozen=True, slots=True, init=False)
class Not(Filter):
    """What does not pass a filter: ``~a``."""

    filter: Filter

    def __init__(self, filter: Filter) -> None:
        object.__setattr__(self, "filter", _checked(filter))
        _check_size(self)

    def passes(self, memory: Filtered) -> bool:
        return not self.filter.passes(memory)


def validate_filter(filter: object) -> Filter | None:
    """Return ``filter`` if it is `None` or one of ours.

    Raises:
        ValidationError: it is something else; a class of somebody else's is nothing that a backend knows.
    """
    return None if filter is None else _checked(filter)


def _checked(filter: object) -> Filter:
    if not isinstance(filter, Metadata | Author | Session | Time | AllOf | AnyOf | Not):
        raise ValidationError(f"filter must be one of adk_memory.filters, got {type(filter).__name__}")
    return filter


def _path(key: object) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, Sequence) or isinstance(names, bytes) or not all(isinstance(name, str) for name in names):
        raise ValidationError(f"key must be a string or a sequence of strings, got {type(key).__name__}")
    if not 1 <= len(names) <= MAX_LEVELS:
        raise ValidationError(f"key must lead through 1 to {MAX_LEVELS} names, got {len(names)}")
    return tuple(map(clean_text, names))


def _operand(operator: Operator, value: object) -> Scalar | tuple[Scalar, ...]:
    if operator == "exists":
        if value is _NotGiven.NOT_GIVEN:
            return True
        if not isinstance(value, bool):
            raise ValidationError(f"the value of exists must be true or false, got {type(value).__name__}")
        return value
    if value is _NotGiven.NOT_GIVEN:
        raise ValidationError(f"{operator} needs a value")
    if operator == "in":
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise ValidationError(f"the value of in must be a list, got {type(value).__name__}")
        return tuple(_scalar(f"value[{index}]", item) for index, item in enumerate(value))
    scalar = _scalar("value", value)
    if operator in _ORDER and _kind(scalar) not in ("number", "string"):
        raise ValidationError(f"the value of {operator} must be a number or a string, got {type(value).__name__}")
    return scalar


def _scalar(path: str, value: object) -> Scalar:
    if value is not None and not isinstance(value, str | int | float):
        raise ValidationError(f"{path} must be a string, a number, a boolean or None, got {type(value).__name__}")
    scalar: Scalar = clean_json(value, path)
    return scalar


def _members(kind: type[AllOf] | type[AnyOf], filters: Iterable[object]) -> tuple[Filter, ...]:
    """Return the filters to combine; of those that are combinations of the same kind, their parts."""
    members: list[Filter] = []
    for member in filters:
        checked = _checked(member)
        members.extend(checked.filters if isinstance(checked, AllOf | AnyOf) and type(checked) is kind else [checked])
    if not members:
        raise ValidationError(f"{kind.__name__} needs at least one filter")
    return tuple(members)


def _check_size(filter: Filter) -> None:
    conditions, values, levels = _size(filter)
    if values == 0 and isinstance(filter, Author | Session):
        raise ValidationError(f"{type(filter).__name__} needs at least one value")
    if conditions > MAX_CONDITIONS:
        raise ValidationError(f"a filter can hold {MAX_CONDITIONS} conditions, got {conditions}")
    if values > MAX_VALUES:
        raise ValidationError(f"a filter can hold {MAX_VALUES} values, got {values}")
    if levels > MAX_LEVELS:
        raise ValidationError(f"a filter can be nested {MAX_LEVELS} levels deep, got {levels}")


def _size(filter: Filter) -> tuple[int, int, int]:
    """Return how many conditions and values a filter has, and how deep it is nested."""
    match filter:
        case AllOf(filters) | AnyOf(filters):
            conditions, values, levels = zip(*map(_size, filters), strict=True)
            return sum(conditions), sum(values), 1 + max(levels)
        case Not(negated):
            inner = _size(negated)
            return inner[0], inner[1], 1 + inner[2]
        case Metadata(_, _, tuple(several)) | Author(several) | Session(several):
            return 1, len(several), 1
    return 1, 1, 1


def _kind(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", type(None): "null"}.get(type(value), "structure")


def _equal(found: JsonValue, value: Scalar) -> bool:
    return _kind(found) == _kind(value) and bool(found == value)


def _ordered(found: JsonValue, operator: Operator, value: JsonValue) -> bool:
    if _kind(found) != _kind(value):
        return False
    match operator:
        case "gt":
            return bool(found > value)
        case "gte":
            return bool(found >= value)
        case "lt":
            return bool(found < value)
        case _:
            return bool(found <= value)
