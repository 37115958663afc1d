"""HttpEmbedder: a model behind an HTTP endpoint of the form that OpenAI gave it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import SplitResult, urlsplit
from weakref import WeakKeyDictionary

from adk_memory._packages import require
from adk_memory.embedders._posting import Retrying, post
from adk_memory.embedders._texts import Batching, Vector
from adk_memory.embedding import DEFAULT_SPAN, DEFAULT_WEIGHT
from adk_memory.errors import ConfigurationError, EmbeddingError

if TYPE_CHECKING:
    import httpx


class HttpEmbedder:
    """Embeds by ``POST base_url/embeddings``, which OpenAI, Ollama, vLLM and many others answer.

    Needs the extra ``http``. Use it as an async context manager, or ``await aclose()``: it keeps one client for each
    event loop that it is used on, and each closes its own. The services never close it.

    Answers 408, 429 and 5xx, timeouts and broken connections are tried again up to ``max_retries`` times, after
    ``retry_seconds`` and then twice as long each time, or after what the answer's ``Retry-After`` says, up to a minute.
    A request gets ``timeout`` seconds; a question has to be embedded within ``query_timeout`` seconds, retries
    included, since a search goes on by keywords without it.

    Args:
        base_url: the address up to ``/embeddings``, such as ``http://localhost:11434/v1``.
        model: the name that the endpoint knows the model by, and that its vectors are stored under.
        dimensions: the length of its vectors.
        api_key: sent as a bearer token.
        headers: sent with each request.
        extra_body: further fields of each request, such as ``{"dimensions": 256}``.
        passage_prefix: put before each passage, for models that want one (``"search_document: "``).
        query_prefix: put before each question.
        max_characters: longer texts lose their middle; 4,000 characters are less than 8,192 tokens in any language.
        batch_size: how many texts go into a request.
        batch_characters: how many characters go into a request.
        timeout: seconds for a request.
        query_timeout: seconds for a question in all.
        max_retries: how often a request is repeated.
        retry_seconds: the wait before the first repetition.
        embeds_turns: as for `EmbeddingProvider`.
        similarity_span: as for `EmbeddingProvider`.
        similarity_weight: as for `EmbeddingProvider`.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        dimensions: int,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
        passage_prefix: str = "",
        query_prefix: str = "",
        max_characters: int | None = 4_000,
        batch_size: int = 64,
        batch_characters: int = 100_000,
        timeout: float = 30.0,
        query_timeout: float = 10.0,
        max_retries: int = 4,
        retry_seconds: float = 0.5,
        embeds_turns: bool = True,
        similarity_span: tuple[float, float] = DEFAULT_SPAN,
        similarity_weight: float = DEFAULT_WEIGHT,
    ) -> None:
        require("httpx", "HttpEmbedder", "http")
        url = _endpoint(base_url)
        if not query_timeout > 0:
            raise ConfigurationError("query_timeout must be above 0")
        self.model = model
        self.dimensions = dimensions
        self.embeds_turns = embeds_turns
        self.similarity_span = similarity_span
        self.similarity_weight = similarity_weight
        self._url = url.geturl()
        self._name = f"{model} at {url.hostname}"
        self._headers = _checked_headers(api_key, headers)
        self._body = {**(extra_body or {}), "model": model, "encoding_format": "float"}
        self._prefixes = (passage_prefix, query_prefix)
        self._batching = Batching(max_characters, batch_size, batch_characters)
        self._query_timeout = query_timeout
        self._retrying = Retrying(max_retries, retry_seconds, timeout)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each passage, in order; requests follow one another.

        Raises:
            EmbeddingError: the endpoint could not be reached or refused, or its answer can't be used.
        """
        passage_prefix, _ = self._prefixes
        return await self._embed(texts, passage_prefix)

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            EmbeddingError: as for `embed`, or it took longer than ``query_timeout``.
        """
        _, query_prefix = self._prefixes
        try:
            async with asyncio.timeout(self._query_timeout):
                [vector] = await self._embed([text], query_prefix)
        except TimeoutError:
            raise EmbeddingError(f"{self._name}: no vector of a question in {self._query_timeout:g} s") from None
        return vector

    async def aclose(self) -> None:
        """Close the connections that were opened on the running event loop; a later use opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _embed(self, texts: Sequence[str], prefix: str) -> list[Vector]:
        async def vectors_of(batch: list[str]) -> list[Vector]:
            body = {**self._body, "input": [prefix + text for text in batch]}
            answer = await post(self._client(), self._url, body, self._name, self._retrying)
            return _vectors(answer, len(batch), self._name)

        return await self._batching.embed(texts, vectors_of, self.dimensions)

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            import httpx

            # Connections belong to the loop that they were opened on.
            self._clients[loop] = httpx.AsyncClient(headers=self._headers)
        return self._clients[loop]


def _vectors(answer: Any, count: int, name: str) -> list[Vector]:
    """Return the vectors of an answer in the order of the texts, whatever order they came in."""
    try:
        items = answer["data"]
        by_index = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
        if len(items) == count:
            return [by_index[place] for place in range(count)]
    except (AttributeError, KeyError, TypeError):
        raise EmbeddingError(f"{name}: the answer is not a list of embeddings, one for each text") from None
    raise EmbeddingError(f"{name}: {len(items)} embeddings for {count} texts")


def _endpoint(base_url: str) -> SplitResult:
    try:
        url = urlsplit(base_url)
        complete = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except (AttributeError, TypeError, ValueError):
        complete = False
    if not complete:  # its text may hold a password
        raise ConfigurationError("base_url must be an address like http://localhost:11434/v1")
    return url._replace(path=f"{url.path.rstrip('/')}/embeddings", fragment="")


def _checked_headers(api_key: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of every request; httpx would quote one that it can't send in its error."""
    found = dict(headers or {})
    if api_key is not None:
        found["Authorization"] = f"Bearer {api_key.strip()}"
    for name, value in found.items():
        if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
            raise ConfigurationError(f"api_key and headers must be printable ASCII; {name!r} is not")
    return found
