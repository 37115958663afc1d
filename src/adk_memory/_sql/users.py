"""Users: who has entries in an app, by the beginning of their ids."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, literal, select

from adk_memory._sql.scope import lives
from adk_memory._sql.tables import EntryRow, ScopeRow
from adk_memory._sql.walking import everyones
from adk_memory._validation import MAX_LIMIT, validate_limit, validate_users


def users(
    app_name: str, prefix: str, after: str | None, limit: int | None, now: datetime
) -> Callable[[Connection], list[str]]:
    """Return what reads the users of an app whose ids begin with ``prefix`` and come after another."""
    validate_users(app_name, prefix, after)
    has_entries = everyones(literal(1)).where(EntryRow.scope_id == ScopeRow.id, lives(now)).correlate(ScopeRow).exists()
    found = select(ScopeRow.user_id).distinct().where(ScopeRow.app_name == app_name, ScopeRow.user_id >= prefix)
    if (end := _end_of(prefix)) is not None:
        found = found.where(ScopeRow.user_id < end)
    if after is not None:
        found = found.where(ScopeRow.user_id > after)
    part = found.where(has_entries).order_by(ScopeRow.user_id).limit(validate_limit(limit, MAX_LIMIT))
    return lambda connection: list(connection.scalars(part))


def _end_of(prefix: str) -> str | None:
    """Return the first text that comes after all that begin with ``prefix``; `None` where there is none."""
    prefix = prefix.rstrip("\U0010ffff")
    if not prefix:
        return None
    following = chr(ord(prefix[-1]) + 1)
    return prefix[:-1] + ("\ue000" if following == "\ud800" else following)  # in between there are no characters
