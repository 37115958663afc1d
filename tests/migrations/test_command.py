"""The command `alembic` in a checkout."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_memory import migrate
from migrations.support import fetch, host_engine

CHECKOUT = Path(__file__).parents[2]
INI = CHECKOUT / "alembic.ini"


def alembic(*arguments: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name != "ADK_MEMORY_URL"}
    return subprocess.run(
        [sys.executable, "-m", "alembic", "-c", INI, *arguments],
        cwd=directory,
        env=known | environment,
        capture_output=True,
        text=True,
        check=False,
    )


async def test_the_url_is_given_on_the_command_line_in_its_plain_spelling(
    postgres_engine: AsyncEngine, postgres_url: str, tmp_path: Path
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        option = f"url={postgres_url}"
        return alembic("-x", option, *arguments, directory=tmp_path, ADK_MEMORY_URL="sqlite:///wrong.db")

    upgraded = await asyncio.to_thread(run, "upgrade", "head")
    assert upgraded.returncode == 0, upgraded.stderr
    [(kind,)] = await fetch(
        postgres_engine,
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = CAST('adk_memory_embedding' AS regclass) AND attname = 'vector'",
    )
    assert kind == "halfvec"

    checked = await asyncio.to_thread(run, "check")
    assert checked.returncode == 0, checked.stderr
    assert "No new upgrade operations" in checked.stdout

    downgraded = await asyncio.to_thread(run, "downgrade", "base")
    assert downgraded.returncode == 0, downgraded.stderr
    assert await migrate.current(postgres_engine) is None
    assert not (tmp_path / "wrong.db").exists()


def test_the_url_is_given_in_the_environment(tmp_path: Path) -> None:
    done = alembic("upgrade", "head", directory=tmp_path, ADK_MEMORY_URL="sqlite:///mine.db")

    assert done.returncode == 0, done.stderr
    assert revision(tmp_path / "mine.db") == migrate.HEAD


def test_without_a_url_it_is_a_file_in_the_current_folder(tmp_path: Path) -> None:
    done = alembic("upgrade", "head", directory=tmp_path)

    assert done.returncode == 0, done.stderr
    assert revision(tmp_path / "dev.db") == migrate.HEAD


def revision(path: Path) -> str | None:
    async def read() -> str | None:
        engine = host_engine(f"sqlite:///{path}")
        found = await migrate.current(engine)
        await engine.dispose()
        return found

    return asyncio.run(read())


def test_sql_scripts_are_refused(tmp_path: Path) -> None:
    done = alembic("upgrade", "head", "--sql", directory=tmp_path)

    assert done.returncode != 0
    assert "offline mode (--sql) is not supported" in done.stderr


@pytest.mark.heavy
def test_a_new_revision_gets_the_name_and_the_form_of_ours(tmp_path: Path) -> None:
    ini = tmp_path / "alembic.ini"
    ini.write_text(INI.read_text())
    copy = tmp_path / "migrations"
    copy.mkdir()
    subprocess.run(["cp", "-r", f"{CHECKOUT}/migrations/.", copy], check=True)
    assert alembic("upgrade", "head", directory=tmp_path).returncode == 0

    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-c", ini, "revision", "--autogenerate", "--rev-id", "0002", "-m", "more"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    written = (copy / "versions" / "0002_more.py").read_text()
    assert written.startswith('"""more.\n\nRevision ID: 0002\nRevises: 0001\n"""\n')
    assert 'revision = "0002"' in written or "revision = '0002'" in written
    assert "drop_table" not in written
