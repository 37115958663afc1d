"""What Google ADK's delete_memory erases is gone, and stays so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed")

from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from adk_memory import ALL_PROJECTS, InMemoryMemoryService, MemoryService
from adk_memory import MemoryEntry as Entry
from adk_memory.embedders import FunctionEmbedder
from adk_memory.integrations.google_adk import AdkMemoryService
from integrations.google_adk_support import said, session, texts


@pytest.fixture
async def service(url: str) -> AsyncIterator[AdkMemoryService]:
    async with AdkMemoryService(url) as service:
        yield service


async def delete(service: AdkMemoryService, memory_id: str | None, user: str = "ana") -> None:
    await service.delete_memory(app_name="app", user_id=user, memory_id=memory_id)


async def stored(service: AdkMemoryService) -> MemoryService:
    return await service._services.ready()


async def test_a_memory_is_deleted_by_the_id_that_a_search_returned(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session(said("green tea", "e1"), said("black tea", "e2")))
    await service.add_session_to_memory(session(said("mint tea", "e1"), user="ben"))

    await delete(service, "e1")

    assert await texts(service, "tea") == ["black tea"]
    assert await texts(service, "tea", user="ben") == ["mint tea"]


@pytest.mark.parametrize("memory_id", [None, "", "unknown", "x" * 300, "e1\0"])
async def test_an_empty_or_unknown_id_does_nothing(service: AdkMemoryService, memory_id: str | None) -> None:
    await service.add_session_to_memory(session(said("green tea", "e1")))

    await delete(service, memory_id)
    await delete(service, memory_id)

    left = await (await stored(service)).list_recent("app", "ana", project_id=ALL_PROJECTS)
    assert [memory.id for memory in left] == ["e1"]


async def test_an_unknown_id_may_be_added_later(service: AdkMemoryService) -> None:
    await delete(service, "e1")

    await service.add_session_to_memory(session(said("green tea", "e1")))

    assert await texts(service, "tea") == ["green tea"]


@pytest.mark.parametrize("way", ["session", "longer session", "events", "events of another", "events of none"])
async def test_a_deleted_event_does_not_come_back(service: AdkMemoryService, way: str) -> None:
    first, second = said("green tea", "e1"), said("black tea", "e2")
    await service.add_session_to_memory(session(first))
    await delete(service, "e1")

    if way == "session":
        await service.add_session_to_memory(session(first))
    elif way == "longer session":
        await service.add_session_to_memory(session(first, second))
    else:
        session_id = {"events": "monday", "events of another": "tuesday", "events of none": None}[way]
        await service.add_events_to_memory(app_name="app", user_id="ana", events=[first], session_id=session_id)

    assert await texts(service, "tea") == (["black tea"] if way == "longer session" else [])


async def test_a_deleted_event_without_an_id_of_its_own_does_not_come_back(service: AdkMemoryService) -> None:
    event = said("green tea")
    event.id = ""
    await service.add_session_to_memory(session(event))
    [memory] = (await service.search_memory(app_name="app", user_id="ana", query="tea")).memories

    await delete(service, memory.id)
    await service.add_session_to_memory(session(event))

    assert await texts(service, "tea") == []


async def test_an_event_that_is_added_while_it_is_deleted_does_not_stay() -> None:
    class Interrupted(InMemoryMemoryService):
        meanwhile = False

        async def add_session(self, app_name: str, user_id: str, session_id: str, *args: Any, **options: Any) -> Any:
            if session_id == "monday" and self.meanwhile:
                self.meanwhile = False
                await adk.delete_memory(app_name=app_name, user_id=user_id, memory_id="e1")
            return await super().add_session(app_name, user_id, session_id, *args, **options)

    backend = Interrupted()
    adk = AdkMemoryService(backend)
    await adk.add_session_to_memory(session(said("green tea", "e1")))
    backend.meanwhile = True

    await adk.add_session_to_memory(session(said("green tea", "e1")))

    assert await texts(adk, "tea") == []


async def test_what_was_deleted_is_not_even_embedded_again() -> None:
    embedded: list[str] = []

    def vectors(passages: list[str]) -> list[list[float]]:
        embedded.extend(passages)
        return [[1.0, 0.0] for _ in passages]

    service = AdkMemoryService("memory://", embedder=FunctionEmbedder(vectors, model="same", dimensions=2))
    await service.add_session_to_memory(session(said("green tea", "e1")))
    await delete(service, "e1")
    embedded.clear()

    await service.add_session_to_memory(session(said("green tea", "e1"), said("black tea", "e2")))

    assert embedded == ["user: black tea"]


async def test_of_many_deleted_events_none_comes_back() -> None:
    backend = InMemoryMemoryService()
    service = AdkMemoryService(backend)
    events = [said(f"cup {number} of tea", f"e{number}") for number in range(1_010)]
    await service.add_session_to_memory(session(*events))
    for event in events[:1_005]:
        await delete(service, event.id)

    await service.add_session_to_memory(session(*events))

    left = await backend.list_page("app", "ana", limit=10)
    assert len([memory for memory in left if memory.text]) == 5


async def test_a_memory_that_was_added_directly_may_be_added_again(service: AdkMemoryService) -> None:
    memory = MemoryEntry(id="m1", content=types.Content(parts=[types.Part(text="green tea")]))
    await service.add_memory(app_name="app", user_id="ana", memories=[memory])
    await delete(service, "m1")
    assert await texts(service, "tea") == []

    await service.add_memory(app_name="app", user_id="ana", memories=[memory])

    assert await texts(service, "tea") == ["green tea"]


async def test_nothing_of_a_deleted_event_is_kept(sqlite_url: str, tmp_path: Path) -> None:
    async with AdkMemoryService(sqlite_url) as service:
        event = said("my jasmine secret", "the-id-of-it", author="Anastasia", at=1_700_000_000.0)
        await service.add_session_to_memory(session(event))

        await delete(service, event.id)

        [tombstone] = await (await stored(service)).list_recent("app", "ana", project_id=ALL_PROJECTS)
        assert (tombstone.content.parts, tombstone.author, tombstone.metadata) == ((), "", {})
        assert tombstone.timestamp.year == 1970
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())  # noqa: ASYNC240
    assert not [trace for trace in (b"jasmine", b"the-id-of-it", b"Anastasia") if trace in left]


async def test_erasing_the_user_erases_what_remembers_the_deletion(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session(said("green tea", "e1")))
    await delete(service, "e1")
    backend = await stored(service)

    await backend.delete_user("app", "ana")

    assert await backend.list_recent("app", "ana", project_id=ALL_PROJECTS) == []


async def test_in_a_project_what_a_search_returns_can_be_deleted_and_nothing_else(url: str) -> None:
    async with AdkMemoryService(url, project_id="A") as service:
        backend = await stored(service)
        await service.add_session_to_memory(session(said("green tea", "e1")))
        for project_id in (None, "B"):
            await backend.add_entry("app", "ana", Entry(f"tea of {project_id}", id="e1"), project_id=project_id)
        assert sorted(await texts(service, "tea")) == ["green tea", "tea of None"]

        await delete(service, "e1")
        await service.add_session_to_memory(session(said("green tea", "e1")))

        assert await texts(service, "tea") == []
        assert await texts(AdkMemoryService(backend, project_id="B"), "tea") == ["tea of B"]


async def test_a_deletion_is_remembered_where_it_was(url: str) -> None:
    async with AdkMemoryService(url, project_id="A") as in_project:
        backend = await stored(in_project)
        in_all = AdkMemoryService(backend)
        await in_project.add_session_to_memory(session(said("green tea", "e1")))
        await in_all.add_session_to_memory(session(said("black tea", "e2")))

        await delete(in_project, "e1")
        await delete(in_project, "e2")
        await in_all.add_session_to_memory(session(said("green tea", "e1"), said("black tea", "e2")))

        assert await texts(in_all, "tea") == ["green tea"]
