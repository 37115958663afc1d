"""adk-memory row-security: Postgres itself keeps the users of one database apart."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory._sql.postgres_row_security import RowSecurity, disable, enable, status
from adk_memory.cli._command import Command, add_database, call_on_engine
from adk_memory.cli._output import print_json, say

_CHANGES: Final[dict[str, Callable[[AsyncEngine], Awaitable[None]]]] = {"enable": enable, "disable": disable}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("status", "enable", "disable"), help="what to do")
    add_database(parser)


def _row_security(args: argparse.Namespace) -> None:
    async def change(engine: AsyncEngine) -> RowSecurity:
        if args.action in _CHANGES:
            await _CHANGES[args.action](engine)
        return await status(engine)

    found = call_on_engine(args, change)
    if args.json:
        print_json({"on": found.on, "partly": found.partly, "bound": found.bound})
    else:
        state = "on" if found.on else "on for some tables only: enable it again" if found.partly else "off"
        say(f"Row-level security is {state}." + (" This role is bound by it." if found.bound else ""))


ROW_SECURITY = Command(
    name="row-security",
    summary="let Postgres itself keep users apart, for roles that do not own the tables",
    add_arguments=_add_arguments,
    run=_row_security,
    details="""\
To be run by the owner of the tables; services then connect as another role.
Start them again after a change, or have their health checked. Enabling again
does no harm, and makes the sketches of vectors that are missing.""",
)
