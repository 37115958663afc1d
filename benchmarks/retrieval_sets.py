"""Questions whose answers are known, read from files in the format of LoCoMo or of SQuAD and XQuAD.

The protocol. A dialogue of LoCoMo is one user's memory and each of its turns an entry; the answer is in the turns
that are named as evidence, and adversarial questions, category 5, which have none, are left out. A file of SQuAD's
format is one user's memory of single facts: its first 120 paragraphs cut into sentences, of its questions 400 that
are spread over them; the answer is in the sentence in which it begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

_CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_EVIDENCE: Final = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")  # as they are written: D8:6; D9:17, D:11:26, D30:05
_DATES: Final = ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S")

_PARAGRAPHS: Final = 120
_QUESTIONS: Final = 400
_SENTENCE_END: Final = re.compile("(?<=[.!?\u0964\u061f])\\s+|(?<=[\u3002\uff01\uff1f])")
_SPACE: Final = re.compile(r"\s+")  # Thai has spaces between sentences, and nothing else
_SHORTEST: Final = {"th": 60, "zh": 12, "ja": 12}


@dataclass(frozen=True, slots=True)
class Fact:
    """What becomes one entry; ``session`` is empty for a fact that stands alone."""

    id: str
    text: str
    author: str = ""
    session: str = ""
    at: datetime | None = None

    @property
    def with_author(self) -> str:
        """The text as a store without authors has to keep it."""
        return f"{self.author}: {self.text}" if self.author else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the ids of the facts that answer it, and what kind of question it is."""

    text: str
    answers: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Scope:
    """One user's memory, in the order of time, and the questions to it."""

    name: str
    facts: Sequence[Fact]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """The scopes of one file. ``kind`` tells what its categories are: kinds of questions, or a language."""

    kind: str
    scopes: Sequence[Scope]


def load(path: Path) -> RetrievalSet:
    """Read a file in either format."""
    content = json.loads(path.read_text("utf-8"))
    if isinstance(content, list):
        return RetrievalSet("dialogues", [_dialogue(path.stem, *numbered) for numbered in enumerate(content)])
    language = path.stem.rpartition(".")[2]
    return RetrievalSet("single facts", [_paragraphs(path.stem, language, content["data"])])


def _dialogue(file: str, number: int, dialogue: Mapping[str, Any]) -> Scope:
    facts = list(_turns(dialogue["conversation"]))
    known = frozenset(fact.id for fact in facts)
    questions = []
    for question in dialogue["qa"]:
        found = _EVIDENCE.findall(" ".join(map(str, question.get("evidence", ()))))
        answers = known.intersection(f"D{int(session)}:{int(turn)}" for session, turn in found)
        if answers and question["category"] in _CATEGORIES:
            questions.append(Question(str(question["question"]), answers, _CATEGORIES[question["category"]]))
    return Scope(f"{file} {dialogue.get('sample_id', number)}", facts, questions)


def _turns(conversation: Mapping[str, Any]) -> Iterator[Fact]:
    sessions = sorted(int(key.removeprefix("session_")) for key in conversation if re.fullmatch(r"session_\d+", key))
    for session in sessions:
        start = _date(conversation.get(f"session_{session}_date_time", ""))
        for number, turn in enumerate(conversation[f"session_{session}"] or ()):
            shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            at = None if start is None else start + timedelta(seconds=number)
            text = f"{turn.get('text', '')}{shared}".strip()
            yield Fact(turn["dia_id"], text, turn["speaker"], f"session {session}", at)


def _date(text: str) -> datetime | None:
    for form in _DATES:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _paragraphs(file: str, language: str, articles: Sequence[Mapping[str, Any]]) -> Scope:
    facts, questions = [], []
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]][:_PARAGRAPHS]
    for number, paragraph in enumerate(paragraphs):
        text = paragraph["context"]
        sentences = {f"{number}:{i}": span for i, span in enumerate(_sentences(text, language))}
        facts += [Fact(name, text[start:end].strip().lstrip("\ufeff")) for name, (start, end) in sentences.items()]
        for question in paragraph["qas"]:
            starts = [answer["answer_start"] for answer in question["answers"]]
            answers = frozenset(
                name for name, (start, end) in sentences.items() if any(start <= at < end for at in starts)
            )
            if answers and not question.get("is_impossible"):
                questions.append(Question(question["question"], answers, language))
    step = max(1.0, len(questions) / _QUESTIONS)
    spread = [questions[int(i * step)] for i in range(min(_QUESTIONS, len(questions)))]
    return Scope(file, facts, spread)


def _sentences(text: str, language: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text begin and end; what is too short for one goes with its neighbour."""
    shortest = _SHORTEST.get(language, 25)
    ends = [match.end() for match in (_SPACE if language == "th" else _SENTENCE_END).finditer(text)]
    found: list[tuple[int, int]] = []
    start = 0
    for end in [*ends, len(text)]:
        if end - start >= shortest:
            found.append((start, end))
            start = end
    if start < len(text):
        last = found.pop()[0] if found else start
        found.append((last, len(text)))
    return found
