"""F07 and F08: scripts without spaces, and strings that readers take for the same."""

from __future__ import annotations

import unicodedata

import pytest

from adk_memory import MemoryService
from field_reports.calls import found, missed, recent, remember

JOINED = {
    "我的用户身份是管理员": ["用户身份", "管理员", "用户", "身份"],
    "重跑gen-itgc后50条": ["itgc", "gen-itgc", "重跑", "50"],
    "サンドボックス修正テスト": ["サンドボックス", "修正", "テスト", "ボックス"],
    "東京タワーに行きました。楽しかった!": ["東京", "タワー", "東京タワー", "行きました", "楽しかった"],
    "ฉันชอบกินข้าวผัด": ["ข้าวผัด", "ชอบ", "กิน"],
    "ຂ້ອຍມັກກິນເຂົ້າ": ["ກິນ"],
    "ខ្ញុំចូលចិត្តបាយ": ["បាយ"],
    "ကျွန်တော်ထမင်းစားတယ်": ["ထမင်း"],
    "서울에서 만났다": ["서울", "서울에서", "만났다"],
    "한국어를 공부합니다": ["한국어", "공부"],
    "把README.md发给张三": ["README", "README.md", "张三"],
    "使用Python3和C++编程": ["Python3", "编程"],
    "會議記錄：討論預算": ["會議", "討論", "預算"],
    "価格は１２３円です": ["123", "価格"],
    "𠮷野家で食べた": ["𠮷野家", "野家"],
    "ﾃｽﾄを実行": ["テスト", "実行"],
}

SAME_READING = [
    ("café", "cafe"),
    ("CAFÉ", "café"),
    ("bệnh", "benh"),
    ("Điện thoại", "dien"),
    ("İstanbul", "istanbul"),
    ("ISTANBUL", "istanbul"),
    ("STRASSE", "Straße"),
    ("ＡＢＣ", "abc"),
    ("１２３", "123"),
    ("ﬁnance oﬃce", "finance"),
    ("ΚΑΛΗΜΈΡΑ", "καλημερα"),
    ("Ὀδυσσεύς", "οδυσσευς"),
    ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ("Łódź", "lodz"),
    ("smørrebrød", "smorrebrod"),
    ("Zürich", "zurich"),
    ("naïve", "naive"),
    ("ПРИВЕТ", "привет"),
    ("ёлка", "елка"),
    ("São Paulo", "sao"),
    ("Ñandú", "nandu"),
    ("crème brûlée", "creme brulee"),
    ("Škoda", "skoda"),
    ("x²", "x2"),
    ("ǅungla", "džungla"),
    ("مُحَمَّد", "محمد"),
    ("שָׁלוֹם", "שלום"),
    ("ᏣᎳᎩ", "ꮳꮃꭹ"),
    ("Ⅻ century", "xii"),
    ("don’t panic", "don't"),
]

DECOMPOSABLE = [
    "résumé", "한국어", "bệnh", "Ångström", "ガギグゲゴ", "ёжик", "Việt Nam", "ñ", "नमस्ते क़लम", "ΐ", "ộ", "Ṩ", "ö",
    "ก็", "שׁ", "が", "각", "Ǻ", "ḱ",
]  # fmt: skip


async def test_f07_a_word_inside_text_without_spaces_is_found(service: MemoryService) -> None:
    await remember(service, *JOINED, "an English note")

    for text, queries in JOINED.items():
        assert await missed(service, queries, text) == [], text


async def test_f07_a_word_that_is_not_in_the_text_is_not_found(service: MemoryService) -> None:
    await remember(service, *JOINED)

    for query in ["猫", "犬", "ネコ", "부산", "แมว", "banana"]:
        assert await found(service, query) == [], query


async def test_f07_the_text_with_the_whole_word_is_before_one_with_its_characters_only(service: MemoryService) -> None:
    await remember(service, "身份的用户", "户外用品很好", "我的用户身份是管理员")

    assert (await found(service, "用户身份"))[0] == "我的用户身份是管理员"


async def test_f08_strings_that_read_the_same_find_each_other(service: MemoryService) -> None:
    for number, (one, other) in enumerate(SAME_READING):
        user = f"user {number}"
        await remember(service, one, user=user, session="one")
        await remember(service, other, user=user, session="other")

        assert sorted(await found(service, one, user=user)) == sorted([one, other]), one
        assert sorted(await found(service, other, user=user)) == sorted([one, other]), other


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
async def test_f08_canonically_equal_strings_match(service: MemoryService, form: str) -> None:
    stored = [unicodedata.normalize(form, word) for word in DECOMPOSABLE]  # type: ignore[arg-type]
    await remember(service, *stored)

    for word, text in zip(DECOMPOSABLE, stored, strict=True):
        for query_form in ("NFC", "NFD"):
            assert text in await found(service, unicodedata.normalize(query_form, word)), (word, query_form)


async def test_f08_text_comes_back_as_it_was_given(service: MemoryService) -> None:
    kept = [
        *(unicodedata.normalize(form, word) for word in DECOMPOSABLE for form in ("NFC", "NFD")),
        "İstanbul ıI", "ﬁ", "\u200bzero\u200dwidth\ufeff", "a\u0301\u0323", "\u202eright to left", "tab\tand\r\nline",
        " spaces ",
        "\x01\x1f\x7f\x85\u2028", "𝕬𝖓𝖆", "👩🏽‍💻", "\ufffe\uffff\U0010ffff", "\\u0000 \\x00 \\",
        '"quoted" \'single\'',
    ]  # fmt: skip
    await remember(service, *kept)

    assert sorted(await recent(service)) == sorted(kept)


async def test_f08_deleting_folds_words_in_the_same_way(service: MemoryService) -> None:
    await remember(service, "Meet at the CAFÉ", unicodedata.normalize("NFD", "le résumé"), "cafeteria")

    assert await service.delete_entries("app", "ana", "cafe") == 1
    assert await service.delete_entries("app", "ana", "RÉSUMÉ") == 1
    assert await recent(service) == ["cafeteria"]
