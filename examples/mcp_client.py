"""An agent's memory as tools: a client starts `adk-memory serve-mcp` and calls them.

pip install "adk-memory[mcp]"
python examples/mcp_client.py
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters

from adk_memory import open_memory


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'memory.db'}"
        async with open_memory(url) as service:
            await service.migrate()

        options = ["serve-mcp", "--app", "notes", "--user", "ada", "--url", url]
        async with Client(StdioServerParameters(command=sys.executable, args=["-m", "adk_memory", *options])) as client:
            await client.call_tool("remember", {"text": "Ada takes her coffee without sugar.", "author": "Ada"})
            found = await client.call_tool("recall", {"query": "how does she like coffee?"})
            for memory in found.structured_content["memories"]:
                print(f"{memory['author']}: {memory['text']} ({memory['score']})")


asyncio.run(main())
