"""The values that cross the border of the package. What they accept, every backend accepts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, Literal

import pydantic
from pydantic import ConfigDict, Field, field_validator

from adk_memory._content import Content, Value
from adk_memory._validation import (
    DEFAULT_LIMIT,
    JsonValue,
    OptionalVector,
    clean_json,
    clean_text,
    utc,
    validate_id,
    validate_limit,
    validate_project_id,
    validate_query,
)
from adk_memory.errors import ValidationError
from adk_memory.filters import Filter, validate_filter

Mode = Literal["keyword", "vector", "hybrid"]
"""How a search is answered: by words, by similarity of embeddings, or by both."""


Existing = Literal["update", "keep", "replace"]
"""What adding does with an entry that is there already; see `MemoryService.add_session`."""


_NOT_GIVEN: Final = object()


class AllProjects(Enum):
    """The type of `ALL_PROJECTS`: a value of its own, so that no project can have its name."""

    ALL_PROJECTS = "ALL_PROJECTS"

    def __repr__(self) -> str:
        return "ALL_PROJECTS"


ALL_PROJECTS: Final = AllProjects.ALL_PROJECTS
"""In lists, exports and deletes of one user: the global entries and those of every project."""


class MemoryEntry(Value):
    """One thing to remember: its content, who wrote it, when.

    Attributes:
        content: given as a text, a mapping, a `Content`, or any object with ``role`` and ``parts``.
        author: who wrote it; a name, not an id.
        timestamp: aware UTC; a naive datetime means UTC, and none means now.
        id: the caller's own name for the entry, unique in its session: adding it again rewrites the entry.
        metadata: a JSON object that is kept and returned; filters see it, the words of a query do not.
        expires_at: from this instant on no read returns the entry; like ``timestamp`` otherwise. `None` means never,
            also where the service has a default for entries that are given nothing.
        vector: that of the configured model, which is then not asked for one; not returned.
    """

    content: Content
    author: str = "user"
    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))
    id: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    expires_at: datetime | None = None
    vector: OptionalVector = Field(default=None, repr=False)

    def __init__(
        self,
        /,
        content: object,
        author: str = "user",
        timestamp: object = None,
        id: str | None = None,  # noqa: A002 - the field's standard name
        metadata: Mapping[str, object] | None = None,
        expires_at: object = _NOT_GIVEN,
        *,
        vector: object = None,
        **others: Any,
    ) -> None:
        # A field that was not given stays out of `model_fields_set`: a time that was not given is no part of
        # what identifies the entry, and what was not given about its end is for the service to say.
        given = {"timestamp": timestamp, "metadata": metadata, "vector": vector}
        given = {name: value for name, value in given.items() if value is not None}
        if expires_at is not _NOT_GIVEN:
            given["expires_at"] = expires_at
        super().__init__(content=content, author=author, id=id, **given, **others)

    @property
    def text(self) -> str:
        """The text of the content: what is searched."""
        return self.content.text

    @field_validator("content", mode="before")
    @classmethod
    def _any_content(cls, content: object) -> Content:
        return Content.of(content)

    @field_validator("author")
    @classmethod
    def _clean_author(cls, author: str) -> str:
        return clean_text(author)

    @field_validator("timestamp", mode="before")
    @classmethod
    def _utc_timestamp(cls, timestamp: object) -> datetime:
        return utc(timestamp)

    @field_validator("expires_at", mode="before")
    @classmethod
    def _utc_expiry(cls, expires_at: object) -> datetime | None:
        return None if expires_at is None else utc(expires_at, "expires_at")

    @field_validator("id")
    @classmethod
    def _valid_id(cls, entry_id: str | None) -> str | None:
        return None if entry_id is None else validate_id("id", entry_id)

    @field_validator("metadata", mode="before")
    @classmethod
    def _plain_metadata(cls, metadata: object) -> object:
        if not isinstance(metadata, Mapping):
            raise ValidationError(f"metadata must be a JSON object, got {type(metadata).__name__}")
        return clean_json(metadata, "metadata")


class Memory(MemoryEntry):
    """An entry as it is read back: with its id, where it is kept, and, from a search, how well it matched.

    Attributes:
        id: the caller's id, or the one that was made for it.
        session_id: the session it was added with; `None` for a single entry.
        project_id: its project; `None` for global.
        position: its number in its session, in order of arrival; `None` for a single entry.
        score: 0 to 1, higher is better; `None` outside a search.
        explanation: the parts of the score, by name, where the search asked for them.
    """

    id: str
    session_id: str | None = None
    project_id: str | None = None
    position: int | None = None
    score: float | None = None
    explanation: dict[str, float] | None = None


class SearchRequest(Value):
    """A question to one user's memory.

    Attributes:
        query: text, never syntax: no character in it has a meaning of its own.
        app_name: whose memory.
        user_id: whose memory.
        project_id: `None` sees the global entries only; a project sees them and its own.
        limit: at most so many memories; 0 for none, above 1,000 is 1,000, `None` is 10.
        min_score: leave out what scores less, before the limit is applied; 0 to 1.
        mode: answer in this way; `None` for the best that the service can do.
        explain: give each memory an ``explanation``, the parts of its score.
        recency: by how much more the newest match counts than a very old one, 0 to 1; the gain halves with every 30
            days before the newest.
        filter: return only what passes it. It is applied before ``limit``, and changes no score by words: what an
            entry holds and what stands around it count alike with and without it. Similarity takes part for the
            nearest of those that pass.
        vector: the query's, by the configured model; a query without a word is then answered by similarity alone.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    query: str
    app_name: str
    user_id: str
    project_id: str | None = None
    limit: int = DEFAULT_LIMIT
    min_score: float | None = None
    mode: Mode | None = None
    explain: bool = False
    recency: float = 0.0
    filter: Filter | None = None
    vector: OptionalVector = Field(default=None, repr=False)

    def __init__(
        self,
        /,
        query: str,
        app_name: str,
        user_id: str,
        project_id: str | None = None,
        limit: int | None = DEFAULT_LIMIT,
        min_score: float | None = None,
        mode: Mode | None = None,
        explain: bool = False,
        recency: float = 0.0,
        filter: Filter | None = None,
        *,
        vector: object = None,
        **others: Any,
    ) -> None:
        super().__init__(
            query=query, app_name=app_name, user_id=user_id, project_id=project_id, limit=limit, vector=vector,
            min_score=min_score, mode=mode, explain=explain, recency=recency, filter=filter, **others,
        )  # fmt: skip

    @field_validator("query", mode="before")
    @classmethod
    def _text_query(cls, query: object) -> str:
        return validate_query(query)

    @field_validator("app_name", "user_id", mode="before")
    @classmethod
    def _valid_id(cls, value: object, info: pydantic.ValidationInfo) -> str:
        return validate_id(str(info.field_name), value)

    @field_validator("project_id", mode="before")
    @classmethod
    def _valid_project(cls, project_id: Any) -> str | None:
        return validate_project_id(project_id)

    @field_validator("limit", mode="before")
    @classmethod
    def _valid_limit(cls, limit: object) -> int:
        return validate_limit(limit)

    @field_validator("min_score", "recency", mode="before")
    @classmethod
    def _finite(cls, number: object, info: pydantic.ValidationInfo) -> object:
        if number is None and info.field_name == "min_score":
            return None
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise ValidationError(f"{info.field_name} must be a finite number")
        return float(number)

    @field_validator("filter", mode="before")
    @classmethod
    def _valid_filter(cls, value: object) -> Filter | None:
        return validate_filter(value)


class SearchResponse(Value):
    """What a search found, best first; it can be iterated, indexed and measured like the list of its memories.

    Attributes:
        memories: by score, then newest, then in order of arrival; see ``reranked``.
        mode: how it was answered.
        partial: some entries in sight have no vector of the configured model, so similarity did not reach them.
        reranked: a reranker gave the scores and the order; false where there is none, it failed, or nothing was found.
        approximate: so many vectors are in sight that short sketches, or an index, chose which ones to compare, so that
            one of the nearest may be missing; never in memory and on SQLite.
    """

    memories: tuple[Memory, ...] = ()
    mode: Mode = "keyword"
    partial: bool = False
    reranked: bool = False
    approximate: bool = False

    @property
    def entries(self) -> tuple[Memory, ...]:
        """Another name for ``memories``."""
        return self.memories

    def __iter__(self) -> Iterator[Memory]:  # type: ignore[override]
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)

    def __getitem__(self, index: int) -> Memory:
        return self.memories[index]


class Page(Value):
    """A part of a list; it can be iterated, indexed and measured like the list of its memories.

    Attributes:
        memories: newest first; of one instant, the last to arrive first.
        next: what to pass as ``after`` for the page that follows; `None` where nothing does.
        total: how many memories the whole list has, where it was asked for.
    """

    memories: tuple[Memory, ...] = ()
    next: str | None = None
    total: int | None = None

    def __iter__(self) -> Iterator[Memory]:  # type: ignore[override]
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)

    def __getitem__(self, index: int) -> Memory:
        return self.memories[index]


class HealthReport(Value):
    """What `MemoryService.health_check` saw.

    Attributes:
        backend: ``"memory"``, ``"sqlite"``, ``"postgresql"``, or a name of the backend's own.
        schema_version: the revision of its tables; `None` where it has no schema.
        embedding_model: the configured provider's model; `None` without one.
        index_outdated: whether the keyword index has to be made anew, by `MemoryService.reindex`: words that an older
            version indexed otherwise miss their entries until then.
        pending: how many entries with text have no vector of that model, for `MemoryService.embed_pending`.
    """

    backend: str
    schema_version: str | None = None
    embedding_model: str | None = None
    index_outdated: bool = False
    pending: int | None = None
