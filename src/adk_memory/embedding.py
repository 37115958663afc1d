"""EmbeddingProvider: what turns texts into vectors, and the checks on what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from adk_memory.errors import ConfigurationError, EmbeddingError, EmbeddingMismatchError

MAX_DIMENSIONS: Final = 16_000
DEFAULT_SPAN: Final = (0.0, 0.6)
DEFAULT_WEIGHT: Final = 0.4


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns texts into vectors of one model.

    A provider may also have

    - ``async embed_query(text) -> Sequence[float]``, for models that embed a question unlike a passage;
    - ``similarity_span: tuple[float, float]``: the cosines of its model between which a passage goes from having
      nothing to do with a question to answering it, ``(0.0, 0.6)`` by default;
    - ``similarity_weight: float``: the share of similarity in a hybrid score, 0 to 1, ``0.4`` by default;
    - ``embeds_turns: bool``: whether an entry of a session is embedded together with its author and the turn before
      it, as ``author: text`` in two lines. A turn by itself says little; `False` by default, so that a provider is
      given nothing but the texts of entries unless it asks for more.

    An `EmbeddingError` that it raises is passed on as it is, so its message must not hold a text; of any other
    exception, only the type is told: it is the ``__context__`` of the `EmbeddingError`, and not printed with it.

    Attributes:
        model: names the model; vectors of two models are never compared.
        dimensions: the length of every vector, 1 to 16,000.
    """

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector for each text, in order."""
        ...


class Embedder:
    """A provider behind the checks: what comes out of here can be stored and compared."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        if not isinstance(provider, EmbeddingProvider):
            raise ConfigurationError(
                f"embedder must have model, dimensions and embed() (EmbeddingProvider), got {type(provider).__name__}"
            )
        if not isinstance(provider.model, str) or not 1 <= len(provider.model) <= 256:
            raise ConfigurationError("embedder.model must be a string of 1 to 256 characters")
        if not isinstance(provider.dimensions, int) or not 1 <= provider.dimensions <= MAX_DIMENSIONS:
            raise ConfigurationError(f"embedder.dimensions must be an integer from 1 to {MAX_DIMENSIONS}")
        self._provider = provider
        self.model = provider.model
        self.dimensions = provider.dimensions
        self.span = _span(getattr(provider, "similarity_span", DEFAULT_SPAN))
        self.embeds_turns = bool(getattr(provider, "embeds_turns", False))
        self.weight = _weight(getattr(provider, "similarity_weight", DEFAULT_WEIGHT))

    async def passages(self, texts: Iterable[str]) -> dict[str, npt.NDArray[np.float32] | None]:
        """Return the unit vector of each distinct text, `None` where the provider gave a zero vector.

        Raises:
            EmbeddingError: the provider failed, or gave something else than one finite vector for each text.
            EmbeddingMismatchError: the vectors are not of the declared length.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        vectors = await self._call("embed", distinct)
        if len(vectors) != len(distinct):
            raise EmbeddingError(f"{self.model} gave {len(vectors)} vectors for {len(distinct)} texts")
        return dict(zip(distinct, self._units(vectors), strict=True))

    async def query(self, text: str) -> npt.NDArray[np.float32] | None:
        """Return the unit vector of a question; raises as `passages` does."""
        if hasattr(self._provider, "embed_query"):
            return self._units([await self._call("embed_query", text, single=True)])[0]
        return (await self.passages([text]))[text]

    async def _call(self, method: str, argument: object, *, single: bool = False) -> Any:
        try:
            answer = await getattr(self._provider, method)(argument)
            return answer if single else list(answer)
        except EmbeddingError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is
            # It may hold the text, so only its type is named, and it is not printed with ours.
            raise EmbeddingError(f"{self.model} failed with {type(error).__name__}; nothing was written") from None

    def _units(self, vectors: Sequence[object]) -> list[npt.NDArray[np.float32] | None]:
        values = np.stack([self._numbers(vector) for vector in vectors])
        if not np.isfinite(values).all():
            raise EmbeddingError(f"{self.model} gave a vector with NaN or infinity in it")
        largest = np.abs(values).max(axis=1, keepdims=True)
        values /= np.where(largest == 0, 1.0, largest)  # first, so that the squares can neither overflow nor vanish
        norms = np.linalg.norm(values, axis=1, keepdims=True)
        # Half precision is what is stored: rounded here, vectors are the same on every backend.
        units = (values / np.where(norms == 0, 1.0, norms)).astype(np.float16).astype(np.float32)
        return [None if length == 0 else unit for length, unit in zip(largest[:, 0], units, strict=True)]

    def _numbers(self, vector: object) -> npt.NDArray[np.float64]:
        try:
            values = np.array(vector if hasattr(vector, "__array__") else list(vector), np.float64)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            raise EmbeddingError(f"{self.model} gave a vector that is not a sequence of numbers") from None
        if values.shape != (self.dimensions,):
            raise EmbeddingMismatchError(
                f"{self.model} gave a vector of shape {values.shape}, but declares {self.dimensions} dimensions"
            )
        return values


def _span(span: object) -> tuple[float, float]:
    try:
        low, high = map(float, span)  # type: ignore[call-overload]
    except (TypeError, ValueError) as error:
        raise ConfigurationError("embedder.similarity_span must be two cosines") from error
    if not -1 <= low < high <= 1:
        raise ConfigurationError("embedder.similarity_span must be two cosines, the lower one first")
    return low, high


def _weight(weight: object) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise ConfigurationError("embedder.similarity_weight must be a number from 0 to 1")
    return float(weight)
