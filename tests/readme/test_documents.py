"""The documents tell the truth: their Python runs, their output is what it prints, their commands exist."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from adk_memory import MemoryService, open_memory
from adk_memory.cli import COMMANDS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)(#[^)]*)?\)")

pytestmark = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def memory(runner: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryService]:
    """The ``memory`` that the documents' later blocks speak of: open, migrated, with what the first one stored."""
    monkeypatch.chdir(tmp_path)
    service = open_memory("sqlite:///documents.db")
    runner.run(service.migrate())
    yield service
    runner.run(service.close())


def test_its_python_runs_and_prints_what_it_says(
    document: Path, runner: asyncio.Runner, memory: MemoryService, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "document"}
    blocks = FENCED.findall(document.read_text())
    for (language, source), (next_language, output) in pairwise([*blocks, ("", "")]):
        if language == "python":
            names["memory"] = memory
            _run(source, names, runner)
            printed = capsys.readouterr().out
            if next_language == "text":
                assert printed == output


def _run(source: str, names: dict[str, Any], runner: asyncio.Runner) -> None:
    code = compile(source, "<document>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(eval(code, names))
    else:
        exec(code, names)


def test_its_commands_run(document: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for language, source in FENCED.findall(document.read_text()):
        if language == "sh" and "adk-memory" in source and "sqlite" in source:
            ran = subprocess.run(
                ["/bin/sh", "-e", "-c", source],
                cwd=tmp_path,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr


def test_its_commands_exist(document: Path) -> None:
    shells = "".join(source for language, source in FENCED.findall(document.read_text()) if language == "sh")

    assert set(re.findall(r"\badk-memory ([a-z-]+)", shells)) <= {command.name for command in COMMANDS}


def test_its_links_lead_somewhere(document: Path) -> None:
    for target, anchor in LINK.findall(document.read_text()):
        linked = document.parent / target
        assert linked.exists(), target
        if anchor:
            assert anchor[1:] in _anchors(linked), f"{target}{anchor}"


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
