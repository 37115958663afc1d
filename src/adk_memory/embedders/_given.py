"""GivenVectors: for applications that have all vectors themselves."""

from __future__ import annotations

from collections.abc import Sequence

from adk_memory.embedders._texts import Vector
from adk_memory.embedding import DEFAULT_SPAN, DEFAULT_WEIGHT
from adk_memory.errors import EmbeddingError


class GivenVectors:
    """Names the model of the vectors that come with entries and requests, and embeds nothing itself.

    An entry that comes without a vector is stored without one, and is found by its words; a question without one is
    answered by keywords, and the response is marked ``partial``.
    """

    embeds_texts = False

    def __init__(
        self,
        model: str,
        dimensions: int,
        *,
        similarity_span: tuple[float, float] = DEFAULT_SPAN,
        similarity_weight: float = DEFAULT_WEIGHT,
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self.similarity_span = similarity_span
        self.similarity_weight = similarity_weight

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Refuse; no service calls it.

        Raises:
            EmbeddingError: always.
        """
        raise EmbeddingError(f"the vectors of {self.model} are given, not made")
