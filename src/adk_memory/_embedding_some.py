"""Embedding entries that have waited for it: a text that a provider refuses must not keep the others waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from adk_memory._ranking import Vector
from adk_memory.embedding import Embedder
from adk_memory.errors import EmbeddingError, OperationNotSupportedError, ValidationError

BATCH: Final = 128
"""So many entries are embedded and then stored: what an interruption can cost."""
_HARMLESS: Final = "hello"


def able(embedder: Embedder | None) -> Embedder:
    """Return the embedder.

    Raises:
        OperationNotSupportedError: there is none, or it embeds no texts.
    """
    if embedder is None:
        raise OperationNotSupportedError("embed_pending needs an embedder; none is configured")
    if not embedder.embeds_texts:
        raise OperationNotSupportedError(f"the embedder of {embedder.model} embeds no texts: configure one that does")
    return embedder


def validate_most(limit: int | None) -> int | None:
    """Return how many vectors to make at most, `None` for all.

    Raises:
        ValidationError: it is negative or not an integer.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ValidationError("limit must be an integer from 0, or None for all")
    return limit


class Refusals:
    """The texts that a provider refused in one call, and the last reason it had."""

    def __init__(self, embedder: Embedder) -> None:
        self.texts: set[str] = set()
        self._embedder = embedder
        self._reason: EmbeddingError | None = None

    async def vectors_of_the_others(self, texts: Sequence[str]) -> dict[str, Vector | None]:
        """Return the vectors of the texts that the provider does not refuse; raises as `Embedder.passages` does.

        It raises where the provider fails whatever it is asked.
        """
        vectors: dict[str, Vector | None] = {}
        parts = [list(texts)] if texts else []
        is_at_work = False
        while parts:
            part = parts.pop()
            try:
                vectors |= await self._embedder.passages(part)
            except EmbeddingError as error:
                if not is_at_work:
                    await self._embedder.passages([_HARMLESS])
                    is_at_work = True
                self._reason = error
                parts += _halves(part)
                self.texts |= set(part) if len(part) == 1 else set()
        return vectors

    def report(self, embedded: int) -> None:
        """Raise an EmbeddingError if there are any."""
        if self._reason is not None:
            raise EmbeddingError(
                f"{self._embedder.model} refused {len(self.texts)} of the texts, whose entries stay pending; "
                f"{embedded} others were embedded. The last reason: {self._reason}"
            ) from self._reason


def _halves(part: list[str]) -> Iterator[list[str]]:
    if len(part) > 1:
        middle = len(part) // 2
        yield part[middle:]
        yield part[:middle]
