"""adk-memory delete: exactly one selector, exactly its memories, and only when that was meant."""

from __future__ import annotations

import pytest

from cli.shell import OWNER, Run, jsonl

pytestmark = pytest.mark.usefixtures("stored")


def _left(run: Run) -> dict[str, int]:
    memories = run("recent", *OWNER, "--limit", "100", "--json").document["memories"]
    projects = [memory["project_id"] or "global" for memory in memories]
    return {name: projects.count(name) for name in ("global", "A", "B")}


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        (["--query", "green tea"], {"global": 1, "A": 3, "B": 3}),
        (["--query", "green tea", "--global"], {"global": 1, "A": 3, "B": 3}),
        (["--query", "green tea", "--project", "A"], {"global": 3, "A": 1, "B": 3}),
        (["--query", "green coffee"], {"global": 3, "A": 3, "B": 3}),
        (["--query", "..."], {"global": 3, "A": 3, "B": 3}),
        (["--session", "talk"], {"global": 0, "A": 0, "B": 0}),
        (["--session", "talk", "--global"], {"global": 0, "A": 3, "B": 3}),
        (["--session", "talk", "--project", "A"], {"global": 3, "A": 0, "B": 3}),
        (["--entry", "note-3"], {"global": 2, "A": 2, "B": 2}),
        (["--entry", "note-3", "--global"], {"global": 2, "A": 3, "B": 3}),
        (["--entry", "note-3", "--project", "B"], {"global": 3, "A": 3, "B": 2}),
        (["--entry", "note"], {"global": 3, "A": 3, "B": 3}),
        (["--whole-project", "A"], {"global": 3, "A": 0, "B": 3}),
        (["--whole-user"], {"global": 0, "A": 0, "B": 0}),
    ],
)
def test_a_selector_erases_exactly_its_memories(run: Run, selector: list[str], left: dict[str, int]) -> None:
    erased = run("delete", *OWNER, *selector, "--yes", "--json")

    assert _left(run) == left
    assert (erased.code, erased.document["erased"]) == (0, 9 - sum(left.values()))


def test_what_was_erased_is_printed_in_its_parts(run: Run) -> None:
    erased = run("delete", *OWNER, "--whole-project", "A", "--yes", "--json")

    assert erased.document == {"erased": 3, "vectors": 0, "index_entries": 3, "scopes": 1}


def test_other_users_and_apps_keep_theirs(run: Run) -> None:
    others = [("--app", "notes", "--user", "ben"), ("--app", "mail", "--user", "ana")]
    for other in others:
        run("add", "-", *other, "--session", "talk", stdin=jsonl({"content": "green tea"}))

    run("delete", *OWNER, "--whole-user", "--yes")

    for other in others:
        assert len(run("recent", *other, "--json").document["memories"]) == 1


def test_a_dry_run_says_how_many_and_erases_nothing(run: Run) -> None:
    said = run("delete", *OWNER, "--query", "green tea", "--dry-run")
    printed = run("delete", *OWNER, "--query", "green tea", "--dry-run", "--yes", "--json")

    assert said.out == "Would erase 2 memories; nothing was erased.\n"
    assert printed.document == {"would_erase": 2, "vectors": 0, "index_entries": 2, "scopes": 0}
    assert _left(run) == {"global": 3, "A": 3, "B": 3}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --query --session --entry --whole-project --whole-user is required"),
        (["--query", "a", "--session", "s", "--yes"], "--session: not allowed with argument --query"),
        (["--whole-user", "--project", "A", "--yes"], "can't be narrowed by --project"),
        (["--whole-user", "--project", "", "--yes"], "can't be narrowed by --project"),
        (["--whole-project", "A", "--global", "--yes"], "can't be narrowed by --project or --global"),
        (["--session", "talk", "--project", "A", "--global", "--yes"], "not allowed with argument"),
        (["--session", "talk", "--dry-run", "--yes"], "--dry-run needs --query"),
        (["--whole-user"], "nothing was erased: without a terminal to ask at, pass --yes"),
        (["--whole", "--yes"], "one of the arguments"),
    ],
)
def test_an_unclear_request_erases_nothing(run: Run, arguments: list[str], message: str) -> None:
    refused = run("delete", *OWNER, *arguments)

    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err
    assert _left(run) == {"global": 3, "A": 3, "B": 3}


@pytest.mark.parametrize(
    "selector", [["--query", "tea", "--project", ""], ["--session", ""], ["--entry", ""], ["--whole-project", ""],
                 ["--session", "talk", "--project", ""]],
)  # fmt: skip
def test_an_empty_id_erases_nothing(run: Run, selector: list[str]) -> None:
    refused = run("delete", *OWNER, *selector, "--yes")

    assert (refused.code, "must have 1 to 256 characters" in refused.err) == (1, True)
    assert _left(run) == {"global": 3, "A": 3, "B": 3}
