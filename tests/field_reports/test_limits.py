"""F04, F19 and F38: whole prompts, huge entries, long ids, absurd limits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from adk_memory import MemoryEntry, MemoryService, SearchRequest, ValidationError
from field_reports.calls import APP, USER, ask, found, recent, remember

KIND = "the deploy script lives in tools"
LONG_QUERIES: dict[str, Callable[[], str]] = {
    "200,000 words": lambda: " ".join(f"w{number}" for number in range(200_000)),
    "one word many times": lambda: "a " * 32_768,
    "one long word": lambda: "z" * 100_000,
    "one long word of two bytes each": lambda: "ж" * 100_000,
    "a long text without spaces": lambda: "".join(chr(0x4E00 + number % 20_000) for number in range(60_000)),
    "200,000 operators": lambda: "AND OR NOT NEAR " * 50_000,
    "quotes": lambda: '"' * 100_000,
    "brackets": lambda: "(" * 100_000,
    "emoji": lambda: "🍕🚀" * 40_000,
    "marks": lambda: "a" + "\u0301" * 100_000,
    "a megabyte of hexadecimal": lambda: " ".join(random.Random(1).randbytes(8).hex() for _ in range(20_000)),
}
ABSURD_LIMITS: list[Any] = [
    -1,
    -(2**63),
    1.5,
    2.0,
    "5",
    "",
    True,
    False,
    [],
    float("nan"),
    float("inf"),
    Ellipsis,
    b"1",
]
HUGE_LIMITS = [1_000, 1_001, 10**6, 2**31, 2**63, 2**64, 10**30]


@pytest.mark.parametrize("kind", LONG_QUERIES)
async def test_f04_a_prompt_as_query_is_answered(service: MemoryService, kind: str) -> None:
    await remember(service, KIND, "an unrelated note")
    query = LONG_QUERIES[kind]()
    started = time.monotonic()

    assert await found(service, f"deploy script {query}") == [KIND]
    assert await found(service, query) == []
    assert await service.delete_entries(APP, USER, f"deploy script {query}") == (0 if has_word(kind) else 1)
    assert time.monotonic() - started < 20


def has_word(kind: str) -> bool:
    return kind not in ("quotes", "brackets")


async def test_f04_a_long_session_is_one_transaction(service: MemoryService) -> None:
    entries = [
        MemoryEntry(
            f"note {number} about topic{number % 50}", id=f"id {number}", author=f"a{number}", metadata={"n": number}
        )
        for number in range(10_000)
    ]

    ids = await remember(service, *entries)
    again = await remember(service, *entries, "one more")

    assert ids == again[:-1] == [entry.id for entry in entries]
    assert len(await found(service, "topic7")) == 200
    assert await service.delete_session(APP, USER, "s1") == 10_001
    assert await recent(service) == []


async def test_f04_deleting_by_query_has_no_limit(service: MemoryService) -> None:
    await remember(service, *[f"obsolete note {number}" for number in range(2_500)], "a note to keep")

    assert await service.delete_entries(APP, USER, "obsolete note", dry_run=True) == 2_500
    assert await service.delete_entries(APP, USER, "obsolete note") == 2_500
    assert await recent(service) == ["a note to keep"]


async def test_f19_two_megabytes_of_distinct_words_are_stored(service: MemoryService) -> None:
    words = [random.Random(number).randbytes(16).hex() for number in range(62_000)]
    text = " ".join(words)
    assert len(text) > 2_000_000

    await remember(service, text, "a small note")

    assert await found(service, words[0]) == await found(service, words[1_000]) == [text]
    assert await found(service, "small") == ["a small note"]
    assert await remember(service, text, text) != []
    assert sorted(await recent(service), key=len) == ["a small note", text, text]
    assert await service.delete_entries(APP, USER, words[0]) == 2


async def test_f19_five_megabytes_of_the_same_words_are_stored(service: MemoryService) -> None:
    text = "hello world " * (5_000_000 // 12)

    await remember(service, text)

    assert await found(service, "hello") == [text]
    assert await recent(service) == [text]


LONG_TEXTS: dict[str, tuple[Callable[[], str], str]] = {
    "one word": (lambda: "z" * 1_000_000, "z" * 64),
    "chinese without a stop": (lambda: "我的用户身份是管理员" * 20_000, "用户身份"),
    "distinct chinese": (lambda: "".join(chr(0x4E00 + n * 7 % 20_000) for n in range(150_000)),
    chr(0x4E00) + chr(0x4E07)),
    "japanese": (lambda: "サンドボックスを修正する" * 15_000, "修正"),
    "thai": (lambda: "ฉันชอบกินข้าวผัด" * 15_000, "ข้าวผัด"),
    "korean without spaces": (lambda: "서울에서만났다" * 20_000, "서울"),
    "base64": (lambda: "first/" + "".join(random.Random(2).choices("abcXYZ019+/", k=1_000_000)), "first"),
    "emoji": (lambda: "🍕🚀🥑" * 40_000, "🥑"),
    "marks": (lambda: "word a\u0301\u0302\u0303" + "\u0301" * 300_000, "word"),
    "quotes and backslashes": (lambda: "\n".join(f"x{n}'{n}\\{n}\"" for n in range(60_000)), "x5"),
    "vietnamese": (lambda: " ".join(f"bệnh{n}viện" for n in range(30_000)), "benh7vien"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LONG_TEXTS)
async def test_f19_no_kind_of_long_text_is_too_much(service: MemoryService, kind: str) -> None:
    make, query = LONG_TEXTS[kind]
    text = make()
    await remember(service, text, "a small note")

    assert await found(service, query) == [text]
    assert await found(service, "small") == ["a small note"]
    assert await service.delete_entries(APP, USER, query) == 1
    assert await recent(service) == ["a small note"]


async def test_f19_a_long_author_role_and_metadata_are_kept(service: MemoryService) -> None:
    long = "".join(random.Random(3).choices("abcdef é漢🍕", k=100_000))

    await remember(service, MemoryEntry({"role": long, "parts": ["text"]}, author=long, metadata={long: long}))

    [kept] = await service.list_recent(APP, USER)
    assert (kept.author, kept.content.role, kept.metadata) == (long, long, {long: long})


async def test_f19_ids_of_256_random_characters_of_four_bytes_work_everywhere(service: MemoryService) -> None:
    chooser = random.Random(4)
    names = ["".join(chr(chooser.randrange(0x10000, 0x110000)) for _ in range(256)) for _ in range(5)]
    app, user, session, project, entry_id = names

    ids = await remember(
        service, MemoryEntry("text", id=entry_id), app=app, user=user, session=session, project=project
    )
    await service.add_entry(app, user, MemoryEntry("single text", id=entry_id), project_id=project)

    assert ids == [entry_id]
    assert sorted(await found(service, "text", app=app, user=user, project=project)) == ["single text", "text"]
    assert (await service.get(app, user, entry_id, project_id=project)) is not None
    assert await service.delete_session(app, user, session) == 1
    assert await service.delete(app, user, entry_id) == 1
    assert await service.delete_project(app, user, project) == 0


@pytest.mark.parametrize("length", [257, 300, 3_000, 10_000, 1_000_000])
async def test_f19_longer_ids_are_refused_before_any_sql(service: MemoryService, length: int) -> None:
    long, entry = "".join(random.Random(5).choices("abcdefé漢🍕", k=length)), MemoryEntry("text")

    for call in (
        lambda: service.add_session(long, USER, "s", [entry]),
        lambda: service.add_session(APP, long, "s", [entry]),
        lambda: service.add_session(APP, USER, long, [entry]),
        lambda: service.add_entry(APP, USER, entry, project_id=long),
        lambda: service.delete_user(APP, long),
    ):
        with pytest.raises(ValidationError, match="256"):
            await call()
    for make in (lambda: SearchRequest("q", APP, long), lambda: MemoryEntry("text", id=long)):
        with pytest.raises(ValidationError, match="256"):
            make()


@pytest.mark.parametrize("limit", ABSURD_LIMITS, ids=repr)
async def test_f38_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    with pytest.raises(ValidationError, match="limit"):
        SearchRequest("note", APP, USER, limit=limit)


async def test_f38_a_list_refuses_the_same_limits(service: MemoryService) -> None:
    await remember(service, "note")

    for limit in ABSURD_LIMITS:
        with pytest.raises(ValidationError, match="limit"):
            await service.list_recent(APP, USER, limit)


async def test_f38_limits_give_what_they_say(service: MemoryService) -> None:
    await remember(service, *[f"note {number}" for number in range(1_200)])

    for limit, expected in [(0, 0), (1, 1), (10, 10), (None, 10), (999, 999), *((huge, 1_000) for huge in HUGE_LIMITS)]:
        assert len(await ask(service, "note", limit=limit)) == expected, limit
        assert len(await service.list_recent(APP, USER, limit)) == expected, limit
    assert (
        len(await service.list_recent(APP, USER)) == len(await service.search(SearchRequest("note", APP, USER))) == 10
    )
