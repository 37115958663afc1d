"""Google ADK's own runner and tools, with our memory service behind them and a scripted model."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed")

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import load_memory, preload_memory
from google.genai import types

from adk_memory import ALL_PROJECTS
from adk_memory.integrations.google_adk import AdkMemoryService
from integrations.google_adk_support import said, session, texts


class Scripted(BaseLlm):  # type: ignore[misc]
    """Answers with the parts of its script, one list for each call, and keeps what it was asked."""

    script: list[list[types.Part]]
    asked: list[str]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append("\n".join(content.model_dump_json(exclude_none=True) for content in llm_request.contents))
        parts = self.script.pop(0)
        if stream:
            for part in parts:
                yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=parts))


async def keep_session(callback_context: Any) -> None:
    await callback_context.add_session_to_memory()


def runner(service: AdkMemoryService, script: list[list[types.Part]], tools: list[Any]) -> tuple[Runner, Scripted]:
    model = Scripted(model="scripted", script=script, asked=[])
    agent = LlmAgent(name="bot", model=model, tools=tools, after_agent_callback=keep_session)
    sessions = InMemorySessionService()
    return Runner(
        app_name="app", agent=agent, session_service=sessions, memory_service=service, auto_create_session=True
    ), model


async def turn(runner: Runner, session_id: str, text: str, **config: Any) -> str:
    message = types.Content(role="user", parts=[types.Part(text=text)])
    answers = [
        event.content.parts[-1].text
        async for event in runner.run_async(
            user_id="ana", session_id=session_id, new_message=message, run_config=RunConfig(**config)
        )
        if event.is_final_response() and event.content
    ]
    return str(answers[-1])


def answer(text: str) -> list[types.Part]:
    return [types.Part(text=text)]


def call(query: str) -> list[types.Part]:
    return [types.Part(function_call=types.FunctionCall(id="c1", name="load_memory", args={"query": query}))]


async def test_load_memory_recalls_in_a_later_session_what_was_said_in_a_first_one(url: str) -> None:
    async with AdkMemoryService(url) as service:
        running, model = runner(
            service, [answer("Noted."), call("favourite tea"), answer("It is jasmine.")], [load_memory]
        )

        await turn(running, "monday", "My favourite tea is jasmine.")
        assert await turn(running, "tuesday", "What do I like to drink?") == "It is jasmine."

        assert "jasmine" not in model.asked[1]
        assert "My favourite tea is jasmine." in model.asked[2]


async def test_preload_memory_puts_what_was_said_into_the_prompt(url: str) -> None:
    async with AdkMemoryService(url) as service:
        running, model = runner(service, [answer("Noted."), answer("It is jasmine.")], [preload_memory])

        await turn(running, "monday", "My favourite tea is jasmine.")
        await turn(running, "tuesday", "Which tea do I like?")

        assert "PAST_CONVERSATIONS" not in model.asked[0]
        assert "user: My favourite tea is jasmine." in model.asked[1].split("PAST_CONVERSATIONS")[1]


async def test_a_recalled_memory_is_not_remembered_once_more_as_the_result_of_a_tool() -> None:
    service = AdkMemoryService("memory://")
    running, _ = runner(service, [answer("Noted."), call("tea"), answer("You said so.")], [load_memory])

    await turn(running, "monday", "My favourite tea is jasmine.")
    await turn(running, "tuesday", "What do I like to drink?")

    everything = await (await service._services.ready()).list_recent("app", "ana", project_id=ALL_PROJECTS)
    assert len([memory for memory in everything if "jasmine" in str(memory.content.as_json())]) == 1


async def test_a_streamed_answer_is_remembered_once(url: str) -> None:
    async with AdkMemoryService(url) as service:
        running, _ = runner(service, [[*answer("Jasmine tea "), *answer("it is.")]], [])

        await turn(running, "monday", "What do I drink?", streaming_mode=StreamingMode.SSE)

        assert len(await texts(service, "jasmine")) == 1


@pytest.fixture
def ended_loops() -> Iterator[None]:
    """Sees to what asyncpg's connections say once a loop has ended under them: that nobody closed them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()


@pytest.mark.usefixtures("ended_loops")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_synchronous_runner_has_a_loop_for_each_call(url: str) -> None:
    service = AdkMemoryService(url)
    running, model = runner(service, [answer("Noted.")] * 3 + [answer("It is jasmine.")], [preload_memory])
    for number in range(4):
        message = types.Content(role="user", parts=[types.Part(text="My favourite tea is jasmine.")])
        list(running.run(user_id="ana", session_id=f"s{number}", new_message=message))

    assert "jasmine" in model.asked[3].split("PAST_CONVERSATIONS")[1]
    assert len(service._services._opened) == 1
    asyncio.run(service.close())


@pytest.mark.usefixtures("ended_loops")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_loops_that_run_at_the_same_time_share_a_service(url: str) -> None:
    service = AdkMemoryService(url)
    failed: list[BaseException] = []
    together = threading.Barrier(3)

    async def work(name: str) -> None:
        for number in range(10):
            added = service.add_session_to_memory(session(said(f"tea {name} {number}"), session_id=name))
            await asyncio.gather(added, *(texts(service, "tea") for _ in range(5)))

    def run(name: str) -> None:
        together.wait()
        try:
            asyncio.run(work(name))
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert len(asyncio.run(texts(service, "tea"))) == 10
    asyncio.run(service.close())
