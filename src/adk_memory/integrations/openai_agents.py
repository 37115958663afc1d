"""The OpenAI Agents SDK: recall and remember as tools, memories in an agent's instructions, and runs as memories."""

from __future__ import annotations

from typing import Any

from adk_memory._packages import require
from adk_memory.adapter import MemoryServiceAdapter
from adk_memory.context import recall_context
from adk_memory.integrations._agents import MemoryOf, checked, memory_of, store_turn
from adk_memory.types import MemoryEntry

require("agents", __name__, "openai-agents")

from agents import (  # noqa: E402
    FunctionTool,
    ItemHelpers,
    RunContextWrapper,
    function_tool,
)
from agents.result import RunResultBase  # noqa: E402
from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData  # noqa: E402


def memory_tools(memory: MemoryOf) -> list[FunctionTool]:
    """Return the tools ``recall_memories`` and ``remember``, for an agent's ``tools``.

    ``memory`` is an adapter, or a function from the context of a run, as `Runner.run` was given it, to one.
    """

    checked(memory)

    async def recall_memories(run: RunContextWrapper[Any], query: str) -> str:
        """Find what is known from earlier conversations.

        Args:
            query: Any words; none has a special meaning.
        """
        found = await recall_context(memory_of(memory, run.context), query)
        return found or "Nothing is known about that."

    async def remember(run: RunContextWrapper[Any], text: str) -> str:
        """Store one fact, decision or preference for later conversations.

        Args:
            text: What to remember, in words that make sense by themselves.
        """
        await memory_of(memory, run.context).add(MemoryEntry(text, "assistant"))
        return "Remembered."

    return [function_tool(recall_memories), function_tool(remember)]


def memory_input_filter(memory: MemoryOf, **options: Any) -> CallModelInputFilter:
    """Return a ``call_model_input_filter`` for `RunConfig`: what the user's last words recall joins the instructions.

    ``options`` are those of `recall_context`.
    """

    checked(memory)

    async def with_memories(data: CallModelData[Any]) -> ModelInputData:
        asked = _last_words(data.model_data.input)
        recalled = await recall_context(memory_of(memory, data.context), asked, **options) if asked else ""
        instructions = "\n\n".join(filter(None, [data.model_data.instructions, recalled]))
        return ModelInputData(input=data.model_data.input, instructions=instructions or None)

    return with_memories


async def remember_run(memory: MemoryServiceAdapter, session_id: str, result: RunResultBase) -> list[str]:
    """Store a run's question and what the agents answered as turns of a session; call it once for each run.

    Return their ids.
    """
    asked = result.input if isinstance(result.input, str) else _last_words(result.input)
    answers = [
        (item.agent.name, ItemHelpers.text_message_output(item))
        for item in result.new_items
        if item.type == "message_output_item"
    ]
    return await store_turn(memory, session_id, [("user", asked), *answers])


def _last_words(items: list[Any]) -> str:
    """Return the text of the user's last message."""
    for item in reversed(items):
        if isinstance(item, dict) and item.get("role") == "user":
            content = item.get("content")
            if isinstance(content, str):
                return content
            return "\n".join(part["text"] for part in content or () if isinstance(part.get("text"), str))
    return ""
