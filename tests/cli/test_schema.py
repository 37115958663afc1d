"""adk-memory upgrade, current, check, reindex: what they say of each state of a database, and their exit codes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from sqlalchemy import text

from adk_memory import migrate
from adk_memory._open import open_engine
from cli.shell import Run

UNREACHABLE = "postgresql://ana:s3cret@127.0.0.1:9/memory"


def _stamp(url: str, revision: str) -> None:
    _execute(url, f"UPDATE adk_memory_schema_version SET version_num = '{revision}'")


def _set_analyser(url: str, version: int) -> None:
    _execute(url, f"UPDATE adk_memory_meta SET value = '{version}' WHERE key = 'analyser'")


def _execute(url: str, statement: str) -> None:
    async def run() -> None:
        engine = open_engine(url)
        async with engine.begin() as connection:
            await connection.execute(text(statement))
        await engine.dispose()

    asyncio.run(run())


def test_an_upgrade_makes_the_tables_once(run: Run, database_url: str) -> None:
    first = run("upgrade", database_url)
    second = run("upgrade", "--url", database_url)

    assert (first.code, first.out) == (0, f"The tables were created; they are at {migrate.HEAD}.\n")
    assert (second.code, second.out) == (0, f"The tables are at {migrate.HEAD} already.\n")


def test_an_upgrade_reports_to_machines(run: Run, database_url: str) -> None:
    first = run("upgrade", database_url, "--json")
    second = run("upgrade", database_url, "--json")

    assert first.document == {"before": None, "after": migrate.HEAD}
    assert second.document == {"before": migrate.HEAD, "after": migrate.HEAD}


def test_current_is_the_revision_or_none(run: Run, postgres_url: str) -> None:
    before = run("current", postgres_url)
    before_json = run("current", postgres_url, "--json")
    run("upgrade", postgres_url)
    after = run("current", postgres_url)

    assert (before.code, before.out) == (0, "none\n")
    assert before_json.document == {"schema_version": None}
    assert after.out == f"{migrate.HEAD}\n"


def test_a_database_at_head_is_ok(run: Run, database_url: str) -> None:
    run("upgrade", database_url)

    checked = run("check", database_url)
    printed = run("check", database_url, "--json")

    backend = "sqlite" if database_url.startswith("sqlite") else "postgresql"
    assert (checked.code, checked.err) == (0, "")
    assert checked.out == f"ok: {backend} answers, its tables are at {migrate.HEAD}\n"
    assert printed.document == {
        "status": "ok", "backend": backend, "schema_version": migrate.HEAD, "index_outdated": False,
    }  # fmt: skip


def test_missing_tables_have_an_exit_code(run: Run, database_url: str) -> None:
    if database_url.startswith("sqlite"):
        Path(database_url.removeprefix("sqlite:///")).touch()

    checked = run("check", database_url)
    printed = run("check", database_url, "--json")

    assert (checked.code, checked.out, checked.err.count("\n")) == (3, "", 1)
    assert "adk-memory upgrade" in checked.err
    assert (printed.code, printed.document["status"]) == (3, "missing")


def test_a_missing_file_has_the_same_exit_code(run: Run) -> None:
    checked = run("check", "nowhere.db")

    assert (checked.code, checked.err) == (
        3, "adk-memory: there is no file nowhere.db; adk-memory upgrade makes it\n"
    )  # fmt: skip
    assert not Path("nowhere.db").exists()


def test_outdated_tables_have_an_exit_code(run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("upgrade", database_url)
    monkeypatch.setattr(migrate, "HEAD", "9999")

    checked = run("check", database_url)
    printed = run("check", database_url, "--json")

    assert (checked.code, checked.out, checked.err.count("\n")) == (4, "", 1)
    assert (printed.code, printed.document["status"]) == (4, "outdated")


def test_tables_of_a_newer_version_have_an_exit_code(run: Run, database_url: str) -> None:
    run("upgrade", database_url)
    _stamp(database_url, "9999")

    checked = run("check", database_url)
    printed = run("check", database_url, "--json")

    assert (checked.code, checked.out, checked.err.count("\n")) == (5, "", 1)
    assert (printed.code, printed.document["status"]) == (5, "too_new")


def test_an_outdated_index_is_told_and_made_anew(run: Run, stored: str) -> None:
    _set_analyser(stored, 0)

    checked = run("check", stored)
    printed = run("check", stored, "--json")
    indexed = run("reindex", stored)

    assert (checked.code, checked.out.count("\n")) == (0, 2)
    assert "adk-memory reindex" in checked.out
    assert (printed.document["status"], printed.document["index_outdated"]) == ("ok", True)
    assert (indexed.code, indexed.out, indexed.err) == (0, "Indexed 9 memories.\n", "")
    assert run("check", stored, "--json").document["index_outdated"] is False


def test_an_upgrade_makes_an_outdated_index_anew(run: Run, database_url: str) -> None:
    run("upgrade", database_url)
    _set_analyser(database_url, 0)

    upgraded = run("upgrade", database_url)

    assert (upgraded.code, upgraded.err) == (0, "")
    assert run("check", database_url, "--json").document["index_outdated"] is False


def test_an_index_of_this_version_can_be_made_anew(run: Run, stored: str) -> None:
    again = run("reindex", stored, "--json")
    from_scratch = run("reindex", "--url", stored, "--from-scratch", "--json")

    assert (again.code, again.document) == (0, {"indexed": 9})
    assert (from_scratch.code, from_scratch.document) == (0, {"indexed": 9})
    found = run("search", "tea", "--app", "notes", "--user", "ana", "--json").document["memories"]
    assert {memory["text"] for memory in found} == {"Green tea at four", "Noted: tea, green"}


def test_an_index_of_a_newer_version_has_the_exit_code_of_its_tables(run: Run, database_url: str) -> None:
    run("upgrade", database_url)
    _set_analyser(database_url, 9999)

    for command in ("check", "upgrade", "reindex"):
        failed = run(command, database_url)
        assert (failed.code, failed.out, failed.err.count("\n")) == (5, "", 1)
    assert run("check", database_url, "--json").document["status"] == "too_new"


@pytest.mark.parametrize("command", ["check", "current", "reindex", "upgrade"])
def test_an_unreachable_database_has_an_exit_code(run: Run, command: str) -> None:
    failed = run(command, UNREACHABLE)

    assert (failed.code, failed.out, failed.err.count("\n")) == (6, "", 1)
    assert "s3cret" not in failed.err


def test_an_unreachable_database_has_a_status(run: Run) -> None:
    assert run("check", UNREACHABLE, "--json").document["status"] == "unreachable"


@pytest.mark.parametrize("arguments", [["search", "tea"], ["recent"], ["delete", "--whole-user", "--yes"]])
def test_every_command_tells_the_state_of_the_tables(run: Run, arguments: list[str]) -> None:
    Path("empty.db").touch()

    failed = run(*arguments, "--app", "a", "--user", "u", "--url", "empty.db")

    assert (failed.code, failed.out) == (3, "")


def test_a_file_of_something_else_is_refused(run: Run) -> None:
    Path("notes.txt").write_text("not a database " * 100)

    failed = run("check", "notes.txt")

    assert (failed.code, failed.out, failed.err.count("\n")) == (1, "", 1)
    assert "not a SQLite database" in failed.err


@pytest.mark.skipif(os.name != "posix", reason="such names are possible on POSIX alone")
@pytest.mark.parametrize("name", ["with space.db", "100%25.db", "what?.db", "a#b&c.db", "größe.db", "a@b.db"])
def test_a_path_is_taken_as_it_is(run: Run, name: str) -> None:
    run("upgrade", name)

    assert Path(name).is_file()
    assert run("check", name).code == 0
