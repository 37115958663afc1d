"""LangGraph's operations, checked before the first of a batch is carried out."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

from adk_memory._validation import MAX_ID_CHARACTERS, clean_json, clean_text
from adk_memory.errors import ValidationError
from adk_memory.integrations.langgraph._filters import checked as checked_filter

Namespace: TypeAlias = tuple[str, ...]

SEPARATOR: Final = "."
_LONGEST: Final = 10**9


def user_of(namespace: Namespace) -> str:
    """Return the user id that stands for a namespace; no label holds a period, so no two namespaces share one."""
    return SEPARATOR.join(namespace)


def namespace_of(user_id: str) -> Namespace:
    """Return the namespace that a user id of `user_of` stands for."""
    return tuple(user_id.split(SEPARATOR))


def checked(op: Any) -> Any:
    """Return an operation in plain types.

    Raises:
        InvalidNamespaceError: a label is empty, not a string, or holds a period; or they are too long together.
        ValidationError: anything else is not what the operation takes.
    """
    if isinstance(op, GetOp):
        return op._replace(namespace=_namespace(op.namespace), key=_key(op.key))
    if isinstance(op, PutOp):
        return _checked_put(op)
    if isinstance(op, SearchOp):
        _check_part(op.limit, op.offset)
        if op.query is not None and not isinstance(op.query, str):
            raise ValidationError(f"query must be a string, got {type(op.query).__name__}")
        return op._replace(namespace_prefix=_namespace(op.namespace_prefix), filter=checked_filter(op.filter))
    if isinstance(op, ListNamespacesOp):
        _check_part(op.limit, op.offset)
        if op.max_depth is not None:
            _check_count("max_depth", op.max_depth)
        conditions = tuple(op.match_conditions or ())
        for condition in conditions:
            if condition.match_type not in ("prefix", "suffix"):
                raise ValidationError("match_type must be prefix or suffix")
        conditions = tuple(condition._replace(path=_namespace(condition.path)) for condition in conditions)
        return op._replace(match_conditions=conditions)
    raise ValidationError(f"Unknown operation type: {type(op).__name__}")


def matches(namespace: Namespace, conditions: Any) -> bool:
    """Return whether a namespace begins, or ends, as each condition says; ``*`` is any one label."""
    for condition in conditions:
        path = condition.path
        if len(path) > len(namespace):
            return False
        labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
        if not all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True)):
            return False
    return True


def common_beginning(conditions: Any) -> Namespace:
    """Return the labels with which all namespaces begin that fulfil the conditions."""
    longest: Namespace = ()
    for condition in conditions:
        path = condition.path
        if condition.match_type == "prefix":
            beginning = path[: path.index("*")] if "*" in path else path
            longest = max(longest, beginning, key=len)
    return longest


def _checked_put(op: PutOp) -> PutOp:
    namespace = _namespace(op.namespace)
    if not namespace:
        raise InvalidNamespaceError("a namespace must have at least one label")
    value = op.value
    if value is not None:
        value = clean_json(value, "value")
        if not isinstance(value, dict):
            raise ValidationError(f"value must be a mapping, got {type(op.value).__name__}")
    ttl = op.ttl
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 <= ttl <= _LONGEST):
        raise ValidationError(f"ttl must be a number of minutes, 0 to {_LONGEST:,}, or None for no end")
    return op._replace(namespace=namespace, key=_key(op.key), value=value)


def _namespace(namespace: Any) -> Namespace:
    labels = tuple(namespace)
    for label in labels:
        if not isinstance(label, str):
            raise InvalidNamespaceError(f"a label of a namespace must be a string, got {type(label).__name__}")
        if not label or SEPARATOR in label:
            raise InvalidNamespaceError("a label of a namespace must not be empty and not hold a period")
        if clean_text(label) != label:
            raise InvalidNamespaceError("a label of a namespace must not hold a NUL or a lone surrogate")
    if len(user_of(labels)) > MAX_ID_CHARACTERS:
        raise InvalidNamespaceError(
            f"a namespace can have {MAX_ID_CHARACTERS} characters with a period between its labels, "
            f"got {len(user_of(labels))}"
        )
    return labels


def _key(key: object) -> str:
    text = str(key)
    if clean_text(text) != text:
        raise ValidationError("a key must not hold a NUL or a lone surrogate")
    return text


def _check_part(limit: object, offset: object) -> None:
    _check_count("limit", limit)
    _check_count("offset", offset)


def _check_count(name: str, count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValidationError(f"{name} must be an integer, 0 or more")
