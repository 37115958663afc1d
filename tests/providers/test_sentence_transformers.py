"""The embedder for sentence-transformers, with the real package and a model that is made on the spot."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from adk_memory import ConfigurationError, InMemoryMemoryService, MemoryEntry, SearchRequest

pytest.importorskip("sentence_transformers", reason="the extra sentence-transformers is not installed")

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from adk_memory.embedders import SentenceTransformerEmbedder

WORDS = ["[UNK]", "owl", "bird", "car", "engine", "the", "a", "query", ":"]


@pytest.fixture(scope="module")
def transformer() -> Any:
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    weights = np.random.default_rng(1).normal(size=(len(WORDS), 16)).astype(np.float32)
    weights[WORDS.index("bird")] = weights[WORDS.index("owl")] + 0.1  # they mean much the same
    static = StaticEmbedding(tokenizer, embedding_weights=weights)
    return SentenceTransformer(modules=[static], prompts={"query": "query: "}, device="cpu")


async def test_it_gives_what_the_model_gives_for_passages_and_for_questions(transformer: Any) -> None:
    embedder = SentenceTransformerEmbedder(transformer, model="made-up")
    assert embedder.dimensions == 16
    [passage] = await embedder.embed(["the owl"])
    question = await embedder.embed_query("the owl")
    assert np.allclose(passage, transformer.encode("the owl"))
    assert np.allclose(question, transformer.encode("query: the owl"))
    assert not np.allclose(passage, question)


async def test_memories_are_found_by_meaning(transformer: Any) -> None:
    service = InMemoryMemoryService(embedder=SentenceTransformerEmbedder(transformer, model="made-up"))
    for text in ("the owl", "the car engine"):
        await service.add_entry("app", "ada", MemoryEntry(text))
    found = await service.search(SearchRequest("bird", "app", "ada", mode="vector"))
    assert found.memories[0].text == "the owl"


async def test_many_tasks_share_one_model(transformer: Any) -> None:
    embedder = SentenceTransformerEmbedder(transformer, model="made-up")
    alone = await embedder.embed(["a bird", "a car"])
    together = await asyncio.gather(*(embedder.embed(["a bird", "a car"]) for _ in range(50)))
    assert all(np.allclose(vectors, alone) for vectors in together)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="loaded SentenceTransformer"):
        SentenceTransformerEmbedder("all-MiniLM-L6-v2", model="minilm")


def test_without_the_package_the_error_says_what_to_install() -> None:
    hidden = (
        "import sys; sys.modules['sentence_transformers'] = None; "
        "from adk_memory.embedders import SentenceTransformerEmbedder as E; E(None, model='m')"
    )
    ran = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert 'pip install "adk-memory[sentence-transformers]"' in ran.stderr
