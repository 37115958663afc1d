"""Errors of drivers become ours at one seam: by class and code, with the cause, without what was stored."""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import AsyncGenerator
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import migrate
from adk_memory._sql.failures import translated
from adk_memory.errors import StorageError, StorageUnavailableError
from migrations.support import execute, host_engine, on_connect

SECRET = "the password of my bank is tulip"


async def run(engine: AsyncEngine, *statements: str) -> None:
    async with translated():
        await execute(engine, *statements)


@pytest.fixture
async def unreachable() -> AsyncGenerator[AsyncEngine]:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        engine = host_engine(f"postgresql://me:hunter2@127.0.0.1:{closed.getsockname()[1]}/x")
        yield engine
    await engine.dispose()


async def test_a_server_that_does_not_listen_is_unavailable(unreachable: AsyncEngine) -> None:
    for call in (migrate.current, migrate.require_head, migrate.upgrade):
        with pytest.raises(StorageUnavailableError, match="could not be reached") as caught:
            await call(unreachable)
        assert isinstance(caught.value.__cause__, OSError)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"database": "not_there"}, "no database of that name.*3D000"),
        ({"username": "not_there", "password": "wrong"}, "check the user and the password.*28"),
    ],
)
async def test_a_refused_connection_is_unavailable_and_says_what_to_check(
    postgres_url: str, change: dict[str, str], words: str
) -> None:
    url = make_url(postgres_url).set(**change)  # type: ignore[arg-type]
    engine = host_engine(url.render_as_string(hide_password=False))

    with pytest.raises(StorageUnavailableError, match=words):
        await migrate.current(engine)
    await engine.dispose()


async def test_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    engine = host_engine(f"sqlite:///{tmp_path}/no/memory.db")

    with pytest.raises(StorageUnavailableError, match="could not be opened: check that its folder exists"):
        await migrate.upgrade(engine)
    await engine.dispose()


async def test_a_locked_database_is_unavailable(sqlite_url: str) -> None:
    first, second = host_engine(sqlite_url), host_engine(sqlite_url, connect_args={"timeout": 0.1})
    await run(first, "CREATE TABLE t (a)")

    async with first.connect() as writing:
        await writing.execute(text("INSERT INTO t VALUES (1)"))
        with pytest.raises(StorageUnavailableError, match="stayed locked by another connection"):
            await run(second, "INSERT INTO t VALUES (2)")
    await first.dispose()
    await second.dispose()


async def test_a_read_only_database_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    writable = host_engine(sqlite_url)
    await run(writable, "CREATE TABLE t (a)")
    await writable.dispose()
    engine = host_engine(f"sqlite:///file:{tmp_path}/memory.db?mode=ro&uri=true")

    with pytest.raises(StorageError, match="read-only: check the permissions") as caught:
        await migrate.upgrade(engine)
    assert not isinstance(caught.value, StorageUnavailableError)
    await engine.dispose()


async def test_a_full_disk_is_refused_and_nothing_is_half_made(sqlite_engine: AsyncEngine) -> None:
    on_connect(sqlite_engine, "PRAGMA max_page_count = 5")

    with pytest.raises(StorageError, match="disk of the SQLite database is full") as caught:
        await migrate.upgrade(sqlite_engine)

    assert not isinstance(caught.value, StorageUnavailableError)
    assert await migrate.current(sqlite_engine) is None


async def test_a_file_that_is_no_database_is_refused(sqlite_engine: AsyncEngine, tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"something else entirely" * 100)

    with pytest.raises(StorageError, match="is not a SQLite database") as caught:
        await migrate.upgrade(sqlite_engine)
    assert not isinstance(caught.value, StorageUnavailableError)


async def test_a_read_only_server_is_refused(postgres_engine: AsyncEngine) -> None:
    with pytest.raises(StorageError, match=r"read-only.*25006"):
        await run(postgres_engine, "SET TRANSACTION READ ONLY", "CREATE TABLE t (a int)")


async def test_a_statement_that_takes_too_long_is_unavailable(postgres_engine: AsyncEngine) -> None:
    with pytest.raises(StorageUnavailableError, match="57014"):
        await run(postgres_engine, "SET LOCAL statement_timeout = 50", "SELECT pg_sleep(60)")


async def test_a_connection_that_the_server_ends_is_unavailable(postgres_engine: AsyncEngine) -> None:
    with pytest.raises(StorageUnavailableError):
        await run(postgres_engine, "SELECT pg_terminate_backend(pg_backend_pid())")


async def test_a_refused_statement_is_a_storage_error(engine: AsyncEngine) -> None:
    for statement in ("SELECT no FROM no", "nonsense"):
        with pytest.raises(StorageError, match="refused the statement") as caught:
            await run(engine, statement)
        assert not isinstance(caught.value, StorageUnavailableError)
        assert caught.value.__cause__ is not None


async def test_a_value_that_cannot_be_sent_is_a_storage_error(postgres_engine: AsyncEngine) -> None:
    with pytest.raises(StorageError, match="refused the statement") as caught:
        async with translated(), postgres_engine.connect() as connection:
            await connection.execute(text("SELECT CAST(:number AS integer)"), {"number": 2**80})
    assert not isinstance(caught.value, StorageUnavailableError)


async def test_neither_the_message_nor_its_cause_holds_what_was_stored(engine: AsyncEngine) -> None:
    await run(engine, "CREATE TABLE t (a text NOT NULL, b text)")

    with pytest.raises(StorageError) as caught:
        async with translated(), engine.begin() as connection:
            await connection.execute(text("INSERT INTO t (a, b) VALUES (:a, nowhere(:b))"), {"a": SECRET, "b": SECRET})

    assert SECRET not in "".join(traceback.format_exception(caught.value))


async def test_errors_of_asyncpg_itself_are_known() -> None:
    with pytest.raises(StorageUnavailableError, match=r"no connection or memory left.*53300"):
        async with translated():
            raise asyncpg.TooManyConnectionsError("sorry, too many clients already")


async def test_misuse_of_sqlalchemy_is_not_called_unavailable() -> None:
    with pytest.raises(StorageError) as caught:
        async with translated():
            raise InvalidRequestError("no")
    assert not isinstance(caught.value, StorageUnavailableError)


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), StorageError("ours")])
async def test_other_errors_pass(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        async with translated():
            raise error
    assert caught.value is error
