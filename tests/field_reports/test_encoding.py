"""F16 and F17: NUL bytes and lone surrogates, in texts, keys, ids and queries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from adk_memory import ALL_PROJECTS, Content, MemoryEntry, MemoryService, SearchRequest, ValidationError
from field_reports.calls import APP, USER, ask, found, recent, remember

SURROGATES = ["\ud83d", "\udc00", "\ud800", "\udfff", "\udce9", "\udc00\ud83d", "\ud83d\ud83d"]
BROKEN = ["\x00", "\x00\x00", *SURROGATES, "\x00\ud83d"]


def repaired(text: str) -> str:
    return "".join(
        "\ufffd" if character == "\x00" or "\ud800" <= character <= "\udfff" else character for character in text
    )


async def test_f16_f17_text_is_stored_with_a_visible_replacement(service: MemoryService) -> None:
    for number, broken in enumerate(BROKEN):
        user, mark = f"user {number}", repaired(broken)
        entry = MemoryEntry(
            {
                "role": f"r{broken}",
                "parts": [f"party {broken} time", {"call": {f"k{broken}": [broken]}}],
                f"x{broken}": broken,
            },
            author=f"bob{broken}",
            metadata={f"m{broken}": {"deep": [f"v{broken}"]}},
        )
        await remember(service, entry, user=user)

        [kept] = await service.list_recent(APP, user)
        assert kept.author == f"bob{mark}"
        assert kept.metadata == {f"m{mark}": {"deep": [f"v{mark}"]}}
        assert kept.content.as_json() == {
            "role": f"r{mark}",
            "parts": [{"text": f"party {mark} time"}, {"call": {f"k{mark}": [mark]}}],
            f"x{mark}": mark,
        }
        assert await found(service, "party", user=user) == [f"party {mark} time"]


async def test_f16_f17_one_bad_entry_does_not_cost_its_neighbours(service: MemoryService) -> None:
    bad = {"parts": [{"tool": {"output": ["W\x00s\x00l", "\ud83d"]}}, "windows \x00 output \ud83d"]}
    said = [bad if number == 10 else f"good entry {number}" for number in range(20)]

    ids = await remember(service, *[MemoryEntry(content) for content in said])

    assert len(set(ids)) == 20
    expected = [content if isinstance(content, str) else "windows \ufffd output \ufffd" for content in said]
    assert await recent(service) == expected[::-1]


async def test_f16_f17_a_query_may_hold_them(service: MemoryService) -> None:
    for broken in BROKEN:
        await remember(service, "abc and def", "windows \x00 output")

        assert await found(service, f"abc{broken}def") == ["abc and def"]
        assert await found(service, f"{broken}output{broken}") == ["windows \ufffd output"]
        assert await found(service, broken) == []
        assert await service.delete_entries(APP, USER, broken) == 0
        assert await service.delete_entries(APP, USER, f"abc{broken}") == 1
        assert await recent(service) == ["windows \ufffd output"]


async def test_f16_f17_an_identifier_that_holds_them_is_refused_everywhere(service: MemoryService) -> None:
    await remember(service, "kept", user="ana\ufffd")

    for broken in BROKEN:
        for number, call in enumerate(calls_with_a_bad_identifier(service, f"ana{broken}")):
            with pytest.raises(ValidationError) as raised:
                await call()
            assert "ana" not in str(raised.value), number

    assert await recent(service, user="ana\ufffd") == ["kept"]
    assert await service.list_recent(APP, USER, project_id=ALL_PROJECTS) == []


@pytest.mark.parametrize("broken", BROKEN, ids=ascii)
def test_f16_f17_a_value_with_such_an_identifier_is_not_made(broken: str) -> None:
    makers: list[Callable[[str], object]] = [
        lambda bad: SearchRequest("kept", bad, USER),
        lambda bad: SearchRequest("kept", APP, bad),
        lambda bad: SearchRequest("kept", APP, USER, bad),
        lambda bad: MemoryEntry("text", id=bad),
    ]

    for make in makers:
        for bad in (broken, f"ana{broken}", f"{broken}ana"):
            with pytest.raises(ValidationError):
                make(bad)


def calls_with_a_bad_identifier(service: MemoryService, bad: str) -> list[Callable[[], Awaitable[object]]]:
    entry = MemoryEntry("text")
    return [
        lambda: service.add_session(bad, USER, "s", [entry]),
        lambda: service.add_session(APP, bad, "s", [entry]),
        lambda: service.add_session(APP, USER, bad, [entry]),
        lambda: service.add_session(APP, USER, "s", [entry], project_id=bad),
        lambda: service.add_session_to_project(APP, USER, "s", bad, [entry]),
        lambda: service.add_entry(APP, bad, entry),
        lambda: service.add_entry(APP, USER, entry, project_id=bad),
        lambda: service.add_entry_to_project(APP, USER, bad, entry),
        lambda: service.get(APP, USER, bad),
        lambda: service.get(APP, bad, "id"),
        lambda: service.list_recent(APP, bad),
        lambda: service.list_recent(APP, USER, project_id=bad),
        lambda: service.delete(APP, USER, bad),
        lambda: service.delete_entries(APP, bad, "kept"),
        lambda: service.delete_entries_in_project(APP, USER, bad, "kept"),
        lambda: service.delete_session(APP, USER, bad),
        lambda: service.delete_project(APP, USER, bad),
        lambda: service.delete_user(APP, bad),
    ]


async def test_f16_an_escape_that_is_written_out_is_ordinary_text(service: MemoryService) -> None:
    literal = "write \\u0000 or \\x00 or &#0; or \\ud83d"
    await remember(
        service, MemoryEntry(Content("user", [literal, {"code": literal, literal: 1}]), metadata={literal: literal})
    )

    [kept] = await service.list_recent(APP, USER)
    assert kept.text == literal
    assert kept.content.parts[1] == {"code": literal, literal: 1}
    assert kept.metadata == {literal: literal}


async def test_f17_two_halves_of_a_character_are_the_character(service: MemoryService) -> None:
    await remember(service, "party \ud83c\udf55 time")

    assert await recent(service) == ["party 🍕 time"]
    assert await found(service, "\ud83c\udf55") == ["party 🍕 time"]


async def test_f16_two_keys_that_become_one_are_refused() -> None:
    with pytest.raises(ValidationError, match="metadata"):
        MemoryEntry("text", metadata={"a\x00": 1, "a\ufffd": 2})
    with pytest.raises(ValidationError):
        MemoryEntry({"parts": ["text"], "a\x00": 1, "a\ufffd": 2})


async def test_f16_adding_the_same_broken_text_again_leaves_one_copy(service: MemoryService) -> None:
    first = await remember(service, "W\x00s\x00l \ud83d")
    again = await remember(service, "W\x00s\x00l \ud83d")
    repaired_by_caller = await remember(service, "W\ufffds\ufffdl \ufffd")

    assert first == again == repaired_by_caller
    assert len(await ask(service, "s")) == len(await recent(service)) == 1
