"""Scores: pure functions over terms and vectors, the same for every backend; no SQL.

What an entry holds itself is a blend of two legs. The keyword leg is BM25 (Robertson & Zaragoza, "The Probabilistic
Relevance Framework", 2009) over the entries in sight alone, divided by the weight of all terms of the query: 1 means
an average entry that holds each of them once. Rarities are squared, which does the work of a list of stop words, in
any language. A term that an entry lacks counts by the most alike of its terms: the share of 4-grams they have in
common meets compounds and endings that stemming does not. The other leg is the cosine of two vectors, on a scale that
the embedding provider knows.

Then comes evidence from around an entry: turns beside it that answer well, a session that does, an author whom the
query names. It changes the order, never which entries are returned, and there is none around single entries.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from adk_memory.types import Mode

K1: Final = 0.9
B: Final = 0.2
GRAM_CHARACTERS: Final = 4
LIKENESS_WEIGHT: Final = 0.6
LIKENESS_POWER: Final = 1.5
NEAREST: Final = 100
"""How many of the nearest entries take part in a search, where its limit does not ask for more."""
LENDERS: Final = 100
"""How many of the best entries lend their score to what stands around them."""
LENT: Final = {1: 0.5, -1: 0.3, 2: 0.25, -2: 0.2}
"""The share of its score that an entry lends to the one so many turns later: answers follow what asks for them."""
SESSION_WEIGHT: Final = 0.5
SESSION_BEST: Final = 3
AUTHOR_NAMED: Final = 1.8
"""By how much more an entry counts whose author the query names."""
RECENCY_HALF_LIFE: Final = 30 * 24 * 60 * 60 * 1_000_000

Vector = npt.NDArray[np.float32]


class Candidate(NamedTuple):
    """An entry that may answer a query: its microsecond, its place in its session, its author's words, its terms.

    One that does not pass the filter is no answer, but still speaks for what stands around it. A search makes
    thousands of them, which takes a frozen dataclass twice the time.
    """

    id: int
    instant: int
    session: Hashable | None
    position: int
    author: frozenset[str]
    terms: Sequence[str]
    passes: bool = True


@dataclass(frozen=True, slots=True)
class Collection:
    """What BM25 has to know of the entries in sight: how many have terms, and how many terms they have in all."""

    entries: int
    terms: int


class Evidence(NamedTuple):
    """What speaks for an entry, part by part; ``author`` and ``recency`` are factors of the sum of the others."""

    keyword: float = 0.0
    similarity: float = 0.0
    turns: float = 0.0
    session: float = 0.0
    author: float = 1.0
    recency: float = 1.0

    def parts(self) -> dict[str, float]:
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how the answer is to be weighed.

    ``span`` holds the cosines, of the provider's model, between which similarity grows from nothing to all;
    ``weight`` is the share of similarity where both legs take part.
    """

    mode: Mode
    terms: Sequence[str]
    words: frozenset[str]
    vector: Vector | None
    span: tuple[float, float]
    weight: float
    limit: int
    min_score: float | None
    recency: float

    @property
    def nearest(self) -> int:
        """How many of the nearest entries take part; those that are no answers matter beside words alone."""
        return self.limit if self.mode == "vector" else max(NEAREST, self.limit)


@dataclass(frozen=True, slots=True)
class Ranked:
    """An answer: the entry, its score, and what the score is made of."""

    id: int
    score: float
    evidence: Evidence


def term_weights(query: Iterable[str], collection: Collection, frequency: Mapping[str, int]) -> dict[str, float]:
    """Return the square of each term's inverse document frequency, in its form that is never negative."""
    weights = {}
    for term in query:
        holding = frequency.get(term, 0)
        weights[term] = math.log1p((max(collection.entries - holding, 0) + 0.5) / (holding + 0.5)) ** 2
    return weights


def keyword_shares(
    query: Sequence[str],
    candidates: Sequence[Candidate],
    collection: Collection,
    frequency: Mapping[str, int] | None = None,
) -> dict[int, float]:
    """Return how much of the query's weight each candidate holds, 0 to 1.9; those that hold no term are left out.

    ``frequency`` says how many entries hold each term; without it the candidates are all that hold any.
    """
    if not candidates:
        return {}
    alike = _alike(query, set().union(*(found.terms for found in candidates)))
    columns = {term: column for column, term in enumerate(dict.fromkeys(chain(query, *alike)))}
    times, lengths = _term_counts(candidates, columns)
    asked = times[:, : len(query)]
    if frequency is None:
        frequency = dict(zip(query, np.count_nonzero(asked, axis=0).tolist(), strict=True))
    weights = term_weights(query, collection, frequency)
    damping = K1 * (1 - B) + K1 * B * collection.entries / collection.terms * lengths[:, None]
    weight = np.fromiter(weights.values(), np.float64)
    held = weight * asked * (K1 + 1) / (asked + damping)
    for column, likeness in enumerate(alike):
        if likeness:
            has = times[:, [columns[term] for term in likeness]] > 0
            most = (has * np.fromiter(likeness.values(), np.float64)).max(axis=1)
            held[:, column] += (asked[:, column] == 0) * weight[column] * LIKENESS_WEIGHT * most
    shares = (held.sum(axis=1) / sum(weights.values())).tolist()
    matching = np.count_nonzero(asked, axis=1).tolist()
    return {found.id: share for found, share, holds in zip(candidates, shares, matching, strict=True) if holds}


def _term_counts(
    candidates: Sequence[Candidate], columns: Mapping[str, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how often each candidate has each term that has a column (n, columns), and how many terms it has (n)."""
    lengths = np.fromiter((len(found.terms) for found in candidates), np.int64, len(candidates))
    every_term = chain.from_iterable([found.terms for found in candidates])
    column = np.fromiter(map(columns.get, every_term, repeat(-1)), np.int64, lengths.sum())
    row = np.repeat(np.arange(len(candidates)), lengths)
    counted = column >= 0
    cells = row[counted] * len(columns) + column[counted]
    counts = np.bincount(cells, minlength=len(candidates) * len(columns))
    return counts.reshape(len(candidates), len(columns)), lengths


def cosines(vectors: npt.NDArray[np.float32], query: Vector) -> npt.NDArray[np.float64]:
    """Return the cosine of each row of ``vectors`` (n, dimensions) with ``query`` (dimensions); 0 where negative."""
    # Not `@`, which would start threads for it.
    squares, products = np.einsum("ij,ij->i", vectors, vectors), np.einsum("ij,j->i", vectors, query)
    norms = np.sqrt(squares) * float(np.linalg.norm(query))
    found: npt.NDArray[np.float64] = np.clip(products / norms, 0.0, 1.0).astype(np.float64)
    return found


def nearest(
    similarity: Mapping[int, float], candidates: Mapping[int, Candidate], count: int
) -> list[tuple[int, float]]:
    """Return the ``count`` most similar entries with their cosines, in the order of a search."""
    return _best(similarity, candidates, count)


def lenders(own: Mapping[int, float], candidates: Mapping[int, Candidate]) -> list[Candidate]:
    """Return the entries of sessions that have most of their own, best first: what stands around them gains by it."""
    in_sessions = {entry_id: found for entry_id, found in own.items() if candidates[entry_id].session is not None}
    return [candidates[entry_id] for entry_id, _ in _best(in_sessions, candidates, LENDERS)]


def ranked(
    question: Question,
    shares: Mapping[int, float],
    near: Sequence[tuple[int, float]],
    candidates: Mapping[int, Candidate],
) -> list[Ranked]:
    """Return the best answers: by score, then newest, then first to arrive.

    ``shares`` are those of `keyword_shares`, ``near`` the entries and cosines of `nearest`; all are candidates.
    """
    if question.mode == "vector":
        scores = dict(near)
        evidence = {entry_id: (0.0, cosine, 0.0, 0.0, 1.0, 1.0) for entry_id, cosine in near}
    else:
        evidence = _evidence(question, shares, near, candidates)
        scores = {entry_id: _score(*parts) for entry_id, parts in evidence.items()}
    floor = -math.inf if question.min_score is None else question.min_score
    passing = {entry_id: score for entry_id, score in scores.items() if score >= floor and candidates[entry_id].passes}
    answers = _best(passing, candidates, question.limit)
    return [Ranked(entry_id, score, Evidence(*evidence[entry_id])) for entry_id, score in answers]


def _evidence(
    question: Question,
    shares: Mapping[int, float],
    near: Sequence[tuple[int, float]],
    candidates: Mapping[int, Candidate],
) -> dict[int, tuple[float, float, float, float, float, float]]:
    """Return the parts of the `Evidence` for each entry that either leg found; few of these will be answers."""
    keyword, similarity = _legs(question, shares, near)
    own = dict(keyword)
    for entry_id, part in similarity.items():
        own[entry_id] = own.get(entry_id, 0.0) + part
    lent = _lent(own, candidates)
    nothing_lent: tuple[float, dict[int, float]] = (0.0, {})
    recency = _recency(question, own.keys(), candidates)
    evidence = {}
    for entry_id in own:
        found = candidates[entry_id]
        to_session, to_turns = lent.get(found.session, nothing_lent)
        evidence[entry_id] = (
            keyword.get(entry_id, 0.0),
            similarity.get(entry_id, 0.0),
            to_turns.get(found.position, 0.0),
            to_session,
            1.0 if question.words.isdisjoint(found.author) else AUTHOR_NAMED,
            recency.get(entry_id, 1.0),
        )
    return evidence


def _legs(
    question: Question, shares: Mapping[int, float], near: Sequence[tuple[int, float]]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the parts of the evidence that the entries hold themselves: by keyword and by similarity."""
    low, high = question.span
    # What a hundred entries have in common with a query says nothing.
    floor = max(low, near[NEAREST - 1][1]) if len(near) >= NEAREST else low
    weight = question.weight if near else 0.0
    keyword = {entry_id: (1 - weight) * share for entry_id, share in shares.items()}
    similarity = {entry_id: weight * max(0.0, cosine - floor) / (high - low) for entry_id, cosine in near}
    return keyword, similarity


def _lent(
    own: Mapping[int, float], candidates: Mapping[int, Candidate]
) -> dict[Hashable, tuple[float, dict[int, float]]]:
    """Return what the best entries lend, by session: to each entry of it, and to those at some positions."""
    best: defaultdict[Hashable, list[float]] = defaultdict(list)
    turns: defaultdict[Hashable, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for lender in lenders(own, candidates):
        has = own[lender.id]
        best[lender.session].append(has)
        to_turns = turns[lender.session]
        for distance, share in LENT.items():
            to_turns[lender.position + distance] += share * has
    return {
        session: (SESSION_WEIGHT * sum(of_session[:SESSION_BEST]) / SESSION_BEST, turns[session])
        for session, of_session in best.items()
    }


def _recency(question: Question, entry_ids: Iterable[int], candidates: Mapping[int, Candidate]) -> dict[int, float]:
    """Return the factor of each entry by its age, where it is asked for."""
    if not question.recency:
        return {}
    newest = max((candidates[entry_id].instant for entry_id in entry_ids), default=0)
    ages = {entry_id: newest - candidates[entry_id].instant for entry_id in entry_ids}
    return {entry_id: 1 + question.recency * 0.5 ** (age / RECENCY_HALF_LIFE) for entry_id, age in ages.items()}


def _best(numbers: Mapping[int, float], candidates: Mapping[int, Candidate], count: int) -> list[tuple[int, float]]:
    """Return the entries that have most, at most ``count`` of them, in the order of a search."""
    if len(numbers) > count > 0:
        # Numbers alone are sorted much faster than entries, of which few are left then.
        least = sorted(numbers.values(), reverse=True)[count - 1]
        numbers = {entry_id: number for entry_id, number in numbers.items() if number >= least}
    return sorted(numbers.items(), key=lambda item: (-item[1], -candidates[item[0]].instant, item[0]))[:count]


def _score(keyword: float, similarity: float, turns: float, session: float, author: float, recency: float) -> float:
    """Return the sum of the parts, times the factors, mapped to 0 to 1: a half to .63, one to .86."""
    return 1 - math.exp(-2 * (keyword + similarity + turns + session) * author * recency)


def _alike(query: Iterable[str], vocabulary: Iterable[str]) -> list[dict[str, float]]:
    """Return, for each term of the query, the terms of ``vocabulary`` that share 4-grams with it: how like, 0 to 1."""
    text = f" {' '.join(vocabulary)} "  # to search a long text for a gram is faster than to look at each term
    alike = []
    for asked in query:
        grams = _grams_of(asked)
        shared = Counter(chain.from_iterable(_holding(gram, text) for gram in grams))
        alike.append({term: (count / len(grams)) ** LIKENESS_POWER for term, count in shared.items()})
    return alike


def _holding(gram: str, text: str) -> set[str]:
    """Return the terms in ``text``, between spaces, that have a gram; a shorter one is a whole term."""
    if len(gram) < GRAM_CHARACTERS:
        return {gram} if f" {gram} " in text else set()
    held = set()
    at = text.find(gram)
    while at >= 0:
        end = text.index(" ", at)
        held.add(text[text.rindex(" ", 0, at) + 1 : end])
        at = text.find(gram, end)
    return held


def _grams_of(term: str) -> set[str]:
    return {term[start : start + GRAM_CHARACTERS] for start in range(max(1, len(term) - GRAM_CHARACTERS + 1))}
