"""adk-memory erase-user and scrub: what they print, and what their exit codes say."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from adk_memory._sql import sqlite_scrub
from cli.shell import OWNER, Run, jsonl

pytestmark = pytest.mark.usefixtures("stored")


def test_a_user_is_erased_and_nobody_else(run: Run) -> None:
    run("add", "-", "--app", "notes", "--user", "ben", "--session", "talk", stdin=jsonl({"content": "green tea"}))

    erased = run("erase-user", *OWNER, "--yes")

    assert (erased.code, erased.out) == (0, "Erased 9 memories: 0 vectors, 9 entries of the index, 3 scopes.\n")
    assert run("recent", *OWNER, "--json").document["memories"] == []
    assert len(run("recent", "--app", "notes", "--user", "ben", "--json").document["memories"]) == 1


def test_what_was_erased_is_printed_in_its_parts(run: Run) -> None:
    erased = run("erase-user", *OWNER, "--yes", "--json")

    assert erased.document == {"erased": 9, "vectors": 0, "index_entries": 9, "scopes": 3}


def test_it_is_proven_that_nothing_is_left(run: Run) -> None:
    proven = run("erase-user", *OWNER, "--yes", "--verify", "--json")

    assert (proven.code, proven.document["erased"], proven.document["left"]) == (0, 9, [])
    assert set(proven.document["found"].values()) == {0}
    assert {"entries", "vectors", "scopes", "index segments", "file", "write-ahead log"} <= set(
        proven.document["found"]
    )
    assert "緑茶が好きです".encode() not in Path("memory.db").read_bytes()
    said = run("erase-user", *OWNER, "--yes", "--verify")
    assert (said.code, said.out.splitlines()[0]) == (
        0, "Erased 0 memories: 0 vectors, 0 entries of the index, 0 scopes."
    )  # fmt: skip
    assert said.out.endswith("Nothing of the user was there, so nothing was looked for.\n")


def test_what_is_found_makes_it_fail(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_scrub, "_merge", lambda *_arguments, **_more: False)

    proven = run("erase-user", *OWNER, "--yes", "--verify", "--json")

    assert proven.code == 1
    assert proven.document["found"]["index segments"] > 0
    assert "something was found in: index segments" in proven.err
    for word in ("ana", "tea"):
        assert word not in proven.err


def test_without_a_terminal_it_does_not_guess(run: Run) -> None:
    refused = run("erase-user", *OWNER, "--verify")

    assert (refused.code, refused.out) == (2, "")
    assert "pass --yes" in refused.err
    assert len(run("recent", *OWNER, "--json").document["memories"]) == 9


def test_a_scrub_says_that_all_is_removed(run: Run) -> None:
    run("delete", *OWNER, "--whole-user", "--yes")

    said, printed = run("scrub"), run("scrub", "--json")

    assert (said.code, said.out) == (0, "What erased memories had left behind is removed.\n")
    assert (printed.code, printed.document) == (0, {"complete": True, "left": []})


def test_a_scrub_says_who_is_in_the_way(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_scrub, "_PATIENCE_SECONDS", 0.0)
    reader = sqlite3.connect("memory.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM adk_memory_entry").fetchone()

    scrubbed = run("scrub", "--json")
    reader.close()

    assert (scrubbed.code, scrubbed.document["complete"]) == (1, False)
    assert ["write-ahead log" in line for line in scrubbed.document["left"]] == [True]
    assert "write-ahead log" in scrubbed.err
