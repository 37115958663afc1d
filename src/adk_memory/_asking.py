"""From a request to a question: what it asks for, by words and, where a provider is configured, by meaning."""

from __future__ import annotations

import logging
from typing import Final

from adk_memory import _analysis
from adk_memory._ranking import Question, Vector
from adk_memory.embedding import Embedder, check_vector
from adk_memory.errors import EmbeddingError, OperationNotSupportedError
from adk_memory.types import Mode, SearchRequest

_NO_SPAN: Final = (0.0, 1.0)

_logger = logging.getLogger(__name__)


async def ask(embedder: Embedder | None, request: SearchRequest) -> tuple[Question | None, Mode, bool]:
    """Return the question, `None` where nothing is asked; how it will be answered; whether similarity was lost.

    Without ``request.mode`` a failing provider costs the similarity, not the answer. What has no word is a question
    only if its vector is given.

    Raises:
        ValidationError: the vector of the request is not one of the provider's model.
        EmbeddingMismatchError: it is not of the length of those.
        OperationNotSupportedError: the request asks for vectors and there is no provider.
        EmbeddingError: the request asks for vectors and the provider failed.
    """
    if embedder is None and request.mode in ("vector", "hybrid"):
        raise OperationNotSupportedError(f"mode {request.mode} needs an embedder; none is configured")
    if request.vector is not None:
        check_vector(embedder, "vector", request.vector)
    terms = _analysis.query_terms(request.query)
    if not terms and (request.vector is None or request.mode == "keyword"):
        return None, request.mode or "keyword", False
    mode, vector, lost = await _vector(embedder, request)
    if not terms:
        mode = "vector"
    question = Question(
        mode=mode,
        terms=terms,
        words=frozenset(_analysis.query_words(request.query)),
        vector=vector,
        span=_NO_SPAN if embedder is None else embedder.span,
        weight=0.0 if embedder is None else embedder.weight,
        limit=request.limit,
        min_score=request.min_score,
        recency=request.recency,
    )
    return question, mode, lost


async def _vector(embedder: Embedder | None, request: SearchRequest) -> tuple[Mode, Vector | None, bool]:
    if embedder is None or request.mode == "keyword":
        return "keyword", None, False
    try:
        given = request.vector
        vector = await embedder.query(request.query) if given is None else embedder.unit(given)
    except EmbeddingError as error:
        if request.mode is not None:
            raise
        _logger.warning("search goes on by keywords alone: %s", error)
        return "keyword", None, True
    if vector is None:
        return request.mode or "keyword", None, True
    return request.mode or "hybrid", vector, False
