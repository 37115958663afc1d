"""The life of a schema: missing, outdated, at head, too new; up and down with what is in it."""

from __future__ import annotations

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import migrate
from adk_memory.errors import (
    ConfigurationError,
    SchemaError,
    SchemaMissingError,
    SchemaOutdatedError,
    SchemaTooNewError,
    StorageError,
)
from migrations.support import (
    Scripts,
    execute,
    fetch,
    host_engine,
    index,
    matching,
    on_connect,
    store_two_entries,
    table_names,
)

ADD_A_COLUMN = 'op.add_column("adk_memory_entry", sa.Column("note", sa.Text()))'
DROP_THE_COLUMN = 'op.drop_column("adk_memory_entry", "note")'
RECREATE_SCOPES = """
rebuild = "always" if op.get_bind().dialect.name == "sqlite" else "never"
with op.batch_alter_table("adk_memory_scope", recreate=rebuild) as batch:
    batch.add_column(sa.Column("note", sa.Text()))
"""
RECREATE_SCOPES_BACK = RECREATE_SCOPES.replace('add_column(sa.Column("note", sa.Text()))', 'drop_column("note")')


def test_head_is_the_newest_script() -> None:
    scripts = ScriptDirectory.from_config(migrate._config())

    assert scripts.get_current_head() == migrate.HEAD


def test_there_is_one_line_of_revisions() -> None:
    scripts = ScriptDirectory.from_config(migrate._config())

    assert len(scripts.get_bases()) == len(scripts.get_heads()) == 1
    assert not any(script.is_merge_point or script.is_branch_point for script in scripts.walk_revisions())


async def test_an_empty_database_has_no_revision_and_says_what_to_do(engine: AsyncEngine) -> None:
    assert await migrate.current(engine) is None
    with pytest.raises(SchemaMissingError, match=r"no tables .* 0001 is needed.*`adk-memory upgrade`.*migrate"):
        await migrate.require_head(engine)


async def test_upgrade_brings_an_empty_database_to_head(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)

    assert await migrate.current(engine) == migrate.HEAD
    await migrate.require_head(engine)


async def test_upgrade_at_head_changes_nothing(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)
    await store_two_entries(engine)

    await migrate.upgrade(engine)

    assert await matching(engine, "tea") == [1, 2]


async def test_an_older_revision_is_outdated(engine: AsyncEngine, scripts: Scripts) -> None:
    await migrate.upgrade(engine)
    scripts.add("0002", "0001", ADD_A_COLUMN)

    with pytest.raises(SchemaOutdatedError, match=r"at revision 0001, revision 0002 is needed.*adk-memory upgrade"):
        await migrate.require_head(engine)


async def test_an_unknown_revision_is_too_new_for_everything(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)
    await execute(engine, f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9999'")

    for attempt in (migrate.require_head(engine), migrate.upgrade(engine), migrate.downgrade(engine, "base")):
        with pytest.raises(SchemaTooNewError, match=r"revision 9999.*0001 is needed; install a newer"):
            await attempt

    assert "adk_memory_entry" in await table_names(engine)


@pytest.mark.parametrize("revision", ["0815", "head+1", "-7"])
async def test_a_revision_that_does_not_exist_is_a_configuration_error(engine: AsyncEngine, revision: str) -> None:
    await migrate.upgrade(engine)

    with pytest.raises(ConfigurationError, match=f"cannot downgrade to revision '{revision[:1]}"):
        await migrate.downgrade(engine, revision)
    await migrate.require_head(engine)


async def test_downgrade_to_base_leaves_the_version_table_only(engine: AsyncEngine) -> None:
    await migrate.upgrade(engine)
    await store_two_entries(engine)

    await migrate.downgrade(engine, "base")

    assert await table_names(engine) - {"sqlite_sequence"} == {migrate.VERSION_TABLE}
    assert await migrate.current(engine) is None
    await migrate.upgrade(engine)
    await migrate.require_head(engine)


async def test_going_up_down_and_up_keeps_rows_and_their_index(engine: AsyncEngine, scripts: Scripts) -> None:
    await migrate.upgrade(engine)
    await store_two_entries(engine)
    scripts.add("0002", "0001", ADD_A_COLUMN, DROP_THE_COLUMN)
    scripts.add("0003", "0002", RECREATE_SCOPES, RECREATE_SCOPES_BACK)

    for step, revision in enumerate(["0002", "0003", "0002", "0001", "0003"]):
        turn = migrate.downgrade if revision < (await migrate.current(engine) or "") else migrate.upgrade
        await turn(engine, revision)

        assert await migrate.current(engine) == revision
        assert [tuple(row) for row in await fetch(engine, "SELECT count(*) FROM adk_memory_entry")] == [(2,)]
        assert await fetch(engine, "SELECT user_id FROM adk_memory_scope") == [("ana",)]
        await index(engine, 10 + step, f"cocoa{step}")
        assert await matching(engine, f"cocoa{step}") == [10 + step]
        assert await matching(engine, "tea") == [1, 2]


async def test_enforced_foreign_keys_survive_a_rebuilt_parent(sqlite_url: str, scripts: Scripts) -> None:
    engine = host_engine(sqlite_url)
    on_connect(engine, "PRAGMA foreign_keys = ON")

    await migrate.upgrade(engine)
    await store_two_entries(engine)
    scripts.add("0002", "0001", RECREATE_SCOPES)
    await migrate.upgrade(engine)

    assert await fetch(engine, "SELECT count(*) FROM adk_memory_entry") == [(2,)]
    assert await fetch(engine, "PRAGMA foreign_keys") == [(1,)]
    assert await fetch(engine, "PRAGMA busy_timeout") == [(5000,)]
    await engine.dispose()


async def test_a_revision_that_breaks_references_is_undone(sqlite_engine: AsyncEngine, scripts: Scripts) -> None:
    await migrate.upgrade(sqlite_engine)
    await store_two_entries(sqlite_engine)
    scripts.add("0002", "0001", 'op.execute("DELETE FROM adk_memory_scope")')

    with pytest.raises(SchemaError, match="adk_memory_entry without their adk_memory_scope"):
        await migrate.upgrade(sqlite_engine)

    assert await migrate.current(sqlite_engine) == "0001"
    assert await fetch(sqlite_engine, "SELECT count(*) FROM adk_memory_scope") == [(1,)]


async def test_a_failing_revision_is_undone_and_can_be_tried_again(engine: AsyncEngine, scripts: Scripts) -> None:
    await migrate.upgrade(engine)
    scripts.add(
        "0002",
        "0001",
        'op.create_table("adk_memory_junk", sa.Column("a", sa.Integer()))\nop.execute("SELECT no FROM no")',
    )

    for _ in range(2):
        with pytest.raises(StorageError):
            await migrate.upgrade(engine)
        assert await migrate.current(engine) == "0001"
        assert "adk_memory_junk" not in await table_names(engine)

    scripts.add("0002", "0001", ADD_A_COLUMN)
    await migrate.upgrade(engine)
    await migrate.require_head(engine)


async def test_revisions_before_the_failing_one_stay_on_postgres(
    postgres_engine: AsyncEngine, scripts: Scripts
) -> None:
    scripts.add("0002", "0001", ADD_A_COLUMN)
    scripts.add("0003", "0002", 'op.execute("SELECT no FROM no")')

    with pytest.raises(StorageError):
        await migrate.upgrade(postgres_engine)

    assert await migrate.current(postgres_engine) == "0002"


async def test_an_engine_that_commits_by_itself_still_undoes_a_failing_revision(
    database_url: str, scripts: Scripts
) -> None:
    engine = host_engine(database_url, isolation_level="AUTOCOMMIT")
    scripts.add(
        "0002",
        "0001",
        'op.create_table("adk_memory_junk", sa.Column("a", sa.Integer()))\nop.execute("SELECT no FROM no")',
    )

    with pytest.raises(StorageError):
        await migrate.upgrade(engine)

    assert "adk_memory_junk" not in await table_names(engine)
    await engine.dispose()
