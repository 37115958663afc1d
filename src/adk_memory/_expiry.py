"""How long entries live that say nothing about it themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from adk_memory._records import Record
from adk_memory.errors import ValidationError

_LONGEST: Final = timedelta(days=365_000)


class Lifetime:
    """The default of a service: what is new and was given no ``expires_at`` expires so long after it was written.

    Raises:
        ValidationError: ``default_ttl`` is no timedelta, or not between nothing and 365,000 days.
    """

    def __init__(self, default_ttl: timedelta | None) -> None:
        if default_ttl is not None:
            if not isinstance(default_ttl, timedelta):
                raise ValidationError(f"default_ttl must be a timedelta, got {type(default_ttl).__name__}")
            if not timedelta(0) < default_ttl <= _LONGEST:
                raise ValidationError("default_ttl must be more than nothing, and at most 365,000 days")
        self._default_ttl = default_ttl

    def dated(self, records: Iterable[Record], now: datetime) -> list[Record]:
        """Return the records that are written at this instant, each with the time at which it would expire if new."""
        if self._default_ttl is None:
            return list(records)
        end = now + self._default_ttl
        return [record if record.expires_at_given else replace(record, expires_at=end) for record in records]
