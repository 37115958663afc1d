"""The command, called in this process or in one of its own, in an empty folder."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adk_memory.cli import main
from cli.shell import OWNER, TALK, Outcome, Run, command, jsonl


@pytest.fixture(autouse=True)
def _in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("ADK_MEMORY_URL", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call the command in this process."""

    def call(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = 0 if stop.code is None else int(stop.code)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def process() -> Run:
    """Call the command in a process of its own."""

    def call(*arguments: str, stdin: bytes = b"") -> Outcome:
        done = subprocess.run(command(arguments), input=stdin, capture_output=True, timeout=120, check=False)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def database(run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """A migrated SQLite file that the environment names, without memories."""
    url = "sqlite:///memory.db"
    assert run("upgrade", url).code == 0
    monkeypatch.setitem(os.environ, "ADK_MEMORY_URL", url)
    return url


@pytest.fixture
def stored(run: Run, database: str) -> str:
    """`database` with `TALK` in it: global, in project A and in project B."""
    Path("talk.jsonl").write_bytes(jsonl(*TALK))
    for project in ([], ["--project", "A"], ["--project", "B"]):
        assert run("add", "talk.jsonl", *OWNER, *project).code == 0
    return database
