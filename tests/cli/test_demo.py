"""adk-memory demo: the whole of the library on the shipped conversation, and nothing of it left."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from rich.cells import cell_len

from cli.shell import OWNER, Run

DEMO_FILES = sorted(str(path) for path in (files("adk_memory.cli") / "demo").iterdir())


def _answers(output: str) -> dict[str, list[list[str]]]:
    """The rows below each question, as score, project and text."""
    answers: dict[str, list[list[str]]] = {}
    for line in output.splitlines():
        if line.startswith("   ") and line.endswith("”"):
            question = line.strip()
            answers[question] = []
        elif line.startswith("   0."):
            answers[question].append(line.split(maxsplit=2))
    return answers


def test_the_demo_tells_a_story_in_six_steps(run: Run) -> None:
    shown = run("demo")

    assert (shown.code, shown.err) == (0, "")
    assert [line[0] for line in shown.out.splitlines() if line[1:2] == "."] == list("123456")
    assert max(cell_len(line) for line in shown.out.splitlines()) <= 80
    assert "\x1b" not in shown.out


def test_the_first_answer_is_the_right_one(run: Run) -> None:
    answers = _answers(run("demo").out)

    firsts = {question: rows[0][2] for question, rows in answers.items()}
    assert firsts["in harbour: “Which mornings are for a deploy?”"].startswith("We deploy on Tuesday")
    assert firsts["in lisbon: “タイル博物館”"].startswith("Haruka writes: 国立タイル博物館")
    assert firsts["in lisbon: “pequeno-almoco incluido”"].startswith("The guest house answered")
    assert firsts["outside of the projects: “Wie zorgt voor de kat?”"].startswith("Mijn broer Joris")


def test_a_project_sees_itself_and_the_global_memories_alone(run: Run) -> None:
    answers = _answers(run("demo").out)

    seen = {question: {row[1] for row in rows} for question, rows in answers.items()}
    assert seen["outside of the projects: “budget euro”"] == {"(global)"}
    assert seen["in harbour: “budget euro”"] == {"(global)", "harbour"}
    assert seen["in lisbon: “budget euro”"] == {"(global)", "lisbon"}


def test_the_demo_erases_what_it_stored(run: Run) -> None:
    shown = run("demo", "--url", "mine.db").out

    erased = [int(line.split(": ")[1].split()[0]) for line in shown.splitlines() if " erased" in line]
    assert sum(erased) == 30
    assert "listed: 0 memories; found: 0 memories" in shown
    with closing(sqlite3.connect("mine.db")) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("adk_memory_entry", "adk_memory_scope")
        ]
    assert counts == [0, 0]


def test_without_options_no_file_is_left(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    shown = run("demo").out

    assert f"sqlite:///{temporary}" in shown
    assert list(temporary.iterdir()) == []
    assert list(Path.cwd().iterdir()) == []


def test_it_can_be_kept_and_searched(run: Run) -> None:
    shown = run("demo", "--keep").out
    [search] = [line.split() for line in shown.splitlines() if line.startswith("   adk-memory search")]

    found = run(*search[1:], "--url", "adk-memory-demo.db").out

    assert "We deploy on Tuesday mornings only" in found


def test_a_kept_file_is_not_overwritten(run: Run) -> None:
    run("demo", "--keep")
    before = Path("adk-memory-demo.db").read_bytes()

    refused = run("demo", "--keep")

    assert (refused.code, "adk-memory-demo.db exists already" in refused.err) == (2, True)
    assert Path("adk-memory-demo.db").read_bytes() == before


def test_a_database_in_use_keeps_its_memories(run: Run, stored: str) -> None:
    before = run("recent", *OWNER, "--json").document

    assert run("demo", "--url", stored).code == 0

    assert run("recent", *OWNER, "--json").document == before


def test_the_demo_runs_on_postgres_in_a_process_of_its_own(process: Run, run: Run, postgres_url: str) -> None:
    shown = process("demo", "--url", postgres_url)

    assert (shown.code, shown.err) == (0, "")
    assert "listed: 0 memories; found: 0 memories" in shown.out
    assert run("check", postgres_url).code == 0


def test_both_databases_give_the_same_demo(run: Run, postgres_url: str) -> None:
    on_sqlite = _answers(run("demo").out)
    on_postgres = _answers(run("demo", "--url", postgres_url).out)

    assert on_sqlite == on_postgres


def test_a_demo_that_fails_halfway_erases_what_it_stored(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_memories: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("adk_memory.cli._demo.print_answers", closed)
    monkeypatch.setattr("adk_memory.cli._discard_output", lambda: None)

    failed = run("demo", "--url", "mine.db")

    assert failed.code == 141
    with closing(sqlite3.connect("mine.db")) as connection:
        assert connection.execute("SELECT count(*) FROM adk_memory_entry").fetchone() == (0,)


@pytest.mark.parametrize("path", DEMO_FILES)
def test_the_shipped_sessions_are_files_that_add_reads(run: Run, database: str, path: str) -> None:
    assert run("add", path, *OWNER, "--url", database).code == 0
