"""What the command says when it is misunderstood; that it never says a password."""

from __future__ import annotations

import pytest

import adk_memory.cli
from adk_memory.cli._output import without_passwords
from cli.shell import OWNER, Run

EVERY_COMMAND = [command.name for command in adk_memory.cli.COMMANDS]
SECRETS = [
    "postgresql://ana:s3cret@nohost.invalid/memory",
    "postgres://ana:s3cret@127.0.0.1:9/memory?sslmode=disable",
    "postgresql+asyncpg://ana:s3c/r@s3cret@127.0.0.1:9/memory",
    "postgresql://ana:s3cret@127.0.0.1:port/memory",
    "postgresql://127.0.0.1:9/memory?user=ana&password=s3cret",
    "postgresql://ana:s3cret @127.0.0.1:9/memory",
    "mysql://ana:s3cret@127.0.0.1/memory",
    "sqlite://ana:s3cret@127.0.0.1/memory.db",
    "ana:s3cret@127.0.0.1/memory",
]


def test_help_names_every_command_and_exit_code(run: Run) -> None:
    shown = run("--help")

    assert shown.code == 0
    named = {line.split(maxsplit=1)[0] for line in shown.out.splitlines() if line.startswith("    ") and line.strip()}
    assert [name for name in EVERY_COMMAND if name not in named] == []
    for code in (0, 1, 2, 3, 4, 5, 6, 70, 130, 141):
        assert f"\n  {code:<4} " in shown.out


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_every_command_has_help_of_at_most_80_columns(run: Run, command: str) -> None:
    shown = run(command, "--help")

    assert (shown.code, shown.err) == (0, "")
    assert [line for line in shown.out.splitlines() if len(line) > 80] == []


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").out == "adk-memory 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND; see adk-memory --help"),
        (["serach"], "invalid choice: 'serach'"),
        (["search", "tea"], "the following arguments are required: --app, --user"),
        (["search", "tea", *OWNER, "--lim", "3"], "the command does not know --lim"),
        (["search", "tea", *OWNER, "more"], "more arguments than it takes; quote a text that has spaces"),
        (["search", "tea", *OWNER, "--limit", "many"], "--limit: invalid int value: 'many'"),
        (["check", "a.db", "--url", "b.db"], "the database is given twice: as URL and as --url"),
    ],
)
def test_a_misunderstanding_is_told_in_one_line(run: Run, arguments: list[str], message: str) -> None:
    refused = run(*arguments)

    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert message in refused.err


@pytest.mark.parametrize("url", [None, "", "  "])
def test_without_a_database_the_next_step_is_told(run: Run, monkeypatch: pytest.MonkeyPatch, url: str | None) -> None:
    if url is not None:
        monkeypatch.setenv("ADK_MEMORY_URL", url)

    refused = run("recent", *OWNER)

    assert (refused.code, refused.out) == (2, "")
    assert "Pass --url sqlite:///memory.db, or set ADK_MEMORY_URL" in refused.err


@pytest.mark.parametrize("url", ["memory://", "sqlite://", "sqlite:///:memory:"])
def test_a_database_that_ends_with_the_command_is_refused(run: Run, url: str) -> None:
    refused = run("upgrade", url)

    assert (refused.code, "this database ends with the command" in refused.err) == (1, True)


@pytest.mark.parametrize("url", SECRETS)
@pytest.mark.parametrize(
    "arguments",
    [["check"], ["upgrade", "--json"], ["demo", "--url"], ["recent", *OWNER, "--url"], ["--url"], [], ["check", "x"],
     ["check", "--bogus"], ["search", "tea", *OWNER, "--limit"], ["search", "tea", *OWNER, "--ids"]],
)  # fmt: skip
def test_no_password_is_ever_shown(run: Run, arguments: list[str], url: str) -> None:
    shown = run(*arguments, url)

    assert shown.code in {1, 2, 3, 6}
    assert "s3cret" not in shown.out + shown.err


def test_no_password_of_the_environment_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADK_MEMORY_URL", SECRETS[0])

    failed = run("recent", *OWNER)

    assert (failed.code, "s3cret" in failed.out + failed.err) == (6, False)


def test_a_bug_is_told_without_the_password(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(url: str, **_options: object) -> None:
        raise ValueError(f"what is {url}?\x1b[2J")

    monkeypatch.setattr("adk_memory.cli._command.open_memory", broken)

    failed = run("check", SECRETS[0])

    assert (failed.code, failed.out) == (70, "")
    assert "Traceback" in failed.err
    assert "ValueError: what is postgresql://***@nohost.invalid/memory?\\x1b[2J" in failed.err
    assert "s3cret" not in failed.err


@pytest.mark.parametrize("url", SECRETS)
def test_a_text_is_masked_wherever_a_url_is_in_it(url: str) -> None:
    assert "s3cret" not in without_passwords(f"could not open '{url}' now")


@pytest.mark.parametrize(
    "text", ["password=s3cret user=ana", "(user='ana', password='s3cret', ssl=None)", '{"password": "s3cret"}']
)
def test_a_password_among_options_is_masked(text: str) -> None:
    assert "s3cret" not in without_passwords(text)


def test_other_text_is_not_masked() -> None:
    plain = "line 3: a@b, see https://example.org/x: no"

    assert without_passwords(plain) == plain
