"""ToyEmbedder: vectors without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import shake_256
from typing import Any

_WORD = re.compile(r"\w+")


class ToyEmbedder:
    """An embedding provider for tests: texts that share words are near, the same on every machine.

    Attributes:
        answers: what it gives instead, by text: a vector, or an exception that it raises.
        asked: every text that it was asked for, in order.
    """

    def __init__(self, dimensions: int = 64, model: str | None = None) -> None:
        self.dimensions = dimensions
        self.model = model or f"toy-{dimensions}"
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the vector of each text."""
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Sequence[float]:
        if text in self.answers:
            answer = self.answers[text]
            if isinstance(answer, BaseException):
                raise answer
            return answer  # type: ignore[no-any-return]
        vector = [0.0] * self.dimensions
        for word in _WORD.findall(text.casefold()):
            hashed = shake_256(word.encode()).digest(self.dimensions)
            vector = [value + byte - 127.5 for value, byte in zip(vector, hashed, strict=True)]
        return vector
