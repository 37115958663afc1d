"""What Postgres itself keeps apart, whatever statement a role sends that is neither owner nor superuser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest
from sqlalchemy import event, exc, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import (
    ConfigurationError,
    MemoryEntry,
    PostgresMemoryService,
    SearchRequest,
    SessionEntries,
    StorageError,
    open_memory,
)
from adk_memory._open import open_engine
from adk_memory._scope import Scope
from adk_memory._sql.integrity import find_faults
from adk_memory._sql.postgres_row_security import RowSecurity, disable, enable, show, status
from adk_memory.testing import ToyEmbedder
from plans.stores import statements
from postgres_server import PostgresServer
from row_security.support import Secured, fetch, role, secured, tables

APP = "app"
TABLES = ("adk_memory_scope", "adk_memory_entry", "adk_memory_search_entry", "adk_memory_embedding")
AS_ANA = (
    "SELECT set_config('adk_memory.app_name', 'app', true)",
    "SELECT set_config('adk_memory.user_id', 'ana', true)",
)
AS_NOBODY = (AS_ANA[0], "SELECT set_config('adk_memory.user_id', 'ANA', true)")
AS_OTHER_APP = ("SELECT set_config('adk_memory.app_name', 'other', true)", AS_ANA[1])


@pytest.fixture
def database(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Secured]:
    with secured(postgres_server, postgres_template) as database:
        yield database


@pytest.fixture
async def filled(database: Secured) -> Secured:
    """Bo's entry is in scope 1, ana's in scope 2."""
    async with open_memory(database.role, embedder=ToyEmbedder()) as memory:
        for user in ("bo", "ana"):
            await memory.add_entry(APP, user, MemoryEntry(f"the secret of {user}", id=user))
    return database


async def test_the_whole_life_of_memories(database: Secured) -> None:
    async with open_memory(database.role, embedder=ToyEmbedder()) as memory:
        await memory.migrate()  # there is nothing to do, and a role like this may see that
        entries = [MemoryEntry("window seats", id="w"), MemoryEntry("aisle seats")]
        await memory.add_session(APP, "ana", "s", entries)
        await memory.add_session(APP, "ana", "s", [MemoryEntry("window seats please", id="w")])
        await memory.add_session(APP, "ana", "p", [MemoryEntry("balcony")], project_id="P")
        several = [SessionEntries(APP, user, "more", [MemoryEntry(f"tea of {user}")]) for user in ("ana", "bo", "cy")]
        assert await memory.add_many(several) == 3
        for mode in ("keyword", "vector", "hybrid"):
            found = await memory.search(SearchRequest("window seats please", APP, "ana", mode=mode))
            assert found[0].text == "window seats please"
        assert len(await memory.list_recent(APP, "ana")) == 4
        assert (await memory.list_page(APP, "ana", limit=1, with_total=True)).total == 4
        assert await memory.get(APP, "ana", "w") is not None
        assert await memory.get(APP, "bo", "w") is None
        assert await memory.delete(APP, "bo", "w") == 0
        assert await memory.delete(APP, "ana", "w") == 1
        assert await memory.delete_entries(APP, "ana", "aisle", dry_run=True) == 1
        assert await memory.delete_entries(APP, "ana", "aisle") == 1
        exported = [found.text async for found in memory.export_user(APP, "ana")]
        assert exported == ["balcony", "tea of ana"]
        assert await memory.delete_project(APP, "ana", "P") == 1
        assert await memory.delete_session(APP, "ana", "s") == 0
        assert await memory.delete_user(APP, "ana") == 1
        assert [found.text for found in await memory.list_recent(APP, "bo")] == ["tea of bo"]
    users = await fetch(database.owner, "SELECT user_id FROM adk_memory_scope ORDER BY user_id")
    assert users == [("bo",), ("cy",)]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("settings", "rows"), [(AS_ANA, 1), (AS_NOBODY, 0), (AS_OTHER_APP, 0)])
async def test_rows_are_those_of_the_named_user(
    filled: Secured, table: str, settings: tuple[str, ...], rows: int
) -> None:
    assert await fetch(filled.owner, f"SELECT count(*) FROM {table}") == [(2,)]
    assert await fetch(filled.role, *settings, f"SELECT count(*) FROM {table}") == [(rows,)]


@pytest.mark.parametrize("table", TABLES)
async def test_whoever_names_nobody_gets_nothing(filled: Secured, table: str) -> None:
    with pytest.raises(exc.DBAPIError, match="unrecognized configuration parameter"):
        await fetch(filled.role, f"SELECT count(*) FROM {table}")
    engine = create_async_engine(filled.role.replace("://", "+asyncpg://", 1), pool_size=1, max_overflow=0)
    async with engine.begin() as connection:
        for setting in AS_ANA:
            await connection.execute(text(setting))
    async with engine.begin() as connection:  # the same one, on which the settings have ended
        assert await connection.scalar(text(f"SELECT count(*) FROM {table}")) == 0
    await engine.dispose()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT text FROM adk_memory_entry WHERE entry_key = 'bo'",
        "SELECT text FROM adk_memory_entry WHERE scope_id = 1",
        "SELECT terms FROM adk_memory_search_entry WHERE lexemes @@ to_tsquery('simple', '''@1''')",
        "SELECT e.text FROM adk_memory_entry e JOIN adk_memory_scope s ON s.id = e.scope_id WHERE s.user_id = 'bo'",
        "SELECT v.entry_id FROM adk_memory_embedding v LEFT JOIN adk_memory_entry e ON e.id = v.entry_id "
        "WHERE v.scope_id = 1",
        "SELECT 1 FROM adk_memory_entry WHERE scope_id = 1 AND 1 / length(text) > -1",
        "SELECT id FROM adk_memory_scope WHERE user_id = 'bo' FOR UPDATE",
        "UPDATE adk_memory_entry SET text = 'x' WHERE entry_key = 'bo' RETURNING text",
        "DELETE FROM adk_memory_entry WHERE scope_id = 1 RETURNING text",
        "DELETE FROM adk_memory_scope WHERE id = 1 RETURNING id",
    ],
)
async def test_no_statement_reaches_another_users_rows(filled: Secured, statement: str) -> None:
    assert await fetch(filled.role, *AS_ANA, statement) == []
    assert await fetch(filled.owner, "SELECT text FROM adk_memory_entry WHERE scope_id = 1") == [("the secret of bo",)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE adk_memory_entry SET scope_id = 1",
        "UPDATE adk_memory_search_entry SET scope_id = 1",
        "UPDATE adk_memory_embedding SET scope_id = 1",
        "UPDATE adk_memory_scope SET user_id = 'bo', fingerprint = 'x'",
        "INSERT INTO adk_memory_search_entry VALUES (1, 77, 'x', '')",
        "INSERT INTO adk_memory_embedding (scope_id, model_id, entry_id, vector) SELECT 1, 1, 77, vector "
        "FROM adk_memory_embedding",
        "INSERT INTO adk_memory_entry (scope_id, session_key, entry_key, position, author, timestamp, content, text, "
        "metadata, term_count, created_at) VALUES (1, '', 'x', 0, 'bo', now(), '{}', 'x', '{}', 1, now())",
        "INSERT INTO adk_memory_scope (fingerprint, app_name, user_id, project_key, entry_count, term_count, version) "
        "VALUES ('x', 'app', 'bo', 'P', 0, 0, 0)",
    ],
)
async def test_nothing_is_written_into_another_users_scope(filled: Secured, statement: str) -> None:
    with pytest.raises(exc.DBAPIError, match="row-level security"):
        await fetch(filled.role, *AS_ANA, statement)


async def test_a_search_that_forgets_its_scope_finds_nothing_of_others(
    filled: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    bo = Scope(APP, "bo", None)
    monkeypatch.setattr("adk_memory._sql.postgres_connections.show", lambda connection, _: show(connection, bo))
    async with open_memory(filled.role, embedder=ToyEmbedder()) as memory:
        assert await memory.list_recent(APP, "ana") == []
        assert not (await memory.search(SearchRequest("secret", APP, "ana"))).memories
        assert [found.text for found in await memory.list_recent(APP, "bo")] == ["the secret of bo"]


async def test_whoever_is_not_bound_sends_what_it_ever_sent(filled: Secured) -> None:
    request = SearchRequest("secret", APP, "ana", mode="hybrid")
    sent = {}
    for url in (filled.owner, filled.role):
        async with PostgresMemoryService(url, embedder=ToyEmbedder()) as memory:
            sent[url], response = await statements(memory, request, beforehand=1)
            assert [found.text for found in response] == ["the secret of ana"]

    [search], [naming, bound_search] = sent[filled.owner], sent[filled.role]
    assert "scope_id + 0" in search[0].partition("@@")[2].partition("LIMIT")[0]  # which leaves it to the lexemes
    assert "set_config" in naming[0]
    assert bound_search[0] != search[0]


async def test_settings_end_with_the_transaction(filled: Secured) -> None:
    engine = create_async_engine(filled.role.replace("://", "+asyncpg://", 1), pool_size=1, max_overflow=0)
    async with PostgresMemoryService(engine) as memory:
        assert len(await memory.list_recent(APP, "ana")) == 1
        async with engine.connect() as connection:
            assert await connection.scalar(text("SELECT current_setting('adk_memory.user_id')")) == ""
    await engine.dispose()


@pytest.fixture
def plain(postgres_server: PostgresServer) -> Iterator[tuple[str, str]]:
    with role(postgres_server) as named:
        yield named


async def test_an_owner_who_is_no_superuser_looks_after_all_rows(plain: tuple[str, str], filled: Secured) -> None:
    name, password = plain
    url = make_url(filled.owner).set(username=name, password=password).render_as_string(hide_password=False)
    await fetch(filled.owner, f"GRANT CREATE ON SCHEMA public TO {name}")
    await fetch(filled.owner, *(f"ALTER TABLE {table} OWNER TO {name}" for table in await tables(filled.owner)))
    async with PostgresMemoryService(url) as memory:
        await memory.migrate()
        assert await memory.reindex(from_scratch=True) == 2
        assert await memory.purge_expired() == 0
        assert set((await find_faults(memory._database._engine, memory._dialect)).values()) == {0}
        assert (await memory.erase_user(APP, "bo")).complete
    async with open_memory(filled.role) as memory:
        assert (await memory.search(SearchRequest("secret", APP, "ana")))[0].text == "the secret of ana"
        assert await memory.list_recent(APP, "bo") == []


WHOLE: dict[str, Callable[[PostgresMemoryService], Awaitable[object]]] = {
    "reindex": lambda memory: memory.reindex(),
    "list_users": lambda memory: memory.list_users(APP),
    "embed_pending": lambda memory: memory.embed_pending(),
    "drop_model": lambda memory: memory.drop_model("toy-64"),
    "purge_expired": lambda memory: memory.purge_expired(),
    "scrub": lambda memory: memory.scrub(),
    "erase_user": lambda memory: memory.erase_user(APP, "ana"),
    "check --thorough": lambda memory: find_faults(memory._database._engine, memory._dialect),
}


@pytest.mark.parametrize("operation", WHOLE)
async def test_whoever_does_not_see_all_rows_does_not_look_after_them(filled: Secured, operation: str) -> None:
    async with PostgresMemoryService(filled.role, embedder=ToyEmbedder()) as memory:
        assert (await memory.health_check()).pending is None
        with pytest.raises(ConfigurationError, match="only the owner of the tables can do this"):
            await WHOLE[operation](memory)
        assert len(await memory.list_recent(APP, "ana")) == 1


@pytest.fixture
def unsecured(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Secured]:
    with secured(postgres_server, postgres_template, on=False) as database:
        yield database


async def test_a_service_that_runs_learns_of_it_by_a_health_check(unsecured: Secured) -> None:
    engine = open_engine(unsecured.owner)
    async with open_memory(unsecured.role) as memory:
        await memory.add_entry(APP, "ana", MemoryEntry("green tea"))
        assert await status(engine) == RowSecurity(on=False, partly=False, bound=False)
        await enable(engine)
        await enable(engine)
        with pytest.raises(StorageError):
            await memory.list_recent(APP, "ana")
        await memory.health_check()
        assert len(await memory.list_recent(APP, "ana")) == 1
        await disable(engine)
        await disable(engine)
        assert len(await memory.list_recent(APP, "ana")) == 1
        assert await status(engine) == RowSecurity(on=False, partly=False, bound=False)
    await engine.dispose()


async def test_sketches_of_the_vectors_are_made_by_the_owner(database: Secured) -> None:
    sent: list[str] = []
    async with PostgresMemoryService(database.role, embedder=ToyEmbedder(384)) as memory:
        event.listen(
            memory._database._engine.sync_engine, "before_cursor_execute", lambda *arguments: sent.append(arguments[2])
        )
        await memory.add_session(APP, "ana", "s", [MemoryEntry(f"note{number}") for number in range(300)])
    assert not any("sketch IS NULL" in statement for statement in sent)  # of whose vectors it would see nothing
    assert await fetch(database.owner, "SELECT count(sketch) FROM adk_memory_embedding") == [(0,)]
    engine = open_engine(database.owner)
    await enable(engine)
    await engine.dispose()
    assert await fetch(database.owner, "SELECT count(sketch) FROM adk_memory_embedding") == [(300,)]
    async with open_memory(database.role, embedder=ToyEmbedder(384)) as memory:
        await memory.add_entry(APP, "bo", MemoryEntry("another"))
    assert await fetch(database.owner, "SELECT count(sketch) FROM adk_memory_embedding") == [(301,)]


async def test_every_table_with_a_scope_has_a_policy(database: Secured) -> None:
    found = await fetch(
        database.owner,
        "SELECT c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relkind IN ('r', 'p') AND c.relname LIKE 'adk_memory%' "
        "AND a.attname IN ('scope_id', 'user_id') AND NOT c.relrowsecurity",
    )
    assert found == []


async def test_how_it_stands(database: Secured) -> None:
    bound, owner = open_engine(database.role), open_engine(database.owner)
    assert await status(bound) == RowSecurity(on=True, partly=False, bound=True)
    assert await status(owner) == RowSecurity(on=True, partly=False, bound=False)
    with pytest.raises(StorageError):
        await disable(bound)
    await fetch(database.owner, "ALTER TABLE adk_memory_entry DISABLE ROW LEVEL SECURITY")
    assert await status(owner) == RowSecurity(on=False, partly=True, bound=False)
    await bound.dispose()
    await owner.dispose()
