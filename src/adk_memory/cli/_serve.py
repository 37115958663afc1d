"""adk-memory serve-mcp: the memory of one user as tools for any client of the Model Context Protocol."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable

from adk_memory.cli._command import Command, UsageError, add_owner, add_url, call, database_url
from adk_memory.service import MemoryService


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_owner(parser)
    parser.add_argument("--project", metavar="ID", help="the project it is about; default: none, the global memories")
    parser.add_argument("--http", metavar="[HOST:]PORT", help="serve streamable HTTP at /mcp there, instead of stdio")
    add_url(parser)


def _serve(args: argparse.Namespace) -> None:
    address = None if args.http is None else _address(args.http)
    from adk_memory.integrations.mcp import memory_server

    async def serve(service: MemoryService) -> None:
        await service.health_check()  # before a client is told that all is well
        server = memory_server(service, args.app, args.user, args.project, log_level="WARNING")
        if address is None:
            await _until_eof(server.run_stdio_async())
        else:
            await _until_signal(server.run_streamable_http_async(host=address[0], port=address[1]))

    call(database_url(args), serve)


async def _until_eof(serving: Awaitable[None]) -> None:
    try:
        await serving
    except BaseExceptionGroup as group:
        if group.split(BrokenPipeError)[1] is not None:
            raise
        raise BrokenPipeError from None  # the client went away, as any reader of an output may


async def _until_signal(serving: Awaitable[None]) -> None:
    try:
        await serving
    except SystemExit:  # with a code of the web server's, which has said why; 3 is ours for missing tables
        raise SystemExit(1) from None
    # After Ctrl-C the web server raises the signal again. It cancels this, and not the closing of the database.
    await asyncio.sleep(0)


def _address(given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError("--http takes a port from 1 to 65535, or HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


SERVE_MCP = Command(
    name="serve-mcp",
    summary="give an agent the memory of one user as tools (MCP)",
    add_arguments=_add_arguments,
    run=_serve,
    details="""\
Tools: remember, recall, list_memories, forget. Whose memory it is, these
options say alone; no tool can name another user, app or project. Over HTTP
whoever reaches the port has the memory: it listens on this machine only, unless
HOST says otherwise.""",
)
