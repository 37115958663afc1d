"""EmbeddingProvider: what turns texts into vectors, and the checks on what it returns, and on what a caller gives."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, Protocol, Self, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from adk_memory.errors import ConfigurationError, EmbeddingError, EmbeddingMismatchError, ValidationError
from adk_memory.types import MemoryEntry

MAX_DIMENSIONS: Final = 16_000
DEFAULT_SPAN: Final = (0.0, 0.6)
DEFAULT_WEIGHT: Final = 0.4

OnEmbeddingError = Literal["raise", "defer"]
"""What becomes of entries whose provider fails: nothing is written, or they are, and their vectors are made later."""

_logger = logging.getLogger(__name__)


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
      given nothing but the texts of entries unless it asks for more;
    - ``embeds_texts: bool``: whether it can embed at all; `False`, where callers give all vectors themselves, means
      that it is never asked. `True` by default.

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

    @classmethod
    def of(cls, provider: EmbeddingProvider | None, on_error: OnEmbeddingError) -> Self | None:
        """Return the embedder of a service; `None` without a provider."""
        if on_error not in get_args(OnEmbeddingError):
            raise ConfigurationError(f"on_embedding_error must be one of {', '.join(get_args(OnEmbeddingError))}")
        return None if provider is None else cls(provider, on_error)

    def __init__(self, provider: EmbeddingProvider, on_error: OnEmbeddingError = "raise") -> None:
        if not isinstance(provider, EmbeddingProvider):
            raise ConfigurationError(
                f"embedder must have model, dimensions and embed() (EmbeddingProvider), got {type(provider).__name__}"
            )
        if not isinstance(provider.model, str) or not 1 <= len(provider.model) <= 256:
            raise ConfigurationError("embedder.model must be a string of 1 to 256 characters")
        if not isinstance(provider.dimensions, int) or not 1 <= provider.dimensions <= MAX_DIMENSIONS:
            raise ConfigurationError(f"embedder.dimensions must be an integer from 1 to {MAX_DIMENSIONS}")
        self._provider = provider
        self._on_error = on_error
        self.model = provider.model
        self.dimensions = provider.dimensions
        self.span = _span(getattr(provider, "similarity_span", DEFAULT_SPAN))
        self.embeds_turns = bool(getattr(provider, "embeds_turns", False))
        self.embeds_texts = bool(getattr(provider, "embeds_texts", True))
        self.weight = _weight(getattr(provider, "similarity_weight", DEFAULT_WEIGHT))

    def check(self, name: str, vector: Sequence[float]) -> None:
        """Do nothing if a vector that a caller gave can be one of this model.

        Raises:
            EmbeddingMismatchError: it has another length.
            ValidationError: there is NaN or infinity in it.
        """
        if len(vector) != self.dimensions:
            raise EmbeddingMismatchError(
                f"{name} has {len(vector)} numbers, but those of {self.model} have {self.dimensions} dimensions"
            )
        # The sum, which is quickly had, is finite only if all of them are; that of huge numbers need not be.
        if not math.isfinite(sum(vector)) and not np.isfinite(vector).all():
            raise ValidationError(f"{name} has NaN or infinity in it")

    def unit(self, vector: Sequence[float]) -> npt.NDArray[np.float32] | None:
        """Return the unit vector of one that was checked, `None` for a zero vector."""
        return self._units([vector])[0]

    def units(self, vectors: Sequence[Sequence[float]]) -> list[npt.NDArray[np.float32] | None]:
        """Return what `unit` does of many."""
        return self._units(vectors) if vectors else []

    async def new_passages(self, texts: Sequence[str]) -> dict[str, npt.NDArray[np.float32] | None]:
        """Return the vectors of texts that are about to be stored.

        Where the provider fails it raises as `passages` does, or, if vectors are to be made later, gives none.
        """
        if self._on_error == "raise":
            return await self.passages(texts, "; nothing was written")
        try:
            return await self.passages(texts)
        except EmbeddingError as error:
            _logger.warning("entries are stored without vectors, which embed_pending will make: %s", error)
            return dict.fromkeys(texts)

    async def passages(self, texts: Iterable[str], consequence: str = "") -> dict[str, npt.NDArray[np.float32] | None]:
        """Return the unit vector of each distinct text, `None` where the provider gave a zero vector.

        ``consequence`` is what to add to the message of a failure.

        Raises:
            EmbeddingError: the provider failed, or gave something else than one finite vector for each text.
            EmbeddingMismatchError: the vectors are not of the declared length.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct or not self.embeds_texts:
            return dict.fromkeys(distinct)
        vectors = await self._call("embed", distinct, consequence)
        if len(vectors) != len(distinct):
            raise EmbeddingError(f"{self.model} gave {len(vectors)} vectors for {len(distinct)} texts")
        return dict(zip(distinct, self._units(vectors), strict=True))

    async def query(self, text: str) -> npt.NDArray[np.float32] | None:
        """Return the unit vector of a question; raises as `passages` does."""
        if self.embeds_texts and hasattr(self._provider, "embed_query"):
            return self._units([await self._call("embed_query", text, single=True)])[0]
        return (await self.passages([text]))[text]

    async def _call(self, method: str, argument: object, consequence: str = "", *, single: bool = False) -> Any:
        try:
            answer = await getattr(self._provider, method)(argument)
            return answer if single else list(answer)
        except EmbeddingError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is
            # It may hold the text, so only its type is named, and it is not printed with ours.
            raise EmbeddingError(f"{self.model} failed with {type(error).__name__}{consequence}") from None

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


def check_vectors(embedder: Embedder | None, entries: Iterable[MemoryEntry]) -> None:
    """Do nothing if the vectors that came with entries can be stored.

    Raises:
        ValidationError: there is no provider, or a vector is not finite.
        EmbeddingMismatchError: a vector is not of the length that the provider declares.
    """
    for index, entry in enumerate(entries):
        if entry.vector is not None:
            check_vector(embedder, f"entries[{index}].vector", entry.vector)


def check_vector(embedder: Embedder | None, name: str, vector: Sequence[float]) -> None:
    """Do what `check_vectors` does for one vector."""
    if embedder is None:
        raise ValidationError(
            f"{name}: whose model would it be? Configure an embedder; adk_memory.embedders.GivenVectors is for "
            "applications that have all vectors themselves"
        )
    embedder.check(name, vector)


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
