"""An agent of Pydantic AI that remembers: what one session said, a later one knows.

    pip install "adk-memory[pydantic-ai]"
    python examples/pydantic_ai_agent.py

The model is a test double, so that this runs without a key; name a real one instead.
"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from adk_memory import MemoryServiceAdapter, open_memory
from adk_memory.integrations.pydantic_ai import memory_instructions, memory_toolset, remember_run


async def main() -> None:
    async with open_memory("memory://") as service:
        memory = MemoryServiceAdapter(service, app_name="cafe", user_id="ada")
        agent = Agent(
            TestModel(call_tools=["recall_memories"]),
            instructions=["You take orders.", memory_instructions(memory)],
            toolsets=[memory_toolset(memory)],
        )
        first = await agent.run("I'm Ada. I take my coffee with oat milk.")
        await remember_run(memory, "monday", first.new_messages())

        second = await agent.run("A coffee, please.")
        print(second.new_messages()[0].instructions)


asyncio.run(main())
