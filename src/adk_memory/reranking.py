"""Reranker: what reads the best answers of a search once more, and puts them in an order of its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from adk_memory import _analysis
from adk_memory._calling import awaitable
from adk_memory.errors import ConfigurationError
from adk_memory.types import Memory, SearchRequest, SearchResponse

RERANKED: Final = 50
"""So many of the best answers a reranker is given, or as many as the limit asks for, if that is more."""

Search = Callable[[SearchRequest], Awaitable[SearchResponse]]

_logger = logging.getLogger(__name__)


class Reranker(Protocol):
    """Says how well each of some memories answers a query, by whatever it can read in them: a cross-encoder, a model.

    A coroutine function is awaited; any other callable is called in a thread, possibly in several threads at once. No
    transaction is open meanwhile. Where it raises an exception, or gives something else than one score for each
    memory, a search goes on without it, and a warning tells the type of the exception alone.
    """

    def __call__(self, query: str, memories: Sequence[Memory], /) -> Sequence[float] | Awaitable[Sequence[float]]:
        """Return a score for each memory, in their order: 0 to 1, higher is better.

        There is at least one memory; they come best first, with the scores that they have without it.
        """
        ...


class Reranking:
    """A search whose best answers a reranker, where there is one, puts in order."""

    def __init__(self, reranker: Reranker | None) -> None:
        if reranker is not None and not callable(reranker):
            raise ConfigurationError(f"reranker must be callable (Reranker), got {type(reranker).__name__}")
        self._scores_of = None if reranker is None else awaitable(reranker)

    async def search(self, request: SearchRequest, search: Search) -> SearchResponse:
        """Return what ``search`` finds, in the order of the reranker; in that of ``search`` where it fails."""
        if self._scores_of is None or request.limit == 0 or not _analysis.has_word(request.query):
            return await search(request)
        deeper = {"limit": max(request.limit, RERANKED), "min_score": None}
        response = await search(request.model_copy(update=deeper))
        reranked = await self._reranked(request.query, response.memories)
        memories = response.memories if reranked is None else reranked
        if request.min_score is not None:
            memories = [memory for memory in memories if _score(memory) >= request.min_score]
        answers = {"memories": tuple(memories[: request.limit]), "reranked": reranked is not None}
        return response.model_copy(update=answers)

    async def _reranked(self, query: str, memories: Sequence[Memory]) -> Sequence[Memory] | None:
        if self._scores_of is None or not memories:
            return None
        try:
            return _by_score(memories, _checked(await self._scores_of(query, memories), len(memories)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the search has an answer
            # The message may hold the text, so only the type is told.
            _logger.warning("search goes on without the reranker, which failed with %s", type(error).__name__)
            return None


def _checked(scores: Any, count: int) -> list[float]:
    values = np.asarray(scores if hasattr(scores, "__array__") else list(scores), np.float64)
    if values.shape != (count,) or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("a reranker has to give one score for each memory, from 0 to 1")
    return [float(value) for value in values]


def _by_score(memories: Sequence[Memory], scores: Sequence[float]) -> list[Memory]:
    """Return the memories with their new scores, best first; of equal ones, in the order that they had."""
    scored = [
        memory.model_copy(update={"score": score, "explanation": _with_part(memory.explanation, score)})
        for memory, score in zip(memories, scores, strict=True)
    ]
    return sorted(scored, key=_score, reverse=True)


def _score(memory: Memory) -> float:
    return memory.score or 0.0


def _with_part(explanation: dict[str, float] | None, score: float) -> dict[str, float] | None:
    return None if explanation is None else explanation | {"rerank": score}
