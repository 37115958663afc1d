"""The one clock by which entries expire; what a database server thinks of the time is never asked."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)
