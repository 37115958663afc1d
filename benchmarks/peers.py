"""What the quality benchmark asks of a memory, and the memories that it compares adk-memory with."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final, Protocol

from adk_memory import MemoryEntry, MemoryService, SearchRequest
from embedders import TimedEmbedder
from retrieval_sets import Scope

_APP: Final = "benchmark"
_WORD: Final = re.compile(r"\w+")


class Memory(Protocol):
    """Keeps the facts of many users, and finds those that answer a question.

    Attributes:
        name: what it is called in the tables.
    """

    name: str

    async def add(self, scope: Scope) -> None:
        """Keep all facts of a scope."""
        ...

    async def search(self, scope: Scope, question: str, limit: int) -> Sequence[str]:
        """Return the ids of the facts that were found, best first."""
        ...


class AdkMemory:
    """adk-memory: a dialogue's sessions are sessions, facts that stand alone are single entries."""

    def __init__(self, service: MemoryService, embedder: TimedEmbedder | None) -> None:
        self.name = "adk-memory, keywords" if embedder is None else f"adk-memory, hybrid with {embedder.model}"
        self._service = service

    async def add(self, scope: Scope) -> None:
        sessions: dict[str, list[MemoryEntry]] = {}
        for fact in scope.facts:
            entry = MemoryEntry(fact.text, fact.author, fact.at, fact.id)
            if fact.session:
                sessions.setdefault(fact.session, []).append(entry)
            else:
                await self._service.add_entry(_APP, scope.name, entry)
        for session, entries in sessions.items():
            await self._service.add_session(_APP, scope.name, session, entries)

    async def search(self, scope: Scope, question: str, limit: int) -> Sequence[str]:
        found = await self._service.search(SearchRequest(question, _APP, scope.name, limit=limit))
        return [memory.id for memory in found]


class Fts5:
    """SQLite's own full text search: one table for everyone, any of the words, its own ranking."""

    name = "SQLite FTS5, unicode61, bm25()"

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE fact USING fts5 (scope UNINDEXED, id UNINDEXED, text)")

    async def add(self, scope: Scope) -> None:
        rows = [(scope.name, fact.id, fact.with_author) for fact in scope.facts]
        self._connection.executemany("INSERT INTO fact VALUES (?, ?, ?)", rows)

    async def search(self, scope: Scope, question: str, limit: int) -> Sequence[str]:
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(question))
        statement = "SELECT id FROM fact WHERE fact MATCH ? AND scope = ? ORDER BY bm25(fact) LIMIT ?"
        return [row[0] for row in self._connection.execute(statement, (words, scope.name, limit))]


class GoogleAdk:
    """google-adk's in-memory service; it never returns more than ten."""

    def __init__(self) -> None:
        self._service: Any = import_module("google.adk.memory").InMemoryMemoryService()
        self._event: Any = import_module("google.adk.events").Event
        self._types: Any = import_module("google.genai.types")
        self.name = f"google-adk {version('google-adk')}, in memory"

    async def add(self, scope: Scope) -> None:
        events = [
            self._event(
                id=fact.id,
                author=fact.author or "user",
                content=self._types.Content(role="user", parts=[self._types.Part(text=fact.with_author)]),
            )
            for fact in scope.facts
        ]
        await self._service.add_events_to_memory(app_name=_APP, user_id=scope.name, events=events)

    async def search(self, scope: Scope, question: str, limit: int) -> Sequence[str]:
        found = await self._service.search_memory(app_name=_APP, user_id=scope.name, query=question)
        return [memory.id for memory in found.memories][:limit]


class LangGraph:
    """LangGraph's store in memory, with the same embedder."""

    def __init__(self, embedder: TimedEmbedder) -> None:
        base: Any = import_module("langchain_core.embeddings").Embeddings
        embeddings = type("Embeddings", (base,), {
            "embed_documents": lambda _, texts: asyncio.run(embedder.embed(texts)),
            "embed_query": lambda _, text: asyncio.run(embedder.embed_query(text)),
            "aembed_documents": lambda _, texts: embedder.embed(texts),
            "aembed_query": lambda _, text: embedder.embed_query(text),
        })()  # fmt: skip
        index = {"embed": embeddings, "dims": embedder.dimensions, "fields": ["text"]}
        self._store: Any = import_module("langgraph.store.memory").InMemoryStore(index=index)
        self.name = f"LangGraph {version('langgraph')}, its store with {embedder.model}"

    async def add(self, scope: Scope) -> None:
        for fact in scope.facts:
            await self._store.aput(("memories", scope.name), fact.id, {"text": fact.with_author})

    async def search(self, scope: Scope, question: str, limit: int) -> Sequence[str]:
        found = await self._store.asearch(("memories", scope.name), query=question, limit=limit)
        return [item.key for item in found]


class Chroma:
    """Chroma in memory, with the same embedder: one collection, the user as a filter."""

    def __init__(self, embedder: TimedEmbedder) -> None:
        chroma: Any = import_module("chromadb")
        settings = chroma.Settings(anonymized_telemetry=False)
        self._collection: Any = chroma.EphemeralClient(settings).get_or_create_collection(
            f"facts-{id(self)}", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )
        self._embedder = embedder
        self.name = f"Chroma {version('chromadb')}, with {embedder.model}"

    async def add(self, scope: Scope) -> None:
        texts = [fact.with_author for fact in scope.facts]
        self._collection.add(
            ids=[f"{scope.name}/{fact.id}" for fact in scope.facts],
            embeddings=await self._embedder.embed(texts),
            documents=texts,
            metadatas=[{"user": scope.name}] * len(texts),
        )

    async def search(self, scope: Scope, question: str, limit: int) -> Sequence[str]:
        vector = await self._embedder.embed_query(question)
        found = self._collection.query(query_embeddings=[vector], n_results=limit, where={"user": scope.name})
        return [name.removeprefix(f"{scope.name}/") for name in found["ids"][0]]


def peers(embedder: TimedEmbedder | None, missing: Callable[[str], None]) -> list[Memory]:
    """Return the peers that are installed, and tell ``missing`` why each of the others is left out."""
    found: list[Memory] = [Fts5()]
    for peer in (GoogleAdk, LangGraph, Chroma):
        try:
            if peer is GoogleAdk:
                found.append(GoogleAdk())
            elif embedder is not None:
                found.append(peer(embedder))  # type: ignore[call-arg]
            else:
                missing(f"left out: {peer.__name__} needs --embedder")
        except ImportError as error:
            missing(f"left out: {peer.__name__} ({error})")
    return found
