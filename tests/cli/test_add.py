"""adk-memory add: a conversation goes in whole, or the line that can't be read is named and nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.shell import OWNER, TALK, Outcome, Run, jsonl

pytestmark = pytest.mark.usefixtures("database")


def _stored(run: Run) -> Outcome:
    return run("recent", *OWNER, "--json")


def test_a_file_is_remembered_as_the_session_of_its_name(run: Run) -> None:
    Path("talk.jsonl").write_bytes(jsonl(*TALK))

    added = run("add", "talk.jsonl", *OWNER)

    assert (added.code, added.out, added.err) == (0, "Remembered 3 memories in session talk.\n", "")
    assert {memory["session_id"] for memory in _stored(run).document["memories"]} == {"talk"}


def test_every_field_of_a_line_comes_back(run: Run) -> None:
    line = {
        "content": {"role": "model", "parts": [{"text": "a"}, {"function_call": {"name": "f", "args": {}}}]},
        "author": "bot",
        "timestamp": "2026-03-01T10:00:00.000001+02:00",
        "id": "own",
        "metadata": {"deep": [1, 2.5, None, "\u2028"]},
        "expires_at": "2999-03-01T10:00:00.000001+02:00",
    }

    run("add", "-", *OWNER, "--session", "s", "--project", "A", stdin=jsonl(line))

    assert _stored(run).document["memories"] == [
        {
            "id": "own",
            "score": None,
            "project_id": "A",
            "session_id": "s",
            "author": "bot",
            "timestamp": "2026-03-01T08:00:00.000001+00:00",
            "expires_at": "2999-03-01T08:00:00.000001+00:00",
            "text": "a",
            "content": line["content"],
            "metadata": line["metadata"],
        }
    ]


def test_adding_twice_leaves_one_copy(run: Run) -> None:
    first = run("add", "-", *OWNER, "--session", "s", "--json", stdin=jsonl(*TALK))
    again = run("add", "-", *OWNER, "--session", "s", "--json", stdin=jsonl(*TALK))

    assert first.document == again.document
    assert set(first.document) == {"session_id", "project_id", "ids"}
    assert len(_stored(run).document["memories"]) == 3


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xef\xbb\xbf" + jsonl(*TALK), id="byte order mark"),
        pytest.param(jsonl(*TALK).replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(b"\n  \n" + jsonl(*TALK).replace(b"\n", b"\n\n\t\r\n"), id="blank lines"),
        pytest.param(jsonl(*TALK).rstrip(b"\n"), id="no line break at the end"),
        pytest.param(jsonl(*TALK[:2], {**TALK[2], "content": "a\u2028b\u0085c"}), id="odd separators"),
    ],
)
def test_every_usual_spelling_of_the_file_is_read(run: Run, data: bytes) -> None:
    added = run("add", "-", *OWNER, "--session", "s", stdin=data)

    assert (added.code, added.err) == (0, "")
    assert len(_stored(run).document["memories"]) == 3


GOOD = jsonl(*TALK[:1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOOD + b'{"content": "half', "line 2: not one whole JSON object: Unterminated string"),
        (GOOD + b'\n{"content": "a"\n', "line 3: not one whole JSON object"),
        (GOOD + b'{"content": "a"} {"content": "b"}', "line 2: not one whole JSON object: Extra data"),
        (b'[{"content": "a"}]', "line 1: this is a JSON array; one JSON object per line is needed"),
        (b'[\n{"content": "a"}\n]', "line 1: this is a JSON array; one JSON object per line is needed"),
        (b'{\n"content": "a"\n}', "line 1: not one whole JSON object"),
        (GOOD + b'"text"', "line 2: this is not a JSON object"),
        (GOOD + b'{"content": "a", "metadata": {"x": NaN}}', "line 2: NaN is not JSON"),
        (GOOD + b'{"content": "a", "metadata": {"x": -Infinity}}', "line 2: -Infinity is not JSON"),
        (GOOD + b'{"content": "a", "metadata": {"x": 1e999}}', "line 2: MemoryEntry: metadata.x is inf"),
        (GOOD + b'{"content": "a", "metadata": {"x": 1' + b"0" * 5000 + b"}}", "line 2: an integer of more"),
        (GOOD + b'{"content": "a", "metadata": ' + b"[" * 9**6 + b"]" * 9**6 + b"}", "line 2: nested too deep"),
        (GOOD + b'{"content": "a", "content": "b"}', "line 2: the key content is there twice"),
        (GOOD + b'{"content": "a", "sesion": "b"}', "line 2: unknown field sesion; an entry has content,"),
        (GOOD + b'{"author": "ana"}', "line 2: the field content is missing"),
        (GOOD + b'{"content": 5}', "line 2: MemoryEntry: content must be a text"),
        (GOOD + b'{"content": "a", "timestamp": "soon"}', "line 2: MemoryEntry: timestamp must be an ISO 8601"),
        (GOOD + b'{"content": "a", "id": ""}', "line 2: MemoryEntry: id must have 1 to 256 characters"),
        (GOOD + b'{"content": "caf\xe9"}', "line 2: byte 17 is not UTF-8"),
        (GOOD.decode().encode("utf-16"), "the text is UTF-16; save it as UTF-8"),
        (b"", "there is no entry in it"),
        (b"\n\n", "there is no entry in it"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_and_nothing_is_stored(run: Run, data: bytes, message: str) -> None:
    Path("talk.jsonl").write_bytes(data)

    added = run("add", "talk.jsonl", *OWNER)

    assert added.err.startswith(f"adk-memory: talk.jsonl: {message}")
    assert added.err.endswith("; nothing was stored\n")
    assert (added.code, added.out, added.err.count("\n")) == (1, "", 1)
    assert _stored(run).document["memories"] == []


def test_an_error_does_not_repeat_what_was_said(run: Run) -> None:
    added = run("add", "-", *OWNER, "--session", "s", stdin=b'{"content": "a secret", "timestamp": "a secret"}')

    assert added.code == 1
    assert "secret" not in added.err


def test_standard_input_needs_a_session(run: Run) -> None:
    added = run("add", "-", *OWNER, stdin=GOOD)

    assert (added.code, added.err) == (2, "adk-memory: stdin has no name: pass --session\n")


@pytest.mark.parametrize("path", ["nowhere.jsonl", "."])
def test_a_file_that_cannot_be_read_is_named(run: Run, path: str) -> None:
    added = run("add", path, *OWNER)

    assert added.code == 1
    assert added.err.startswith(f"adk-memory: {path}: ")


def test_an_empty_project_is_not_global(run: Run) -> None:
    added = run("add", "-", *OWNER, "--session", "s", "--project", "", stdin=GOOD)

    assert (added.code, "project_id must have 1 to 256 characters" in added.err) == (1, True)
    assert _stored(run).document["memories"] == []
