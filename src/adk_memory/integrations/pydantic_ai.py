"""Pydantic AI: recall and remember as tools, memories in an agent's instructions, and runs as memories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from adk_memory._packages import require
from adk_memory.adapter import MemoryServiceAdapter
from adk_memory.context import recall_context
from adk_memory.integrations._agents import MemoryOf, checked, memory_of, store_turn
from adk_memory.types import MemoryEntry

require("pydantic_ai", __name__, "pydantic-ai")

from pydantic_ai import RunContext  # noqa: E402
from pydantic_ai.messages import ModelMessage, TextPart, UserPromptPart  # noqa: E402
from pydantic_ai.toolsets import FunctionToolset  # noqa: E402


def memory_toolset(memory: MemoryOf) -> FunctionToolset[Any]:
    """Return the tools ``recall_memories`` and ``remember``, for an agent's ``toolsets``.

    ``memory`` is an adapter, or a function from a run's ``deps`` to one.
    """

    checked(memory)

    async def recall_memories(run: RunContext[Any], query: str) -> str:
        """Find what is known from earlier conversations.

        Args:
            run: The run.
            query: Any words; none has a special meaning.
        """
        found = await recall_context(memory_of(memory, run.deps), query)
        return found or "Nothing is known about that."

    async def remember(run: RunContext[Any], text: str) -> str:
        """Store one fact, decision or preference for later conversations.

        Args:
            run: The run.
            text: What to remember, in words that make sense by themselves.
        """
        await memory_of(memory, run.deps).add(MemoryEntry(text, "assistant"))
        return "Remembered."

    return FunctionToolset([recall_memories, remember])


def memory_instructions(memory: MemoryOf, **options: Any) -> Callable[[RunContext[Any]], Awaitable[str]]:
    """Return a function for an agent's ``instructions``: what the prompt of a run recalls.

    ``options`` are those of `recall_context`.
    """

    checked(memory)

    async def instructions(run: RunContext[Any]) -> str:
        asked = _text(run.prompt)
        return await recall_context(memory_of(memory, run.deps), asked, **options) if asked else ""

    return instructions


async def remember_run(
    memory: MemoryServiceAdapter, session_id: str, messages: Sequence[ModelMessage], *, agent_name: str = "assistant"
) -> list[str]:
    """Store what was said in a run, its ``result.new_messages()``, as turns of a session; call it once for each run.

    Return their ids.
    """
    return await store_turn(memory, session_id, _said(messages, agent_name))


def _said(messages: Sequence[ModelMessage], agent_name: str) -> Iterator[tuple[str, str]]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield "user", _text(part.content)
            elif isinstance(part, TextPart):
                yield agent_name, part.content


def _text(prompt: Any) -> str:
    """Return the text of a prompt, which may have images and other parts beside it."""
    if isinstance(prompt, str):
        return prompt
    texts = (part if isinstance(part, str) else getattr(part, "content", None) for part in prompt or ())
    return "\n".join(text for text in texts if isinstance(text, str))
