"""An agent of the OpenAI Agents SDK that remembers: what one session said, a later one knows.

    pip install "adk-memory[openai-agents]"
    python examples/openai_agents.py

The model is scripted, so that this runs without a key; leave it out to ask a real one.
"""

import asyncio

from agents import Agent, RunConfig, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

from adk_memory import MemoryServiceAdapter, open_memory
from adk_memory.integrations.openai_agents import memory_input_filter, memory_tools, remember_run


async def main() -> None:
    set_tracing_disabled(True)
    answers = ["Nice to meet you, Ada. Oat milk it is.", "With oat milk, as always."]
    model = ScriptedModel([[assistant_message(answer)] for answer in answers])
    async with open_memory("memory://") as service:
        memory = MemoryServiceAdapter(service, app_name="cafe", user_id="ada")
        agent = Agent("barista", instructions="You take orders.", model=model, tools=list(memory_tools(memory)))
        config = RunConfig(call_model_input_filter=memory_input_filter(memory))

        first = await Runner.run(agent, "I'm Ada. I take my coffee with oat milk.", run_config=config)
        await remember_run(memory, "monday", first)

        await Runner.run(agent, "A coffee, please.", run_config=config)
        print(model.calls[-1].system_instructions)


asyncio.run(main())
