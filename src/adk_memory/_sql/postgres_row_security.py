"""Row-level security on Postgres: policies that an operator switches on, and the user whose rows a transaction sees.

A policy shows the scopes of the app and user that two settings name, and of the other tables what is in those scopes.
The owner of the tables is not bound by them: who owns them looks after them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory._scope import Scope
from adk_memory._sql.exclusive import exclusive
from adk_memory._sql.failures import translated
from adk_memory._sql.postgres_sketch import Sketches
from adk_memory._sql.tables import SEARCH_TABLE, EmbeddingModelRow, EmbeddingRow, EntryRow, ScopeRow
from adk_memory.errors import ConfigurationError

_POLICY: Final = "adk_memory_one_user"
# Where the settings were never made, as by a service that does not know of the policies, a statement fails.
_POLICIES: Final = {
    ScopeRow.__tablename__: "app_name = current_setting('adk_memory.app_name') "
    "AND user_id = current_setting('adk_memory.user_id')",
    # The scopes are looked up once for a statement, not for each of its rows. Statements bring their own ways to these
    # rows; the planner is not to go by the policy, or to expect few rows of it, and take slow ways, and it can't
    # look into a coalesce().
    **dict.fromkeys(
        (EntryRow.__tablename__, SEARCH_TABLE, EmbeddingRow.__tablename__),
        "coalesce(scope_id = ANY (ARRAY(SELECT id FROM adk_memory_scope)), false)",
    ),
}
_SHOW: Final = "SELECT set_config('adk_memory.app_name', $1, true), set_config('adk_memory.user_id', $2, true)"
_BOUND = text("SELECT row_security_active('adk_memory_scope')")
_STATUS = text(
    """
    SELECT c.relname AS name, c.relrowsecurity AND p.oid IS NOT NULL AS secured, row_security_active(c.oid) AS bound
    FROM pg_class AS c LEFT JOIN pg_policy AS p ON p.polrelid = c.oid AND p.polname = :policy
    WHERE c.oid = ANY (SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)
    """
)


@dataclass(frozen=True, slots=True)
class RowSecurity:
    """Whether the policies are on, for all tables or for none, and whether the role that asked is bound by them."""

    on: bool
    partly: bool
    bound: bool


def is_bound(connection: Connection) -> bool:
    """Return whether the role of a connection sees the rows of one user only."""
    bound: bool = connection.execute(_BOUND).scalar_one()
    return bound


def show(connection: Connection, scope: Scope) -> None:
    """Let the rest of a transaction see, and write, the rows of a scope's user."""
    connection.exec_driver_sql(_SHOW, (scope.app_name, scope.user_id))


async def enable(engine: AsyncEngine) -> None:
    """Make the policies and switch them on, and make what sketches are missing, as who is bound can not make any.

    Raises:
        ConfigurationError: the database is not Postgres, or the role is bound itself.
        StorageError: Postgres refused, as it does whoever is not the owner of the tables; nothing was changed.
    """
    _require_postgres(engine)
    async with translated(), exclusive(engine) as connection:
        await connection.run_sync(_enable)
        await connection.commit()
        if await connection.run_sync(is_bound):
            raise ConfigurationError("row-level security is on, but this role is bound by it: FORCE was set elsewhere")
        sketches = Sketches()
        for model_id in (await connection.scalars(select(EmbeddingModelRow.id))).all():
            await connection.run_sync(sketches.calibrate, model_id)
            await connection.commit()
            while await connection.run_sync(sketches.sketch_some, model_id):
                await connection.commit()
            await connection.commit()


async def disable(engine: AsyncEngine) -> None:
    """Switch the policies off and drop them; raises as `enable` does."""
    _require_postgres(engine)
    async with translated(), exclusive(engine) as connection:
        for table in _POLICIES:
            await connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
            await connection.exec_driver_sql(f"DROP POLICY IF EXISTS {_POLICY} ON {table}")
        await connection.commit()


async def status(engine: AsyncEngine) -> RowSecurity:
    """Return how it stands.

    Raises:
        ConfigurationError: the database is not Postgres.
    """
    _require_postgres(engine)
    async with translated(), engine.connect() as connection:
        rows = (await connection.execute(_STATUS, {"policy": _POLICY, "tables": list(_POLICIES)})).all()
    secured = [row.secured for row in rows]
    return RowSecurity(on=all(secured), partly=any(secured) and not all(secured), bound=any(row.bound for row in rows))


def _enable(connection: Connection) -> None:
    for table, condition in _POLICIES.items():
        connection.exec_driver_sql(f"DROP POLICY IF EXISTS {_POLICY} ON {table}")
        connection.exec_driver_sql(f"CREATE POLICY {_POLICY} ON {table} USING ({condition}) WITH CHECK ({condition})")
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def _require_postgres(engine: AsyncEngine) -> None:
    if engine.dialect.name != "postgresql":
        raise ConfigurationError("only Postgres has row-level security; a SQLite file is its process's own")
