"""What the analyser promises of every text, as one function that hypothesis and atheris both call."""

from __future__ import annotations

import time
from typing import Final

from adk_memory import _analysis
from adk_memory._validation import clean_text

SECONDS: Final = 5.0


def check(text: str) -> None:
    """Fail where the analyser breaks a promise for a text, as it is stored and as it is asked."""
    started = time.monotonic()
    text = clean_text(text)
    stored, asked = _analysis.terms(text), _analysis.query_terms(text)
    words, required = _analysis.words(text), _analysis.required_words(text)

    assert len(asked) <= _analysis.MAX_QUERY_TERMS
    assert len(set(asked)) == len(asked)
    assert bool(stored) == _analysis.has_word(text) == bool(words)
    assert bool(asked) == bool(stored), "what holds a word finds something, and nothing else does"
    assert set(asked) <= set(stored), "a text is found by itself"
    assert set(required) <= set(words), "a text holds every word of its own"
    for term in (*stored, *asked):
        assert term.isprintable() or term.strip(), repr(term)
        assert not set(term) & set(" \t\r\n\0\"'"), repr(term)
        assert len(term.encode()) <= 2_046, "a lexeme of Postgres"
    assert time.monotonic() - started < SECONDS
