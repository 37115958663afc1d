"""What SQLAlchemy and the drivers would print and log of what is stored: withheld, before anyone can see it."""

from __future__ import annotations

import logging
import sqlite3
import sys
from typing import Any, Final

from sqlalchemy import Engine, exc, log

_LOGGING_NAME: Final = "adk_memory"
_WITHHELD: Final = "its message is withheld: it may hold what is stored"

# Classes of SQLSTATE whose messages name tables, roles, limits and the like. Others repeat values: 22 and 23 do, and
# what a trigger raises may hold anything; a message from inside a function has a context.
_POSTGRES_SPEAKS: Final = frozenset(
    ("08", "0A", "25", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "XX")
)
# Of SQLite's general error, messages that name what is missing; others quote a query or a value.
_SQLITE_SPEAKS: Final = ("no such table: ", "no such function: ", "no such module: ")


def discreet(engine: Engine) -> Engine:
    """Have an engine that is ours alone log no parameters and no rows, whatever its logger's level is; return it."""
    engine.hide_parameters = True
    engine.logging_name = _LOGGING_NAME
    log.instance_logger(engine, echoflag=engine.echo)
    # What is logged at DEBUG are the rows of results.
    logging.getLogger(f"sqlalchemy.engine.Engine.{_LOGGING_NAME}").addFilter(_above_debug)
    return engine


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the classes of what a database or its driver raises."""
    # What asyncpg raises while connecting comes past SQLAlchemy as it is.
    asyncpg: Any = sys.modules.get("asyncpg")
    unwrapped = () if asyncpg is None else (asyncpg.PostgresError, asyncpg.InterfaceError)
    return (exc.SQLAlchemyError, sqlite3.Error, OSError, *unwrapped)


def withhold(error: BaseException) -> None:
    """Take out of an error of a driver, and of its causes, what may repeat stored or given values.

    Its class, its codes and the names of constraints stay, and messages that are known to hold no values.
    """
    if isinstance(error, exc.StatementError):
        error.hide_parameters = True
    source = getattr(error, "orig", None) or error.__cause__
    if source is None:
        if not _speaks(error):
            error.args = (f"{_code(error)}: {_WITHHELD}",)
        for field in ("detail", "hint"):
            if getattr(error, field, None) is not None:
                setattr(error, field, None)
        return
    name = f"{type(source).__module__}.{type(source).__qualname__}"
    if isinstance(source, driver_errors()) or type(source).__module__.startswith("sqlalchemy."):
        withhold(source)
        error.args = (f"({name}) {source}",)
    else:
        # An encoder's own error: there is no saying what is in it.
        error.args = (f"({name}) {_WITHHELD}",)
        error.__cause__ = None
        error.__suppress_context__ = True


def _speaks(error: BaseException) -> bool:
    """Whether the message of an error is known to hold no values."""
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return state[:2] in _POSTGRES_SPEAKS and getattr(error, "context", None) is None
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_ERROR:
            return str(error).startswith(_SQLITE_SPEAKS)
        return code != sqlite3.SQLITE_CONSTRAINT_TRIGGER
    return not isinstance(error, ValueError)  # asyncpg's, of an argument that it can't encode


def _code(error: BaseException) -> str:
    state = getattr(error, "sqlstate", None)
    found = f"SQLSTATE {state}" if isinstance(state, str) else getattr(error, "sqlite_errorname", type(error).__name__)
    constraint = getattr(error, "constraint_name", None)
    return f"{found}, constraint {constraint}" if constraint else str(found)
