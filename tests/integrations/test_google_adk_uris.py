"""Google ADK's command line opens our URLs; tables are made when they should be."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed")

from google.adk.cli.service_registry import ServiceRegistry, load_services_module
from google.adk.cli.utils.service_factory import create_memory_service_from_options

from adk_memory import (
    ConfigurationError,
    InMemoryMemoryService,
    SchemaMissingError,
    ValidationError,
    open_memory,
)
from adk_memory.embedders import FunctionEmbedder
from adk_memory.integrations.google_adk import URI_SCHEMES, AdkMemoryService, from_uri, register_uri_schemes
from integrations.google_adk_support import said, session, texts


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> ServiceRegistry:
    """ADK's registry, as a process without ours would have it."""
    monkeypatch.setattr("google.adk.cli.service_registry._service_registry_instance", None)
    monkeypatch.delitem(sys.modules, "services", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    from google.adk.cli.service_registry import get_service_registry

    return get_service_registry()


async def test_the_command_line_takes_our_urls(url: str, registry: ServiceRegistry, tmp_path: Path) -> None:
    register_uri_schemes()

    service = create_memory_service_from_options(base_dir=tmp_path, memory_service_uri=url)

    assert isinstance(service, AdkMemoryService)
    async with service:
        await service.add_session_to_memory(session(said("green tea")))
        assert await texts(service, "tea") == ["green tea"]


@pytest.mark.parametrize("scheme", URI_SCHEMES)
def test_every_scheme_is_registered(registry: ServiceRegistry, scheme: str) -> None:
    register_uri_schemes()

    assert registry._memory_factories[scheme] is from_uri
    assert set(registry._memory_factories) - set(URI_SCHEMES) == {"rag", "agentengine"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "services.py",
            "from adk_memory.integrations.google_adk import register_uri_schemes\n\nregister_uri_schemes()\n",
        ),
        (
            "services.yaml",
            "services:\n  - scheme: sqlite\n    type: memory\n    class: adk_memory.integrations.google_adk.from_uri\n",
        ),
    ],
)
def test_both_of_adks_ways_to_register_work(registry: ServiceRegistry, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    load_services_module(str(tmp_path))

    made = create_memory_service_from_options(base_dir=tmp_path, memory_service_uri=f"sqlite:///{tmp_path}/memory.db")
    assert isinstance(made, AdkMemoryService)


async def test_a_uri_holds_options(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/memory.db?project_id=tea%20%26%20more&limit=2&timeout=5&min_score=0.1&migrate=true"

    async with from_uri(uri, agents_dir="agents") as service:
        await service.add_session_to_memory(session(*(said(f"tea {number}") for number in range(3))))

        assert len(await texts(service, "tea")) == 2
        assert (service._project_id, service._request.min_score) == ("tea & more", 0.1)
        assert service._services._memory == f"sqlite:///{tmp_path}/memory.db?timeout=5"
    assert (tmp_path / "memory.db").exists()


@pytest.mark.parametrize(
    ("uri", "error", "says"),
    [
        ("mysql://localhost/memory", ConfigurationError, "must start with"),
        ("memory://?limit=many", ConfigurationError, "limit in the memory service URI"),
        ("memory://?migrate=maybe", ConfigurationError, "migrate in the memory service URI"),
        ("memory://?min_score=nan", ValidationError, "min_score"),
        ("memory://?limit=-1", ValidationError, "limit"),
        ("memory://?project_id=", ValidationError, "project_id"),
    ],
)
def test_a_wrong_uri_is_refused_at_once(uri: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        from_uri(uri)


async def test_an_embedder_goes_with_a_uri_and_not_with_a_service() -> None:
    embedder = FunctionEmbedder(lambda texts: [[1.0, 0.0] for _ in texts], model="same", dimensions=2)
    service = from_uri("memory://", embedder=embedder)
    await service.add_session_to_memory(session(said("green tea")))

    assert await texts(service, "coffee") == ["green tea"]
    with pytest.raises(ConfigurationError, match="a service has its own"):
        AdkMemoryService(InMemoryMemoryService(), embedder=embedder)


AGENT = """
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import preload_memory
from google.genai import types


class Echo(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        recalled = "jasmine" in llm_request.model_dump_json() and "PAST_CONVERSATIONS" in llm_request.model_dump_json()
        text = "It is jasmine." if recalled else "Noted."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def keep(callback_context):
    await callback_context.add_session_to_memory()


root_agent = LlmAgent(name="bot", model=Echo(model="echo"), tools=[preload_memory], after_agent_callback=keep)
"""


@pytest.mark.usefixtures("registry")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_adks_own_server_remembers_in_our_database(tmp_path: Path, sqlite_url: str) -> None:
    from google.adk.cli.fast_api import get_fast_api_app
    from starlette.testclient import TestClient

    agents = tmp_path / "agents"
    (agents / "bot").mkdir(parents=True)
    (agents / "bot" / "agent.py").write_text(AGENT)
    (agents / "services.py").write_text(
        "from adk_memory.integrations.google_adk import register_uri_schemes\n\nregister_uri_schemes()\n"
    )
    app = get_fast_api_app(
        agents_dir=str(agents), memory_service_uri=sqlite_url, session_service_uri="memory://", web=False
    )
    answers = []
    with TestClient(app) as client:
        for day, text in [("monday", "My favourite tea is jasmine."), ("tuesday", "Which tea do I like?")]:
            client.post(f"/apps/bot/users/ana/sessions/{day}").raise_for_status()
            asked = {"appName": "bot", "userId": "ana", "sessionId": day, "newMessage": {"parts": [{"text": text}]}}
            ran = client.post("/run", json=asked)
            ran.raise_for_status()
            answers.append(ran.json()[-1]["content"]["parts"][0]["text"])

    assert answers == ["Noted.", "It is jasmine."]
    assert asyncio.run(_stored_texts(sqlite_url)) == {"My favourite tea is jasmine.", "Which tea do I like?", *answers}


async def _stored_texts(url: str) -> set[str]:
    async with open_memory(url) as service:
        return {memory.text for memory in await service.list_recent("bot", "ana")}


# Tables


async def test_postgres_tables_are_made_when_asked_only(postgres_url: str) -> None:
    async with AdkMemoryService(postgres_url) as service:
        with pytest.raises(SchemaMissingError, match="migrate"):
            await service.add_session_to_memory(session(said("green tea")))

    async with AdkMemoryService(postgres_url, migrate=True) as service:
        await service.add_session_to_memory(session(said("green tea")))
        assert await texts(service, "tea") == ["green tea"]


async def test_a_file_is_made_unless_told_not_to(sqlite_url: str) -> None:
    async with AdkMemoryService(sqlite_url, migrate=False) as service:
        with pytest.raises(SchemaMissingError):
            await texts(service, "tea")

    async with AdkMemoryService(sqlite_url) as service:
        assert await texts(service, "tea") == []


async def test_a_service_that_is_given_stays_the_callers(sqlite_url: str) -> None:
    async with open_memory(sqlite_url) as given:
        async with AdkMemoryService(given) as service:
            with pytest.raises(SchemaMissingError):
                await texts(service, "tea")
        await given.migrate()
        await service.add_session_to_memory(session(said("green tea")))

        assert await texts(service, "tea") == ["green tea"]


def test_a_service_that_is_never_closed_does_not_keep_the_process(tmp_path: Path) -> None:
    code = (
        "import asyncio\n"
        "from adk_memory.integrations.google_adk import AdkMemoryService\n"
        f"service = AdkMemoryService('sqlite:///{tmp_path}/memory.db')\n"
        "asyncio.run(service.search_memory(app_name='app', user_id='ana', query='tea'))\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
