"""F09 and F18: what is inside an entry: parts that are not text, and values that JSON does not know."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_memory import Content, MemoryEntry, MemoryService, ValidationError, open_memory
from field_reports.calls import APP, USER, ask, found, recent, remember

CALL = {"function_call": {"name": "lookup", "args": {"id": 1, "query": "zeppelin"}}}
WITHOUT_TEXT: list[Any] = [
    {"role": "user", "parts": [CALL]},
    {"role": "user", "parts": []},
    {"role": "user", "parts": None},
    {"role": "user"},
    {"parts": [{"text": None}]},
    {"parts": [{"text": ""}]},
    {"parts": [{"text": 5}, {"text": ["zeppelin"]}]},
    {"role": None, "parts": [{"inline_data": {"mime_type": "image/png", "data": "emVwcGVsaW4="}}]},
    {"role": "tool", "parts": [{"function_response": {"response": {"text": "zeppelin"}}}], "text": "zeppelin"},
    {"parts": [{}], "extra": {"zeppelin": True}},
    "",
]
STRUCTURE = ["role", "user", "parts", "text", "function_call", "lookup", "args", "id", "zeppelin", "null", "None",
"ts", "1",
             "inline_data", "mime_type", "image", "metadata", "author", "content"]  # fmt: skip

NOT_JSON: list[Any] = [
    b"raw", bytearray(b"raw"), memoryview(b"raw"), datetime(2026, 1, 1, tzinfo=UTC), uuid.uuid4(), Decimal("1.5"), {1,
    2},
    object(), 1j, Path("here"), ..., range(3), Content, (number for number in [1]),
]  # fmt: skip
NOT_FINITE = [float("nan"), float("inf"), float("-inf"), 1e400, -1e400]


async def test_f09_an_entry_without_text_is_kept_and_never_matched(service: MemoryService) -> None:
    await remember(service, *[MemoryEntry(content, author="bot", id=str(n)) for n, content in enumerate(WITHOUT_TEXT)])
    await remember(service, "fix the ts build")

    for word in STRUCTURE:
        assert await found(service, word) == (["fix the ts build"] if word == "ts" else []), word
    assert await found(service, "build") == ["fix the ts build"]
    kept = {memory.id: memory.content for memory in await service.list_recent(APP, USER, 100)}
    assert [kept[str(n)] for n in range(len(WITHOUT_TEXT))] == [Content.of(content) for content in WITHOUT_TEXT]


async def test_f09_structure_of_a_text_entry_is_not_searched(service: MemoryService) -> None:
    entry = MemoryEntry(
        {"role": "model", "parts": [CALL, {"text": "the answer", "thought_signature": "abc"}], "zeppelin": "zeppelin"},
        author="zeppelin",
        id="zeppelin",
        metadata={"zeppelin": "zeppelin"},
    )
    await remember(service, entry, session="zeppelin", project="zeppelin")

    for word in ["role", "model", "parts", "text", "function_call", "lookup", "zeppelin", "abc", "thought_signature"]:
        assert await found(service, word, project="zeppelin") == [], word
    assert await found(service, "answer", project="zeppelin") == ["the answer"]


async def test_f09_every_text_part_is_searched(service: MemoryService) -> None:
    await remember(service, MemoryEntry(Content("user", ["first thing", CALL, {"text": "second thing", "more": 1}])))

    assert await found(service, "first") == await found(service, "second") == ["first thing\nsecond thing"]


async def test_f09_objects_with_role_and_parts_are_content(service: MemoryService) -> None:
    class Part:
        def __init__(self, text: str) -> None:
            self.text = text

    class Said:
        role = "model"
        parts = (Part("hello there"), Part("again"))

    await remember(service, MemoryEntry(Said()), MemoryEntry(MappingProxyType({"role": "user", "parts": ("plain",)})))

    assert await found(service, "hello") == ["hello there\nagain"]
    assert await found(service, "plain") == ["plain"]


async def test_f09_a_field_may_have_any_name(service: MemoryService) -> None:
    names = [
        "self",
        "cls",
        "_fields_set",
        "text",
        "model_extra",
        "model_config",
        "__class__",
        "__dict__",
        "copy",
        "",
        " ",
        "$ref",
        "%s",
    ]
    for name in names:
        await remember(
            service, MemoryEntry({"parts": ["hello", {name: 1}], name: 2}, id=f"id{name}", metadata={name: 3})
        )

    hits = {hit.id: hit for hit in await ask(service, "hello")}
    for name in names:
        kept = hits[f"id{name}"]
        assert kept.content.as_json() == {"role": "user", "parts": [{"text": "hello"}, {name: 1}], name: 2}
        assert kept.metadata == {name: 3}
        assert kept.content == Content.of({"parts": ["hello", {name: 1}], name: 2})


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
async def test_f09_a_value_that_json_cannot_hold_is_refused_with_its_path(value: Any) -> None:
    shapes: Mapping[str, Any] = {
        "parts[0].inline_data.data": lambda: Content("user", [{"inline_data": {"data": value}}]),
        "extra[1]": lambda: Content("user", [], extra=[0, value]),
        "metadata.a[0].b": lambda: MemoryEntry("text", metadata={"a": [{"b": value}]}),
        "parts[1]": lambda: MemoryEntry({"parts": ["text", value]}),
    }

    for path, make in shapes.items():
        with pytest.raises(ValidationError) as raised:
            make()
        assert path in str(raised.value)
        assert "raw" not in str(raised.value)


@pytest.mark.parametrize(
    "content", [None, 5, b"bytes", ["a", "list"], object(), {1: "one"}, {"parts": "text"}, {"role": 5}]
)
async def test_f09_what_is_no_content_is_refused(content: Any) -> None:
    with pytest.raises(ValidationError):
        MemoryEntry(content)


async def test_f09_a_refused_entry_leaves_nothing_half_written(service: MemoryService) -> None:
    entries: list[Any] = [MemoryEntry("good one"), {"content": "a mapping is no entry"}, MemoryEntry("good two")]

    with pytest.raises(ValidationError, match=r"entries\[1\]"):
        await service.add_session(APP, USER, "s1", entries)

    assert await recent(service) == []


@pytest.mark.parametrize("number", NOT_FINITE)
async def test_f18_nan_and_infinity_are_refused_with_their_path(number: float) -> None:
    places: dict[str, tuple[Any, Any]] = {
        "value": ({"parts": [{"text": "reading"}], "value": number}, {}),
        "parts[0].args.list[1]": ({"parts": [{"args": {"list": [1, number]}}]}, {}),
        "metadata.deep.hi": ("reading", {"deep": {"hi": number}}),
    }
    for path, (content, metadata) in places.items():
        with pytest.raises(ValidationError) as raised:
            MemoryEntry(content, metadata=metadata)
        assert path in str(raised.value)


async def test_f18_an_infinite_number_in_json_text_is_refused() -> None:
    for literal in ("1e400", "-1e400", "NaN", "Infinity"):
        with pytest.raises(ValidationError, match=r"value"):
            MemoryEntry({"parts": ["reading"], "value": json.loads(literal)})


async def test_f18_numbers_of_any_size_come_back_equal(service: MemoryService) -> None:
    numbers = [
        2**53 + 1, 2**63, 2**64, 2**70, -(2**70), 10**400, 10**4000, 1e308, 5e-324, 0.1, -0.0, 1.0, 0, True, False,
        1e16, 123456789012345678,
    ]  # fmt: skip
    await remember(service, MemoryEntry({"parts": ["reading"], "values": numbers}, metadata={"values": numbers}))

    [listed] = await service.list_recent(APP, USER)
    [hit] = await ask(service, "reading")
    for kept in (listed, hit):
        assert [repr(value) for value in kept.content.as_json()["values"]] == [repr(value) for value in numbers]
        assert [repr(value) for value in kept.metadata["values"]] == [repr(value) for value in numbers]


async def test_f18_an_integer_too_long_to_be_read_back_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"values\[0\]"):
        MemoryEntry({"parts": ["reading"], "values": [10**4400]})


async def test_f18_what_is_stored_is_valid_json(sql_url: str) -> None:
    numbers = [2**70, 1e308, 10**400]
    async with open_memory(sql_url) as service:
        await remember(service, MemoryEntry({"parts": ["a \x00 b"], "values": numbers}, metadata={"n": numbers}))

    engine = create_async_engine(sql_url.replace("://", "+aiosqlite://" if "sqlite" in sql_url else "+asyncpg://", 1))
    async with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            statement = "SELECT json_valid(content) AND json_valid(metadata) FROM adk_memory_entry"
        else:
            statement = "SELECT (content::jsonb IS NOT NULL) AND (metadata::jsonb IS NOT NULL) FROM adk_memory_entry"
        assert (await connection.execute(text(statement))).scalar_one() in (1, True)
    await engine.dispose()


async def test_f18_nesting_has_a_limit_that_is_named(service: MemoryService) -> None:
    deep: Any = "bottom"
    for _ in range(150):
        deep = [deep]
    await remember(service, MemoryEntry({"parts": ["reading"], "deep": deep}))
    assert (await service.list_recent(APP, USER))[0].content.as_json()["deep"] == deep

    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValidationError, match="200 levels"):
        MemoryEntry({"parts": ["reading"], "deep": deep})
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValidationError, match="200 levels"):
        MemoryEntry("reading", metadata={"loop": loop})
