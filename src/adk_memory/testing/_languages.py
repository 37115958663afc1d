"""Languages: what is to be found in a text of any script, and what is not."""

# ruff: noqa: RUF001 - characters that look alike are the point

from __future__ import annotations

import unicodedata
from typing import Final

import pytest

from adk_memory.testing._base import ContractBase, Memories

FOUND: Final = [
    ("我的用户身份是管理员", "用户身份"),
    ("我的用户身份是管理员", "管理员"),
    ("我喜欢喝绿茶", "茶"),
    ("重跑gen-itgc后50条", "itgc"),
    ("サンドボックス修正テスト", "サンドボックス"),
    ("東京都に住んでいます", "東京"),
    ("私は猫が好きです", "猫"),
    ("ｻﾝﾄﾞﾎﾞｯｸｽ", "サンドボックス"),
    ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
    ("서울에서 만났다", "서울"),
    ("커피를 좋아한다", "커피"),
    (unicodedata.normalize("NFD", "한국어 공부"), "한국어"),
    ("we met at the café", "cafe"),
    ("we met at the cafe", "CAFÉ"),
    (unicodedata.normalize("NFD", "résumé"), unicodedata.normalize("NFC", "résumé")),
    (unicodedata.normalize("NFC", "résumé"), unicodedata.normalize("NFD", "résumé")),
    ("bệnh viện", "benh"),
    ("İstanbul", "istanbul"),
    ("Łódź", "lodz"),
    ("smørrebrød", "smorrebrod"),
    ("STRASSE", "Straße"),
    ("Straße", "strasse"),
    ("ＡＢＣ Corporation", "abc"),
    ("ﬁnance report", "finance"),
    ("Ελλάδα", "ελλαδα"),
    ("ΟΔΟΣ", "οδός"),
    ("Ещё один ёжик", "ежик"),
    ("книги на столе", "книга"),
    ("مُحَمَّد", "محمد"),
    ("مدرسة", "مدرسه"),
    ("شـــكرا", "شكرا"),
    ("שָׁלוֹם", "שלום"),
    ("हिन्दी में लिखा", "हिन्दी"),
    ("मुझे किताब चाहिए", "किताब"),
    ("தமிழ் மொழி", "தமிழ்"),
    ("বাংলা ভাষা", "বাংলা"),
    ("pizza night 🍕", "🍕"),
    ("we won 🏆🎉", "🎉"),
    ("trip to 🇯🇵", "🇯🇵"),
    ("thumbs 👍🏽 up", "👍"),
    ("the user's email", "user"),
    ("see https://example.com/docs/page", "docs"),
    ("code in src/app/main.py", "main.py"),
    ("the WiFi is down", "wifi"),
]
APART: Final = [
    ("green tea", "coffee"),
    ("we met at the café", "caff"),
    ("Greenland", "green"),
    ("我喜欢喝绿茶", "咖啡"),
    ("東京都", "京東"),
    ("ฉันชอบกินข้าวผัด", "กาแฟ"),
    ("서울에서 만났다", "부산"),
    ("pizza night 🍕", "🍔"),
    ("trip to 🇯🇵", "🇰🇷"),
    ("कल", "काल"),
    ("दिन", "दीन"),
    ("קפה", "תה"),
    ("год", "гид"),
    ("version 12", "2"),
    ("plan a", "b"),
]


class LanguagesContract(ContractBase):
    @pytest.mark.parametrize(("text", "query"), FOUND)
    async def test_a_word_is_found_in_any_script(self, memory: Memories, text: str, query: str) -> None:
        await memory.add(text, "zzz unrelated")

        assert await memory.found(query) == [text]

    @pytest.mark.parametrize(("text", "query"), APART)
    async def test_another_word_is_not_found(self, memory: Memories, text: str, query: str) -> None:
        await memory.add(text)

        assert await memory.found(query) == []

    async def test_a_text_is_found_by_itself(self, memory: Memories) -> None:
        texts = [text for text, _query in FOUND]
        await memory.add(*texts)

        assert [text for text in texts if text not in await memory.found(text, limit=1_000)] == []

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("我的用户身份是管理员", "用户身份"),
            ("Café au lait", "CAFE"),
            ("Straße", "STRASSE"),
            (unicodedata.normalize("NFD", "résumé"), "résumé"),
            ("pizza night 🍕", "🍕"),
            ("ＡＢＣ", "abc"),
        ],
    )
    async def test_a_delete_folds_words_as_a_search_does(self, memory: Memories, text: str, query: str) -> None:
        await memory.add(text, "zzz unrelated")

        assert await memory.delete_entries(query) == 1
