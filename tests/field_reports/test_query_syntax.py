"""F01 to F03: a query is text; nothing in it is syntax."""

from __future__ import annotations

import string

import pytest

from adk_memory import MemoryService
from field_reports.calls import APP, USER, ask, found, missed, recent, remember

DEPLOY = "the deploy script lives in tools/run.py, ask bob@example.com"
PLAN = "multi-agent plan: todo list"

# Words of SQL, of FTS5, of tsquery; names of our columns and tables, of FTS5's own and of its commands.
OPERATORS = ["AND", "OR", "NOT", "NEAR", "and", "or", "not", "near", "&", "|", "!", "<->", "<2>", "!!", "&&", "||"]
COLUMNS = [
    "terms", "text", "content", "author", "rowid", "rank", "entry_id", "scope_id", "lexemes", "metadata", "user_id",
    "app_name", "session_key", "entry_key", "adk_memory_search_entry", "adk_memory_entry", "oid", "_rowid_", "docid",
]  # fmt: skip
BLANK = ["", " ", "   ", "\n", "\t\r\n", "\u3000", "\u200b", "\ufeff", "\x00", "\x00 \x00", "\x07"]
WORDLESS = [
    "!!! ???", '""', "''", '"', "'", "*", "**", "%", "_", "()", "( )", "[]", "{}", ":", "-", "--", "^", "\\", "\\\\",
    "&", "|", "!", "<->", ":*", "/* */", "--;", "...", "…", "“”", "¿?", "、。", "（）", "\u0301", "\ufe0f", "€", "→",
    "@",
    "\ud83d", "\udc00", "$$", ";", "`", "~", "+", "=", "#",
]  # fmt: skip


async def test_f01_everyday_punctuation_in_a_question_finds_the_entry(service: MemoryService) -> None:
    await remember(service, DEPLOY)
    questions = [
        "don't forget tools/run.py", "(deploy", "deploy)", '"deploy', "'deploy", "bob@example.com", "deploy?",
        "a, deploy",
        "#deploy [x]", "[deploy]", "{deploy}", "deploy;", "deploy: where?", "deploy = what", "deploy.", "50% deploy",
        "where's the deploy script?", "“deploy”", "‘deploy’", "deploy…", "¿deploy?", "deploy—script", "tools\\run.py",
        "~/tools/run.py", "$deploy", "`deploy`", "<deploy>", "deploy\tscript", "deploy\nscript", "deploy\x00script",
        "https://example.com/?q=1&r=2#deploy", "deploy/*", "deploy -- script",
        "deploy'; DROP TABLE adk_memory_entry; --",
        "\\'deploy", "deploy\\", "'' deploy", '"" deploy', '"deploy" "script', "E'deploy'", "U&'deploy'", ":deploy",
        "deploy:*", "deploy:A", "@deploy", "@1 deploy", "%s deploy", "%(deploy)s", "{0} deploy", "deploy\u200b",
        "1/0 deploy",
    ]  # fmt: skip

    assert await missed(service, questions, DEPLOY) == []


async def test_f01_questions_that_share_no_word_find_nothing_and_raise_nothing(service: MemoryService) -> None:
    await remember(service, DEPLOY)

    for query in ["why?", "e=mc2", "#tag [x]", "a, b", "v1.2.3", "C++", "50% off", "f(x) != y", "O'Neill", "a&b|c"]:
        assert await found(service, query) == [], query


async def test_f01_code_like_words_find_the_text_that_holds_them(service: MemoryService) -> None:
    entries = [
        "why so slow",
        "recall e=mc2",
        "release v1.2.3",
        "written in C++",
        "50% off",
        "issue #42",
        "O'Neill called",
    ]
    await remember(service, *entries)
    queries = ["why?", "e=mc2", "v1.2.3", "C++", "50% off", "#42", "O'Neill"]

    missing = [
        query for query, text in zip(queries, entries, strict=True) if (await found(service, query))[:1] != [text]
    ]

    assert missing == []


async def test_f01_every_ascii_character_may_stand_anywhere_in_a_query(service: MemoryService) -> None:
    await remember(service, DEPLOY)
    characters = [chr(code) for code in range(128) if not chr(code).isalnum() and chr(code) != "_"]
    queries = [
        query
        for character in characters
        for query in (f"{character}deploy", f"deploy{character}", f"x{character} deploy", f"{character * 3} deploy")
    ]

    assert await missed(service, queries, DEPLOY) == []


async def test_f01_pairs_of_punctuation_characters_raise_nothing_in_any_operation(service: MemoryService) -> None:
    await remember(service, DEPLOY)
    pairs = [first + second for first in "'\"*^:-()&|!<\\" for second in "'\"*^:-()&|!>\\"]

    for pair in pairs:
        assert await found(service, f"{pair}deploy{pair}") == [DEPLOY], pair
        assert await service.delete_entries(APP, USER, f"{pair}deploy{pair}", dry_run=True) == 1, pair


async def test_f02_operator_words_are_words(service: MemoryService) -> None:
    await remember(service, PLAN)
    queries = [
        "multi-agent", "todo: list", "NOT sure about the plan", "this AND that plan", "NEAR the plan", "*plan",
        "^plan",
        "plan^", "plan*", "{author}: plan", "-plan", "+plan", "plan OR", "OR plan", "NOT plan", "AND AND plan",
        "plan NOT",
        "NEAR(plan list, 2)", "NEAR(plan", "NEAR/2 plan", '"todo list" NOT plan', "plan ~2", "- {terms} : plan",
        "plan <-> nothing", "!plan", "plan & nothing", "plan | !list", "plan:*", "plan:ABCD", "(plan", "plan))",
        "plan\\",
    ]  # fmt: skip

    assert await missed(service, queries, PLAN) == []


async def test_f02_every_operator_may_stand_before_behind_and_between_words(service: MemoryService) -> None:
    await remember(service, PLAN)
    shapes = ("{0} plan", "plan {0}", "plan {0} nothing", "{0} {0} plan", "{0}plan")
    queries = [shape.format(operator) for operator in OPERATORS if not operator.isalpha() for shape in shapes]
    queries += [shape.format(operator) for operator in OPERATORS if operator.isalpha() for shape in shapes[:-1]]

    assert await missed(service, queries, PLAN) == []


async def test_f02_no_query_names_a_column(service: MemoryService) -> None:
    await remember(service, PLAN)
    shapes = ("{}: plan", "{}:plan", "{{{}}}: plan", "- {}: plan", "-{{{}}}:plan", '"{}": plan', "{} = plan")
    queries = [shape.format(column) for column in COLUMNS for shape in shapes]

    assert await missed(service, queries, PLAN) == []
    for column in COLUMNS:
        assert await found(service, f"{column}:") == [], column


async def test_f02_no_query_excludes_or_requires(service: MemoryService) -> None:
    await remember(service, "apples", "pears")

    for query in [
        "apples NOT pears",
        "apples -pears",
        "apples !pears",
        "apples AND pears",
        "apples & pears",
        "apples + pears",
    ]:
        assert sorted(await found(service, query)) == ["apples", "pears"], query


async def test_f02_words_like_operators_are_found_as_words(service: MemoryService) -> None:
    await remember(service, "the gate is NOT AND not OR", "stand near the door")

    assert await found(service, "NAND nor NOT") == ["the gate is NOT AND not OR"]
    assert (await found(service, "NEAR"))[:1] == ["stand near the door"]


async def test_f02_no_query_reaches_another_scope_by_the_names_inside_the_index(service: MemoryService) -> None:
    await remember(service, "amber secret", user="eve")
    await remember(service, "own note")
    guesses = [f"{shape}" for number in range(5) for shape in (f"{number}_secret", f"@{number}", f"{number}_amber")]
    guesses += ['" OR "1_secret', "') | ('secret", "secret' | '@1", "1_secret OR 1_amber", "@1 & secret"]

    for guess in guesses:
        assert await found(service, guess) == [], guess
        assert await service.delete_entries(APP, USER, guess) == 0, guess
    assert await recent(service, user="eve") == ["amber secret"]


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
async def test_f03_a_query_without_a_word_finds_nothing(service: MemoryService, filled: bool) -> None:
    if filled:
        await remember(service, DEPLOY, PLAN, "🍕 on friday", "!!!", "%", "")

    for query in [*BLANK, *WORDLESS]:
        response = await ask(service, query)

        assert list(response) == [], repr(query)
        assert response.mode == "keyword"


async def test_f03_an_emoji_is_a_word(service: MemoryService) -> None:
    await remember(service, "🍕 on friday", "🚀 launch", "👩‍👩‍👧 at home", "🇫🇷 trip")

    assert await found(service, "🍕") == ["🍕 on friday"]
    assert await found(service, "🚀🚀") == ["🚀 launch"]
    assert await found(service, "👩‍👩‍👧") == ["👩‍👩‍👧 at home"]
    assert await found(service, "🇫🇷") == ["🇫🇷 trip"]
    assert await found(service, "🥑") == []


async def test_f03_deleting_by_a_query_without_a_word_deletes_nothing(service: MemoryService) -> None:
    kept = [DEPLOY, "!!!", "%", "* _ *", "", "🍕 on friday"]
    await remember(service, *kept)

    for query in [*BLANK, *WORDLESS, "🥑", string.punctuation]:
        assert await service.delete_entries(APP, USER, query) == 0, repr(query)
        assert await service.delete_entries(APP, USER, query, project_id="p") == 0, repr(query)

    assert sorted(await recent(service)) == sorted(kept)
