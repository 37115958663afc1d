"""What a subcommand is, and the arguments that several of them share."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import quote

from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import migrate
from adk_memory._open import open_engine, open_memory
from adk_memory._sql.urls import backend_of, sqlite_url
from adk_memory.cli._output import one_line, without_passwords
from adk_memory.embedding import EmbeddingProvider
from adk_memory.errors import ConfigurationError, SchemaMissingError
from adk_memory.service import MemoryService

URL_VARIABLE = "ADK_MEMORY_URL"

_DESCRIPTION = "Long-term memory for AI agents, in SQLite or Postgres. New here? Try: adk-memory demo"
_EPILOG = f"""\
The database is given by --url or by the environment variable {URL_VARIABLE}:
  sqlite:///memory.db                        a file here
  sqlite:////var/lib/app/memory.db           a file at an absolute path
  postgresql://user:password@host/database   better in {URL_VARIABLE}: other
                                             users can see a command's arguments

Exit codes:
  0    done, also if nothing was found
  1    the input or the operation was refused; stderr says why, in one line
  2    the command was not understood, or no database was given
  3    the database has no adk-memory tables: run adk-memory upgrade
  4    its tables are of an older version: run adk-memory upgrade
  5    its tables are of a newer version: upgrade the package adk-memory
  6    the database can't be reached, or was busy too long
  70   a bug in adk-memory
  130  interrupted
  141  the reader of the output went away
"""

Result = TypeVar("Result")


class UsageError(Exception):
    """The command line can't be understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A subcommand: ``add_arguments`` declares what it takes, ``run`` does it and prints.

    ``run`` is called outside of any event loop.
    """

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]
    details: str = ""


def parse(commands: Sequence[Command], argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of the subcommand that ``argv`` names; its function is their ``run``."""
    parser = _Parser(prog="adk-memory", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"adk-memory {version('adk-memory')}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in commands:
        subparser = subparsers.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=command.details,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        options = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
        found = " ".join(options) or "more arguments than it takes; quote a text that has spaces"
        parser.error(f"the command does not know {found}" if options else f"the command got {found}")
    return args


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: object) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                prog, max_help_position=26, width=min(100, shutil.get_terminal_size().columns) - 2
            ),
            **options,  # type: ignore[arg-type]
        )

    def error(self, message: str) -> NoReturn:
        # argparse quotes what it could not understand, which may be a URL at the wrong place.
        raise UsageError(f"{without_passwords(message)}; see {self.prog} --help")


def add_database(parser: argparse.ArgumentParser, *, positional: bool = False) -> None:
    """Declare ``--url`` and ``--json``, and where it is ``positional`` also a plain URL."""
    if positional:
        parser.add_argument("database", nargs="?", metavar="URL", help=f"the database (default: {URL_VARIABLE})")
        parser.add_argument("--url", help="the same, as an option")
    else:
        add_url(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def add_url(parser: argparse.ArgumentParser) -> None:
    """Declare ``--url``."""
    parser.add_argument("--url", help=f"the database (default: {URL_VARIABLE})")


def add_owner(parser: argparse.ArgumentParser) -> None:
    """Declare ``--app`` and ``--user``: whose memory it is."""
    parser.add_argument("--app", required=True, metavar="NAME", help="the application that remembers")
    parser.add_argument("--user", required=True, metavar="ID", help="the user whose memory it is")


def confirmed(question: Callable[[], str]) -> bool:
    """Ask at the terminal; to put the question may need a look into the database.

    Raises:
        UsageError: there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("nothing was erased: without a terminal to ask at, pass --yes")
    print(one_line(f"{question()} [y/N]"), end=" ", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def database_url(args: argparse.Namespace) -> str:
    """Return the database that the arguments or the environment name; a plain path is a SQLite file.

    Raises:
        UsageError: there is none, or there are two.
    """
    given = [url for url in (getattr(args, "database", None), args.url) if url is not None]
    if len(given) == 2:
        raise UsageError("the database is given twice: as URL and as --url")
    url = (given[0] if given else os.environ.get(URL_VARIABLE, "")).strip()
    if not url:
        raise UsageError(
            f"which database? Pass --url sqlite:///memory.db, or set {URL_VARIABLE}; see adk-memory --help"
        )
    return url if ":" in url.partition("/")[0] else f"sqlite:///{quote(url)}"


def shown_url(url: str) -> str:
    """Return ``url`` as it may be printed: without its password."""
    return one_line(url if backend_of(url) == "sqlite" else without_passwords(url))


def call(
    url: str,
    operation: Callable[[MemoryService], Awaitable[Result]],
    *,
    create: bool = False,
    embedder: EmbeddingProvider | None = None,
) -> Result:
    """Open the database, run ``operation`` with its service, close it, and return what came out."""

    async def run() -> Result:
        async with open_database(url, create=create, embedder=embedder) as service:
            return await operation(service)

    return asyncio.run(run())


def call_on_engine(args: argparse.Namespace, operation: Callable[[AsyncEngine], Awaitable[Result]]) -> Result:
    """Run ``operation`` with an engine for the database that the arguments name, and return what came out.

    Raises:
        SchemaError: a Postgres database has not the tables that this version needs.
    """
    url = database_url(args)

    async def run() -> Result:
        engine = open_engine(url)
        try:
            if engine.dialect.name == "postgresql":
                await migrate.require_head(engine)
            return await operation(engine)
        finally:
            await engine.dispose()

    return asyncio.run(run())


def open_database(url: str, *, create: bool = False, embedder: EmbeddingProvider | None = None) -> MemoryService:
    """Return the service of a database that outlives this process; a file has to be there, unless ``create``.

    Raises:
        ConfigurationError: the URL is of no backend, or of one that keeps nothing.
        SchemaMissingError: there is no such file.
    """
    backend = backend_of(url)
    path = sqlite_url(url).database or ":memory:" if backend == "sqlite" else None
    if backend == "memory" or path == ":memory:":
        raise ConfigurationError("this database ends with the command; name a file, as in sqlite:///memory.db")
    # SQLite would make an empty file of a mistyped path.
    if path is not None and not create and not path.startswith("file:") and not Path(path).exists():
        raise SchemaMissingError(f"there is no file {path}; adk-memory upgrade makes it")
    return open_memory(url, embedder=embedder)
