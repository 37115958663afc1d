"""adk-memory export, import and purge: nothing is lost on the way, and a file is whole or not there."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.shell import OWNER, Outcome, Run, jsonl

FIELDS = ["id", "session_id", "project_id", "position", "author", "timestamp", "expires_at", "content", "metadata"]
LINE: dict[str, Any] = {
    "id": "e", "session_id": "s", "project_id": None, "position": 3, "author": "ana",
    "timestamp": "2026-03-01T10:00:00.000001+00:00", "expires_at": None,
    "content": {"role": "user", "parts": [{"text": "tea \u2028\x85\u202e"}]}, "metadata": {"n": 1.0},
}  # fmt: skip


def _export(run: Run, user: str = "ana") -> list[dict[str, Any]]:
    exported = run("export", "--app", "notes", "--user", user)
    assert (exported.code, exported.err) == (0, "")
    return [json.loads(line) for line in exported.out.split("\n") if line]


def test_a_line_has_all_fields(run: Run, stored: str) -> None:
    lines = _export(run)

    assert [list(line) for line in lines] == [FIELDS] * 9
    assert [line["project_id"] for line in lines] == [None] * 3 + ["A"] * 3 + ["B"] * 3


def test_what_is_imported_is_exported_again_byte_by_byte(run: Run, stored: str) -> None:
    first = run("export", *OWNER).out

    imported = run("import", "-", "--app", "notes", "--user", "copy", stdin=first.encode())

    assert imported.out == "Imported 9 memories.\n"
    assert run("export", "--app", "notes", "--user", "copy").out == first


def test_importing_twice_leaves_one_copy(run: Run, database: str) -> None:
    Path("all.jsonl").write_bytes(jsonl(LINE, {**LINE, "id": "f", "session_id": None, "position": None}))

    for _ in range(2):
        assert run("import", "all.jsonl", *OWNER, "--json").document == {"imported": 2}

    assert _export(run) == [LINE, {**LINE, "id": "f", "session_id": None, "position": None}]


def test_no_line_is_broken_by_what_is_in_it(run: Run, database: str) -> None:
    run("import", "-", *OWNER, stdin=jsonl(LINE))

    exported = run("export", *OWNER).out

    assert len(exported.splitlines()) == 1
    assert json.loads(exported) == LINE


def test_a_file_is_whole_and_for_its_owner(run: Run, stored: str) -> None:
    Path("all.jsonl").write_text("something else")

    exported = run("export", "all.jsonl", *OWNER)

    assert exported.out == "Exported 9 memories to all.jsonl.\n"
    assert Path("all.jsonl").read_text(encoding="utf-8") == run("export", *OWNER).out
    assert stat.S_IMODE(Path("all.jsonl").stat().st_mode) == 0o600
    assert sorted(path.name for path in Path().iterdir() if "jsonl" in path.name) == ["all.jsonl", "talk.jsonl"]


def test_a_file_that_fails_leaves_what_was_there(run: Run, stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("all.jsonl").write_text("something else")

    def fail(_memory: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("adk_memory.cli._keeping.export_line", fail)
    exported = run("export", "all.jsonl", *OWNER)

    assert (exported.code, exported.out) == (1, "")
    assert Path("all.jsonl").read_text() == "something else"
    assert sorted(path.name for path in Path().iterdir() if "jsonl" in path.name) == ["all.jsonl", "talk.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_a_pipe_is_written_to_and_stays(run: Run, stored: str) -> None:
    os.mkfifo("pipe")
    with open("pipe", "r+b", buffering=0) as pipe:  # noqa: PTH123 - open for both, so that nobody waits for the other
        exported = run("export", "pipe", *OWNER)
        assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
        lines = pipe.read(60_000).splitlines()

    assert exported.out == "Exported 9 memories to pipe.\n"
    assert [list(json.loads(line)) for line in lines] == [FIELDS] * 9


def test_a_folder_that_is_not_there_is_named(run: Run, stored: str) -> None:
    exported = run("export", "nowhere/all.jsonl", *OWNER)

    assert exported.code == 1
    assert exported.err.startswith("adk-memory: nowhere/all.jsonl: ")


def test_an_export_as_json_needs_a_file(run: Run, stored: str) -> None:
    assert run("export", *OWNER, "--json").code == 2
    assert run("export", "all.jsonl", *OWNER, "--json").document == {"exported": 9}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"content": "a"', "line 3: not one whole JSON object"),
        (b"[1, 2]", "line 3: this is a JSON array"),
        (jsonl({**LINE, "vector": [1]}), "line 3: unknown field vector; an entry has content,"),
        (jsonl({**LINE, "id": None}), "line 3: the field id is missing"),
        (jsonl({**LINE, "position": 0}), "line 3: SessionEntries: positions must be whole numbers"),
        (jsonl({**LINE, "session_id": None}), "line 3: SessionEntries: positions are one for each entry"),
        (jsonl({**LINE, "session_id": 7}), "line 3: SessionEntries: session_id must be a string"),
        (jsonl({**LINE, "project_id": ""}), "line 3: SessionEntries: project_id must have 1 to 256"),
        (jsonl({**LINE, "expires_at": "soon"}), "line 3: MemoryEntry: expires_at must be an ISO 8601"),
    ],
)
def test_a_bad_line_is_named_and_what_was_before_it_stays(run: Run, database: str, line: bytes, message: str) -> None:
    first = {**LINE, "id": "first"}
    Path("all.jsonl").write_bytes(jsonl(first) + b"\n" + line.rstrip(b"\n") + b"\n" + jsonl(LINE))

    imported = run("import", "all.jsonl", *OWNER)

    assert imported.err.startswith(f"adk-memory: all.jsonl: {message}")
    assert imported.err.endswith("; the one before it is stored\n")
    assert (imported.code, imported.out, imported.err.count("\n")) == (1, "", 1)
    assert _export(run) == [first]


def test_the_export_of_one_session_is_read_by_add_too(run: Run, stored: str) -> None:
    lines = [line for line in run("export", *OWNER).out.split("\n") if '"project_id": "A"' in line]
    document = "\n".join(lines).encode()

    added = run("add", "-", "--app", "notes", "--user", "copy", "--session", "talk", "--project", "A", stdin=document)
    other = run("add", "-", "--app", "notes", "--user", "copy", "--session", "other", "--project", "A", stdin=document)

    assert added.code == 0
    assert [json.dumps(line, ensure_ascii=False) for line in _export(run, "copy")] == lines
    assert (other.code, "line 1: session_id and project_id are not those" in other.err) == (1, True)


def test_a_purge_erases_what_has_expired(run: Run, database: str) -> None:
    gone = {**LINE, "id": "gone", "expires_at": "2001-01-01T00:00:00+00:00"}
    run("import", "-", *OWNER, stdin=jsonl(gone, LINE))
    assert [line["id"] for line in _export(run)] == ["e"]

    outcomes: list[Outcome] = [run("purge"), run("purge", database, "--json")]

    assert outcomes[0].out == "Purged 1 memory.\n"
    assert outcomes[1].document == {"purged": 0}
    assert [line["id"] for line in _export(run)] == ["e"]
