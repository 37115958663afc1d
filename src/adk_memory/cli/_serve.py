"""adk-memory serve-mcp: the memory of one user as tools for any client of the Model Context Protocol."""

from __future__ import annotations

import argparse

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
            await server.run_stdio_async()
        else:
            host, port = address
            await server.run_streamable_http_async(host=host, port=port)

    call(database_url(args), serve)


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
