"""The options of search and recent that narrow what is shown, and the filter that they make."""

from __future__ import annotations

import argparse
import json
from typing import Any, get_args

from adk_memory.cli._command import UsageError
from adk_memory.filters import AllOf, Author, Filter, Metadata, Operator, Session, Time


def add_filter(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters, all of which a memory has to pass")
    group.add_argument("--author", action="append", metavar="NAME", help="by this author, or another that is given")
    group.add_argument("--session", action="append", metavar="ID", help="of this session, or another that is given")
    group.add_argument("--since", metavar="TIME", help="from this time on: ISO 8601, such as 2026-03-01")
    group.add_argument("--before", metavar="TIME", help="until just before this time")
    group.add_argument(
        "--where", action="append", nargs=3, metavar=("KEY", "OP", "VALUE"),
        help=f"metadata: OP is {', '.join(get_args(Operator))}; VALUE is JSON, or else a text",
    )  # fmt: skip


def filter_of(args: argparse.Namespace) -> Filter | None:
    """Return what the options ask for, `None` where they ask for nothing."""
    filters: list[Filter] = []
    if args.author:
        filters.append(Author(*args.author))
    if args.session:
        filters.append(Session(*args.session))
    if args.since is not None or args.before is not None:
        filters.append(Time(since=args.since, before=args.before))
    for key, operator, value in args.where or []:
        if operator not in get_args(Operator):
            raise UsageError(f"--where has no OP of that name; use one of {', '.join(get_args(Operator))}")
        filters.append(Metadata(key, operator, _value(value)))
    return AllOf(*filters) if filters else None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
