"""The memory service for Google ADK, on every backend, with the real package's sessions, events and contents."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed")

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from adk_memory import ALL_PROJECTS, ValidationError, open_memory
from adk_memory import MemoryEntry as Entry
from adk_memory.integrations.google_adk import AdkMemoryService
from integrations.google_adk_support import found, said, session, texts


@pytest.fixture
async def service(url: str) -> AsyncIterator[AdkMemoryService]:
    async with AdkMemoryService(url) as service:
        yield service


# Sessions


async def test_a_session_is_remembered_with_author_time_and_id(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session(said("I drink jasmine tea.", "e1", at=1_700_000_000.25)))

    [memory] = await found(service, "Jasmine?")
    assert memory == MemoryEntry(
        content=types.Content(role="user", parts=[types.Part(text="I drink jasmine tea.")]),
        author="user",
        timestamp="2023-11-14T22:13:20.250000+00:00",
        id="e1",
    )


async def test_a_session_may_be_added_again_and_longer(service: AdkMemoryService) -> None:
    first, second = said("green tea", "e1"), said("black tea", "e2", at=12_346.0)

    await service.add_session_to_memory(session(first))
    await service.add_session_to_memory(session(first, second))
    await service.add_session_to_memory(session(first, second))

    assert sorted(await texts(service, "tea")) == ["black tea", "green tea"]


async def test_an_event_that_changed_is_rewritten_with_its_session(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session(said("green tea", "e1")))

    await service.add_session_to_memory(session(said("black tea", "e1")))

    assert await texts(service, "tea") == ["black tea"]


async def test_the_end_of_a_session_does_not_erase_its_beginning(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session(said("green tea", "e1"), said("black tea", "e2")))

    await service.add_session_to_memory(session(said("black tea", "e2")))

    assert len(await texts(service, "tea")) == 2


async def test_a_session_without_events_is_no_error(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session())

    assert await found(service, "tea") == []


@pytest.mark.parametrize(
    "event",
    [
        Event(author="user"),
        Event(author="user", content=types.Content(parts=[])),
        Event(author="user", content=types.Content()),
        said(" \n"),
        said("green tea, I th", partial=True),
        Event(author="bot", content=types.Content(parts=[types.Part(function_call=types.FunctionCall(name="f"))])),
    ],
    ids=["no content", "no parts", "nothing", "blank", "partial", "no text"],
)
async def test_what_is_no_whole_text_is_left_out(service: AdkMemoryService, url: str, event: Event) -> None:
    await service.add_session_to_memory(session(event, said("I drink tea.", "e1")))
    await service.add_events_to_memory(app_name="app", user_id="ana", events=[event], session_id="tuesday")

    opened = await service._services.ready()
    assert [memory.id for memory in await opened.list_recent("app", "ana", project_id=ALL_PROJECTS)] == ["e1"]


async def test_events_without_an_id_are_known_by_what_they_are(service: AdkMemoryService) -> None:
    for _ in range(2):
        twice = [said("green tea", at=1.0), said("green tea", at=2.0)]
        for event in twice:
            event.id = ""
        await service.add_session_to_memory(session(*twice))

    assert await texts(service, "tea") == ["green tea", "green tea"]


# Content


async def test_a_content_comes_back_as_it_was(service: AdkMemoryService) -> None:
    content = types.Content(
        role="model",
        parts=[
            types.Part(text="I have to look at the tea first.", thought=True, thought_signature=b"\xff\x00\xfe"),
            types.Part(text="Here is your tea."),
            types.Part(function_call=types.FunctionCall(id="c1", name="pour", args={"cups": 2, "milk": None})),
            types.Part(function_response=types.FunctionResponse(id="c1", name="pour", response={"ok": [True, 0.5]})),
            types.Part(inline_data=types.Blob(data=b"\x00\xff\xfe", mime_type="image/png")),
            types.Part(file_data=types.FileData(file_uri="gs://cups/1", mime_type="image/png")),
            types.Part(executable_code=types.ExecutableCode(code="1 + 1", language=types.Language.PYTHON)),
        ],
    )
    event = Event(id="e1", author="bot", content=content)

    await service.add_session_to_memory(session(event))
    await service.add_memory(app_name="app", user_id="ben", memories=[MemoryEntry(content=content)])

    assert [memory.content for memory in await found(service, "tea")] == [content]
    assert [memory.content for memory in await found(service, "tea", user="ben")] == [content]


async def test_a_turn_is_not_lost_for_what_json_can_not_hold(service: AdkMemoryService) -> None:
    parts = [
        types.Part(text="tea \ud800 \0"),
        types.Part(
            function_response=types.FunctionResponse(name="f", response={"made": datetime, "nan": float("nan")})
        ),
    ]
    await service.add_session_to_memory(session(Event(id="e1", author="bot", content=types.Content(parts=parts))))

    assert await texts(service, "tea") == ["tea \ufffd \ufffd"]


async def test_what_was_stored_by_another_way_is_found_too(url: str) -> None:
    shared = open_memory(url)
    async with shared:
        await shared.migrate()
        image = {"type": "image_url", "image_url": {"url": "https://example.com/cup.png"}}
        await shared.add_entry("app", "ana", Entry({"role": "user", "parts": ["My cup of tea", image], "name": "ana"}))

        assert await texts(AdkMemoryService(shared), "tea") == ["My cup of tea"]


@pytest.mark.parametrize("ingest", ["session", "events"])
async def test_what_was_stored_is_a_copy(service: AdkMemoryService, ingest: str) -> None:
    event = said("green tea", "e1")
    if ingest == "session":
        await service.add_session_to_memory(session(event))
    else:
        await service.add_events_to_memory(app_name="app", user_id="ana", events=[event], session_id="monday")

    event.author, event.content.parts[0].text = "changed", "changed"
    (await found(service, "tea"))[0].content.parts.clear()

    assert await texts(service, "tea") == ["green tea"]
    assert (await found(service, "tea"))[0].author == "user"


# Events


async def test_events_are_added_to_what_is_there(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session(said("green tea", "e1")))

    await service.add_events_to_memory(
        app_name="app", user_id="ana", session_id="monday", events=[said("black tea", "e2")]
    )

    assert sorted(await texts(service, "tea")) == ["black tea", "green tea"]


@pytest.mark.parametrize("session_id", ["monday", None])
async def test_a_known_event_keeps_its_first_text(service: AdkMemoryService, session_id: str | None) -> None:
    for text in ("green tea", "black tea"):
        await service.add_events_to_memory(
            app_name="app", user_id="ana", session_id=session_id, events=[said(text, "e1"), said(text, "e1")]
        )

    assert await texts(service, "tea") == ["green tea"]


async def test_metadata_of_a_call_comes_back(service: AdkMemoryService) -> None:
    await service.add_events_to_memory(
        app_name="app", user_id="ana", events=[said("green tea")], custom_metadata={"source": {"import": 7}}
    )

    assert (await found(service, "tea"))[0].custom_metadata == {"source": {"import": 7}}


async def test_metadata_that_json_can_not_hold_is_refused(service: AdkMemoryService) -> None:
    with pytest.raises(ValidationError, match=r"metadata\.ttl is a object"):
        await service.add_events_to_memory(
            app_name="app", user_id="ana", events=[said("green tea")], custom_metadata={"ttl": object()}
        )


# Single memories


async def test_memories_are_added_directly(service: AdkMemoryService) -> None:
    content = types.Content(parts=[types.Part(text="Ana drinks green tea.")])
    memory = MemoryEntry(
        content=content, author="notes", id="m1", timestamp="2026-05-01T10:00:00+02:00", custom_metadata={"a": 1}
    )

    await service.add_memory(
        app_name="app", user_id="ana", memories=[memory, MemoryEntry(content=content)], custom_metadata={"a": 0, "b": 2}
    )

    anonymous, first = sorted(await found(service, "tea"), key=lambda memory: memory.author or "")
    assert first == memory.model_copy(
        update={"timestamp": "2026-05-01T08:00:00+00:00", "custom_metadata": {"a": 1, "b": 2}}
    )
    assert (anonymous.author, anonymous.content) == (None, content)
    assert datetime.fromisoformat(anonymous.timestamp).tzinfo == UTC


async def test_a_memory_with_a_known_id_is_rewritten(service: AdkMemoryService) -> None:
    for text in ("green tea", "black tea"):
        content = types.Content(parts=[types.Part(text=text)])
        await service.add_memory(app_name="app", user_id="ana", memories=[MemoryEntry(id="m1", content=content)])

    assert await texts(service, "tea") == ["black tea"]


@pytest.mark.parametrize(
    "memory",
    [
        MemoryEntry(content=types.Content(parts=[types.Part(text=" ")])),
        MemoryEntry(content=types.Content(parts=[types.Part(text="tea")]), timestamp="last Tuesday"),
        MemoryEntry(content=types.Content(parts=[types.Part(text="tea")]), id=""),
    ],
    ids=["text", "timestamp", "id"],
)
async def test_a_memory_that_can_not_be_kept_is_refused_with_all_others(
    service: AdkMemoryService, memory: MemoryEntry, request: pytest.FixtureRequest
) -> None:
    good = MemoryEntry(content=types.Content(parts=[types.Part(text="green tea")]))

    with pytest.raises(ValidationError, match=request.node.callspec.id.split("-")[-1]):
        await service.add_memory(app_name="app", user_id="ana", memories=[good, memory])

    assert await found(service, "tea") == []


# Searching


async def test_a_search_stays_with_its_user_and_app(service: AdkMemoryService) -> None:
    await service.add_session_to_memory(session(said("green tea"), app="app/other", user="ana"))

    assert await found(service, "tea", "app", "other/ana") == []
    assert await found(service, "tea", "app/other", "ben") == []
    assert await texts(service, "tea", "app/other", "ana") == ["green tea"]


@pytest.mark.parametrize("query", ["", " \n\t", "?!", '" OR 1=1 --', "coffee"])
async def test_a_query_that_says_nothing_of_it_finds_nothing(service: AdkMemoryService, query: str) -> None:
    await service.add_session_to_memory(session(said("green tea")))

    assert await found(service, query) == []


async def test_any_word_matches_and_more_words_come_first(service: AdkMemoryService) -> None:
    lines = ["The deploy is ready.", "Ready.", "The deploy status is ready.", "Something else."]
    await service.add_session_to_memory(session(*(said(line) for line in lines)))

    assert await texts(service, "DEPLOY status ready") == [lines[2], lines[0], lines[1]]


async def test_a_search_returns_ten_unless_told(url: str) -> None:
    async with AdkMemoryService(url) as service, AdkMemoryService(await service._services.ready(), limit=3) as few:
        await service.add_session_to_memory(session(*(said(f"cup {n} of tea", at=n) for n in range(20))))

        assert len(await found(service, "tea")) == 10
        assert await texts(few, "tea") == (await texts(service, "tea"))[:3]


async def test_a_search_leaves_out_what_scores_less(url: str) -> None:
    async with AdkMemoryService(url) as service, AdkMemoryService(await service._services.ready(), min_score=1) as best:
        await service.add_session_to_memory(session(said("green tea"), said("a tea set and a pot")))

        assert len(await found(service, "green tea")) == 2
        assert await found(best, "green pot tea jasmine") == []


@pytest.mark.parametrize(
    ("text", "query", "matches"),
    [
        ("私の名前は太郎です", "太郎", True),
        ("私の名前は太郎です", "天気", False),
        ("我喜欢机器学习", "机器学习", True),
        ("제 이름은 민수입니다", "민수입니다", True),
        ("Меня зовут Алексей", "алексей", True),
        ("私はPythonでADKを使っています", "python", True),
        ("私はPythonでADKを使っています", "使って", True),
        ("私はPythonでADKを使っています", "thon", False),
        ("I like to code in Python.", "thon", False),
        (unicodedata.normalize("NFD", "Meet at the Café"), "Café", True),
        ("Meet at the Café", unicodedata.normalize("NFD", "café"), True),
    ],
)
async def test_words_of_every_script_are_found(text: str, query: str, *, matches: bool) -> None:
    service = AdkMemoryService("memory://")
    await service.add_session_to_memory(session(said(text)))

    assert bool(await found(service, query)) is matches


async def test_with_a_project_memories_go_into_it_and_global_ones_are_found_too(url: str) -> None:
    async with AdkMemoryService(url, project_id="A") as service:
        backend = await service._services.ready()
        await service.add_session_to_memory(session(said("green tea")))
        await service.add_events_to_memory(app_name="app", user_id="ana", events=[said("black tea")])
        await service.add_events_to_memory(
            app_name="app", user_id="ana", session_id="monday", events=[said("white tea")]
        )
        memory = MemoryEntry(content=types.Content(parts=[types.Part(text="mint tea")]))
        await service.add_memory(app_name="app", user_id="ana", memories=[memory])
        await AdkMemoryService(backend).add_session_to_memory(session(said("tea for all")))

        assert len(await texts(service, "tea")) == 5
        assert await texts(AdkMemoryService(backend), "tea") == ["tea for all"]
        assert await texts(AdkMemoryService(backend, project_id="B"), "tea") == ["tea for all"]
