"""Column types that are stored unlike on each database: instants, JSON texts, vectors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    DateTime,
    Dialect,
    Integer,
    LargeBinary,
    Text,
    cast,
)
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from adk_memory._validation import microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

BigId = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit key; SQLite makes a column its row id only where it is declared INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware instant in UTC; on SQLite the microseconds since the epoch, so that number order is time order."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "sqlite":
            return value
        return microseconds(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return instant(value)


def instant(stored: int | datetime) -> datetime:
    """Return the instant that a driver gave, as each of them does."""
    if isinstance(stored, int):
        return _EPOCH + timedelta(microseconds=stored)
    # asyncpg keeps the first and the last instant of all as infinities, and gives them back without a zone.
    return stored.replace(tzinfo=UTC) if stored.tzinfo is None else stored.astimezone(UTC)


def instant_number(stored: int | datetime) -> int:
    """Return that instant in microseconds since the epoch."""
    return stored if isinstance(stored, int) else microseconds(instant(stored))


class JsonText(TypeDecorator[str]):
    """A JSON column that is written and read as its text.

    The text is ours to make and to read, whatever serializer the engine that was handed in is set to; and
    ``json``, unlike ``jsonb``, keeps numbers as they were written.
    """

    impl = JSON
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        return None

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return cast(column, Text)


class HalfVector(UserDefinedType[Any]):
    """pgvector's ``halfvec``, in the schema that holds the extension; columns have it without a declared length."""

    cache_ok = True

    def __init__(self, schema: str | None = None, dimensions: int | None = None) -> None:
        self.schema = schema
        self.dimensions = dimensions

    def get_col_spec(self, **_options: Any) -> str:
        length = "" if self.dimensions is None else f"({self.dimensions})"
        if self.schema is None:
            return f"halfvec{length}"
        quoted = self.schema.replace('"', '""')
        return f'"{quoted}".halfvec{length}'


Vector = LargeBinary().with_variant(HalfVector(), "postgresql")
"""A unit vector in half precision: little-endian float16 on SQLite, ``halfvec`` on Postgres."""
