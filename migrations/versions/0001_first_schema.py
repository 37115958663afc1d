"""First schema: scopes, entries, their search index and embeddings.

Downgrading drops every memory. A pgvector extension stays: it is the database's, not ours.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
# On Postgres a plain array, which needs no extension; env.py makes it pgvector's halfvec where that exists.
VECTOR = sa.LargeBinary().with_variant(sa.ARRAY(sa.REAL()), "postgresql")

# Users are listed in the order of the code points, by their index, whatever the database's own order is.
CODE_POINTS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "adk_memory_scope",
        sa.Column("id", BIG_ID, sa.Identity(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("app_name", sa.Text(), nullable=False),
        sa.Column("user_id", CODE_POINTS, nullable=False),
        sa.Column("project_key", sa.Text(), nullable=False),
        sa.Column("entry_count", sa.BigInteger(), nullable=False),
        sa.Column("term_count", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="adk_memory_scope_pk"),
        sa.UniqueConstraint("fingerprint", name="adk_memory_scope_fingerprint_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("adk_memory_scope_app_name_user_id_idx", "adk_memory_scope", ["app_name", "user_id"])

    op.create_table(
        "adk_memory_entry",
        sa.Column("id", BIG_ID, sa.Identity(), nullable=False),
        sa.Column("scope_id", BIG_ID, nullable=False),
        sa.Column("session_key", sa.Text(), nullable=False),
        sa.Column("entry_key", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("timestamp", INSTANT, nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("term_count", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT),
        sa.PrimaryKeyConstraint(*(["id"] if on_sqlite else ["scope_id", "id"]), name="adk_memory_entry_pk"),
        sa.ForeignKeyConstraint(["scope_id"], ["adk_memory_scope.id"], name="adk_memory_entry_scope_id_fk"),
        sa.UniqueConstraint(
            "scope_id", "entry_key", "session_key", name="adk_memory_entry_scope_id_entry_key_session_key_key"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "adk_memory_entry_scope_id_session_key_position_idx",
        "adk_memory_entry",
        ["scope_id", "session_key", "position"],
    )
    op.create_index("adk_memory_entry_scope_id_timestamp_id_idx", "adk_memory_entry", ["scope_id", "timestamp", "id"])
    # What never expires is not in it.
    expires = sa.text("expires_at IS NOT NULL")
    op.create_index(
        "adk_memory_entry_scope_id_expires_at_idx",
        "adk_memory_entry",
        ["scope_id", "expires_at"],
        sqlite_where=expires,
        postgresql_where=expires,
    )

    if on_sqlite:
        # The row id is the entry's id. The text is terms already, so the tokenizer only has to split it.
        op.execute(
            "CREATE VIRTUAL TABLE adk_memory_search_entry "
            """USING fts5(terms, tokenize="ascii tokenchars '_'")"""
        )
        # A view of that index, which says how often an entry has a term.
        op.execute("CREATE VIRTUAL TABLE adk_memory_search_term USING fts5vocab('adk_memory_search_entry', 'instance')")
    else:
        # The lexemes are the terms, and '@' with the scope: the index then finds what is in one scope.
        op.execute(
            """
            CREATE TABLE adk_memory_search_entry (
                scope_id bigint NOT NULL,
                entry_id bigint NOT NULL,
                terms text NOT NULL,
                lexemes tsvector NOT NULL,
                CONSTRAINT adk_memory_search_entry_pk PRIMARY KEY (scope_id, entry_id)
            )
            """
        )
        # A long pending list is read in full by every search.
        op.execute(
            "CREATE INDEX adk_memory_search_entry_lexemes_idx ON adk_memory_search_entry "
            "USING gin (lexemes) WITH (gin_pending_list_limit = 128)"
        )

    op.create_table(
        "adk_memory_embedding_model",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        *([] if on_sqlite else [sa.Column("thresholds", sa.LargeBinary())]),
        sa.PrimaryKeyConstraint("id", name="adk_memory_embedding_model_pk"),
        sa.UniqueConstraint("name", name="adk_memory_embedding_model_name_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "adk_memory_embedding",
        sa.Column("scope_id", BIG_ID, nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("entry_id", BIG_ID, nullable=False),
        sa.Column("vector", VECTOR, nullable=False),
        *([] if on_sqlite else [sa.Column("sketch", postgresql.BIT(varying=True))]),
        sa.PrimaryKeyConstraint(
            "scope_id", "model_id", "entry_id", name="adk_memory_embedding_pk", postgresql_include=["sketch"]
        ),
    )
    if not on_sqlite:
        # A search reads the sketches of its scopes in the index of the key. It looks into the table for those alone
        # that the last vacuum has not seen, so the next one has to come soon. PLAIN: as it is stored it is compared.
        op.execute(
            "ALTER TABLE adk_memory_embedding ALTER COLUMN sketch SET STORAGE PLAIN, "
            "SET (autovacuum_vacuum_insert_scale_factor = 0.02)"
        )
        # Those that every search has to look at, and that are still to be sketched.
        op.execute(
            "CREATE INDEX adk_memory_search_unsketched_idx ON adk_memory_embedding (model_id, scope_id, entry_id) "
            "WHERE sketch IS NULL"
        )

    meta = op.create_table(
        "adk_memory_meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="adk_memory_meta_pk"),
    )
    op.bulk_insert(meta, [{"key": "analyser", "value": "1"}])


def downgrade() -> None:
    op.drop_table("adk_memory_meta")
    op.drop_table("adk_memory_embedding")
    op.drop_table("adk_memory_embedding_model")
    if op.get_bind().dialect.name == "sqlite":
        op.drop_table("adk_memory_search_term")
    op.drop_table("adk_memory_search_entry")
    op.drop_table("adk_memory_entry")
    op.drop_table("adk_memory_scope")
