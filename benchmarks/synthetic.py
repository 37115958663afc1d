"""Made-up memories, the same on every machine and in stores of every size: users, topics, sessions, times, vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

APP: Final = "benchmark"
DIMENSIONS: Final = 384
USER_ENTRIES: Final = 100
HEAVY_USERS: Final = (1_000, 10_000, 50_000, 200_000)
"""So many entries heavy users have: one user of each number that is at most half of the store."""

NEAREST: Final = 10
"""So many entries are asked for."""

_SEED = 20_261_130
_WORDS, _COMMON, _TOPICS, _TOPIC_WORDS = 30_000, 12, 1_000, 20
_FIRST_TOPIC_WORD = 1_000  # the commonest words are nobody's topic
_TOPIC_SHARE = 0.22
_SYLLABLES = [consonant + vowel for consonant in "bcdfghklmnprstvwxzjq" for vowel in "aeiou"]
_START = datetime(2024, 1, 1, tzinfo=UTC)
_SECONDS = 2 * 365 * 86_400
_SAME_COSINE = 1e-4  # what half precision changes in the cosine of two unit vectors

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class User:
    """A user and how many entries there are of theirs; sessions have 50 or 12 entries, by user."""

    number: int
    entries: int

    @property
    def id(self) -> str:
        """The user's id."""
        return f"user-{self.number}"

    @property
    def session_length(self) -> int:
        """How many entries a session of this user has, but for the last."""
        return 12 if self.entries == USER_ENTRIES and self.number % 2 else 50

    @property
    def sessions(self) -> int:
        """How many sessions there are of this user."""
        return -(-self.entries // self.session_length)


@dataclass(frozen=True, slots=True)
class Utterance:
    """One entry of a session, before any store made something of it."""

    id: str
    author: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """What a store is given at once."""

    user: User
    id: str
    entries: Sequence[Utterance]


class World:
    """About so many entries of many users. A user of a number and size has the same entries in every world."""

    def __init__(self, entries: int) -> None:
        self.entries = entries
        heavy = [size for size in HEAVY_USERS if size <= entries // 2]
        light = (entries - sum(heavy)) // USER_ENTRIES
        if light < 4:
            raise ValueError("a world needs 400 entries or more")
        self.users = [User(number, USER_ENTRIES) for number in range(light)]
        self.heavy_users = [User(1_000_000 + size, size) for size in heavy]

    @property
    def session_count(self) -> int:
        """How many sessions there are in all."""
        return sum(user.sessions for user in (*self.users, *self.heavy_users))

    def sessions(self) -> Iterator[Session]:
        """Yield all sessions, those of all users mixed, as they come in real traffic."""
        pairs = [(user, number) for user in (*self.users, *self.heavy_users) for number in range(user.sessions)]
        np.random.default_rng(_SEED).shuffle(pairs)
        return (session(user, int(number)) for user, number in pairs)


def session(user: User, number: int) -> Session:
    """Return the session of that number of a user."""
    random = np.random.default_rng([_SEED, user.number, number])
    topics = user_topics(user)
    start = _START + timedelta(seconds=int(random.integers(_SECONDS)))
    first = number * user.session_length
    entries = [
        Utterance(
            id=f"{user.number}-{first + turn}",
            author=("user", "assistant")[turn % 2],
            text=_text(random, int(random.choice(topics)), int(random.integers(8, 26))),
            at=start + timedelta(minutes=turn),
        )
        for turn in range(min(user.session_length, user.entries - first))
    ]
    return Session(user, f"session-{number}", entries)


def utterances(user: User) -> Iterator[Utterance]:
    """Yield every entry of a user."""
    return (entry for number in range(user.sessions) for entry in session(user, number).entries)


def user_topics(user: User) -> list[int]:
    """Return the topics that a user talks about: 20, a heavy user 100."""
    random = np.random.default_rng([_SEED, user.number])
    return [int(topic) for topic in random.choice(_TOPICS, 20 if user.entries == USER_ENTRIES else 100, replace=False)]


def messages(user: User, count: int) -> list[str]:
    """Return chat messages: six words of the language and two of a topic of the user's."""
    random = np.random.default_rng([_SEED, user.number, 1, 1])
    topics = random.choice(user_topics(user), count)
    return [
        _spelt(np.concatenate([_zipf(random, 6), _topic_words(int(topic))[random.integers(_TOPIC_WORDS, size=2)]]))
        for topic in topics
    ]


def common_words(user: User, count: int) -> list[str]:
    """Return questions of three of the commonest words, which most entries hold."""
    random = np.random.default_rng([_SEED, user.number, 2, 2])
    return [_spelt(random.choice(_COMMON, 3, replace=False)) for _ in range(count)]


def own_questions(user: User, count: int) -> list[str]:
    """Return texts about topics of the user's."""
    return _questions(user, count, user_topics(user))


def foreign_questions(user: User, count: int) -> list[str]:
    """Return texts about topics that others talk about, the user never."""
    return _questions(user, count, sorted(set(range(_TOPICS)).difference(user_topics(user))))


def _questions(user: User, count: int, topics: Sequence[int]) -> list[str]:
    random = np.random.default_rng([_SEED, user.number, 3, len(topics)])
    return [_text(random, int(topic), 12) for topic in random.choice(topics, count)]


class TopicEmbedder:
    """An embedding provider without a model: texts about one topic are near, all others about equally far.

    A text begins with the name of its topic.
    """

    model = "benchmark-topics"
    dimensions = DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return the vector of each text."""
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> Vector:
        """Return the unit vector of a text."""
        noise = self._noise
        number = crc32(text.encode())
        centre = self._centres[self._names[text.partition(" ")[0]]]
        found = 0.92 * centre + 0.28 * (noise[number % len(noise)] + noise[number // len(noise) % len(noise)])
        return np.asarray(found / np.linalg.norm(found), np.float32)

    @cached_property
    def _names(self) -> dict[str, int]:
        return {_VOCABULARY[_name_of(topic)]: topic for topic in range(_TOPICS)}

    @cached_property
    def _centres(self) -> Vector:
        # As real models do it: few directions matter, and all vectors have something in common.
        random = np.random.default_rng(_SEED)
        latent = random.normal(size=(_TOPICS, 64)) / np.sqrt(np.arange(1, 65))
        topics = _unit(latent @ random.normal(size=(64, DIMENSIONS)))
        return _unit(0.9 * topics + 0.45 * _unit(random.normal(size=DIMENSIONS)))

    @cached_property
    def _noise(self) -> Vector:
        return _unit(np.random.default_rng(_SEED + 1).normal(size=(4_096, DIMENSIONS)))


EMBEDDER: Final = TopicEmbedder()


class Truth:
    """The true nearest entries of a user, whatever a store says."""

    def __init__(self, user: User) -> None:
        entries = list(utterances(user))
        self._number = {entry.id: number for number, entry in enumerate(entries)}
        self._vectors = np.array([EMBEDDER.vector(entry.text) for entry in entries])

    def recall(self, text: str, found: Iterable[str]) -> float:
        """Return the share of the nearest that ``found`` holds; of equally near ones any will do."""
        cosines = self._vectors @ EMBEDDER.vector(text)
        least = np.partition(cosines, -NEAREST)[-NEAREST] - _SAME_COSINE
        near = (cosines[self._number[entry_id]] >= least for entry_id in set(found))
        return sum(map(bool, near)) / NEAREST


def _unit(rows: npt.NDArray[np.float64]) -> Vector:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


def _text(random: np.random.Generator, topic: int, length: int) -> str:
    ranks = _zipf(random, length)
    about = random.random(length) < _TOPIC_SHARE
    ranks[about] = _topic_words(topic)[random.integers(_TOPIC_WORDS, size=int(about.sum()))]
    ranks[0] = _name_of(topic)
    return _spelt(ranks)


def _name_of(topic: int) -> int:
    return _FIRST_TOPIC_WORD + topic * _TOPIC_WORDS


def _topic_words(topic: int) -> npt.NDArray[np.int64]:
    return np.arange(_name_of(topic), _name_of(topic + 1), dtype=np.int64)


def _spelt(ranks: npt.NDArray[np.int64]) -> str:
    return " ".join([_VOCABULARY[rank] for rank in ranks.tolist()])


def _zipf(random: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    return np.searchsorted(_SHARES, random.random(count))


def _word(rank: int) -> str:
    """Return the word of that rank in the language: pronounceable, the common ones shorter."""
    syllables = 2 if rank < 1_000 else 3
    scattered = rank * 7_919 % len(_SYLLABLES) ** syllables
    return "".join(_SYLLABLES[scattered // len(_SYLLABLES) ** place % len(_SYLLABLES)] for place in range(syllables))


_VOCABULARY = [_word(rank) for rank in range(_WORDS)]
_SHARES = np.cumsum(1 / np.arange(1, _WORDS + 1) ** 1.05)
_SHARES /= _SHARES[-1]
