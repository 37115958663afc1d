"""Erasing what has expired, of all users, in parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection

from adk_memory._sql.database import Database
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.erasing import erase_some
from adk_memory._sql.tables import EntryRow, ScopeRow
from adk_memory._sql.walking import hold, scopes_with_expired
from adk_memory.erasure import Erasure

_SCOPES_AT_ONCE: Final = 100


async def purge(database: Database, now: datetime, on_progress: Callable[[int], None] | None) -> Erasure:
    """Erase the entries that have expired by then, some scopes at a time; return what this call erased."""
    await database.ready_for_all()
    purged: list[Erasure] = []
    last = 0
    while scope_ids := await database.run(partial(_next_scopes, after=last, now=now)):
        last = scope_ids[-1]
        all_of_them = False
        while not all_of_them:
            started = time.monotonic()
            work = partial(_purge_some, dialect=database.dialect, scope_ids=scope_ids, now=now)
            erased, all_of_them = await database.transact(work)
            purged.append(erased)
            if on_progress is not None:
                on_progress(sum(purged))
            await asyncio.sleep(time.monotonic() - started)  # others, who wait for the lock, have their turn
    return Erasure.of(purged)


def _next_scopes(connection: Connection, after: int, now: datetime) -> Sequence[int]:
    return connection.scalars(scopes_with_expired(after, now).limit(_SCOPES_AT_ONCE)).all()


def _purge_some(
    connection: Connection, dialect: Dialect, scope_ids: Sequence[int], now: datetime
) -> tuple[Erasure, bool]:
    # Until now entries may have been added anew, and whole scopes erased.
    sight = hold(connection, dialect.among(ScopeRow.id, scope_ids))
    return erase_some(connection, dialect, sight, EntryRow.expires_at <= now)
