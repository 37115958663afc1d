"""Content, what was said; and Value, what every value that crosses the border is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, field_validator

from adk_memory._validation import JsonValue, clean_json, clean_text
from adk_memory.errors import ValidationError


class Value(BaseModel):
    """An immutable value whose constructor raises our `ValidationError`, with the path and without the input."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except (pydantic.ValidationError, TypeError) as error:
            raise _refusal(type(self), error) from error

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Return the value that ``obj`` describes; the same checks and errors as the constructor."""
        try:
            return super().model_validate(obj, **options)
        except (pydantic.ValidationError, TypeError) as error:
            raise _refusal(cls, error) from error

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Return the value that a JSON text describes; the same checks and errors as the constructor."""
        try:
            return super().model_validate_json(json_data, **options)
        except (pydantic.ValidationError, TypeError) as error:
            raise _refusal(cls, error) from error


_Kind = TypeVar("_Kind", bound=Value)


def trusted(kind: type[_Kind], fields: dict[str, Any], others: dict[str, Any] | None = None) -> _Kind:
    """Return the value of this kind that has these ``fields``, all that it has, without any check of them.

    It does what ``model_construct`` does in a quarter of its time, and ``others``, the fields that ``kind`` does not
    name, may be called like an argument of that: "cls" for one.
    """
    value = kind.__new__(kind)
    object.__setattr__(value, "__dict__", fields)
    object.__setattr__(value, "__pydantic_fields_set__", set(fields))
    object.__setattr__(value, "__pydantic_extra__", others)
    object.__setattr__(value, "__pydantic_private__", None)
    return value


def _refusal(kind: type[Value], error: pydantic.ValidationError | TypeError) -> ValidationError:
    if isinstance(error, pydantic.ValidationError):
        return ValidationError(_summary(kind.__name__, error))
    # Pydantic calls a constructor with the names that a mapping has.
    return ValidationError(f"{kind.__name__}: a field is missing, or the name of one is not a string")


def _summary(name: str, error: pydantic.ValidationError) -> str:
    found = []
    for detail in error.errors(include_input=False, include_url=False):
        path = ".".join(str(step) for step in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ").removeprefix(f"{name}: ")
        found.append(f"{path}: {message}" if path and not message.startswith(path) else message)
    return f"{name}: {'; '.join(found)}"


class Content(Value):
    """What was said: a role and parts. A part is a text or any JSON object; all are kept as they are.

    ``Content("user", ["hello"])`` is short for ``Content("user", [{"text": "hello"}])``. Fields beside ``role``
    and ``parts`` are kept too. Only the text parts are searched.
    """

    model_config = ConfigDict(extra="allow")

    role: str | None = "user"
    parts: tuple[dict[str, JsonValue], ...] = ()

    def __init__(self, /, role: str | None = "user", parts: object = (), **others: Any) -> None:
        super().__init__(role=role, parts=parts, **others)

    @classmethod
    def of(cls, value: object) -> Content:
        """Return ``value`` as a `Content`: a text, a mapping, or any object that has ``role`` and ``parts``.

        Raises:
            ValidationError: it is none of these, or JSON can't hold it.
        """
        if isinstance(value, Content):
            return value
        if isinstance(value, str):
            return cls(parts=(value,))
        if isinstance(value, Mapping):
            return cls(**_fields(value))
        if hasattr(value, "role") and hasattr(value, "parts"):
            return cls(role=value.role, parts=value.parts)
        raise ValidationError(f"content must be a text, a mapping or have role and parts, got {type(value).__name__}")

    def with_text(self, text: str) -> Content:
        """Return this content with one more text part at its end."""
        return type(self).of({**self.as_json(), "parts": (*self.parts, text)})

    @property
    def text(self) -> str:
        """The text parts, in order, joined by line breaks; empty where there are none."""
        return "\n".join(part["text"] for part in self.parts if isinstance(part.get("text"), str))

    def as_json(self) -> dict[str, JsonValue]:
        """Return the JSON object that is stored: ``role``, ``parts`` and what else was given."""
        return {"role": self.role, "parts": list(self.parts), **(self.model_extra or {})}

    @field_validator("role")
    @classmethod
    def _clean_role(cls, role: str | None) -> str | None:
        return None if role is None else clean_text(role)

    @field_validator("parts", mode="before")
    @classmethod
    def _plain_parts(cls, parts: object) -> object:
        if parts is None:
            return ()
        if isinstance(parts, str) or not isinstance(parts, Sequence):
            raise ValidationError("parts must be a list of texts and JSON objects")
        return tuple(_plain_part(part, f"parts[{index}]") for index, part in enumerate(parts))

    def model_post_init(self, _context: object) -> None:
        """Check the fields beside role and parts, which no validator sees."""
        for key, value in (self.model_extra or {}).items():
            self.model_extra[key] = clean_json(value, key)  # type: ignore[index]


def _fields(content: Mapping[Any, object]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, item in content.items():
        if not isinstance(key, str):
            raise ValidationError(f"content has a key that is a {type(key).__name__}; JSON keys are strings")
        name = clean_text(key)
        if name in fields:
            raise ValidationError("content has two keys that are the same once NUL and surrogates are replaced")
        fields[name] = item
    return fields


def _plain_part(part: object, path: str) -> dict[str, JsonValue]:
    if isinstance(part, str):
        return {"text": clean_text(part)}
    if hasattr(part, "model_dump") and not isinstance(part, type):  # a part of Google genai's type
        part = part.model_dump(mode="json", exclude_none=True)
    elif not isinstance(part, Mapping) and isinstance(getattr(part, "text", None), str):
        part = {"text": part.text}  # type: ignore[attr-defined]
    if not isinstance(part, Mapping):
        raise ValidationError(f"{path} must be a text or a JSON object, got {type(part).__name__}")
    cleaned: dict[str, JsonValue] = clean_json(part, path)
    return cleaned
