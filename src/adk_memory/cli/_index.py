"""adk-memory index: the HNSW indexes of a Postgres database, which searches can do without."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bar
from rich.text import Text

from adk_memory._sql.postgres_index import Progress, VectorIndex, create, drop, indexes
from adk_memory.cli._command import Command, UsageError, add_database, call_on_engine
from adk_memory.cli._output import one_line, print_json, print_table, say


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "create", "drop"), help="what to do")
    parser.add_argument("--hnsw", action="store_true", help="with create: the kind of index, the only one")
    parser.add_argument("--model", metavar="NAME", help="with create and drop: the embedding model")
    add_database(parser)


def _index(args: argparse.Namespace) -> None:
    if args.action == "list":
        _list(args)
        return
    if args.model is None:
        raise UsageError(f"which model? Pass --model to index {args.action}")
    if args.action == "drop":
        _drop(args)
    elif args.hnsw:
        _create(args)
    else:
        raise UsageError("which kind of index? Pass --hnsw to index create")


def _list(args: argparse.Namespace) -> None:
    found = call_on_engine(args, indexes)
    if args.json:
        print_json({"indexes": [_as_json(index) for index in found]})
    elif not found:
        say("No indexes.")
    else:
        rows = [(Text(one_line(index.model)), Text(_size(index)), Text(_state(index))) for index in found]
        print_table(("Model", "Size", "State"), rows)


def _create(args: argparse.Namespace) -> None:
    with _reporting(silent=args.json) as report:
        index = call_on_engine(args, lambda engine: create(engine, args.model, report))
    if args.json:
        print_json({"index": _as_json(index)})
    else:
        say(one_line(f"The vectors of {index.model} are indexed, in {_size(index)}."))


def _drop(args: argparse.Namespace) -> None:
    dropped = call_on_engine(args, lambda engine: drop(engine, args.model))
    if args.json:
        print_json({"dropped": dropped})
    else:
        say(one_line(f"The index of {args.model} was dropped." if dropped else f"{args.model} has no index."))


@contextmanager
def _reporting(*, silent: bool) -> Iterator[Callable[[Progress], None]]:
    """Show a bar on stderr, where that is a terminal."""
    if silent or not sys.stderr.isatty():
        yield lambda _: None
        return
    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("waiting", total=1.0)
        yield lambda progress: bar.update(task, description=progress.phase, completed=progress.share)


def _as_json(index: VectorIndex) -> dict[str, str | bool | int]:
    return {"name": index.name, "model": index.model, "valid": index.valid, "bytes": index.bytes}


def _size(index: VectorIndex) -> str:
    return f"{index.bytes / 1_000_000:,.1f} MB"


def _state(index: VectorIndex) -> str:
    return "ready" if index.valid else "unfinished: it is being made, or index create makes it anew"


INDEX = Command(
    name="index",
    summary="list, create or drop the HNSW indexes of vectors, on Postgres",
    add_arguments=_add_arguments,
    run=_index,
    details="""\
It is for users with very many memories: searches with more than 200,000
entries in sight then ask the index, all others sketches of the vectors as
before. Every vector that is added later costs about a millisecond more.""",
)
