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
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that may answer a query: its microsecond, its place in its session, its author's words, its terms.

    One that does not pass the filter is no answer, but still speaks for what stands around it.
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
    """What BM25 has to know of the entries in sight: how many, how many terms in all, how many entries per term."""

    entries: int
    terms: int
    frequency: Mapping[str, int]


@dataclass(slots=True)
class Evidence:
    """What speaks for an entry, part by part; ``author`` and ``recency`` are factors of the sum of the others."""

    keyword: float = 0.0
    similarity: float = 0.0
    turns: float = 0.0
    session: float = 0.0
    author: float = 1.0
    recency: float = 1.0

    @property
    def own(self) -> float:
        return self.keyword + self.similarity

    def parts(self) -> dict[str, float]:
        return asdict(self)

    @property
    def score(self) -> float:
        """The sum of the parts, times the factors, mapped to 0 to 1: a half to .63, one to .86."""
        return 1 - math.exp(-2 * (self.own + self.turns + self.session) * self.author * self.recency)


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
        """How many of the nearest entries take part."""
        return max(NEAREST, self.limit)


@dataclass(frozen=True, slots=True)
class Ranked:
    """An answer: the entry, its score, and what the score is made of."""

    id: int
    score: float
    evidence: Evidence


def document_frequency(query: Iterable[str], documents: Iterable[Iterable[str]]) -> Counter[str]:
    """Return in how many of ``documents`` each term of the query is."""
    wanted = set(query)
    return Counter(term for document in documents for term in wanted.intersection(document))


def term_weights(query: Sequence[str], collection: Collection) -> dict[str, float]:
    """Return the square of each term's inverse document frequency, in its form that is never negative."""
    weights = {}
    for term in query:
        holding = collection.frequency.get(term, 0)
        weights[term] = math.log1p((max(collection.entries - holding, 0) + 0.5) / (holding + 0.5)) ** 2
    return weights


def keyword_shares(query: Sequence[str], candidates: Iterable[Candidate], collection: Collection) -> dict[int, float]:
    """Return how much of the query's weight each candidate holds, 0 to 1.9; those that hold no term are left out."""
    wanted = set(query)
    matching = {found.id: found.terms for found in candidates if not wanted.isdisjoint(found.terms)}
    weights = term_weights(query, collection)
    alike = _alike(query, set().union(*matching.values()))
    potential = sum(weights.values())
    shares = {}
    for entry_id, terms in matching.items():
        counts = Counter(terms)
        damping = K1 * (1 - B + B * len(terms) * collection.entries / collection.terms)
        nearest_terms: dict[str, float] = {}
        for term in alike.keys() & counts.keys():
            for asked, likeness in alike[term].items():
                nearest_terms[asked] = max(likeness, nearest_terms.get(asked, 0.0))
        share = 0.0
        for term, weight in weights.items():
            if times := counts.get(term):
                share += weight * times * (K1 + 1) / (times + damping)
            elif term in nearest_terms:
                share += weight * LIKENESS_WEIGHT * nearest_terms[term]
        shares[entry_id] = share / potential
    return shares


def cosines(vectors: npt.NDArray[np.float32], query: Vector) -> npt.NDArray[np.float64]:
    """Return the cosine of each row of ``vectors`` (n, dimensions) with ``query`` (dimensions); 0 where negative."""
    norms = np.linalg.norm(vectors, axis=1) * float(np.linalg.norm(query))
    found: npt.NDArray[np.float64] = np.clip((vectors @ query) / norms, 0.0, 1.0).astype(np.float64)
    return found


def nearest(
    similarity: Mapping[int, float], candidates: Mapping[int, Candidate], count: int
) -> list[tuple[int, float]]:
    """Return the ``count`` most similar entries with their cosines, in the order of a search."""
    return _in_order(similarity, candidates)[:count]


def lenders(own: Mapping[int, float], candidates: Mapping[int, Candidate]) -> list[Candidate]:
    """Return the entries of sessions that have most of their own, best first: what stands around them gains by it."""
    in_sessions = {entry_id: found for entry_id, found in own.items() if candidates[entry_id].session is not None}
    return [candidates[entry_id] for entry_id, _ in _in_order(in_sessions, candidates)[:LENDERS]]


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
        evidence = {entry_id: Evidence(similarity=cosine) for entry_id, cosine in near}
    else:
        evidence = _blend(question, shares, near)
        _add_surroundings(question, evidence, candidates)
        scores = {entry_id: found.score for entry_id, found in evidence.items()}
    floor = -math.inf if question.min_score is None else question.min_score
    passing = {entry_id: score for entry_id, score in scores.items() if score >= floor and candidates[entry_id].passes}
    return [
        Ranked(entry_id, score, evidence[entry_id])
        for entry_id, score in _in_order(passing, candidates)[: question.limit]
    ]


def _blend(question: Question, shares: Mapping[int, float], near: Sequence[tuple[int, float]]) -> dict[int, Evidence]:
    """Return what speaks for each entry that either leg found."""
    low, high = question.span
    # What a hundred entries have in common with a query says nothing.
    floor = max(low, near[NEAREST - 1][1]) if len(near) >= NEAREST else low
    weight = question.weight if near else 0.0
    evidence: defaultdict[int, Evidence] = defaultdict(Evidence)
    for entry_id, share in shares.items():
        evidence[entry_id].keyword = (1 - weight) * share
    for entry_id, cosine in near:
        evidence[entry_id].similarity = weight * max(0.0, cosine - floor) / (high - low)
    return dict(evidence)


def _add_surroundings(
    question: Question, evidence: Mapping[int, Evidence], candidates: Mapping[int, Candidate]
) -> None:
    """Add what speaks for each entry from around it: the best entries of its session, its author, its age."""
    own = {entry_id: found.own for entry_id, found in evidence.items() if candidates[entry_id].session is not None}
    places = {(candidates[entry_id].session, candidates[entry_id].position): entry_id for entry_id in own}
    sessions: defaultdict[Hashable, list[float]] = defaultdict(list)
    for lender in lenders(own, candidates):
        sessions[lender.session].append(own[lender.id])
        for turns, share in LENT.items():
            neighbour = places.get((lender.session, lender.position + turns))
            if neighbour is not None:
                evidence[neighbour].turns += share * own[lender.id]
    for entry_id in own:
        best_of_session = sessions[candidates[entry_id].session][:SESSION_BEST]
        evidence[entry_id].session = SESSION_WEIGHT * sum(best_of_session) / SESSION_BEST
    newest = max((candidates[entry_id].instant for entry_id in evidence), default=0)
    for entry_id, found in evidence.items():
        if not question.words.isdisjoint(candidates[entry_id].author):
            found.author = AUTHOR_NAMED
        if question.recency:
            age = (newest - candidates[entry_id].instant) / RECENCY_HALF_LIFE
            found.recency = 1 + question.recency * 0.5**age


def _in_order(numbers: Mapping[int, float], candidates: Mapping[int, Candidate]) -> list[tuple[int, float]]:
    return sorted(numbers.items(), key=lambda item: (-item[1], -candidates[item[0]].instant, item[0]))


def _alike(query: Iterable[str], vocabulary: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return, for each term that shares 4-grams with terms of the query, how like it is to each of them: 0 to 1."""
    having: defaultdict[str, list[str]] = defaultdict(list)
    for asked in query:
        for gram in _grams_of(asked):
            having[gram].append(asked)
    alike = {}
    for term in vocabulary:
        shared = Counter(asked for gram in _grams_of(term) if gram in having for asked in having[gram])
        if shared:
            alike[term] = {asked: (count / len(_grams_of(asked))) ** LIKENESS_POWER for asked, count in shared.items()}
    return alike


@lru_cache(maxsize=65_536)
def _grams_of(term: str) -> frozenset[str]:
    starts = range(max(1, len(term) - GRAM_CHARACTERS + 1))
    return frozenset(term[start : start + GRAM_CHARACTERS] for start in starts)
