"""adk-memory embed: which embedder it takes, what it says, and that the vectors are those of the application."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adk_memory import SearchRequest, SearchResponse, open_memory
from adk_memory.testing import ToyEmbedder
from cli.shell import OWNER, Run
from embedding_endpoint import DIMENSIONS, Endpoint

APPLICATION = """
from adk_memory.testing import ToyEmbedder

embedder = ToyEmbedder(8, "toy")
other = ToyEmbedder(9, "other")
down = ToyEmbedder(8, "down")
down.answers["Green tea at four"] = OSError("secret")
no_embedder = object()
"""


@pytest.fixture
def application() -> str:
    """A module of an application, in the folder where the command is called."""
    Path("application_of_the_tests.py").write_text(APPLICATION)
    return "application_of_the_tests"


def search(url: str, model: str = "toy", dimensions: int = 8) -> SearchResponse:
    async def run() -> SearchResponse:
        async with open_memory(url, embedder=ToyEmbedder(dimensions, model)) as service:
            return await service.search(SearchRequest("Green tea at four", OWNER[1], OWNER[3], mode="vector"))

    return asyncio.run(run())


def test_what_lacks_a_vector_is_embedded_with_the_embedder_of_the_application(
    process: Run, stored: str, application: str
) -> None:
    first = process("embed", "--embedder", f"{application}:embedder")
    again = process("embed", "--url", stored, "--embedder", f"{application}:embedder", "--json")

    assert (first.code, first.out, first.err) == (0, "Embedded 9 memories with toy.\n", "")
    assert again.document == {"model": "toy", "embedded": 0}
    found = search(stored)
    assert found[0].text == "Green tea at four"
    assert found[0].score == pytest.approx(1.0, abs=1e-3)
    assert not found.partial


def test_a_store_moves_to_another_model(process: Run, stored: str, application: str) -> None:
    for name in ("embedder", "other"):
        assert process("embed", "--embedder", f"{application}:{name}").code == 0
    dropped = process("embed", "--drop-model", "toy")
    again = process("embed", "--drop-model", "toy", "--json")

    assert (dropped.code, dropped.out) == (0, "Dropped 9 vectors of toy.\n")
    assert again.document == {"model": "toy", "dropped": 0}
    assert list(search(stored)) == []
    assert not search(stored, "other", 9).partial


def test_an_embedder_that_refuses_a_text_is_told_of_in_one_line(process: Run, stored: str, application: str) -> None:
    ran = process("embed", "--embedder", f"{application}:down")

    assert ran.code == 1
    assert ran.err.startswith("adk-memory: down refused")
    assert ran.err.count("\n") == 1
    assert "secret" not in ran.err
    assert len(search(stored, "down")) > 0


def test_an_endpoint_is_an_embedder(process: Run, stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADK_MEMORY_EMBEDDER_KEY", "sk-123")
    with Endpoint().running() as endpoint:
        ran = process("embed", "--embedder", endpoint.url, "--model", "served", "--dimensions", str(DIMENSIONS))

        assert (ran.code, ran.out) == (0, "Embedded 9 memories with served.\n")
        assert endpoint.requests[0].headers["Authorization"] == "Bearer sk-123"


def test_a_model_that_never_was_is_not_dropped(run: Run, stored: str) -> None:
    ran = run("embed", "--drop-model", "never")

    assert ran.code == 1
    assert "there is no model 'never'" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--embedder", "local", "--drop-model", "toy"],
        ["--embedder", "https://localhost/v1"],
        ["--embedder", "https://localhost/v1", "--model", "toy"],
        ["--embedder", "local", "--model", "toy"],
        ["--embedder", "remote"],
        ["--embedder", ":embedder"],
    ],
)
def test_what_is_not_understood_is_a_wrong_usage(run: Run, stored: str, arguments: list[str]) -> None:
    ran = run("embed", *arguments)

    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("name", ["application_of_the_tests:no_embedder", "application_of_the_tests:gone", "gone:gone"])
def test_what_is_no_embedder_is_refused(process: Run, stored: str, application: str, name: str) -> None:
    ran = process("embed", "--embedder", name)

    assert ran.code == 1
    assert name in ran.err
    assert ran.err.count("\n") == 1
