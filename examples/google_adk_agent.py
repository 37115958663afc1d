"""An agent of Google ADK that remembers earlier sessions. Its model is scripted; in its place: the name of yours."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import load_memory
from google.genai import types

from adk_memory.integrations.google_adk import AdkMemoryService


class ScriptedModel(BaseLlm):  # type: ignore[misc]
    """Looks a question up in its memory, and repeats what it finds there."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer the last content of the request."""
        asked = llm_request.contents[-1].parts[-1]
        if asked.function_response:
            memories = asked.function_response.response["result"].memories
            answer = types.Part(text=f"You told me: {memories[0].content.parts[0].text}")
        elif asked.text.endswith("?"):
            answer = types.Part.from_function_call(name="load_memory", args={"query": asked.text})
        else:
            answer = types.Part(text="Noted.")
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


async def remember(callback_context: Any) -> None:
    """After each turn: what is new in the session goes into the memory."""
    await callback_context.add_session_to_memory()


async def main() -> None:
    """Tell the agent something in one session, and ask for it in another one."""
    agent = LlmAgent(
        name="assistant",
        model=ScriptedModel(model="scripted"),
        tools=[load_memory],
        after_agent_callback=remember,
    )
    with tempfile.TemporaryDirectory() as folder:
        async with AdkMemoryService(f"sqlite:///{folder}/memory.db") as memory:
            runner = Runner(
                app_name="tea-shop",
                agent=agent,
                session_service=InMemorySessionService(),
                memory_service=memory,
                auto_create_session=True,
            )
            for day, text in [("monday", "My favourite tea is jasmine."), ("tuesday", "Which tea do I like?")]:
                message = types.Content(role="user", parts=[types.Part(text=text)])
                async for event in runner.run_async(user_id="ana", session_id=day, new_message=message):
                    if event.is_final_response():
                        print(f"{day}: {event.content.parts[0].text}")


if __name__ == "__main__":
    asyncio.run(main())
