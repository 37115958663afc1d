"""adk-memory embed: the vectors that memories lack are made, those of a model that is used no more are dropped."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from adk_memory.cli._command import Command, UsageError, add_database, call, database_url
from adk_memory.cli._output import counted, one_line, print_json, progress_bar, say
from adk_memory.embedders import FastLocalEmbedder, HttpEmbedder, LocalEmbedder
from adk_memory.embedding import EmbeddingProvider
from adk_memory.errors import ConfigurationError
from adk_memory.service import MemoryService

KEY_VARIABLE = "ADK_MEMORY_EMBEDDER_KEY"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--embedder", metavar="WHICH", help="local, local-fast, the URL of an endpoint, or module:name")
    parser.add_argument("--model", metavar="NAME", help="with a URL: the model")
    parser.add_argument("--dimensions", type=int, metavar="N", help="with a URL: the length of its vectors")
    parser.add_argument("--drop-model", metavar="NAME", help="erase all vectors of this model instead")
    add_database(parser)


def _embed(args: argparse.Namespace) -> None:
    if (args.embedder is None) == (args.drop_model is None):
        raise UsageError("which vectors? Pass --embedder to make those that are missing, or --drop-model to erase some")
    if args.embedder is None:
        _drop(args)
    else:
        _make(args)


def _make(args: argparse.Namespace) -> None:
    url, embedder = database_url(args), _embedder(args)
    with progress_bar("Embedding") as show:

        async def embed(service: MemoryService) -> int:
            try:
                return await service.embed_pending(on_progress=show)
            finally:
                if isinstance(embedder, HttpEmbedder):
                    await embedder.aclose()

        embedded = call(url, embed, embedder=embedder)
    if args.json:
        print_json({"model": embedder.model, "embedded": embedded})
    else:
        say(one_line(f"Embedded {counted(embedded)} with {embedder.model}."))


def _drop(args: argparse.Namespace) -> None:
    dropped = call(database_url(args), lambda service: service.drop_model(args.drop_model))
    if args.json:
        print_json({"model": args.drop_model, "dropped": dropped})
    else:
        say(one_line(f"Dropped {counted(dropped, 'vector', 'vectors')} of {args.drop_model}."))


def _embedder(args: argparse.Namespace) -> EmbeddingProvider:
    which: str = args.embedder
    of_endpoint = (args.model, args.dimensions)
    if which.startswith(("http://", "https://")):
        if None in of_endpoint:
            raise UsageError("which model? An endpoint needs --model and --dimensions")
        return HttpEmbedder(which, args.model, args.dimensions, api_key=os.environ.get(KEY_VARIABLE))
    if of_endpoint != (None, None):
        raise UsageError("--model and --dimensions are for the URL of an endpoint; any other embedder knows its own")
    if which == "local":
        return LocalEmbedder()
    if which == "local-fast":
        return FastLocalEmbedder()
    module, colon, name = which.partition(":")
    if not (module and colon and name):
        raise UsageError("--embedder is local, local-fast, an address like http://localhost:11434/v1, or module:name")
    return _imported(module, name)


def _imported(module: str, name: str) -> EmbeddingProvider:
    sys.path.insert(0, str(Path.cwd()))  # where an application keeps its modules
    try:
        found: Any = getattr(import_module(module), name)
    except Exception as error:
        raise ConfigurationError(f"{module}:{name} can't be imported: {type(error).__name__}: {error}") from error
    if not isinstance(found, EmbeddingProvider):
        raise ConfigurationError(f"{module}:{name} is no embedder, but of the type {type(found).__name__}")
    return found


EMBED = Command(
    name="embed",
    summary="make the vectors that memories lack, or erase those of a model",
    add_arguments=_add_arguments,
    run=_embed,
    details=f"""\
Memories lack one after the embedder of an application failed or was changed.
Name the one that it has now, best as module:name: what the application itself
uses. The key of an endpoint is taken from {KEY_VARIABLE}. Others may
search and write meanwhile. If it is interrupted, what is done stays, and the
next call makes what is left.""",
)
