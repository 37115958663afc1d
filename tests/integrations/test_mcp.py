"""The MCP server, asked by the SDK's own client: in another process over stdio, and over HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from adk_memory import InMemoryMemoryService, MemoryEntry, ValidationError, open_memory

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, StdioServerParameters

from adk_memory.integrations.mcp import memory_server

OWNER: Final = ("--app", "notes", "--user", "ada")


def command(url: str, *options: str) -> list[str]:
    return ["-m", "adk_memory", "serve-mcp", *OWNER, "--url", url, *options]


@pytest.fixture
def url(sqlite_url: str) -> str:
    async def migrate() -> None:
        async with open_memory(sqlite_url) as service:
            await service.migrate()

    asyncio.run(migrate())
    return sqlite_url


@asynccontextmanager
async def over_stdio(url: str, *options: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(command=sys.executable, args=command(url, *options), env=dict(os.environ))
    async with Client(server) as client:
        yield client


async def texts(client: Client, tool: str, **arguments: Any) -> list[str]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    return [memory["text"] for memory in answer.structured_content["memories"]]


async def test_what_is_remembered_is_recalled_by_another_process(url: str) -> None:
    async with over_stdio(url) as client:
        answer = await client.call_tool("remember", {"text": "The café closes at nine", "author": "Ada"})
        assert not answer.is_error
    async with over_stdio(url) as client:
        assert await texts(client, "recall", query="when does the cafe close?") == ["The café closes at nine"]
        assert await texts(client, "list_memories") == ["The café closes at nine"]
    async with open_memory(url) as service:
        [memory] = await service.list_recent("notes", "ada")
        assert (memory.id, memory.author) == (answer.structured_content["id"], "Ada")


async def test_two_clients_at_once_share_one_file(url: str) -> None:
    async def work(client: Client, name: str) -> None:
        for number in range(20):
            answer = await client.call_tool("remember", {"text": f"{name} saw owl {number}"})
            assert not answer.is_error, answer
            assert f"{name} saw owl {number}" in await texts(client, "recall", query=f"{name} owl {number}")

    async with over_stdio(url) as one, over_stdio(url) as other:
        await asyncio.gather(work(one, "Ada"), work(other, "Bo"))
        assert len(await texts(one, "list_memories", limit=100)) == 40


def wait_for(port: int) -> None:
    for _ in range(1_200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


@pytest.fixture
def http_url(url: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, *command(url, "--http", str(port))], stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait(10)


async def test_over_http_two_clients_share_one_server(http_url: str) -> None:
    async with Client(http_url) as one, Client(http_url) as other:
        assert not (await one.call_tool("remember", {"text": "the key is under the mat"})).is_error
        assert await texts(other, "recall", query="key") == ["the key is under the mat"]


async def test_tools_have_schemas_and_say_what_they_do_and_none_can_name_a_scope() -> None:
    async with Client(memory_server(InMemoryMemoryService(), "notes", "ada")) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == {"remember", "recall", "list_memories", "forget"}
    for tool in tools.values():
        assert tool.description
        assert tool.output_schema
        assert tool.annotations
        assert not re.search("app|user|project|scope", " ".join(tool.input_schema["properties"]))
        assert not tool.annotations.open_world_hint
    read_only = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
    assert read_only == {"recall", "list_memories"}
    assert [name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint] == [
        "forget"
    ]


async def test_a_server_stays_in_its_scope() -> None:
    memory = InMemoryMemoryService()
    for user, project in (("ada", None), ("ada", "A"), ("ada", "B"), ("bo", None)):
        await memory.add_entry("notes", user, MemoryEntry(f"an owl of {user} in {project}", id="x"), project_id=project)
    async with Client(memory_server(memory, "notes", "ada", "A")) as client:
        seen = {"an owl of ada in None", "an owl of ada in A"}
        assert set(await texts(client, "recall", query="owl")) == set(await texts(client, "list_memories")) == seen
        for erasing in ({"query": "owl"}, {"id": "x"}):
            answer = await client.call_tool("forget", {**erasing, "dry_run": True})
            assert answer.structured_content == {"count": 1, "dry_run": True}
        answer = await client.call_tool("forget", {"id": "x", "dry_run": False})
        assert answer.structured_content == {"count": 1, "dry_run": False}
    left = [*await memory.list_recent("notes", "ada"), *await memory.list_recent("notes", "bo")]
    assert {m.text for m in left} == {"an owl of ada in None", "an owl of ada in B", "an owl of bo in None"}


async def test_forgetting_is_a_dry_run_unless_told_otherwise() -> None:
    memory = InMemoryMemoryService()
    async with Client(memory_server(memory, "notes", "ada")) as client:
        await client.call_tool("remember", {"text": "an old address"})
        answer = await client.call_tool("forget", {"query": "address"})
        assert answer.structured_content == {"count": 1, "dry_run": True}
        assert await texts(client, "recall", query="address") == ["an old address"]
        await client.call_tool("forget", {"query": "address", "dry_run": False})
        assert await texts(client, "recall", query="address") == []


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("forget", {}, "either a query or an id"),
        ("forget", {"query": "a", "id": "b"}, "either a query or an id"),
        ("list_memories", {"after": "nonsense"}, "after"),
        ("recall", {"query": "a", "limit": 0}, "limit"),
        ("remember", {"text": ""}, "text"),
    ],
)
async def test_bad_arguments_are_explained_to_the_model(tool: str, arguments: dict[str, Any], says: str) -> None:
    async with Client(memory_server(InMemoryMemoryService(), "notes", "ada")) as client:
        answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert says in answer.content[0].text


async def test_what_the_model_must_not_know_it_is_not_told() -> None:
    class Broken(InMemoryMemoryService):
        async def list_page(self, *_arguments: Any, **_options: Any) -> Any:
            raise RuntimeError("the password is swordfish")

    async with Client(memory_server(Broken(), "notes", "ada")) as client:
        answer = await client.call_tool("list_memories", {})
    assert answer.is_error
    assert "swordfish" not in answer.content[0].text


def test_ids_are_checked_when_the_server_is_made() -> None:
    with pytest.raises(ValidationError, match="user_id"):
        memory_server(InMemoryMemoryService(), "notes", "")


def test_a_database_without_tables_is_refused_before_a_client_is_served(sqlite_url: str) -> None:
    ran = subprocess.run([sys.executable, *command(sqlite_url)], capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "adk-memory upgrade" in ran.stderr


def test_a_port_that_is_taken_is_no_missing_table(url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = subprocess.run([sys.executable, *command(url, "--http", port)], capture_output=True, check=False)
    assert ran.returncode == 1
    assert b"in use" in ran.stderr


def test_interrupting_a_server_closes_its_database_in_peace(url: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, *command(url, "--http", str(port))], stderr=subprocess.PIPE)
    wait_for(port)
    server.send_signal(signal.SIGINT)
    _, complaints = server.communicate(timeout=30)
    assert (server.returncode, complaints) == (130, b"")


def test_a_client_that_goes_away_is_no_bug(url: str) -> None:
    with subprocess.Popen(
        [sys.executable, *command(url)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.stdin.close()
        complaints = server.stderr.read()
    assert (server.returncode, complaints) == (141, b"")
