"""The schema that both databases share, as typed columns for statements; the tables are made by `migrations/` alone.

Every row refers to its scope, one app, user and project, by a small number: the one place that says who may see
it. What only search needs, `adk_memory_search_entry`, is another thing on each database (an FTS5 table, a table
with a tsvector); it can be made anew from the entries at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, cast

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import BIT
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from adk_memory._records import Record
from adk_memory._sql.columns import BigId, JsonText, UtcDateTime, Vector

SEARCH_TABLE: Final = "adk_memory_search_entry"
TERM_TABLE: Final = "adk_memory_search_term"

ONLY_ON_POSTGRES: Final = "only_on_postgres"
"""What the columns are marked with that SQLite's tables lack."""
_ON_POSTGRES = {ONLY_ON_POSTGRES: True}
_EXPIRES = text("expires_at IS NOT NULL")


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "pk": "%(table_name)s_pk",
            "fk": "%(table_name)s_%(column_0_N_name)s_fk",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        }
    )


class ScopeRow(Base):
    """One app, user and project. ``project_key`` is the project id, or ``''`` for the global entries."""

    __tablename__ = "adk_memory_scope"

    id: Mapped[int] = mapped_column(BigId, Identity(), primary_key=True)
    # A digest of the three: together they may be longer than a Postgres index key can be.
    fingerprint: Mapped[str] = mapped_column(Text)
    app_name: Mapped[str] = mapped_column(Text)
    user_id: Mapped[str] = mapped_column(Text)
    project_key: Mapped[str] = mapped_column(Text)
    # How many entries have terms, and how many terms they have: what ranking has to know of the whole scope.
    entry_count: Mapped[int] = mapped_column(BigInteger)
    term_count: Mapped[int] = mapped_column(BigInteger)
    # Raised by every change of its entries: who looked before can tell whether what was seen is still so.
    version: Mapped[int] = mapped_column(BigInteger)

    __table_args__ = (
        UniqueConstraint("fingerprint"),
        Index(None, "app_name", "user_id"),
        {"sqlite_autoincrement": True},
    )


class EntryRow(Base):
    """One entry. ``session_key`` is the session id, or ``''``: a NULL would never equal itself in the unique key.

    On Postgres the primary key is ``(scope_id, id)``, so that the table can be partitioned by scope.
    """

    __tablename__ = "adk_memory_entry"

    id: Mapped[int] = mapped_column(BigId, Identity(), primary_key=True)
    scope_id: Mapped[int] = mapped_column(BigId, ForeignKey(ScopeRow.id))
    session_key: Mapped[str] = mapped_column(Text)
    entry_key: Mapped[str] = mapped_column(Text)
    # Its number in the session, in order of arrival: what stands beside it.
    position: Mapped[int] = mapped_column(Integer)
    author: Mapped[str] = mapped_column(Text)
    timestamp: Mapped[datetime] = mapped_column(UtcDateTime)
    content: Mapped[str] = mapped_column(JsonText)
    text: Mapped[str] = mapped_column(Text)
    metadata_: Mapped[str] = mapped_column("metadata", JsonText)
    term_count: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # From then on it is only there to be purged.
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        UniqueConstraint("scope_id", "entry_key", "session_key"),
        Index(None, "scope_id", "session_key", "position"),
        Index(None, "scope_id", "timestamp", "id"),
        Index(None, "scope_id", "expires_at", sqlite_where=_EXPIRES, postgresql_where=_EXPIRES),
        {"sqlite_autoincrement": True},
    )


ENTRIES = cast(Table, EntryRow.__table__)
"""The table of `EntryRow`, to be written by the names of its columns: a row class has a ``metadata`` of its own."""


def entry_fields(record: Record, terms: Sequence[str]) -> dict[str, Any]:
    """Return the columns of an entry that may change."""
    return {
        "author": record.author,
        "timestamp": record.timestamp,
        "content": record.content,
        "text": record.text,
        "metadata": record.metadata,
        "term_count": len(terms),
        "expires_at": record.expires_at,
    }


class EmbeddingModelRow(Base):
    """A model that vectors were made with; vectors of two models are never compared."""

    __tablename__ = "adk_memory_embedding_model"

    id: Mapped[int] = mapped_column(Integer, Identity(), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    dimensions: Mapped[int] = mapped_column(Integer)
    # Of the sketches; once set they never change.
    thresholds: Mapped[bytes | None] = mapped_column(LargeBinary, info=_ON_POSTGRES)

    __table_args__ = (UniqueConstraint("name"), {"sqlite_autoincrement": True})


class EmbeddingRow(Base):
    """The vector of one entry by one model.

    Where a model has none for an entry, a row says so whose ``model_id`` is the model's number below zero: no search
    sees it, but who looks for entries without a vector does, and it goes as vectors go.
    """

    __tablename__ = "adk_memory_embedding"

    scope_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    model_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    entry_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    vector: Mapped[bytes] = mapped_column(Vector)
    # In the index of the primary key too. NULL while the model has no thresholds, or its writer did not know them.
    sketch: Mapped[Any] = mapped_column(BIT(varying=True), nullable=True, info=_ON_POSTGRES)


class MetaRow(Base):
    """Facts about the stored data: ``analyser``, the version of the analyser that made the index."""

    __tablename__ = "adk_memory_meta"

    key: Mapped[str] = mapped_column(Text, primary_key=True)
    value: Mapped[str] = mapped_column(Text)
