"""Text to terms: one analyser for every backend, so that the same words match on each of them.

Text is folded (compatibility forms, case, Latin and Greek diacritics, Arabic and Hebrew marks; Indic vowel signs
stay) and cut into words. Scripts that are written without spaces, and Hangul, whose particles stick to the noun,
give their characters and pairs of characters. Emoji are words. A term is the stem of a word, by a stemmer that is
chosen by its script.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final

import regex
import Stemmer

VERSION: Final = 1
"""Changes whenever the same text gives other terms: an index made by another version has to be made anew."""

MAX_QUERY_TERMS: Final = 256
MAX_WORD_CHARACTERS: Final = 64
MAX_INDEXED_BYTES: Final = 400_000  # Postgres refuses a tsvector of 1 MB; what comes later in a text is not searched

_JOINED = r"\p{Han}\p{Hiragana}\p{Katakana}ー々\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Hangul}"
_TOKEN = regex.compile(
    rf"""
    (?P<cjk>    (?:[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}ー々]\p{{M}}*)+ )
  | (?P<hangul> (?:\p{{Hangul}}\p{{M}}*)+ )
  | (?P<southeast> (?:[\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}]\p{{M}}*)+ )
  | (?P<word>   (?:[[\p{{L}}\p{{N}}]--[{_JOINED}]]\p{{M}}*)+ )
  | (?P<emoji>  \p{{Regional_Indicator}}{{2}} | \p{{Extended_Pictographic}} )
    """,
    regex.VERBOSE | regex.V1,
)
_CHARACTER = regex.compile(r"[^\p{M}]\p{M}*")
_FOLDED_MARKS = regex.compile(r"([\p{Latin}\p{Greek}\p{Arabic}\p{Hebrew}])\p{Mn}+")
_CLITIC = regex.compile(r"(?<=\p{L})['’](?:s|t|d|m|ll|re|ve)(?![\p{L}\p{N}])")
# Letters that have no decomposition, or whose decomposition is another letter of the same alphabet.
_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "ё": "е",
     "\u0640": None, "\u0671": "\u0627", "\u0649": "\u064a", "\u0629": "\u0647"}
)  # fmt: skip
_STEMMERS = (
    (regex.compile(r"\p{Latin}"), "english"),
    (regex.compile(r"\p{Cyrillic}"), "russian"),
    (regex.compile(r"\p{Arabic}"), "arabic"),
    (regex.compile(r"\p{Greek}"), "greek"),
    (regex.compile(r"\p{Devanagari}"), "hindi"),
)
_local = threading.local()  # a Snowball stemmer keeps state while it works


def terms(text: str) -> list[str]:
    """Return the terms under which ``text`` is found, in order and with repetitions."""
    return [term(word) for word in words(text)]


def words(text: str) -> list[str]:
    """Return the folded words of ``text``, in order and with repetitions; each has one term."""
    found: list[str] = []
    size = 0
    for kind, token in _tokens(text):
        for word in _parts(kind, token, with_characters=True):
            size += len(word.encode())
            if size > MAX_INDEXED_BYTES:
                return found
            found.append(word)
    return found


@lru_cache(maxsize=4_096)
def name_words(author: str) -> frozenset[str]:
    """Return the words by which a query can name an author."""
    return frozenset(query_words(author))


def has_word(text: str) -> bool:
    """Whether there is anything in ``text`` that can be searched."""
    return next(_tokens(text), None) is not None


def query_words(query: str) -> list[str]:
    """Return the distinct folded words that ``query`` asks for, in order."""
    return list(dict.fromkeys(_asked(query)))


def query_terms(query: str) -> list[str]:
    """Return the distinct terms that ``query`` asks for, in order; the first 256 of them."""
    found: dict[str, None] = {}
    for word in _asked(query):
        found[term(word)] = None
        if len(found) == MAX_QUERY_TERMS:
            break
    return list(found)


@lru_cache(maxsize=65_536)
def term(word: str) -> str:
    """Return the term of a folded word: its stem, where there is a stemmer for its script."""
    for script, language in _STEMMERS:
        if script.match(word):
            return str(_stemmer(language).stemWord(word)) or word
    return word


def _asked(query: str) -> Iterator[str]:
    return (word for kind, token in _tokens(query) for word in _parts(kind, token, with_characters=False))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(_fold(text)):
        yield str(match.lastgroup), match.group()


def _parts(kind: str, token: str, *, with_characters: bool) -> list[str]:
    if kind in ("word", "emoji"):
        return [token[:MAX_WORD_CHARACTERS]]
    characters = _CHARACTER.findall(token)
    pairs = [first + second for first, second in pairwise(characters)]
    if pairs and not with_characters:
        # A query asks for its pairs, for a lone character only where it has no more.
        return pairs
    # A text gives both, side by side: of one that is too long, its beginning has both.
    return [*chain.from_iterable(zip(characters, pairs, strict=False)), *characters[-1:]]


def _fold(text: str) -> str:
    if text.isascii():
        text = text.lower()
    else:
        text = unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS)
        text = _FOLDED_MARKS.sub(r"\1", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", text)
    return str(_CLITIC.sub("", text))


def _stemmer(language: str) -> Stemmer.Stemmer:
    stemmers: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language, 0)
    return stemmers[language]
