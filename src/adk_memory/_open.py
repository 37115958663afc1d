"""The front doors: from a URL, in any of the spellings that people paste, or an engine, to a service or an engine."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory._memory.service import InMemoryMemoryService
from adk_memory._sql import postgres, sqlite
from adk_memory._sql.dialect import Dialect
from adk_memory._sql.urls import backend_of
from adk_memory.embedding import EmbeddingProvider, OnEmbeddingError
from adk_memory.errors import ConfigurationError
from adk_memory.reranking import Reranker
from adk_memory.service import MemoryService


def open_memory(
    url_or_engine: str | AsyncEngine,
    *,
    embedder: EmbeddingProvider | None = None,
    reranker: Reranker | None = None,
    on_embedding_error: OnEmbeddingError = "raise",
    default_ttl: timedelta | None = None,
) -> MemoryService:
    """Return the service for a database; it connects with its first operation.

    ``memory://`` forgets everything at its end; ``sqlite:///path/to/file.db`` is a file, ``sqlite://`` a private
    database in memory; ``postgresql://user@host/name`` is Postgres, also spelt ``postgres://`` or with a driver.
    An engine of SQLAlchemy's stays the caller's: it gets no listeners and is not disposed of.
    With an ``embedder`` searches go by similarity too; a ``reranker`` has the last word on the order of their answers.
    Entries whose vectors the embedder fails to make are not written, unless ``on_embedding_error="defer"``: they are
    found by their words at once, and by similarity after `MemoryService.embed_pending`.
    New entries that say nothing about it themselves expire ``default_ttl`` after they were written.

    Raises:
        ConfigurationError: no backend goes by that URL or engine, or a package for it is missing.
        ValidationError: ``default_ttl`` is not between nothing and 365,000 days.
    """
    backend = _backend(url_or_engine)
    if backend == "memory":
        return InMemoryMemoryService(
            embedder=embedder, reranker=reranker, on_embedding_error=on_embedding_error, default_ttl=default_ttl
        )
    service = sqlite.SqliteMemoryService if backend == "sqlite" else postgres.PostgresMemoryService
    return service(
        url_or_engine,
        embedder=embedder,
        reranker=reranker,
        on_embedding_error=on_embedding_error,
        default_ttl=default_ttl,
    )


def open_engine(url: str) -> AsyncEngine:
    """Return a new engine for the database at ``url``, set up as a service would; the caller disposes of it.

    Raises:
        ConfigurationError: as for `open_memory`, or the URL names no database.
    """
    backend = _backend(url)
    if backend == "memory":
        raise ConfigurationError("memory:// has no tables; name a SQLite file or a Postgres database")
    return sqlite.open_engine(url) if backend == "sqlite" else postgres.open_engine(url)


def dialect_of(engine: AsyncEngine) -> Dialect:
    """Return what is special about the database of an engine that `open_engine` made."""
    return sqlite.SqliteDialect() if engine.dialect.name == "sqlite" else postgres.PostgresDialect()


def _backend(url_or_engine: str | AsyncEngine) -> str:
    if isinstance(url_or_engine, str):
        return backend_of(url_or_engine)
    if isinstance(url_or_engine, AsyncEngine) and url_or_engine.dialect.name in ("sqlite", "postgresql"):
        return url_or_engine.dialect.name
    raise ConfigurationError("open_memory takes a URL, or an AsyncEngine of SQLAlchemy's for SQLite or Postgres")
