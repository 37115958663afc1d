"""Events, sessions and searches of Google ADK in a word. It needs the package."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from adk_memory.integrations.google_adk import AdkMemoryService


def said(text: str, event_id: str | None = None, author: str = "user", at: float = 12_345.0, **fields: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    named = {} if event_id is None else {"id": event_id}
    return Event(author=author, timestamp=at, content=content, **named, **fields)


def session(*events: Event, session_id: str = "monday", app: str = "app", user: str = "ana") -> Session:
    return Session(app_name=app, user_id=user, id=session_id, events=list(events))


async def found(service: AdkMemoryService, query: str, app: str = "app", user: str = "ana") -> list[MemoryEntry]:
    return list((await service.search_memory(app_name=app, user_id=user, query=query)).memories)


async def texts(service: AdkMemoryService, query: str, app: str = "app", user: str = "ana") -> list[str]:
    return [memory.content.parts[0].text for memory in await found(service, query, app, user)]
