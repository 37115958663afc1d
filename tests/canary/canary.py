"""A word that must never be printed or logged, in everything that a user hands in; and where to look for it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from typing import Any, Final

import pytest

from adk_memory import Author, MemoryEntry, MemoryService, Metadata
from isolation.operations import OPERATIONS, Call, Reach

CANARY: Final = "zxcanary"
"""It stands in texts, queries, users, projects, sessions, ids, authors and metadata."""

LOGGERS: Final = ("adk_memory", "sqlalchemy", "aiosqlite", "asyncpg", "alembic", "asyncio")


def call(service: MemoryService, operation: str, text: str = f"{CANARY} tea's café") -> Call:
    """Return a call of an operation that is full of canaries."""
    reach = OPERATIONS[operation][0]
    names = [f"{CANARY} {number}" for number in range(2)]
    entries = [MemoryEntry(f"{text} {name}", name, 0.0, name, {CANARY: [name]}) for name in names]
    return Call(
        service=service,
        app=f"{CANARY} app",
        user=f"{CANARY} user",
        project=f"{CANARY} project" if reach is Reach.NAMED else None,
        session=f"{CANARY} session",
        entry_id=names[0],
        entries=entries,
        query=text,
        limit=10,
        mode=None,
        filter=Author(names[0]) & Metadata(CANARY, "ne", f"{CANARY}'"),
        flag=True,
        existing="update",
        foreign_cursor=f"{CANARY}é",
    )


async def failure_of(service: MemoryService, operation: str, text: str = f"{CANARY} tea's café") -> Exception | None:
    """Return what a call that is full of canaries raises, if anything."""
    try:
        await OPERATIONS[operation][1](call(service, operation, text))
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    return None


def printed(error: BaseException) -> str:
    """Return all that is printed of an error, and of what caused it, in every usual way."""
    shown = ["".join(traceback.format_exception(error))]
    shown += [f"{link!s} {link!r} {link.args!r}" for link in _chain(error)]
    return "\n".join(shown)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return all that was logged, as it was when it was, with the arguments of what we and those below us logged."""
    records = [record for record in caplog.records if record.name.split(".")[0] in LOGGERS]
    # Later, an exception among the arguments may say something else.
    return "\n".join([caplog.text, *(f"{record.name} {record.getMessage()} {record.args}" for record in records)])


def listen(caplog: pytest.LogCaptureFixture) -> None:
    """Have everything logged that can be."""
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)


def assert_no_canary(shown: str, **of: Any) -> None:
    """Fail where the canary is in what is shown; the message holds the lines around it."""
    lines = [line for line in shown.splitlines() if CANARY in line.casefold()]
    assert not lines, (of, lines[:5])
