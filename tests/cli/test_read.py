"""adk-memory search and recent: what they find, and how it is shown to people and to machines."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from rich.cells import cell_len

from cli.shell import OWNER, Run, jsonl


def _projects(document: object) -> list[str | None]:
    assert isinstance(document, dict)
    return sorted((memory["project_id"] for memory in document["memories"]), key=str)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("scope", "seen"),
    [([], [None, None]), (["--project", "A"], ["A", "A", None, None]), (["--project", "C"], [None, None])],
)
def test_a_search_sees_the_global_memories_and_the_given_project(
    run: Run, scope: list[str], seen: list[str | None]
) -> None:
    found = run("search", "tea", *OWNER, *scope, "--json")

    assert _projects(found.document) == seen
    assert (found.document["mode"], found.document["partial"]) == ("keyword", False)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        ([], ["A"] * 3 + ["B"] * 3 + [None] * 3),
        (["--project", "A"], ["A"] * 3 + [None] * 3),
        (["--global"], [None] * 3),
    ],
)
def test_recent_sees_everything_unless_narrowed(run: Run, scope: list[str], seen: list[str | None]) -> None:
    assert _projects(run("recent", *OWNER, *scope, "--json").document) == seen


@pytest.mark.usefixtures("stored")
def test_a_search_takes_several_words_a_limit_and_a_least_score(run: Run) -> None:
    limited = run("search", "green", "tea", *OWNER, "--limit", "1", "--json").document["memories"]
    best, second = run("search", "four", "tea", *OWNER, "--json").document["memories"]
    strict = run("search", "four", "tea", *OWNER, "--min-score", str(best["score"]), "--json").document["memories"]

    assert len(limited) == 1
    assert (best["text"], best["score"] > second["score"]) == ("Green tea at four", True)
    assert strict == [best]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("query", ["", "???", '" OR *', "NEAR(", "-tea", "scope:1"])
def test_a_query_is_never_syntax(run: Run, query: str) -> None:
    found = run("search", *OWNER, "--json", "--", query)

    assert (found.code, found.err) == (0, "")


@pytest.mark.usefixtures("stored")
def test_nothing_found_is_no_error(run: Run) -> None:
    found = run("search", "coffee", *OWNER)

    assert (found.code, found.out, found.err) == (0, "No memories.\n", "")


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "tea", *OWNER, "--limit", "-1"], "limit must not be negative"),
        (["search", "tea", *OWNER, "--min-score", "nan"], "min_score must be a finite number"),
        (["search", "tea", *OWNER, "--project", ""], "project_id must have 1 to 256 characters"),
        (["recent", *OWNER, "--project", ""], "project_id must have 1 to 256 characters"),
        (["recent", "--app", "", "--user", "ana"], "app_name must have 1 to 256 characters"),
    ],
)
def test_bad_values_are_refused_in_one_line(run: Run, arguments: list[str], message: str) -> None:
    refused = run(*arguments)

    assert (refused.code, refused.out) == (1, "")
    assert message in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.usefixtures("stored")
def test_a_table_has_the_score_the_scope_and_the_text(run: Run) -> None:
    lines = run("search", "four", *OWNER, "--project", "A").out.splitlines()

    assert [line.split() for line in lines[:2]] == [
        ["Score", "Project", "Memory"],
        [lines[1].split()[0], "(global)", "Green", "tea", "at", "four"],
    ]
    assert lines[2].strip() == "ana · 2026-03-01 10:00 · session talk"
    assert lines[3].split()[1:] == ["A", "Green", "tea", "at", "four"]


@pytest.mark.usefixtures("stored")
def test_ids_are_shown_on_request(run: Run) -> None:
    assert "note-3" not in run("recent", *OWNER).out
    assert "note-3" in run("recent", *OWNER, "--ids").out


@pytest.mark.usefixtures("database")
def test_tables_fit_80_columns_and_hold_no_escape_sequence(run: Run) -> None:
    lines = [{"content": text * 60, "author": "x" * 300} for text in ("word ", "国立タイル", "👩‍👩‍👧 ", "a\n")]
    run("add", "-", *OWNER, "--session", "s" * 200, "--project", "p" * 200, stdin=jsonl(*lines))

    shown = run("recent", *OWNER, "--ids").out

    assert max(cell_len(line) for line in shown.splitlines()) <= 80
    assert shown.count("…") >= 8
    assert "\x1b" not in shown


HOSTILE = "tea \x1b]0;owned\x07\x1b[2J\x9b31m\x7f\r\n\t\x08\u202eabc\u2066\u2028\u2029"


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_memory_can_steer_the_terminal(run: Run, form: list[str]) -> None:
    line = {"content": HOSTILE, "author": HOSTILE, "id": HOSTILE, "metadata": {HOSTILE: HOSTILE}}
    run("add", "-", "--app", HOSTILE, "--user", HOSTILE, "--session", HOSTILE, "--project", HOSTILE,
        stdin=jsonl(line))  # fmt: skip

    shown = run("search", "tea", "--app", HOSTILE, "--user", HOSTILE, "--project", HOSTILE, *form).out

    assert "tea" in shown
    steering = [c for c in shown if unicodedata.category(c) in {"Cc", "Zl", "Zp"} or c in "\u202e\u2066"]
    assert set(steering) == {"\n"}
    if form:
        assert json.loads(shown)["memories"][0]["author"] == HOSTILE


@pytest.mark.usefixtures("database")
def test_text_of_a_memory_is_not_markup(run: Run) -> None:
    run("add", "-", *OWNER, "--session", "s", stdin=jsonl({"content": "[red]tea[/red] :smile: [/]"}))

    assert "[red]tea[/red] :smile: [/]" in run("search", "tea", *OWNER).out


@pytest.mark.usefixtures("database")
def test_an_entry_without_text_says_so(run: Run) -> None:
    part = {"function_call": {"name": "f", "args": {}}}
    run("add", "-", *OWNER, "--session", "s", stdin=jsonl({"content": {"role": "model", "parts": [part]}}))

    assert "(no text, 1 part)" in run("recent", *OWNER).out


@pytest.mark.usefixtures("stored")
def test_a_mistyped_file_is_not_made(run: Run) -> None:
    found = run("search", "tea", *OWNER, "--url", "sqlite:///memroy.db")

    assert (found.code, found.err) == (
        3, "adk-memory: there is no file memroy.db; adk-memory upgrade makes it\n",
    )  # fmt: skip
    assert not Path("memroy.db").exists()
