"""Languages: what is to be found in a text of any script, and what is not."""

# ruff: noqa: RUF001 - characters that look alike are the point

from __future__ import annotations

from typing import Final

import pytest

from adk_memory.testing._base import ContractBase, Memories
from adk_memory.testing._language_cases import APART, FOUND

ERASED: Final = [
    ("我的用户身份是管理员", "用户身份"),
    ("Café au lait", "CAFE"),
    ("Straße", "STRASSE"),
    ("re\u0301sume\u0301", "r\u00e9sum\u00e9"),
    ("pizza night 🍕", "🍕"),
    ("ＡＢＣ", "abc"),
    ("call getUserName first", "getUserName"),
    ("call getUserName first", "getusername"),
    ("call getusername first", "getUserName"),
    ("call get_user_name first", "getUserName"),
    ("open tools/run.py", "run.py"),
    ("send an e-mail", "e-mail"),
    ("send an e-mail", "email"),
    ("O'Neil called", "O’Neil"),
    ("we write C++", "c++"),
]
KEPT: Final = [
    ("get the user a name", "getUserName"),
    ("run fast", "run.py"),
    ("send an email", "e-mail"),
    ("vitamin C", "C++"),
    ("let us go", "U.S."),
    ("I don't know", "Don"),
    ("東京都", "京東"),
    ("दिन", "दीन"),
]


class LanguagesContract(ContractBase):
    @pytest.mark.parametrize("language", FOUND)
    async def test_a_word_is_found_in_any_script(self, memory: Memories, language: str) -> None:
        await memory.add(*(text for text, _query in FOUND[language]), "zzz unrelated")

        found = {query: await memory.found(query, limit=1_000) for _text, query in FOUND[language]}

        assert [(text, query) for text, query in FOUND[language] if text not in found[query]] == []
        assert [query for query, answer in found.items() if "zzz unrelated" in answer] == []

    @pytest.mark.parametrize("language", APART)
    async def test_another_word_is_not_found(self, memory: Memories, language: str) -> None:
        await memory.add(*(text for text, _query in APART[language]))

        found = {query: await memory.found(query, limit=1_000) for _text, query in APART[language]}

        assert [(text, query) for text, query in APART[language] if text in found[query]] == []

    async def test_a_text_is_found_by_itself(self, memory: Memories) -> None:
        texts = [text for cases in (*FOUND.values(), *APART.values()) for text, _query in cases]
        await memory.add(*texts)

        assert [text for text in texts if text not in await memory.found(text, limit=1_000)] == []

    @pytest.mark.parametrize(("text", "query"), ERASED)
    async def test_a_delete_folds_words_as_a_search_does(self, memory: Memories, text: str, query: str) -> None:
        await memory.add(text, "zzz unrelated")

        assert await memory.delete_entries(query) == 1

    async def test_a_delete_asks_for_words_as_they_are_written(self, memory: Memories) -> None:
        await memory.add(*(text for text, _query in KEPT))

        assert [query for _text, query in KEPT if await memory.delete_entries(query)] == []
