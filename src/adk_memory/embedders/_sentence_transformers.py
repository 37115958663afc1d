"""SentenceTransformerEmbedder: a model of the package sentence-transformers, as the application has loaded it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from adk_memory._packages import require
from adk_memory.embedders._functions import FunctionEmbedder
from adk_memory.embedding import DEFAULT_SPAN, DEFAULT_WEIGHT
from adk_memory.errors import ConfigurationError

_BATCH: Final = 32  # what is computed after a task that asked for it was cancelled


class SentenceTransformerEmbedder(FunctionEmbedder):
    """Embeds with a loaded `sentence_transformers.SentenceTransformer`: questions and passages by its own prompts.

    The model runs in a thread, for one call at a time: its tokenizer does not stand two. What it cuts off long texts is
    its own affair (``max_seq_length``).
    """

    def __init__(
        self,
        transformer: Any,
        *,
        model: str,
        similarity_span: tuple[float, float] = DEFAULT_SPAN,
        similarity_weight: float = DEFAULT_WEIGHT,
    ) -> None:
        """Take a loaded model; ``model`` names it for good: its vectors are kept under that name.

        Raises:
            ConfigurationError: it is not a loaded model, the package is missing or older than version 5.
        """
        require("sentence_transformers", "SentenceTransformerEmbedder", "sentence-transformers")
        if not (hasattr(transformer, "encode_query") and hasattr(transformer, "encode_document")):
            raise ConfigurationError(
                "transformer must be a loaded SentenceTransformer of sentence-transformers 5 or newer, "
                f"got {type(transformer).__name__}"
            )
        one_at_a_time = threading.Lock()

        def alone(encode: Callable[..., Any]) -> Callable[[Any], Any]:
            def encoded(texts: Any) -> Any:
                with one_at_a_time:
                    return encode(texts, convert_to_numpy=True, show_progress_bar=False)

            return encoded

        super().__init__(
            alone(transformer.encode_document),
            query_function=alone(transformer.encode_query),
            model=model,
            dimensions=_dimensions(transformer),
            batch_size=_BATCH,
            similarity_span=similarity_span,
            similarity_weight=similarity_weight,
        )


def _dimensions(transformer: Any) -> int:
    # The name has changed in the package's version 5.
    found = getattr(transformer, "get_embedding_dimension", None) or transformer.get_sentence_embedding_dimension
    dimensions = found()
    if not isinstance(dimensions, int):
        raise ConfigurationError("transformer does not say how many dimensions its vectors have")
    return dimensions
