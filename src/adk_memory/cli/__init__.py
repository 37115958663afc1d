"""The command ``adk-memory``: look after a database of memories from a shell."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from adk_memory.cli._command import Command, UsageError, parse
from adk_memory.cli._demo import DEMO
from adk_memory.cli._embed import EMBED
from adk_memory.cli._erasure import ERASE_USER, SCRUB
from adk_memory.cli._index import INDEX
from adk_memory.cli._keeping import EXPORT, IMPORT, PURGE
from adk_memory.cli._memories import ADD, DELETE, RECENT, SEARCH
from adk_memory.cli._output import complain, one_line, without_passwords
from adk_memory.cli._row_security import ROW_SECURITY
from adk_memory.cli._schema import CHECK, CURRENT, REINDEX, UPGRADE
from adk_memory.cli._serve import SERVE_MCP
from adk_memory.errors import (
    AdkMemoryError,
    SchemaMissingError,
    SchemaOutdatedError,
    SchemaTooNewError,
    StorageUnavailableError,
)

COMMANDS: tuple[Command, ...] = (
    DEMO, UPGRADE, CURRENT, CHECK, REINDEX, EMBED, PURGE, SCRUB, ADD, SEARCH, RECENT, DELETE, ERASE_USER, EXPORT,
    IMPORT, INDEX, ROW_SECURITY, SERVE_MCP,
)  # fmt: skip

_EXIT_CODES = (
    (UsageError, 2),
    (SchemaMissingError, 3),
    (SchemaOutdatedError, 4),
    (SchemaTooNewError, 5),
    (StorageUnavailableError, 6),
    (AdkMemoryError, 1),
    (OSError, 1),
)
_BUG = 70
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code; ``--help`` and ``--version`` raise `SystemExit`."""
    _accept_any_text()
    try:
        args = parse(COMMANDS, argv)
        args.run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return _BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the traceback of a bug may hold the password of the URL
        return _explain(error)
    return 0


def _explain(error: Exception) -> int:
    for kind, exit_code in _EXIT_CODES:
        if isinstance(error, kind):
            complain(_message(error))
            return exit_code
    complain(f"a bug in adk-memory:\n{without_passwords(''.join(traceback.format_exception(error)))}")
    return _BUG


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        if error.filename is not None:
            return one_line(f"{error.filename}: {error.strerror}")
        _discard_output()  # most likely it was the output that could not be written
        return error.strerror
    return one_line(without_passwords(str(error))) or type(error).__name__


def _accept_any_text() -> None:
    """Write what the terminal's encoding lacks as an escape, instead of failing halfway."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    # Python flushes stdout once more at exit, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
