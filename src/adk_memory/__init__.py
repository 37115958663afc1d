"""Durable, searchable long-term memory for AI agents, on SQLite or Postgres."""

from adk_memory._content import Content
from adk_memory._memory.service import InMemoryMemoryService
from adk_memory._open import open_memory
from adk_memory._sessions import SessionEntries
from adk_memory._sql.postgres import PostgresMemoryService
from adk_memory._sql.sqlite import SqliteMemoryService
from adk_memory._validation import validate_project_id
from adk_memory.adapter import MemoryServiceAdapter
from adk_memory.context import recall_context, remembering
from adk_memory.embedding import EmbeddingProvider
from adk_memory.erasure import Erasure, ErasureProof, ScrubReport
from adk_memory.errors import (
    AdkMemoryError,
    ConfigurationError,
    EmbeddingError,
    EmbeddingMismatchError,
    OperationNotSupportedError,
    ProjectScopingNotSupportedError,
    SchemaError,
    SchemaMissingError,
    SchemaOutdatedError,
    SchemaTooNewError,
    StorageError,
    StorageUnavailableError,
    ValidationError,
)
from adk_memory.filters import Author, Filter, Metadata, Session, Time
from adk_memory.reranking import Reranker
from adk_memory.service import MemoryService
from adk_memory.types import (
    ALL_PROJECTS,
    HealthReport,
    Memory,
    MemoryEntry,
    Page,
    SearchRequest,
    SearchResponse,
)

__all__ = [
    "ALL_PROJECTS",
    "AdkMemoryError",
    "Author",
    "ConfigurationError",
    "Content",
    "EmbeddingError",
    "EmbeddingMismatchError",
    "EmbeddingProvider",
    "Erasure",
    "ErasureProof",
    "Filter",
    "HealthReport",
    "InMemoryMemoryService",
    "Memory",
    "MemoryEntry",
    "MemoryService",
    "MemoryServiceAdapter",
    "Metadata",
    "OperationNotSupportedError",
    "Page",
    "PostgresMemoryService",
    "ProjectScopingNotSupportedError",
    "Reranker",
    "SchemaError",
    "SchemaMissingError",
    "SchemaOutdatedError",
    "SchemaTooNewError",
    "ScrubReport",
    "SearchRequest",
    "SearchResponse",
    "Session",
    "SessionEntries",
    "SqliteMemoryService",
    "StorageError",
    "StorageUnavailableError",
    "Time",
    "ValidationError",
    "open_memory",
    "recall_context",
    "remembering",
    "validate_project_id",
]
