"""Text to terms: one analyser for every backend, so that the same words match on each of them.

Text is folded, so that what reads alike is alike (see `_folding`), and cut into words. Scripts that are written without
spaces, and Hangul, whose particles stick to the noun, give their characters and pairs of characters. Emoji are words.
What is written in one but made of parts, `getUserName`, `e-mail`, `O'Neil`, is found by its parts and as a whole.
A term is the stem of a word, by a stemmer that is chosen by its script.
"""

from __future__ import annotations

import string
import threading
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, chain, islice, pairwise, starmap
from operator import add
from typing import Final

import regex
import Stemmer

from adk_memory._folding import HUMP, fold

VERSION: Final = 1
"""Changes whenever the same text gives other terms: an index made by another version has to be made anew."""

MAX_QUERY_TERMS: Final = 256
MAX_WORD_CHARACTERS: Final = 64
MAX_INDEXED_BYTES: Final = 400_000  # Postgres refuses a tsvector of 1 MB; what comes later in a text is not searched

_SPACELESS = r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}ー々\p{Hangul}\p{Line_Break=SA}]--\p{M}]"
_LETTER = rf"[a-z0-9[[\p{{L}}\p{{N}}]--{_SPACELESS}]]"  # the first are not new, but fast
_WORD = rf"{_LETTER}[{_LETTER}\p{{M}}]*+"
_SEAM = rf"[-_'&·‐\u200c{HUMP}]"
# A seam that is not between digits; the dots of U.S.A.; the separators of 1,000,000.
_JOINER = rf"""(?:
    (?<!\p{{N}}){_SEAM} | {_SEAM}(?!\p{{N}})
  | (?<=(?<!{_LETTER})\p{{L}})\.(?=\p{{L}}(?!{_LETTER}))
  | (?<=\p{{N}})[.,](?=\p{{N}}{{3}}(?!{_LETTER}))
)"""
_SIGNS = r"(?<=\p{L})[+\#]{1,2}(?![\p{L}\p{N}+\#])"  # of C++ and C#
_TOKEN = regex.compile(
    rf"""
    (?P<word>      {_WORD} )
    (?P<compound>  (?=[{_SEAM}.,+\#]) (?: (?:{_JOINER}{_WORD}){{1,64}}+ (?:{_SIGNS})? | {_SIGNS} ) )?
  | (?P<spaceless> {_SPACELESS}[{_SPACELESS}\p{{M}}]*+ )
  | (?P<emoji>     \p{{Regional_Indicator}}{{2}} | 🏴[\U000E0061-\U000E007F]++ | \p{{Extended_Pictographic}} )
    """,
    regex.VERBOSE | regex.V1,
)
_CHARACTER = regex.compile(r"[^\p{M}]\p{M}*")
_PIECE = regex.compile(r"[^-_'&·‐\u200c.,]+")
_ASCII_WORD = regex.compile("[A-Za-z0-9]")
_NO_PART_OF_A_WORD: Final = (string.punctuation + "\n\r\t").translate({ord("+"): None, ord("#"): None})
_SPELLED = str.maketrans({"+": "plus", "#": "sharp"})

_STEMMERS = (
    (regex.compile(r"\p{Latin}"), "english"),
    (regex.compile(r"\p{Cyrillic}"), "russian"),
    (regex.compile(r"\p{Arabic}"), "arabic"),
    (regex.compile(r"\p{Greek}"), "greek"),
    (regex.compile(r"\p{Devanagari}"), "hindi"),
    (regex.compile(r"\p{Tamil}"), "tamil"),
    (regex.compile(r"\p{Armenian}"), "armenian"),
)
_local = threading.local()  # a Snowball stemmer keeps state while it works


def terms(text: str) -> list[str]:
    """Return the terms under which ``text`` is found, in order and with repetitions."""
    return list(map(term, words(text)))


def words(text: str) -> list[str]:
    """Return the folded words of ``text``, in order and with repetitions; each has one term."""
    # A word has a byte at least, so there can't be more of them.
    found = list(islice(_all_words(text), MAX_INDEXED_BYTES))
    if len("".join(found).encode()) > MAX_INDEXED_BYTES:
        sizes = list(accumulate(len(word.encode()) for word in found))
        return found[: bisect_right(sizes, MAX_INDEXED_BYTES)]
    return found


@lru_cache(maxsize=4_096)
def name_words(author: str) -> frozenset[str]:
    """Return the words by which a query can name an author."""
    return frozenset(query_words(author))


def has_word(text: str) -> bool:
    """Whether there is anything in ``text`` that can be searched."""
    return _ASCII_WORD.search(text) is not None or next(_tokens(text), None) is not None


def query_words(query: str) -> list[str]:
    """Return the distinct folded words that a search for ``query`` asks for, in order."""
    return list(dict.fromkeys(_asked(query)))


def required_words(query: str) -> list[str]:
    """Return the distinct folded words that an entry needs to have all of, to be erased by ``query``.

    They are those that are written: `run.py` has two, `e-mail` too, `getUserName` has one.
    """
    return list(dict.fromkeys(word for kind, token in _tokens(query) for word in _required(kind, token)))


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


def _all_words(text: str) -> Iterator[str]:
    for kind, token in _tokens(text):
        if kind == "word":
            yield token[:MAX_WORD_CHARACTERS]
        else:
            yield from _words(kind, token)


def _asked(query: str) -> Iterator[str]:
    for kind, token in _tokens(query):
        if kind == "compound":
            found = list(_words(kind, token))
            # One character of several, the e of e-mail, says nothing.
            yield from [word for word in found if len(word) > 1] or found
        else:
            yield from _required(kind, token)


def _required(kind: str, token: str) -> list[str]:
    if kind == "compound":
        return [_one_word(piece) for piece in _PIECE.findall(token)]
    if kind == "spaceless":
        # Pairs of characters; a lone one only where there are no more.
        characters = _CHARACTER.findall(token)
        return [first + second for first, second in pairwise(characters)] or characters
    return [token[:MAX_WORD_CHARACTERS]]


def _words(kind: str, token: str) -> Iterator[str]:
    if kind == "compound":
        yield from _parts_and_whole(_PIECE.findall(token))
    elif kind == "spaceless":
        # Characters and pairs, side by side: of a text that is too long, its beginning has both.
        characters = _CHARACTER.findall(token)
        pairs = starmap(add, pairwise(characters))
        yield from chain.from_iterable(zip(characters, pairs, strict=False))
        yield characters[-1]
    else:
        yield token[:MAX_WORD_CHARACTERS]


def _parts_and_whole(pieces: list[str]) -> Iterator[str]:
    for piece in pieces:
        humps = piece.rstrip("+#").split(HUMP)
        if humps != [piece]:
            yield from (hump[:MAX_WORD_CHARACTERS] for hump in humps)
        yield _one_word(piece)
    if len(pieces) > 1 and sum(map(len, pieces)) <= MAX_WORD_CHARACTERS:
        yield _one_word("".join(pieces))


def _one_word(piece: str) -> str:
    return piece.replace(HUMP, "").translate(_SPELLED)[:MAX_WORD_CHARACTERS]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    folded = fold(text)
    if not folded.isascii():
        yield from _matched(folded)
        return
    # No token reaches over a space, and most that stand between two are but a word: the expression is for the others.
    for piece in folded.split(" "):
        word = piece.strip(_NO_PART_OF_A_WORD)
        if word.isalnum():
            yield "word", word
        elif word:
            yield from _matched(word)


def _matched(folded: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(folded):
        yield match.lastgroup, match.group()


def _stemmer(language: str) -> Stemmer.Stemmer:
    stemmers: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language, 0)
    return stemmers[language]
