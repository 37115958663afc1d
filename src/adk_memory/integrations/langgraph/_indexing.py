"""What of an item is indexed, and how similar a query is: the ``index`` configuration of a LangGraph store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from langgraph.store.base import ensure_embeddings, get_text_at_path

from adk_memory.errors import ConfigurationError, EmbeddingError, EmbeddingMismatchError, ValidationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# A service clips negative cosines. With a constant beside each unit vector there are none: a cosine c of two vectors
# becomes (1 - s) * c + s. Half precision holds the constant exactly.
_CONSTANT: Final = 0.70703125
_SHARE: Final = _CONSTANT**2

_SCORES: Final[Mapping[str, Callable[[float], float]]] = {
    "cosine": lambda cosine: cosine,
    "inner_product": lambda cosine: cosine,
    "l2": lambda cosine: -math.sqrt(max(0.0, 2 - 2 * cosine)),
}


class Index:
    """Which texts of an item are searched; with ``embed``, by the similarity of each text, else as the service does.

    ``provider`` is the embedding provider for the service, `None` where the configuration has none.
    """

    def __init__(self, config: Mapping[str, Any] | None) -> None:
        config = {} if config is None else config
        fields = config.get("fields") or config.get("text_fields") or ["$"]  # the latter is what the SQLite store reads
        self._fields = _paths([fields] if isinstance(fields, str) else fields, ConfigurationError)
        self.provider: TextEmbedder | None = None
        self.embeddings: Any = None
        distance = config.get("distance_type", "cosine")
        if distance not in _SCORES:
            raise ConfigurationError(f"distance_type must be one of {', '.join(_SCORES)}")
        self._score = _SCORES[distance]
        if config.get("embed") is not None:
            self.embeddings = ensure_embeddings(config["embed"])
            self.provider = TextEmbedder(self.embeddings, config.get("dims"), config.get("model"))

    def rows(self, value: Mapping[str, Any], paths: object) -> list[list[str]]:
        """Return the texts of each entry that makes up an item: one for each text that has its own vector.

        ``paths`` is what a put asks for: `False` for no texts, `None` for the configured fields, or paths.
        """
        if paths is False:
            return [[]]
        fields = self._fields if paths is None else _paths(paths, ValidationError)
        texts = list(dict.fromkeys(text for field in fields for text in get_text_at_path(dict(value), field) if text))
        return [[text] for text in texts] or [[]] if self.provider is not None else [texts]

    def score(self, score: float | None) -> float | None:
        """Return what a store says of an entry that the service gave a score."""
        if score is None or self.provider is None:
            return score
        return self._score((score - _SHARE) / (1 - _SHARE))


class TextEmbedder:
    """LangChain's embeddings as a provider of unit vectors, each with a constant at its end."""

    def __init__(self, embeddings: Any, dims: object, model: object) -> None:
        if isinstance(dims, bool) or not isinstance(dims, int) or dims < 1:
            raise ConfigurationError("index needs dims, the length of the vectors that embed makes")
        self._embeddings = embeddings
        self._dims = dims
        self._ready: dict[str, list[float]] = {}
        self.dimensions = dims + 1
        self.model = f"langgraph/{_name(embeddings) if model is None else model}/{dims}"[:256]

    @asynccontextmanager
    async def ready(self, texts: Iterable[str]) -> AsyncIterator[None]:
        """Embed texts in one call; while the block runs, `embed` has them at hand."""
        mine = dict.fromkeys(text for text in texts if text not in self._ready)
        self._ready.update(await self._vectors(list(mine)))
        try:
            yield
        finally:
            for text in mine:
                self._ready.pop(text, None)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text."""
        vectors = {text: self._ready[text] for text in texts if text in self._ready}
        vectors |= await self._vectors([text for text in texts if text not in vectors])
        return [vectors[text] for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self._lifted(await self._embeddings.aembed_query(text))

    async def _vectors(self, texts: list[str]) -> dict[str, list[float]]:
        if not texts:
            return {}
        try:
            made = await self._embeddings.aembed_documents(texts)
            return dict(zip(texts, map(self._lifted, made), strict=True))
        except EmbeddingError:
            raise
        except Exception as error:  # noqa: BLE001 - it may hold a text, so only its type is named
            raise EmbeddingError(f"embed failed with {type(error).__name__}; nothing was written") from None

    def _lifted(self, vector: Iterable[float]) -> list[float]:
        values = [float(value) for value in vector]
        if len(values) != self._dims:
            raise EmbeddingMismatchError(f"embed made a vector of {len(values)} numbers; dims is {self._dims}")
        length = math.hypot(*values)
        if length == 0:
            return [0.0] * self.dimensions
        return [value / length * math.sqrt(1 - _SHARE) for value in values] + [_CONSTANT]


def _paths(paths: object, error: type[Exception]) -> list[str]:
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise error("index must be False or a list of paths, like a.b[*].c; so must the fields of the configuration")
    return list(paths)


def _name(embeddings: Any) -> str:
    """Return a name that stays the same for the same model: what it is called, or the function that makes vectors."""
    for attribute in ("model", "model_name", "model_id"):
        if isinstance(named := getattr(embeddings, attribute, None), str):
            return f"{type(embeddings).__name__}/{named}"
    function = getattr(embeddings, "afunc", None) or getattr(embeddings, "func", None)
    return str(getattr(function, "__qualname__", None) or type(function or embeddings).__qualname__)
