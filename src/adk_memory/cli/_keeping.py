"""adk-memory export, import, purge: what is kept of a user, elsewhere or no longer."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

from adk_memory.cli._command import Command, UsageError, add_database, add_owner, call, database_url
from adk_memory.cli._conversation import FIELDS, PLACE_FIELDS, export_line, read_export
from adk_memory.cli._output import counted, one_line, print_json, say
from adk_memory.errors import ValidationError
from adk_memory.service import MemoryService


def _add_arguments_of_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", default="-", help="default: the standard output, as does -")
    add_owner(parser)
    add_database(parser)


def _export(args: argparse.Namespace) -> None:
    url = database_url(args)
    if args.file == "-":
        if args.json:
            raise UsageError("--json needs a FILE: without one the memories are the output")
        _write(url, args, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
        return
    exported = _write_whole(url, args, Path(args.file))
    if args.json:
        print_json({"exported": exported})
    else:
        say(one_line(f"Exported {counted(exported)} to {args.file}."))


def _write_whole(url: str, args: argparse.Namespace, path: Path) -> int:
    """Write the file beside its place, where only its owner can read it, and put it there once it is whole.

    A pipe or a device that is there is not replaced but written to.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            return _write(url, args, stream.write)
    beside: str | None = None
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
        with open(handle, "wb") as file:  # noqa: PTH123 - a handle
            exported = _write(url, args, file.write)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException as error:
        if beside is not None:
            with suppress(OSError):
                Path(beside).unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # the name that was given
        raise
    return exported


def _write(url: str, args: argparse.Namespace, write: Callable[[bytes], object]) -> int:
    async def export(service: MemoryService) -> int:
        exported = 0
        async for memory in service.export_user(args.app, args.user):
            write(export_line(memory))
            exported += 1
        return exported

    return call(url, export)


def _add_arguments_of_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what export wrote; - reads it from stdin")
    add_owner(parser)
    add_database(parser)


def _import(args: argparse.Namespace) -> None:
    url = database_url(args)
    stored = 0

    def note(entries: int) -> None:
        nonlocal stored
        stored = entries

    with nullcontext(sys.stdin.buffer) if args.file == "-" else Path(args.file).open("rb") as lines:

        async def add(service: MemoryService) -> int:
            return await service.add_many(read_export(lines, args.app, args.user), on_progress=note)

        try:
            imported = call(url, add)
        except ValidationError as error:
            # What `add_many` says of its items means nothing here: it was a line.
            reason = error.__cause__ if isinstance(error.__cause__, ValidationError) else error
            before = f"the {counted(stored)} before it are stored" if stored != 1 else "the one before it is stored"
            raise ValidationError(f"{args.file}: {reason}; {before}") from error
    if args.json:
        print_json({"imported": imported})
    else:
        say(f"Imported {counted(imported)}.")


def _add_arguments_of_purge(parser: argparse.ArgumentParser) -> None:
    add_database(parser, positional=True)


def _purge(args: argparse.Namespace) -> None:
    purged = call(database_url(args), lambda service: service.purge_expired())
    if args.json:
        print_json({"purged": purged})
    else:
        say(f"Purged {counted(purged)}.")


EXPORT = Command(
    name="export",
    summary="write everything known of a user, as JSON Lines",
    add_arguments=_add_arguments_of_export,
    run=_export,
    details=f"""\
One JSON object per line, in order of arrival, always with these fields:
  {", ".join(PLACE_FIELDS)},
  {", ".join(FIELDS)}
A file is written whole or not at all, readable by its owner alone. Vectors are
not in it: they are made again where it is imported.""",
)
IMPORT = Command(
    name="import",
    summary="add what export wrote, of a user, from this or another database",
    add_arguments=_add_arguments_of_import,
    run=_import,
    details="""\
Importing again, after an interruption too, leaves one copy of each memory. A
line that is none of an export ends it; what came before it stays.""",
)
PURGE = Command(
    name="purge",
    summary="erase what has expired, of all users",
    add_arguments=_add_arguments_of_purge,
    run=_purge,
    details="""\
No search or list shows what has expired; this makes room. Safe to run at any
time, as often as you like: once a day, say.""",
)
