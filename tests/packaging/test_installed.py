"""The wheel at work, outside of the checkout: what a user has after ``pip install``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distributions import RECALL, REMEMBER


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """An empty directory that stays empty: root could write to it even so."""
    directory = tmp_path / "elsewhere"
    directory.mkdir(mode=0o555)
    yield directory
    assert list(directory.iterdir()) == []


def _python(installed: Path, elsewhere: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("ADK_MEMORY_URL", None)
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_wheel_is_what_these_tests_run(installed: Path, elsewhere: Path) -> None:
    found = _python(installed, elsewhere, "-c", "import adk_memory; print(adk_memory.__file__)")

    assert Path(found.strip()).is_relative_to(installed)


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_url"])
def test_what_one_process_stores_another_recalls(
    database: str, request: pytest.FixtureRequest, installed: Path, elsewhere: Path
) -> None:
    url = request.getfixturevalue(database)

    _python(installed, elsewhere, "-c", REMEMBER, url)
    recalled = _python(installed, elsewhere, "-c", RECALL, url)

    assert recalled.strip() == "['green tea']"


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_url"])
def test_the_command_migrates_adds_and_searches(
    database: str, request: pytest.FixtureRequest, installed: Path, elsewhere: Path, tmp_path: Path
) -> None:
    url = request.getfixturevalue(database)
    conversation = tmp_path / "monday.jsonl"
    conversation.write_text('{"content": "green tea"}')

    def command(*arguments: str) -> str:
        run = "import sys; from adk_memory.cli import main; sys.exit(main())"
        return _python(installed, elsewhere, "-c", run, *arguments)

    command("upgrade", "--url", url)
    command("add", "--url", url, "--app", "app", "--user", "ana", str(conversation))

    assert "green tea" in command("search", "--url", url, "--app", "app", "--user", "ana", "tea")


def test_the_installed_files_are_left_as_they_were(installed: Path, sqlite_url: str, elsewhere: Path) -> None:
    before = sorted(installed.rglob("*"))

    _python(installed, elsewhere, "-c", REMEMBER, sqlite_url)

    assert sorted(installed.rglob("*")) == before
