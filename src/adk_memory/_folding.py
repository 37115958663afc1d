"""Folding: what reads alike becomes alike, before it is cut into words.

Compatibility forms, case, widths and digits of any script; what is not seen (soft hyphens, joiners, direction and
variation marks); the accents of Latin, Greek, Arabic, Hebrew and Cyrillic, whose own letters, as the short i, stay;
variants of a letter that people type for each other. Vowel signs and tone marks of other scripts stay.
"""

# ruff: noqa: RUF001 - letters that look alike are its business

from __future__ import annotations

import unicodedata
from typing import Final

import regex

HUMP: Final = "\x1f"
"""Stands between the humps of camelCase once its case is folded."""

_ENDLESS_MARKS = regex.compile(r"(\p{M}{30})\p{M}+")
_GENDER_SIGN = regex.compile("\u200d[♀♂]")
# get|User, HTTP|Server, utf8|Decoder; not iPhone, URLs.
_CAMEL = regex.compile(
    r"""\p{Lu}(?: (?<=[\p{L}\p{N}]\p{Ll}.)
                | (?<=\p{Ll}\p{N}{1,4}.)(?=\p{Ll})
                | (?<=[\p{L}\p{N}]\p{Lu}.)(?=\p{Ll}{2}) )""",
    regex.VERBOSE,
)
_MARKED_HUMP = rf"{HUMP}\g<0>"
_IGNORED = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Me}--[\u200c\U000E0061-\U000E007F]]", regex.V1)
# The first are taken off letter by letter, the second where no letter includes them: й stays, a stress on it goes.
_ACCENTS = regex.compile(r"(?<=[\p{Latin}\p{Greek}\p{Arabic}\p{Hebrew}])\p{Mn}+")
_STRESSES = regex.compile(r"(?<=[\p{Latin}\p{Greek}\p{Arabic}\p{Hebrew}\p{Cyrillic}])\p{Mn}+")
# Between Persian letters it separates the parts of a word.
_STRAY_NON_JOINER = regex.compile(r"(?<!\p{Arabic})\u200c")
_HEBREW_QUOTE = regex.compile(r"(?<=\p{Hebrew})[\"״](?=\p{Hebrew})")
# A nasal before a consonant of its own class is more often written as a dot.
_NASAL = regex.compile("ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ])")
# English endings go; don't becomes dont, not the name Don.
_CLITIC = regex.compile(r"(?<=\p{L})'(?:(?:s|d|m|ll|re|ve)(?![\p{L}\p{N}])|(?=t(?![\p{L}\p{N}])))")
# Letters that have no decomposition, or whose decomposition is another letter of the same alphabet; and letters that
# are typed for each other.
_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ŧ": "t", "þ": "th", "ŋ": "n", "ə": "e", "æ": "ae",
     "œ": "oe", "ё": "е", "ѐ": "е", "ѝ": "и", "’": "'", "‘": "'", "ʼ": "'", "ʻ": "'", "׳": "'", "־": "-",
     "ـ": None, "ٱ": "ا", "ى": "ي", "ی": "ي", "ې": "ي", "ک": "ك", "ڪ": "ك", "ة": "ه", "ہ": "ه", "ھ": "ه", "ە": "ه",
     "ۃ": "ه", "ך": "כ", "ם": "מ", "ן": "נ", "ף": "פ", "ץ": "צ", "\u093c": None, "ऩ": "न", "ऱ": "र", "ऴ": "ळ",
     "ँ": "ं", "ৎ": "ত্", "ൺ": "ണ്", "ൻ": "ന്", "ർ": "ര്", "ൽ": "ല്", "ൾ": "ള്", "ൿ": "ക്",
     **{chr(katakana): chr(katakana - 0x60) for katakana in range(ord("ァ"), ord("ヶ") + 1)}}
)  # fmt: skip


def fold(text: str) -> str:
    """Return ``text`` without what does not change how it reads: case, accents, widths, variants of a letter."""
    if text.isascii():
        text = _CAMEL.sub(_MARKED_HUMP, text).lower()
    else:
        text = _ENDLESS_MARKS.sub(r"\1", text)  # to put them in order takes the square of their number
        text = _GENDER_SIGN.sub("", unicodedata.normalize("NFKC", text))
        text = _CAMEL.sub(_MARKED_HUMP, text).translate(_folding)
        text = _STRAY_NON_JOINER.sub("", _STRESSES.sub("", text))
        text = _NASAL.sub("ं", _HEBREW_QUOTE.sub("'", text))
    return str(_CLITIC.sub("", text))


class _Folding(dict[int, str]):
    """Characters to what they are folded to, worked out when they are first met."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(chr(code))
        return folded


_folding = _Folding()


def _fold_character(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if _IGNORED.match(character):
        return ""
    folded = _ACCENTS.sub("", unicodedata.normalize("NFD", character.casefold()))
    return unicodedata.normalize("NFC", folded).translate(_LETTERS)
