"""The one seam where errors of drivers become ours; the cause is kept, and nothing stored is repeated."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from sqlalchemy import exc

from adk_memory._sql.discretion import driver_errors, withhold
from adk_memory.errors import StorageError, StorageUnavailableError

# The primary code of SQLite's result is its lowest byte.
_SQLITE_REFUSALS: Final = {
    sqlite3.SQLITE_READONLY: "the SQLite database is read-only: check the permissions of its file and folder",
    sqlite3.SQLITE_FULL: "the disk of the SQLite database is full, or the database is at its size limit",
    sqlite3.SQLITE_CORRUPT: "the SQLite database is damaged: restore it from a backup",
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database",
}
_SQLITE_ABSENCES: Final = {
    sqlite3.SQLITE_BUSY: "the SQLite database stayed locked by another connection",
    sqlite3.SQLITE_LOCKED: "the SQLite database stayed locked by another connection",
    sqlite3.SQLITE_PROTOCOL: "the SQLite database stayed locked by another connection",
    sqlite3.SQLITE_CANTOPEN: "the SQLite database could not be opened: check that its folder exists",
    sqlite3.SQLITE_IOERR: "the SQLite database could not be read or written",
}
# Classes and codes of SQLSTATE. Those of a class are looked up by its two characters.
_POSTGRES_REFUSALS: Final = {
    "25006": "the Postgres database is read-only: connect to the primary",
    "53100": "the disk of the Postgres server is full",
    "42501": "the role may not do this in the Postgres database",
}
_POSTGRES_ABSENCES: Final = {
    "08": "the connection to Postgres failed",
    "28": "Postgres refused the connection: check the user and the password in the URL",
    "3D": "Postgres has no database of that name: check the URL",
    "40": "Postgres undid the transaction in favour of another one",
    "53": "the Postgres server has no connection or memory left",
    "55P03": "what the statement needs stayed locked by another connection",
    "57": "Postgres ended the statement or the connection",
    "58": "the Postgres server failed to read or write",
}


@asynccontextmanager
async def translated() -> AsyncGenerator[None]:
    """Raise what a database or its driver raises as a ``StorageError``; put only database work inside."""
    try:
        yield
    except driver_errors() as error:
        withhold(error)  # it is printed with ours, and would print the text of memories
        raise _ours(error) from error


def _ours(error: Exception) -> StorageError:
    driver_error = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    state = getattr(driver_error, "sqlstate", None)
    if isinstance(state, str):
        return _from_sqlstate(state)
    code = getattr(driver_error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _from_sqlite(code, getattr(driver_error, "sqlite_errorname", str(code)))
    if isinstance(error, exc.TimeoutError):
        return StorageUnavailableError("no connection to the database became free in time")
    if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
        return StorageUnavailableError("the connection to the database was lost")
    if isinstance(error, exc.SQLAlchemyError) and not isinstance(error, (exc.OperationalError, exc.InterfaceError)):
        return StorageError("the database refused the statement")
    return StorageUnavailableError("the database could not be reached or did not answer")


def _from_sqlstate(state: str) -> StorageError:
    for code in (state, state[:2]):
        if code in _POSTGRES_REFUSALS:
            return StorageError(f"{_POSTGRES_REFUSALS[code]} (SQLSTATE {state})")
        if code in _POSTGRES_ABSENCES:
            return StorageUnavailableError(f"{_POSTGRES_ABSENCES[code]} (SQLSTATE {state})")
    return StorageError(f"Postgres refused the statement (SQLSTATE {state})")


def _from_sqlite(code: int, name: str) -> StorageError:
    primary = code & 0xFF
    if primary in _SQLITE_REFUSALS:
        return StorageError(f"{_SQLITE_REFUSALS[primary]} ({name})")
    if primary in _SQLITE_ABSENCES:
        return StorageUnavailableError(f"{_SQLITE_ABSENCES[primary]} ({name})")
    return StorageError(f"SQLite refused the statement ({name})")
