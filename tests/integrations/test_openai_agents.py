"""The adapter to the OpenAI Agents SDK, with the SDK's own runner and scripted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from adk_memory import ConfigurationError, InMemoryMemoryService, MemoryEntry, MemoryServiceAdapter

pytest.importorskip("agents", reason="the extra openai-agents is not installed")

from agents import Agent, RunConfig, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from adk_memory.integrations.openai_agents import memory_input_filter, memory_tools, remember_run

set_tracing_disabled(True)


@dataclass
class Caller:
    """What an application hands to a run."""

    memory: MemoryServiceAdapter


@pytest.fixture
def service() -> InMemoryMemoryService:
    return InMemoryMemoryService()


@pytest.fixture
def memory(service: InMemoryMemoryService) -> MemoryServiceAdapter:
    return MemoryServiceAdapter(service, "notes", "ada")


def outputs_of_tools(call: Any) -> list[str]:
    return [item["output"] for item in call.input if isinstance(item, dict) and "output" in item]


async def test_the_model_recalls_by_a_tool(memory: MemoryServiceAdapter) -> None:
    await memory.add(MemoryEntry("The owl lives in the old oak", "Bo"))
    model = ScriptedModel(
        [
            [function_call("recall_memories", {"query": "where does the owl live"}, call_id="1")],
            [assistant_message("In the old oak.")],
        ]
    )
    agent = Agent("helper", model=model, tools=list(memory_tools(memory)))
    result = await Runner.run(agent, "Where is the owl?")
    assert result.final_output == "In the old oak."
    [told] = outputs_of_tools(model.calls[1])
    assert "The owl lives in the old oak" in told
    assert "Bo" in told


async def test_nothing_found_is_said_in_words(memory: MemoryServiceAdapter) -> None:
    call = [function_call("recall_memories", {"query": "owl"}, call_id="1")]
    model = ScriptedModel([call, [assistant_message("I don't know.")]])
    await Runner.run(Agent("helper", model=model, tools=list(memory_tools(memory))), "Where is the owl?")
    assert outputs_of_tools(model.calls[1]) == ["Nothing is known about that."]


async def test_the_model_remembers_by_a_tool(memory: MemoryServiceAdapter) -> None:
    call = [function_call("remember", {"text": "Ada is allergic to nuts"}, call_id="1")]
    model = ScriptedModel([call, [assistant_message("Noted.")]])
    await Runner.run(Agent("helper", model=model, tools=list(memory_tools(memory))), "I'm allergic to nuts")
    [found] = await memory.search("nuts")
    assert (found.text, found.author) == ("Ada is allergic to nuts", "assistant")


async def test_each_run_has_the_memory_of_its_context(service: InMemoryMemoryService) -> None:
    call = [function_call("remember", {"text": "likes tea"}, call_id="1")]
    model = ScriptedModel([call, [assistant_message("Noted.")]] * 2)
    agent = Agent[Caller]("helper", model=model, tools=list(memory_tools(lambda caller: caller.memory)))
    for user in ("ada", "bo"):
        caller = Caller(MemoryServiceAdapter(service, "notes", user))
        await Runner.run(agent, "I like tea", context=caller)
        assert len(await caller.memory.search("tea")) == 1


async def test_memories_join_the_instructions(memory: MemoryServiceAdapter) -> None:
    await memory.add(MemoryEntry("The owl lives in the old oak"))
    model = ScriptedModel([[assistant_message("In the oak.")], [assistant_message("Hello.")]])
    agent = Agent("helper", instructions="Be brief.", model=model)
    config = RunConfig(call_model_input_filter=memory_input_filter(memory))
    await Runner.run(agent, "Where is the owl?", run_config=config)
    await Runner.run(agent, [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], run_config=config)
    told, greeted = (str(call.system_instructions) for call in model.calls)
    assert told.startswith("Be brief.")
    assert "The owl lives in the old oak" in told
    assert greeted == "Be brief."


async def test_a_run_becomes_memories_and_a_later_one_recalls_it(memory: MemoryServiceAdapter) -> None:
    model = ScriptedModel([[assistant_message("It is 42.")], [assistant_message("It is 42.")]])
    agent = Agent("helper", model=model)
    first = await Runner.run(agent, "What is the number of the locker?")
    await remember_run(memory, "s1", first)
    history: list[Any] = [*first.to_input_list(), {"role": "user", "content": "Again, please?"}]
    await remember_run(memory, "s1", await Runner.run(agent, history))
    found = [
        (m.author, m.text) for m in sorted(await memory.search("locker number 42 again"), key=lambda m: m.timestamp)
    ]
    assert found == [
        ("user", "What is the number of the locker?"),
        ("helper", "It is 42."),
        ("user", "Again, please?"),
        ("helper", "It is 42."),
    ]


@pytest.mark.parametrize("memory", [InMemoryMemoryService(), None, "ana"], ids=["service", "nothing", "text"])
def test_what_is_no_adapter_is_refused_when_the_agent_is_made(memory: Any) -> None:
    with pytest.raises(ConfigurationError, match="MemoryServiceAdapter"):
        memory_tools(memory)
