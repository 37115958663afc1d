"""What 0001 makes: the models' tables, and the search structures that no model describes."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import migrate
from adk_memory._sql.tables import Base
from migrations.support import Scripts, check_models, execute, fetch, host_engine, store_two_entries


async def test_the_models_equal_the_migrations(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)

    await check_models(engine)


async def test_a_difference_to_the_models_is_noticed(engine: AsyncEngine, scripts: Scripts) -> None:
    scripts.add("0002", "0001", 'op.add_column("adk_memory_entry", sa.Column("note", sa.Text()))')
    await migrate.upgrade(engine)

    with pytest.raises(Exception, match=r"remove_column.*note"):
        await check_models(engine)


async def test_every_constraint_has_the_name_that_the_models_give_it(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)

    expected = {str(each.name) for table in Base.metadata.tables.values() for each in table.constraints}
    async with engine.connect() as connection:
        found = await connection.run_sync(_constraint_names)
    assert found <= expected
    # SQLite declares an AUTOINCREMENT key in its column, without a name.
    assert {name for name in expected if not name.endswith("_pk")} <= found


def _constraint_names(connection: object) -> set[str]:
    inspector = inspect(connection)
    names: set[str | None] = set()
    for table in Base.metadata.tables:
        names.add(inspector.get_pk_constraint(table)["name"])
        names.update(unique["name"] for unique in inspector.get_unique_constraints(table))
        names.update(key["name"] for key in inspector.get_foreign_keys(table))
    return {name for name in names if name is not None}


async def test_the_search_objects_of_sqlite(sqlite_engine: AsyncEngine) -> None:
    await migrate.upgrade(sqlite_engine)

    found = await fetch(
        sqlite_engine, "SELECT type, name FROM sqlite_master WHERE name LIKE 'adk_memory_search%' ORDER BY name"
    )
    assert [tuple(row) for row in found] == [
        ("table", "adk_memory_search_entry"),
        ("table", "adk_memory_search_entry_config"),
        ("table", "adk_memory_search_entry_content"),
        ("table", "adk_memory_search_entry_data"),
        ("table", "adk_memory_search_entry_docsize"),
        ("table", "adk_memory_search_entry_idx"),
        ("table", "adk_memory_search_term"),
    ]
    [(made,)] = await fetch(sqlite_engine, "SELECT sql FROM sqlite_master WHERE name = 'adk_memory_search_entry'")
    assert made.endswith("""USING fts5(terms, tokenize="ascii tokenchars '_'")""")


async def test_the_search_objects_of_postgres(postgres_engine: AsyncEngine) -> None:
    await migrate.upgrade(postgres_engine)

    columns = await fetch(
        postgres_engine,
        """
        SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
        FROM pg_attribute a WHERE a.attrelid = CAST('adk_memory_search_entry' AS regclass) AND a.attnum > 0
        ORDER BY a.attnum
        """,
    )
    indexes = await fetch(
        postgres_engine, "SELECT indexdef FROM pg_indexes WHERE tablename = 'adk_memory_search_entry' ORDER BY 1"
    )
    assert [tuple(column) for column in columns] == [
        ("scope_id", "bigint", True),
        ("entry_id", "bigint", True),
        ("terms", "text", True),
        ("lexemes", "tsvector", True),
    ]
    assert [index[0] for index in indexes] == [
        "CREATE INDEX adk_memory_search_entry_lexemes_idx ON public.adk_memory_search_entry "
        "USING gin (lexemes) WITH (gin_pending_list_limit='128')",
        "CREATE UNIQUE INDEX adk_memory_search_entry_pk ON public.adk_memory_search_entry "
        "USING btree (scope_id, entry_id)",
    ]


async def test_sketches_are_compared_as_they_are_stored_and_vacuumed_soon(postgres_engine: AsyncEngine) -> None:
    await migrate.upgrade(postgres_engine)

    [column] = await fetch(
        postgres_engine,
        """
        SELECT format_type(a.atttypid, a.atttypmod), a.attstorage, c.reloptions
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.relname = 'adk_memory_embedding' AND a.attname = 'sketch'
        """,
    )
    [(in_index,)] = await fetch(
        postgres_engine,
        """
        SELECT a.attstorage FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.relname = 'adk_memory_embedding_pk' AND a.attname = 'sketch'
        """,
    )
    assert tuple(column) == ("bit varying", b"p", ["autovacuum_vacuum_insert_scale_factor=0.02"])
    assert in_index == b"p"


async def test_users_are_kept_in_the_order_of_code_points_whatever_that_of_the_database_is(
    postgres_engine: AsyncEngine,
) -> None:
    await migrate.upgrade(postgres_engine)

    [(collation,)] = await fetch(
        postgres_engine,
        "SELECT collation_name FROM information_schema.columns "
        "WHERE table_name = 'adk_memory_scope' AND column_name = 'user_id'",
    )
    assert collation == "C"


async def test_keys_of_postgres_lead_with_the_scope(postgres_engine: AsyncEngine) -> None:
    await migrate.upgrade(postgres_engine)

    found = await fetch(
        postgres_engine,
        """
        SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid IN (CAST('adk_memory_entry' AS regclass), CAST('adk_memory_embedding' AS regclass))
          AND contype IN ('p', 'u') ORDER BY conname
        """,
    )
    assert [tuple(row) for row in found] == [
        ("adk_memory_embedding_pk", "PRIMARY KEY (scope_id, model_id, entry_id) INCLUDE (sketch)"),
        ("adk_memory_entry_pk", "PRIMARY KEY (scope_id, id)"),
        ("adk_memory_entry_scope_id_entry_key_session_key_key", "UNIQUE (scope_id, entry_key, session_key)"),
    ]


async def test_ids_are_never_given_again(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)
    new_scope = (
        "INSERT INTO adk_memory_scope (fingerprint, app_name, user_id, project_key, entry_count, term_count, version) "
        "VALUES ('{}', 'app', 'ana', '', 0, 0, 0) RETURNING id"
    )
    async with engine.begin() as connection:
        first = (await connection.exec_driver_sql(new_scope.format("a"))).scalar_one()
        await connection.exec_driver_sql("DELETE FROM adk_memory_scope")

    async with engine.begin() as connection:
        second = (await connection.exec_driver_sql(new_scope.format("b"))).scalar_one()

    assert second > first


async def test_the_same_entry_twice_is_refused(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)
    await store_two_entries(engine)

    rest = (
        "scope_id, session_key, entry_key, position, author, timestamp, content, text, metadata, term_count, created_at"
    )
    with pytest.raises(IntegrityError):
        await execute(engine, f"INSERT INTO adk_memory_entry ({rest}) SELECT {rest} FROM adk_memory_entry")


async def test_the_version_of_the_analyser_is_noted(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)

    assert await fetch(engine, "SELECT key, value FROM adk_memory_meta") == [("analyser", "1")]


async def test_tables_in_a_schema_of_their_own(postgres_url: str) -> None:
    engine = host_engine(postgres_url, connect_args={"server_settings": {"search_path": "mem"}})
    await execute(engine, "CREATE SCHEMA mem")

    await migrate.upgrade(engine)
    await migrate.require_head(engine)

    found = await fetch(engine, "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'adk_memory%'")
    assert found == [("mem",)]
    await check_models(engine)
    await engine.dispose()
