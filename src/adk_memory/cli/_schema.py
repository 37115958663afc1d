"""adk-memory upgrade, current, check, reindex: the tables of a database, their version, and the index in them."""

from __future__ import annotations

import argparse

from adk_memory._open import dialect_of
from adk_memory._sql.integrity import FAULTS, find_faults
from adk_memory.cli._command import Command, add_database, call, call_on_engine, database_url
from adk_memory.cli._output import counted, one_line, print_json, progress_bar, say
from adk_memory.errors import (
    SchemaError,
    SchemaMissingError,
    SchemaOutdatedError,
    SchemaTooNewError,
    StorageError,
    StorageUnavailableError,
)
from adk_memory.service import MemoryService

_STATES = (
    (SchemaMissingError, "missing"),
    (SchemaOutdatedError, "outdated"),
    (SchemaTooNewError, "too_new"),
    (StorageUnavailableError, "unreachable"),
)


def _add_url(parser: argparse.ArgumentParser) -> None:
    add_database(parser, positional=True)


def _upgrade(args: argparse.Namespace) -> None:
    async def upgrade(service: MemoryService) -> tuple[str | None, str | None]:
        before = await service.schema_version()
        await service.migrate()
        return before, await service.schema_version()

    before, after = call(database_url(args), upgrade, create=True)
    if args.json:
        print_json({"before": before, "after": after})
    elif before == after:
        say(f"The tables are at {after} already.")
    elif before is None:
        say(f"The tables were created; they are at {after}.")
    else:
        say(f"The tables were upgraded from {before} to {after}.")


def _current(args: argparse.Namespace) -> None:
    revision = call(database_url(args), lambda service: service.schema_version())
    if args.json:
        print_json({"schema_version": revision})
    else:
        say(revision or "none")


def _check(args: argparse.Namespace) -> None:
    try:
        report = call(database_url(args), lambda service: service.health_check())
    except (SchemaError, StorageUnavailableError) as error:
        if args.json:
            state = next((name for kind, name in _STATES if isinstance(error, kind)), "broken")
            print_json({"status": state, "backend": None, "schema_version": None})
        raise
    facts = report.model_dump(include={"backend", "schema_version", "index_outdated"})
    faults = _faults(args) if args.thorough else {}
    damaged = any(faults.values())
    if args.json:
        print_json({"status": "damaged" if damaged else "ok", **facts, **({"faults": faults} if args.thorough else {})})
    else:
        say(one_line(f"ok: {report.backend} answers, its tables are at {report.schema_version}"))
        if report.index_outdated:
            say("Its keyword index is not of this version in all parts: run adk-memory reindex.")
        for kind, count in faults.items():
            if count:
                say(f"{count:,} {FAULTS[kind]}")
        if args.thorough and not damaged:
            say("All that is stored agrees with itself.")
    if damaged:
        raise StorageError("what is stored does not agree with itself; see docs/reliability.md for what repairs it")


def _faults(args: argparse.Namespace) -> dict[str, int]:
    with progress_bar("Checking") as show:
        return call_on_engine(args, lambda engine: find_faults(engine, dialect_of(engine), on_progress=show))


def _add_arguments_of_check(parser: argparse.ArgumentParser) -> None:
    _add_url(parser)
    parser.add_argument(
        "--thorough", action="store_true", help="compare all that is stored: counters, index and vectors with memories"
    )


def _add_arguments_of_reindex(parser: argparse.ArgumentParser) -> None:
    _add_url(parser)
    parser.add_argument("--from-scratch", action="store_true", help="empty the index first: it is damaged")


def _reindex(args: argparse.Namespace) -> None:
    with progress_bar("Indexing") as show:
        indexed = call(
            database_url(args), lambda service: service.reindex(from_scratch=args.from_scratch, on_progress=show)
        )
    if args.json:
        print_json({"indexed": indexed})
    else:
        say(f"Indexed {counted(indexed)}.")


UPGRADE = Command(
    name="upgrade",
    summary="create the tables, or bring them and the index to this version",
    add_arguments=_add_url,
    run=_upgrade,
    details="Safe to run at every deploy, and from several machines at once.",
)
CURRENT = Command(
    name="current",
    summary="print the version of the tables, or none",
    add_arguments=_add_url,
    run=_current,
)
CHECK = Command(
    name="check",
    summary="reach the database and see that its tables are what this version needs",
    add_arguments=_add_arguments_of_check,
    run=_check,
    details="""\
Exit codes: 0 ok, 1 the thorough check found faults, 3 the tables are missing,
4 they are older than this version, 5 they are newer, 6 the database can't be
reached.""",
)
REINDEX = Command(
    name="reindex",
    summary="make the keyword index of all memories anew",
    add_arguments=_add_arguments_of_reindex,
    run=_reindex,
    details="""\
adk-memory upgrade does it where a new version needs it. Others may search and
write meanwhile. If it is interrupted, the next call goes on from there.""",
)
