"""The adapter to Pydantic AI, with its own agents and function model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from adk_memory import ConfigurationError, InMemoryMemoryService, MemoryEntry, MemoryServiceAdapter

pytest.importorskip("pydantic_ai", reason="the extra pydantic-ai is not installed")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from adk_memory.integrations.pydantic_ai import memory_instructions, memory_toolset, remember_run


@pytest.fixture
def service() -> InMemoryMemoryService:
    return InMemoryMemoryService()


@pytest.fixture
def memory(service: InMemoryMemoryService) -> MemoryServiceAdapter:
    return MemoryServiceAdapter(service, "notes", "ada")


class Scripted:
    """A model that gives one answer after the other, and keeps what it was told."""

    def __init__(self, *answers: TextPart | ToolCallPart) -> None:
        self._answers = list(answers)
        self.instructions: list[str] = []
        self.returned: list[str] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.instructions.append(info.instructions or "")
        self.returned = [str(p.content) for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
        return ModelResponse(parts=[self._answers.pop(0)])


async def test_the_model_recalls_by_a_tool(memory: MemoryServiceAdapter) -> None:
    await memory.add(MemoryEntry("The owl lives in the old oak", "Bo"))
    scripted = Scripted(ToolCallPart("recall_memories", {"query": "where is the owl"}), TextPart("In the oak."))
    result = await Agent(scripted.model, toolsets=[memory_toolset(memory)]).run("Where is the owl?")
    assert result.output == "In the oak."
    [told] = scripted.returned
    assert "The owl lives in the old oak" in told
    assert "Bo" in told


async def test_nothing_found_is_said_in_words(memory: MemoryServiceAdapter) -> None:
    scripted = Scripted(ToolCallPart("recall_memories", {"query": "owl"}), TextPart("I don't know."))
    await Agent(scripted.model, toolsets=[memory_toolset(memory)]).run("Where is the owl?")
    assert scripted.returned == ["Nothing is known about that."]


async def test_the_model_remembers_by_a_tool(memory: MemoryServiceAdapter) -> None:
    scripted = Scripted(ToolCallPart("remember", {"text": "Ada is allergic to nuts"}), TextPart("Noted."))
    await Agent(scripted.model, toolsets=[memory_toolset(memory)]).run("I'm allergic to nuts")
    [found] = await memory.search("nuts")
    assert (found.text, found.author) == ("Ada is allergic to nuts", "assistant")


async def test_each_run_has_the_memory_of_its_deps(service: InMemoryMemoryService) -> None:
    for user in ("ada", "bo"):
        scripted = Scripted(ToolCallPart("remember", {"text": "likes tea"}), TextPart("Noted."))
        toolset = memory_toolset(lambda name: MemoryServiceAdapter(service, "notes", name))
        await Agent(scripted.model, deps_type=str, toolsets=[toolset]).run("I like tea", deps=user)
        assert len(await MemoryServiceAdapter(service, "notes", user).search("tea")) == 1


@pytest.mark.parametrize("prompt", ["Where is the owl?", ["Where is", "the owl?"]])
async def test_memories_join_the_instructions(memory: MemoryServiceAdapter, prompt: str | Sequence[str]) -> None:
    await memory.add(MemoryEntry("The owl lives in the old oak"))
    scripted = Scripted(TextPart("In the oak."), TextPart("Hello."))
    agent = Agent(scripted.model, instructions=["Be brief.", memory_instructions(memory)])
    await agent.run(prompt)
    await agent.run("Hi")
    told, greeted = scripted.instructions
    assert told.startswith("Be brief.")
    assert "The owl lives in the old oak" in told
    assert greeted == "Be brief."


async def test_a_run_becomes_memories_and_a_later_one_recalls_it(memory: MemoryServiceAdapter) -> None:
    agent = Agent(Scripted(TextPart("It is 42."), TextPart("It is 42.")).model)
    first = await agent.run("What is the number of the locker?")
    await remember_run(memory, "s1", first.new_messages())
    again = await agent.run("Again, please?", message_history=first.all_messages())
    await remember_run(memory, "s1", again.new_messages(), agent_name="helper")
    found = [
        (m.author, m.text) for m in sorted(await memory.search("locker number 42 again"), key=lambda m: m.timestamp)
    ]
    assert found == [
        ("user", "What is the number of the locker?"),
        ("assistant", "It is 42."),
        ("user", "Again, please?"),
        ("helper", "It is 42."),
    ]


@pytest.mark.parametrize("memory", [InMemoryMemoryService(), None, "ana"], ids=["service", "nothing", "text"])
def test_what_is_no_adapter_is_refused_when_the_agent_is_made(memory: Any) -> None:
    with pytest.raises(ConfigurationError, match="MemoryServiceAdapter"):
        memory_toolset(memory)
