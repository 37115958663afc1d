"""What every provider does to texts before its model sees them, and how it divides them into batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from adk_memory.errors import ConfigurationError, EmbeddingError

_GAP: Final = "…"

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Batching:
    """How long a text and how large a batch may be; `None` is without a limit."""

    max_characters: int | None
    batch_size: int | None
    batch_characters: int | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigurationError(f"{name} must be an integer above 0, or None, got {value!r}")

    async def embed(
        self,
        texts: Sequence[str],
        vectors_of: Callable[[list[str]], Awaitable[Sequence[Vector]]],
        dimensions: int,
    ) -> list[Vector]:
        """Return what ``vectors_of`` gives for each text, batch after batch; for a blank one, which has none, zeros.

        Raises:
            EmbeddingError: a batch has another number of vectors than of texts.
        """
        ready = [self.prepared(text) for text in texts]
        found: list[Vector] = []
        for batch in self._batches([text for text in ready if text]):
            vectors = list(await vectors_of(batch))
            if len(vectors) != len(batch):
                raise EmbeddingError(f"the model gave {len(vectors)} vectors for {len(batch)} texts")
            found += vectors
        in_order = iter(found)
        return [next(in_order) if text else [0.0] * dimensions for text in ready]

    def prepared(self, text: str) -> str:
        """Return ``text`` as valid Unicode without NUL, stripped, and without its middle if it is too long.

        Both ends are kept: the beginning of a document says what it is about, and in a turn of a session, which comes
        after the turn before it, the end is the turn itself.
        """
        # Models written in C end a text at its first NUL.
        text = text.encode("utf-8", "replace").decode().replace("\0", " ").strip()
        longest = self.max_characters
        if longest is None or len(text) <= longest:
            return text
        kept = longest - len(_GAP)
        end = kept - kept // 2
        return text[: kept // 2] + _GAP + text[len(text) - end :]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        characters = 0
        for text in texts:
            if batch and (
                len(batch) == self.batch_size
                or (self.batch_characters is not None and characters + len(text) > self.batch_characters)
            ):
                yield batch
                batch, characters = [], 0
            batch.append(text)
            characters += len(text)
        if batch:
            yield batch
