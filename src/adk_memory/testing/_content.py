"""Content: every kind is kept loss-free and returned equal; only the text parts are searched."""

# ruff: noqa: RUF001 - characters that look alike are the point

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest

from adk_memory import Content, MemoryEntry, ValidationError
from adk_memory.testing._base import ContractBase, Memories

CALL: Final = {"function_call": {"name": "lookup", "args": {"id": 1, "deep": [[{"x": None}]]}}}
KINDS: Final = [
    pytest.param([{"text": "one"}, {"text": "two"}], id="several texts"),
    pytest.param([CALL], id="function call"),
    pytest.param([{"function_response": {"name": "lookup", "response": {"ok": True}}}], id="response"),
    pytest.param([{"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}}], id="inline data"),
    pytest.param([{"file_data": {"file_uri": "gs://bucket/a.pdf"}}], id="file"),
    pytest.param([{"kind_of_next_year": {"a": [1, 2.5, "3", None, True]}}], id="unknown kind"),
    pytest.param([{"text": "thinking", "thought": True}], id="text with fields beside it"),
    pytest.param([{"text": None}], id="text that is null"),
    pytest.param([{"text": 7}], id="text that is a number"),
    pytest.param([{"text": ""}], id="empty text"),
    pytest.param([{}], id="empty part"),
    pytest.param([], id="no part of its own"),
]
VALUES: Final = [
    pytest.param({"n": [0, -1, 2**53 + 1, 2**63, -(2**64), 10**40]}, id="integers"),
    pytest.param({"n": [0.1, 1.0, -0.0, 1e308, 5e-324, 1e21, 123456789.123456789]}, id="floats"),
    pytest.param({"b": [True, False, None]}, id="constants"),
    pytest.param({"": 1, " ": 2, "a.b": 3, "$ref": 4, "'\"\\": 5, "日本": 6}, id="odd keys"),
    pytest.param({"b": 1, "a": 2}, id="order of keys"),
    pytest.param({"text": "\\u0000 \\ud800 %s {} \x01\x1f\x7f\u2028 \U0010ffff"}, id="odd text"),
    pytest.param({"a": {"b": {"c": [[], {}, [{}]]}}}, id="empty containers"),
]
TEXTS: Final = [
    pytest.param("plain needle", id="plain"),
    pytest.param("  needle \n\n\t", id="white space"),
    pytest.param("needle \\u0000 \\x00 \\ud800", id="escapes written out"),
    pytest.param('needle {"text": "x"} [1,', id="JSON written out"),
    pytest.param("needle'; DROP TABLE adk_memory_entry; --", id="SQL"),
    pytest.param("needle \u0001\u001f\u007f\u0085\u2028\u202e\ufeff", id="control characters"),
    pytest.param("needle e\u0301 \u00e9 ﬁ Ⅷ ＡＢＣ", id="Unicode forms"),
    pytest.param("needle 👨‍👩‍👧‍👦 🇯🇵 \U0010ffff \ufdd0", id="characters beyond the first plane"),
    pytest.param("needle\r\nof\rlines\n", id="line ends"),
    pytest.param("needle " + "long text " * 100_000, id="1 MB"),
]
CLEANED: Final = [
    pytest.param("needle \0", "needle \ufffd", id="NUL"),
    pytest.param("needle \ud800", "needle \ufffd", id="high surrogate"),
    pytest.param("needle \udfff x", "needle \ufffd x", id="low surrogate"),
    pytest.param("needle \ud83d\ude00", "needle 😀", id="surrogates that form a pair"),
]
NOT_JSON: Final = [
    pytest.param(float("nan"), id="NaN"),
    pytest.param(float("inf"), id="infinity"),
    pytest.param(-float("inf"), id="negative infinity"),
    pytest.param(b"bytes", id="bytes"),
    pytest.param({1}, id="set"),
    pytest.param({1: 2}, id="key that is no string"),
    pytest.param(object(), id="object"),
]


@dataclass
class Foreign:
    """Content of another library: all it has in common with ours is its attributes."""

    role: str
    parts: list[Any]


@dataclass
class ForeignPart:
    text: str


class ContentContract(ContractBase):
    @pytest.mark.parametrize("parts", KINDS)
    async def test_every_kind_of_part_is_returned_equal(self, memory: Memories, parts: list[Any]) -> None:
        content = Content("model", [*parts, "needle"])

        await memory.add(MemoryEntry(content))

        [found] = await memory.search("needle")
        assert found.content == content

    @pytest.mark.parametrize("value", VALUES)
    async def test_json_is_kept_loss_free(self, memory: Memories, value: dict[str, Any]) -> None:
        await memory.add(MemoryEntry(Content("user", ["needle", value]), metadata=value))

        [found] = await memory.search("needle")
        assert (repr(found.content.parts[1]), repr(found.metadata)) == (repr(value), repr(value))

    @pytest.mark.parametrize("text", TEXTS)
    async def test_text_is_kept_as_it_is(self, memory: Memories, text: str) -> None:
        await memory.add(text)

        assert await memory.found("needle") == [text]

    @pytest.mark.parametrize("role", ["user", "model", "tool", "", None])
    async def test_the_role_is_kept(self, memory: Memories, role: str | None) -> None:
        await memory.add(MemoryEntry(Content(role, ["needle"])))

        [found] = await memory.search("needle")
        assert found.content.role == role

    @pytest.mark.parametrize("author", ["user", "researcher", "", "Ann O'Neil"])
    async def test_the_author_is_kept(self, memory: Memories, author: str) -> None:
        await memory.add(MemoryEntry("needle", author=author))

        [found] = await memory.search("needle")
        assert found.author == author

    async def test_fields_beside_role_and_parts_are_kept(self, memory: Memories) -> None:
        content = {"role": "user", "parts": [{"text": "needle"}], "language": "en", "usage": {"tokens": 3}}

        await memory.add(MemoryEntry(content))

        [found] = await memory.search("needle")
        assert found.content.as_json() == content

    async def test_nesting_is_kept_to_a_depth_of_100(self, memory: Memories) -> None:
        deep: Any = "bottom"
        for _ in range(100):
            deep = [deep]

        await memory.add(MemoryEntry("needle", metadata={"deep": deep}))

        [found] = await memory.search("needle")
        assert found.metadata == {"deep": deep}

    @pytest.mark.parametrize(
        "content",
        [
            "needle",
            Content("user", ["needle"]),
            {"role": "user", "parts": [{"text": "needle"}]},
            {"role": "user", "parts": ["needle"]},
            Foreign("user", [ForeignPart("needle")]),
        ],
        ids=["text", "Content", "mapping", "mapping with short parts", "object with role and parts"],
    )
    async def test_content_is_accepted_in_every_form(self, memory: Memories, content: object) -> None:
        await memory.add(MemoryEntry(content))

        [found] = await memory.search("needle")
        assert found.content == Content("user", ["needle"])

    async def test_text_parts_are_searched_together(self, memory: Memories) -> None:
        await memory.add(MemoryEntry(Content("user", ["green tea", CALL, "black coffee"])))

        [found] = await memory.search("coffee")
        assert found.text == "green tea\nblack coffee"

    async def test_words_do_not_run_together_from_part_to_part(self, memory: Memories) -> None:
        await memory.add(MemoryEntry(Content("user", ["green", "house"])))

        assert await memory.found("greenhouse") == []

    @pytest.mark.parametrize(
        "query", ["function_call", "lookup", "role", "user", "parts", "text", "hidden", "metadata", "args"]
    )
    async def test_only_text_parts_are_searched(self, memory: Memories, query: str) -> None:
        await memory.add(MemoryEntry(Content("user", [CALL, "green tea"]), metadata={"note": "hidden"}))

        assert await memory.found(query) == []

    async def test_an_entry_without_text_is_stored_and_listed(self, memory: Memories) -> None:
        await memory.add(MemoryEntry(Content("model", [CALL])))

        assert [found.content.parts for found in await memory.recent()] == [(CALL,)]

    async def test_an_entry_without_text_is_never_matched(self, memory: Memories) -> None:
        await memory.add(MemoryEntry(Content("model", [CALL])), MemoryEntry(Content()), "green tea")

        assert await memory.found("lookup function call tea") == ["green tea"]

    @pytest.mark.parametrize(("given", "kept"), CLEANED)
    async def test_nul_and_lone_surrogates_in_text_are_replaced(self, memory: Memories, given: str, kept: str) -> None:
        await memory.add(given)

        assert await memory.found("needle") == [kept]

    @pytest.mark.parametrize(("given", "kept"), CLEANED)
    async def test_nul_and_lone_surrogates_in_json_are_replaced_keys_included(
        self, memory: Memories, given: str, kept: str
    ) -> None:
        await memory.add(
            MemoryEntry(Content(given, ["needle", {given: [given]}]), author=given, metadata={given: {given: given}})
        )

        [found] = await memory.search("needle")
        assert found.content == Content(kept, ["needle", {kept: [kept]}])
        assert (found.author, found.metadata) == (kept, {kept: {kept: kept}})

    @pytest.mark.parametrize("value", NOT_JSON)
    async def test_what_json_can_not_hold_is_refused_with_its_path(self, value: Any) -> None:
        with pytest.raises(ValidationError, match=r"parts\[1\]\.args\.deep\[0\]"):
            MemoryEntry(Content("user", ["needle", {"args": {"deep": [value]}}]))

    @pytest.mark.parametrize("value", NOT_JSON)
    async def test_metadata_that_json_can_not_hold_is_refused_with_its_path(self, value: Any) -> None:
        with pytest.raises(ValidationError, match=r"metadata\.deep\[0\]"):
            MemoryEntry("needle", metadata={"deep": [value]})
