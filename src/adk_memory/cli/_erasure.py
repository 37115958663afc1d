"""adk-memory erase-user, scrub: a person erased and proven gone, and what erased memories left behind."""

from __future__ import annotations

import argparse

from rich.text import Text

from adk_memory.cli._command import Command, add_database, add_owner, call, confirmed, database_url
from adk_memory.cli._output import counted, parts_json, print_json, print_table, progress_bar, say
from adk_memory.erasure import Erasure, ErasureProof, ScrubReport
from adk_memory.errors import AdkMemoryError
from adk_memory.service import MemoryService


def _add_arguments_of_erase_user(parser: argparse.ArgumentParser) -> None:
    add_owner(parser)
    parser.add_argument("--verify", action="store_true", help="scrub then, and look for anything that is left")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_database(parser)


def _erase_user(args: argparse.Namespace) -> None:
    url = database_url(args)
    if not args.yes and not confirmed(lambda: f"Erase everything of user {args.user} in app {args.app}?"):
        raise AdkMemoryError("nothing was erased")
    if args.verify:
        _report_proof(args, _proven(url, args))
        return

    async def erase(service: MemoryService) -> int:
        return await service.delete_user(args.app, args.user)

    erased = call(url, erase)
    if args.json:
        print_json({"erased": int(erased), **parts_json(erased)})
    else:
        say(_described(erased))


def _proven(url: str, args: argparse.Namespace) -> ErasureProof:
    with progress_bar("Scrubbing") as show:
        return call(url, lambda service: service.erase_user(args.app, args.user, on_progress=show))


def _report_proof(args: argparse.Namespace, proof: ErasureProof) -> None:
    if args.json:
        found, left = dict(proof.found), list(proof.scrub.left)
        print_json({"erased": int(proof.erased), **parts_json(proof.erased), "found": found, "left": left})
    else:
        say(_described(proof.erased))
        print_table(("Found", "Where"), [(Text(f"{count:,}"), Text(place)) for place, count in proof.found.items()])
        for line in proof.scrub.left:
            say(f"Not removed: {line}.")
    if not proof.complete:
        places = ", ".join(place for place, count in proof.found.items() if count)
        raise AdkMemoryError(f"the user was erased, but something was found in: {places}; scrub again, or see the docs")
    if not args.json:
        was_there = proof.erased or proof.erased.scopes
        say(f"Nothing of the user was {'found' if was_there else 'there, so nothing was looked for'}.")


def _described(erased: int) -> str:
    if not isinstance(erased, Erasure):
        return f"Erased {counted(erased)}."
    parts = (
        counted(erased.vectors, "vector", "vectors"),
        counted(erased.index_entries, "entry of the index", "entries of the index"),
        counted(erased.scopes, "scope", "scopes"),
    )
    return f"Erased {counted(erased)}: {', '.join(parts)}."


def _add_url(parser: argparse.ArgumentParser) -> None:
    add_database(parser, positional=True)


def _scrub(args: argparse.Namespace) -> None:
    async def scrub(service: MemoryService) -> ScrubReport:
        return await service.scrub(on_progress=show)

    with progress_bar("Scrubbing") as show:
        report = call(database_url(args), scrub)
    if args.json:
        print_json({"complete": report.complete, "left": list(report.left)})
    if not report.complete:
        raise AdkMemoryError(f"not everything could be removed: {'; '.join(report.left)}")
    if not args.json:
        say("What erased memories had left behind is removed.")


ERASE_USER = Command(
    name="erase-user",
    summary="erase everything of a user, and prove it",
    add_arguments=_add_arguments_of_erase_user,
    run=_erase_user,
    details="""\
With --verify the database is scrubbed, as adk-memory scrub does, and searched
for what is left: rows, vectors and index terms, and on SQLite the bytes of all
that was stored of the user, in the file and in those beside it. The exit code
is 1 where something was found. What Postgres and backups keep: docs/erasure.md""",
)
SCRUB = Command(
    name="scrub",
    summary="remove what erased memories left behind in the files",
    add_arguments=_add_url,
    run=_scrub,
    details="""\
It erases no memory. On SQLite it merges the keyword index, rewrites the file,
for which writers wait (about 1 s for each 100,000 memories), and empties the
write-ahead log; on Postgres it vacuums the tables. Others may read and write
meanwhile. If it is interrupted, call it again. The exit code is 1 where others
were in the way.""",
)
