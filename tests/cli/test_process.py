"""The command as the system sees it: pipes, signals, terminals, encodings, several at once."""

from __future__ import annotations

import os
import select
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cli.shell import OWNER, Run, command, jsonl

pty = pytest.importorskip("pty", reason="signals and terminals are tested on POSIX")


def test_a_conversation_goes_in_and_is_found_by_another_process(process: Run) -> None:
    process("upgrade", "memory.db")
    added = process("add", "-", *OWNER, "--session", "s", "--url", "memory.db", stdin=jsonl({"content": "green tea"}))
    found = process("search", "tea", *OWNER, "--url", "memory.db", "--json")

    assert (added.code, added.out, added.err) == (0, "Remembered 1 memory in session s.\n", "")
    assert (found.code, found.err) == (0, "")
    assert [memory["text"] for memory in found.document["memories"]] == ["green tea"]


def test_processes_may_upgrade_and_add_to_one_file_at_once(run: Run) -> None:
    Path("talk.jsonl").write_bytes(jsonl(*({"content": f"tea {number}"} for number in range(50))))

    upgrades = [subprocess.Popen(command(["upgrade", "memory.db"])) for _ in range(3)]
    assert [each.wait(120) for each in upgrades] == [0, 0, 0]
    arguments = ["add", "talk.jsonl", *OWNER, "--url", "memory.db"]
    additions = [subprocess.Popen(command([*arguments, "--session", name])) for name in ("a", "a", "b", "c")]
    assert [each.wait(120) for each in additions] == [0, 0, 0, 0]

    memories = run("recent", *OWNER, "--url", "memory.db", "--limit", "1000", "--json").document["memories"]
    assert len(memories) == 150


def test_a_reader_that_goes_away_is_no_drama(database: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        command(["recent", *OWNER, "--url", database]), stdout=writing, stderr=subprocess.PIPE, check=False
    )

    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_told_once(database: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(["recent", *OWNER, "--url", database]), stdout=full, stderr=subprocess.PIPE, check=False
        )

    assert (done.returncode, done.stderr) == (1, b"adk-memory: No space left on device\n")


def test_a_closed_output_is_no_bug(database: str) -> None:
    script = f'exec "{sys.executable}" -m adk_memory recent --app a --user u --url {database} >&-'

    done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_ends_it_quietly(database: str) -> None:
    # The pipe is made full first: once a part of it was read, the command is past its start and reads on.
    running = subprocess.Popen(
        command(["add", "-", *OWNER, "--session", "s", "--url", database]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdin is not None
    running.stdin.write(b" " * 1_000_000)
    running.stdin.flush()

    running.send_signal(signal.SIGINT)

    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, b"", b"")


def test_an_interrupted_demo_erases_what_it_stored(run: Run) -> None:
    run("upgrade", "mine.db")
    running = subprocess.Popen(
        command(["demo", "--url", "mine.db"]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert running.stdout is not None
    while not running.stdout.readline().startswith(b"2."):
        assert running.poll() is None

    running.send_signal(signal.SIGINT)

    _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (130, b"")
    with closing(sqlite3.connect("mine.db")) as connection:
        assert connection.execute("SELECT count(*) FROM adk_memory_entry").fetchone() == (0,)


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, 1), ("n\n", 1, 3), ("\n", 1, 3), ("\x04", 1, 3), ("\x03", 130, 3)]
)
@pytest.mark.usefixtures("stored")
def test_a_terminal_is_asked_before_anything_is_erased(run: Run, answer: str, code: int, left: int) -> None:
    ours, theirs = pty.openpty()
    # A process without a terminal that opens one is controlled by it: Ctrl-C reaches it.
    running = subprocess.Popen(
        [
            "sh",
            "-c",
            f'exec "$@" 0<>{os.ttyname(theirs)} 2>&0',
            "sh",
            *command(["delete", *OWNER, "--query", "green tea"]),
        ],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    asked = b""
    while b"[y/N]" not in asked:
        readable, _, _ = select.select([ours], [], [], 60)
        assert readable, asked
        asked += os.read(ours, 1000)
    os.write(ours, answer.encode())
    running.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)

    assert running.returncode == code
    question = (
        "Erase 2 memories that hold every word of “green tea”, from the global memories of user ana in app notes?"
    )
    assert question in asked.decode()
    memories = run("recent", *OWNER, "--global", "--json").document["memories"]
    assert len(memories) == left


@pytest.mark.usefixtures("stored")
def test_a_terminal_gets_colours_and_a_pipe_none() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    arguments = command(["recent", *OWNER])

    subprocess.run(arguments, stdout=theirs, check=True, env=environment)
    piped = subprocess.run(arguments, stdout=subprocess.PIPE, check=True, env=environment).stdout

    assert b"\x1b[" in os.read(ours, 100_000)
    assert b"\x1b" not in piped
    os.close(ours)
    os.close(theirs)


@pytest.mark.usefixtures("stored")
def test_a_terminal_sees_how_far_it_is() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}

    done = subprocess.run(
        command(["reindex"]), stderr=theirs, stdout=subprocess.PIPE, text=True, check=True, env=environment
    )

    shown = os.read(ours, 100_000).decode()
    assert "Indexing" in shown
    assert "9/9" in shown
    assert done.stdout == "Indexed 9 memories.\n"
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.usefixtures("stored")
def test_an_output_of_another_encoding_gets_everything(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}

    shown = subprocess.run(command(["recent", *OWNER]), capture_output=True, check=True, env=environment)
    printed = subprocess.run(command(["recent", *OWNER, "--json"]), capture_output=True, check=True, env=environment)

    assert b"\\u7dd1\\u8336" in shown.stdout
    assert b"\\u7dd1\\u8336" in printed.stdout


def test_the_module_and_the_script_are_the_same(process: Run) -> None:
    script = Path(sys.executable).with_name("adk-memory")

    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)

    assert process("--help").out == done.stdout
