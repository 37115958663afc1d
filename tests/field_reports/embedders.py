"""Embedding providers that behave as the ones in the reports did."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import shake_256

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine


class HashEmbedder:
    """Gives each text a vector of its own, the same each time.

    Attributes:
        asked: every text that it was asked for.
    """

    def __init__(self, dimensions: int = 8, model: str = "hash", salt: str = "") -> None:
        self.dimensions = dimensions
        self.model = model
        self.salt = salt
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> list[float]:
        numbers = shake_256(f"{self.salt}{text}".encode()).digest(self.dimensions)
        return [number - 127.5 for number in numbers]


class Liar(HashEmbedder):
    """Declares other dimensions than it gives."""

    def __init__(self, declared: int, given: int) -> None:
        super().__init__(declared, model="liar")
        self.given = given

    def vector(self, text: str) -> list[float]:
        return [1.0] * self.given


class Picky(HashEmbedder):
    """Refuses the whole request for one text that it does not like, as hosted models do."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if any(not text.strip() or len(text) > 8_000 or "poison" in text for text in texts):
            raise ValueError(f"invalid input: {texts!r}")
        return await super().embed(texts)


class Down(HashEmbedder):
    """Never answers well while ``broken``."""

    def __init__(self, error: BaseException | None = None, model: str = "hash") -> None:
        super().__init__(model=model)
        self.broken = True
        self.error = error or ConnectionError("secret key sk-123 refused")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self.broken:
            raise self.error
        return await super().embed(texts)


class Stuck(HashEmbedder):
    """Answers when it is let go, and tells when it was asked."""

    def __init__(self) -> None:
        super().__init__(model="stuck")
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.was_asked.set()
        await self.may_answer.wait()
        return await super().embed(texts)


class WatchesConnections(HashEmbedder):
    """Counts how many of an engine's connections are in use while it is at work."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(model="watcher")
        self.in_use = 0
        self.seen: list[int] = []
        event.listen(engine.sync_engine, "checkout", self._out)
        event.listen(engine.sync_engine, "checkin", self._in)

    def _out(self, *_arguments: object) -> None:
        self.in_use += 1

    def _in(self, *_arguments: object) -> None:
        self.in_use -= 1

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.seen.append(self.in_use)
        return await super().embed(texts)
