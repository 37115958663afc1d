"""FunctionEmbedder: any callable that turns texts into vectors, as a provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adk_memory._calling import awaitable
from adk_memory.embedders._texts import Batching, Vector
from adk_memory.embedding import DEFAULT_SPAN, DEFAULT_WEIGHT
from adk_memory.errors import ConfigurationError


class FunctionEmbedder:
    """Embeds with a function of yours: ``encode`` of sentence-transformers, a client's method, anything.

    A coroutine function is awaited; any other is called in a thread, possibly in several threads at once. It gets a
    list of texts and returns a vector for each: lists, or the rows of an array. ``query_function`` gets a question,
    one `str`, and returns its vector; without it, a question is embedded as a passage is.

    Texts longer than ``max_characters`` lose their middle; blank ones are never given to the function.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        model: str,
        dimensions: int,
        query_function: Callable[[str], Any] | None = None,
        max_characters: int | None = None,
        batch_size: int | None = None,
        embeds_turns: bool = True,
        similarity_span: tuple[float, float] = DEFAULT_SPAN,
        similarity_weight: float = DEFAULT_WEIGHT,
    ) -> None:
        if not callable(function) or not (query_function is None or callable(query_function)):
            raise ConfigurationError("function and query_function must be callable")
        self.model = model
        self.dimensions = dimensions
        self.embeds_turns = embeds_turns
        self.similarity_span = similarity_span
        self.similarity_weight = similarity_weight
        self._batching = Batching(max_characters, batch_size)
        self._vectors_of = awaitable(function)
        self._query_vector_of = None if query_function is None else awaitable(query_function)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each passage, in order."""
        return await self._batching.embed(texts, self._vectors_of, self.dimensions)

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        query_vector_of = self._query_vector_of
        if query_vector_of is None:
            [vector] = await self.embed([text])
            return vector
        text = self._batching.prepared(text)
        return await query_vector_of(text) if text else [0.0] * self.dimensions
