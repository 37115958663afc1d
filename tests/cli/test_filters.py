"""The options of adk-memory search and recent that narrow what is shown."""

from __future__ import annotations

import pytest

from cli.shell import OWNER, Run

TEXTS = ["緑茶が好きです", "Noted: tea, green", "Green tea at four"]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (["--author", "ana"], ["Green tea at four"]),
        (["--author", "ana", "--author", "bot"], ["Noted: tea, green", "Green tea at four"]),
        (["--session", "talk"], TEXTS),
        (["--session", "other"], []),
        (["--before", "2026-03-01T10:00:00.000001Z"], ["Green tea at four"]),
        (["--since", "2026-03-02"], TEXTS[:2]),
        (["--where", "mood", "eq", "calm"], TEXTS[:1]),
        (["--where", "mood", "in", '["calm", "glad"]', "--author", "user"], TEXTS[:1]),
        (["--where", "mood", "exists", "false", "--where", "mood", "ne", "7"], TEXTS[1:]),
    ],
)
def test_options_narrow_a_list(run: Run, options: list[str], seen: list[str]) -> None:
    document = run("recent", *OWNER, "--global", *options, "--json").document

    assert sorted(memory["text"] for memory in document["memories"]) == sorted(seen)


@pytest.mark.usefixtures("stored")
def test_options_narrow_a_search(run: Run) -> None:
    document = run("search", "tea", *OWNER, "--author", "bot", "--json").document

    assert [memory["text"] for memory in document["memories"]] == ["Noted: tea, green"]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--where", "mood", "like", "calm"], 2),
        (["--where", "mood", "gt", "true"], 1),
        (["--where", "mood", "in", "calm"], 1),
        (["--since", "yesterday"], 1),
        (["--where", "mood", "eq"], 2),
    ],
)
def test_options_that_mean_nothing_are_refused(run: Run, options: list[str], code: int) -> None:
    refused = run("recent", *OWNER, *options)

    assert (refused.code, refused.out) == (code, "")
    assert refused.err.count("\n") == 1
