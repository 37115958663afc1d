"""Create and upgrade the tables; the only importer of Alembic, and only while migrating.

Everything here may be called from a running event loop, from several threads and from several processes at
once: one does the work, the others wait for it. The tables of the host application, its ``alembic_version``,
its loggers and its engine stay as they are. Not supported is a call from inside a revision of the host's own
Alembic: migrate beside it, at deployment or at the start of the application. Behind PgBouncer in transaction
mode, migrate over a direct URL: the lock belongs to a session.

**pgvector.** On Postgres, vectors are kept in a column of pgvector's type ``halfvec`` (pgvector 0.7 or newer).
``upgrade`` uses the extension in whichever schema it is installed, and tries ``CREATE EXTENSION vector`` where
it is not. Where that is not possible it leaves the column an array: everything works but embeddings. Once a
database administrator has installed the extension, the next ``upgrade`` adopts it. It is never dropped.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, column, exc, inspect, select, table, text
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from adk_memory._sql.exclusive import exclusive, to_its_end
from adk_memory._sql.failures import translated
from adk_memory._sql.tables import SEARCH_TABLE, Base
from adk_memory.errors import (
    ConfigurationError,
    SchemaError,
    SchemaMissingError,
    SchemaOutdatedError,
    SchemaTooNewError,
)

if TYPE_CHECKING:
    from alembic.config import Config

HEAD: Final = "0001"
"""The revision that this version of the code needs; a test keeps it equal to the newest script."""

VERSION_TABLE: Final = "adk_memory_schema_version"
"""Where the revision of the database is kept."""

_PREFIX = "adk_memory_"
_HOW_TO_UPGRADE = "run `adk-memory upgrade`, or call `await service.migrate()`"
_POLL_SECONDS = 0.05

# Alembic keeps its running environment in module globals, so one run at a time per process.
_alembic_in_use = threading.Lock()


async def upgrade(engine: AsyncEngine, revision: str = "head") -> None:
    """Bring the database up to ``revision``; do nothing where it is there already.

    Raises:
        SchemaTooNewError: The database is at a revision that this version does not know.
        SchemaError: There are tables of ours that no migration made; nothing was changed.
        StorageUnavailableError: The database could not be reached, or stayed locked.
        StorageError: The database refused; it is at the last revision that succeeded.
    """
    await _run(engine, "upgrade", revision)


async def downgrade(engine: AsyncEngine, revision: str) -> None:
    """Take the database back to ``revision``; ``"base"`` drops every table, and every memory with them.

    Raises as ``upgrade`` does.
    """
    await _run(engine, "downgrade", revision)


async def current(engine: AsyncEngine) -> str | None:
    """Return the revision of the database, or None when it has no tables of ours."""

    def look() -> str | None:
        with engine.sync_engine.connect() as connection:
            return _revision_of(connection)

    async with translated():
        # Not on an AsyncConnection: that is closed by a task, which whoever ends an event loop cancels with the others.
        return await greenlet_spawn(look)


async def require_head(engine: AsyncEngine) -> None:
    """Return if the database is exactly at ``HEAD``.

    Raises:
        SchemaMissingError: There are no tables of ours.
        SchemaOutdatedError: The database is at an older revision.
        SchemaTooNewError: The database is at a revision that this version does not know.
    """
    found = await current(engine)
    if found == HEAD:
        return
    if found is None:
        raise SchemaMissingError(
            f"{_name_of(engine)} has no tables of adk-memory, revision {HEAD} is needed; {_HOW_TO_UPGRADE}"
        )
    _refuse_unknown(found)
    raise SchemaOutdatedError(
        f"{_name_of(engine)} is at revision {found}, revision {HEAD} is needed; {_HOW_TO_UPGRADE}"
    )


def _name_of(engine: AsyncEngine) -> str:
    """The URL without its password, and without its options: they may hold one too."""
    return repr(engine.url.set(query={}))


def include_name(name: str | None, type_: str, parent_names: Mapping[str, Any]) -> bool:
    """Keep the tables of adk-memory out of the autogenerate of a host that shares the database.

    In the host's own ``env.py``::

        context.configure(..., include_name=adk_memory.migrate.include_name)
    """
    return not (type_ == "table" and name is not None and name.startswith(_PREFIX))


def scripts_directory() -> Path:
    """Where env.py and versions/ are: inside the installed package, or in the checkout."""
    packaged = Path(__file__).with_name("_migrations")
    if packaged.is_dir():
        return packaged
    return Path(__file__).parents[2] / "migrations"


async def _run(engine: AsyncEngine, command_name: str, revision: str) -> None:
    # Load Alembic before taking a lock: on a cold start its import is the slowest step.
    await asyncio.to_thread(importlib.import_module, "alembic.command")
    async with _one_alembic_run(), translated(), exclusive(engine) as connection:
        work = connection.run_sync(_alembic, command_name, revision)
        await (to_its_end(work) if engine.dialect.name == "sqlite" else work)


@asynccontextmanager
async def _one_alembic_run() -> AsyncGenerator[None]:
    # Tasks of one loop and loops in several threads share the lock; polling keeps the
    # loop free and leaves nothing locked when the waiter is cancelled.
    while not _alembic_in_use.acquire(blocking=False):
        await asyncio.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        _alembic_in_use.release()


def _alembic(connection: Connection, command_name: str, revision: str) -> None:
    from alembic import command
    from alembic.util import CommandError

    config = _config()
    config.attributes["connection"] = connection
    config.attributes["command"] = command_name
    try:
        getattr(command, command_name)(config, revision)
    except CommandError as error:
        raise ConfigurationError(f"cannot {command_name} to revision {revision!r}: {error}") from error


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    # ConfigParser interpolates "%", which a path may contain.
    config.set_main_option("script_location", str(scripts_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def refuse_foreign_tables(connection: Connection) -> None:
    """Raise a SchemaError where the tables are not the work of revisions that are known; for env.py."""
    found = _revision_of(connection)
    if found is not None:
        _refuse_unknown(found)
        return
    ours = {*Base.metadata.tables, SEARCH_TABLE}
    strays = sorted(ours.intersection(inspect(connection).get_table_names()))
    if strays:
        raise SchemaError(
            f"the database holds {', '.join(strays)} but no revision in {VERSION_TABLE}: they were not made by a "
            f"migration, but by create_all perhaps. Nothing was changed; rename or drop them, then {_HOW_TO_UPGRADE}"
        )


def _refuse_unknown(revision: str) -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(_config())
    if revision not in {script.revision for script in scripts.walk_revisions()}:
        raise SchemaTooNewError(
            f"the database is at revision {revision}, which this version of adk-memory does not know, "
            f"revision {HEAD} is needed; install a newer adk-memory"
        )


def _revision_of(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
    return found


def adopt_pgvector(connection: Connection) -> None:
    """Make the vectors' column a ``halfvec`` where it is not and pgvector can be had; for env.py."""
    if connection.dialect.name != "postgresql":
        return
    if connection.scalar(_HAS_PLAIN_COLUMN):
        halfvec = connection.scalar(_HALFVEC) or _create_pgvector(connection)
        if halfvec is not None:
            # The name comes quoted from the catalogue. MAIN keeps a vector in its row where it fits the page.
            connection.exec_driver_sql(
                f"ALTER TABLE adk_memory_embedding ALTER COLUMN vector TYPE {halfvec} USING vector::{halfvec}, "
                "ALTER COLUMN vector SET STORAGE MAIN"
            )
    connection.commit()


# Only the owner may alter; an application's own role is often another.
_HAS_PLAIN_COLUMN = text(
    """
    SELECT true FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE a.attrelid = to_regclass('adk_memory_embedding') AND a.attname = 'vector'
      AND a.atttypid = CAST('real[]' AS regtype) AND pg_has_role(c.relowner, 'USAGE')
    """
)
# The extension may be in a schema that is not on the search path, and be older than halfvec.
_HALFVEC = text(
    """
    SELECT quote_ident(n.nspname) || '.' || t.typname
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    JOIN pg_type AS t ON t.typnamespace = n.oid AND t.typname = 'halfvec'
    WHERE e.extname = 'vector' AND has_schema_privilege(n.oid, 'USAGE')
    """
)
_IS_NOT_INSTALLED = text("SELECT true FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL")


def _create_pgvector(connection: Connection) -> str | None:
    if not connection.scalar(_IS_NOT_INSTALLED):
        return None
    try:
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION vector"))
    except exc.DBAPIError as error:
        if error.connection_invalidated:
            raise
        # Not allowed, or the host was creating it at the same moment.
    created: str | None = connection.scalar(_HALFVEC)
    return created
