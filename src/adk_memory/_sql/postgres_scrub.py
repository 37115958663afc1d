"""Removing from the tables of Postgres what erased rows left behind, as far as VACUUM does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory._sql.dialect import Dialect
from adk_memory.erasure import ScrubReport

_PATIENCE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.2
_TABLES: Final = ("adk_memory_entry", "adk_memory_search_entry", "adk_memory_embedding", "adk_memory_scope")
_ALLOWED: Final = text(
    """
    SELECT pg_has_role(c.relowner, 'USAGE')
        OR (SELECT pg_has_role(d.datdba, 'USAGE') FROM pg_database AS d WHERE d.datname = current_database())
        OR CASE WHEN current_setting('server_version_num')::integer >= 170000
            THEN has_table_privilege(c.oid, 'MAINTAIN') ELSE false END
    FROM pg_class AS c WHERE c.oid = CAST(:name AS regclass)
    """
)
_NEXT_TRANSACTION: Final = text("SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid) AS text)")
# Whoever began before that transaction may still see what was erased before it. Of sessions of other roles, a role
# without pg_read_all_stats sees nothing here.
_WITNESSES: Final = text(
    """
    SELECT count(*)
    FROM (
        SELECT backend_xid, backend_xmin FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND coalesce(datname, current_database()) = current_database()
        AND backend_type <> 'autovacuum worker'
        UNION ALL SELECT transaction, NULL FROM pg_prepared_xacts WHERE database = current_database()
        UNION ALL SELECT xmin, NULL FROM pg_replication_slots
    ) AS old (writes, sees)
    WHERE greatest(age(writes), age(sees)) > age(CAST(CAST(:next AS text) AS xid))
    """
)


async def scrub(dialect: Dialect, engine: AsyncEngine, on_progress: Callable[[int, int], None] | None) -> ScrubReport:
    """Vacuum our tables one after the other; others read and write meanwhile."""
    left: list[str] = []
    if await _seen_by_others(dialect, engine):
        left.append("erased rows: a transaction that was open before can still see them; scrub again when it has ended")
    for done, name in enumerate(_TABLES, 1):
        if not await dialect.run(engine, partial(_vacuum, name=name)):
            left.append(f"erased rows of {name}: the role may not vacuum it; autovacuum will, or have its owner do so")
        if on_progress is not None:
            on_progress(done, len(_TABLES))
    return ScrubReport(tuple(left))


async def _seen_by_others(dialect: Dialect, engine: AsyncEngine) -> bool:
    """Wait until no transaction is open that may see what is erased now; return whether one stayed."""
    after = await dialect.run(engine, lambda connection: connection.execute(_NEXT_TRANSACTION).scalar_one())
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while await dialect.run(engine, lambda connection: connection.scalar(_WITNESSES, {"next": after})):
        if time.monotonic() > deadline:
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return False


def _vacuum(connection: Connection, *, name: str) -> bool:
    """Vacuum a table and return `True`, or `False` where Postgres would only warn, and skip it."""
    if not connection.scalar(_ALLOWED, {"name": name}):
        return False
    # Without this option, index entries of few rows are left for later.
    connection.exec_driver_sql(f"VACUUM (INDEX_CLEANUP ON) {name}")
    return True
