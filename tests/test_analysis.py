"""The analyser's rules: what the words of a text are, what a query asks for, and that no text is too much."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adk_memory import _analysis
from adk_memory._analysis import MAX_QUERY_TERMS, has_word, query_terms, query_words, required_words, terms, words
from adk_memory._folding import fold
from adk_memory.testing._language_cases import APART, FOUND

TEXTS = [text for cases in (*FOUND.values(), *APART.values()) for text, _query in cases]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Green TEA", ["green", "tea"]),
        ("tools/run.py", ["tools", "run", "py"]),
        ("getUserName", ["get", "user", "name", "getusername"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("utf8Decoder", ["utf8", "decoder", "utf8decoder"]),
        ("user_name", ["user", "name", "username"]),
        ("my_userName", ["my", "user", "name", "username", "myusername"]),
        ("iPhone URLs mRNA 2FA", ["iphone", "urls", "mrna", "2fa"]),
        ("v1.2.3", ["v1", "2", "3"]),
        ("e-mail", ["e", "mail", "email"]),
        ("covid-19", ["covid", "19", "covid19"]),
        ("2024-05-12", ["2024", "05", "12"]),
        ("1,000,000", ["1", "000", "000", "1000000"]),
        ("3.14", ["3", "14"]),
        ("U.S.A.", ["u", "s", "a", "usa"]),
        ("so.A new", ["so", "a", "new"]),
        ("AT&T", ["at", "t", "att"]),
        ("C++ C# A+ #tag a+b", ["c", "cplusplus", "c", "csharp", "a", "aplus", "tag", "a", "b"]),
        ("user's we'll don't", ["user", "we", "dont"]),
        ("l’homme O'Neil", ["l", "homme", "lhomme", "o", "neil", "oneil"]),
        ("_private -x- 'quoted'", ["private", "x", "quoted"]),
    ],
)
def test_words_of_latin_text(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Œuvre Łódź Þór smørrebrød", ["oeuvre", "lodz", "thor", "smorrebrod"]),
        ("İSTANBUL ısı", ["istanbul", "isi"]),
        ("ёжик край", ["ежик", "край"]),
        ("п'ять", ["п", "ять", "пять"]),
        ("ΟΔΟΣ", ["οδοσ"]),
        ("کتاب\u200cها", ["كتاب", "ها", "كتابها"]),
        ("क्\u200dष क्\u200cष", ["क्ष", "क्ष"]),
        ("हिन्दी अन्य जन्म", ["हिंदी", "अन्य", "जन्म"]),
        ('ליום צה"ל', ["ליומ", "צה", "ל", "צהל"]),
        ("१२ ٣٤ ๕๖", ["12", "34", "56"]),
        ("绿茶", ["绿", "绿茶", "茶"]),
        ("ﾈｺ", ["ね", "ねこ", "こ"]),
        ("น้ำ", ["น้ํ", "น้ํา", "า"]),
        ("커피", ["커", "커피", "피"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zerowidth"]),
        ("👍🏽 👩🏾‍💻 🤷‍♀️ 🇯🇵🇰🇷 1️⃣", ["👍", "👩", "💻", "🤷", "🇯🇵", "🇰🇷", "1"]),
    ],
)
def test_words_of_other_text(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("query", "searched", "erased"),
    [
        ("getUserName", ["get", "user", "name", "getusername"], ["getusername"]),
        ("run.py", ["run", "py"], ["run", "py"]),
        ("e-mail", ["mail", "email"], ["e", "mail"]),
        ("my_userName", ["my", "user", "name", "username", "myusername"], ["my", "username"]),
        ("C++", ["cplusplus"], ["cplusplus"]),
        ("x y", ["x", "y"], ["x", "y"]),
        ("绿茶", ["绿茶"], ["绿茶"]),
        ("茶", ["茶"], ["茶"]),
        ("tea Tea", ["tea"], ["tea"]),
    ],
)
def test_a_search_asks_for_parts_and_the_whole_and_a_delete_for_what_is_written(
    query: str, searched: list[str], erased: list[str]
) -> None:
    assert (query_words(query), required_words(query)) == (searched, erased)


def test_a_stem_is_chosen_by_script() -> None:
    assert terms("allergies книги किताबें புத்தகங்கள் 茶") == ["allergi", "книг", "किताब", "புத்தகம்", "茶"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("three mice", "mouse"),
        ("two Häuser", "Haus"),
        ("iki kitaplar", "kitap"),
        ("Krankenversicherung", "Versicherung"),
        ("Frau Mueller", "Müller"),
        ("台灣", "台湾"),
        ("הבית", "בית"),
        ("книжка", "книга"),
    ],
)
def test_what_takes_a_dictionary_or_the_language_is_not_found(text: str, query: str) -> None:
    assert not set(terms(text)) & set(query_terms(query))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京都", "京都"),
        ("un año", "ano"),
        ("bò", "bố"),
        ("мой", "мои"),
        ("की", "का"),
        ("집에서", "학교에서"),
        ("let us", "U.S."),
    ],
)
def test_what_only_a_dictionary_or_the_language_tells_apart_is_found(text: str, query: str) -> None:
    assert set(terms(text)) & set(query_terms(query))


@pytest.mark.parametrize("text", ["", " ", "!?", "\0", "\ud800", "\u200b", "\u00ad", "ㅤ", "\u0301", "🏽", "\x1f", "+#"])
def test_what_has_no_letter_digit_or_emoji_has_no_word(text: str) -> None:
    assert not has_word(text)
    assert words(text) == query_terms(text) == required_words(text) == []


@example("a-b_c'd++")
@example("1,000.000")
@example("\x1fa\x1f\x1fb")
@given(st.one_of(st.text(), st.text("aB1-_'.,&+#\x1f\u200c\u0301ßİは한ก👍🏽")))
def test_terms_can_be_stored_and_a_text_finds_and_erases_itself(text: str) -> None:
    found = terms(text)

    assert all(found)
    assert all(character.isalnum() for character in "".join(found) if character.isascii())
    assert not any(character.isspace() for character in "".join(found))
    assert set(query_terms(text)) <= set(found)
    assert set(required_words(text)) <= set(words(text))
    assert has_word(text) == bool(found) == bool(query_terms(text)) == bool(required_words(text))


@example("c++, (x-y) o'neil\n1,000 u.s. a")
@given(st.text("aB1-_'.,&+#(\n\x1f "))
def test_ascii_text_has_the_same_tokens_cut_at_spaces_as_in_one_piece(text: str) -> None:
    assert list(_analysis._tokens(text)) == list(_analysis._matched(fold(text)))


@pytest.mark.parametrize("text", TEXTS)
def test_case_and_normal_form_change_no_word_of_a_delete(text: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert required_words(unicodedata.normalize(form, text)) == required_words(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 5_000_000, id="one word of 5 MB"),
        pytest.param("é" * 2_500_000, id="one accented word of 5 MB"),
        pytest.param(" ".join(f"word{number}" for number in range(200_000)), id="200,000 words"),
        pytest.param("a" + "\u0301\u0316" * 50_000, id="100,000 combining marks"),
        pytest.param("क" + "\u0301\u0316" * 50_000, id="100,000 combining marks that stay"),
        pytest.param("a-" * 100_000, id="a compound of 100,000 parts"),
        pytest.param("aB" * 100_000, id="100,000 humps"),
        pytest.param("1" + ",000" * 100_000, id="a number of 300,001 digits"),
        pytest.param("a." * 100_000, id="100,000 dots"),
        pytest.param("語" * 200_000, id="200,000 characters without a space"),
        pytest.param("👩‍" * 100_000, id="a family of 100,000"),
        pytest.param("ا\u200c" * 100_000, id="100,000 non-joiners"),
        pytest.param("'" * 200_000 + "+" * 200_000, id="400,000 signs"),
    ],
)
def test_a_hostile_text_takes_no_more_time_than_another(text: str) -> None:
    began = time.process_time()

    found = words(text)
    asked = query_terms(text)
    required_words(text)

    assert time.process_time() - began < 5
    assert sum(len(word.encode()) for word in found) <= _analysis.MAX_INDEXED_BYTES
    assert len(asked) <= MAX_QUERY_TERMS
