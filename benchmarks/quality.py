"""How well adk-memory finds what answers a question, beside other memories; see README.md here."""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

import retrieval_sets
from adk_memory import open_memory
from embedders import EMBEDDERS, TimedEmbedder
from peers import AdkMemory, Memory, peers
from report import Cell, Report, Table, say
from retrieval_sets import RetrievalSet, Scope

_DEPTHS: Final = (1, 5, 10, 20)
_COLUMNS: Final = ("memory", "category", "questions", *(f"recall@{depth}" for depth in _DEPTHS), "MRR", "nDCG@10")


@dataclass(frozen=True, slots=True)
class Answer:
    """How well one question was answered."""

    kind: str
    category: str
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What a memory answered, and the seconds it took, without those of the embedder."""

    memory: str
    answers: Sequence[Answer]
    facts: int
    adding: float
    asking: float


def scores(ranked: Sequence[str], relevant: Set[str]) -> tuple[float, ...]:
    """Return recall at each depth, the reciprocal rank of the first hit, and nDCG@10."""
    hits = [name in relevant for name in ranked]
    gained = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits[:10]))
    best = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
    first = 1 / (hits.index(True) + 1) if any(hits) else 0.0
    return (*(sum(hits[:depth]) / len(relevant) for depth in _DEPTHS), first, gained / best)


async def examine(memory: Memory, sets: Sequence[RetrievalSet], embedder: TimedEmbedder | None) -> Result:
    """Fill a memory with all scopes, and ask it every question."""
    say(f"examining {memory.name}")
    scopes = [scope for found in sets for scope in found.scopes]
    start = _now(embedder)
    for scope in scopes:
        await memory.add(scope)
    added = _now(embedder)
    answers = [answer for found in sets for scope in found.scopes for answer in await _ask(memory, found.kind, scope)]
    return Result(memory.name, answers, sum(len(s.facts) for s in scopes), added - start, _now(embedder) - added)


async def _ask(memory: Memory, kind: str, scope: Scope) -> list[Answer]:
    answers = []
    for question in scope.questions:
        ranked = await memory.search(scope, question.text, _DEPTHS[-1])
        answers.append(Answer(kind, question.category, scores(ranked, question.answers)))
    return answers


def _now(embedder: TimedEmbedder | None) -> float:
    return time.perf_counter() - (0.0 if embedder is None else embedder.seconds)


def tabulate(results: Sequence[Result]) -> Iterable[Table]:
    """Yield a table for each kind of set, and one of the time that it took."""
    for kind in dict.fromkeys(answer.kind for result in results for answer in result.answers):
        yield Table(f"{kind}: recall, mean over the questions", _COLUMNS, list(_rows(kind, results)))
    columns = ("memory", "entries", "entries/s", "ms/question")
    rows = [
        (found.memory, found.facts, found.facts / found.adding, 1e3 * found.asking / max(1, len(found.answers)))
        for found in results
    ]
    yield Table("what it took, the embedder aside", columns, rows)


def _rows(kind: str, results: Sequence[Result]) -> Iterable[Sequence[Cell]]:
    for result in results:
        answers = [answer for answer in result.answers if answer.kind == kind]
        categories = sorted({answer.category for answer in answers})
        for category in categories:
            yield _row(result.memory, category, [answer for answer in answers if answer.category == category])
        if len(categories) > 1:
            yield _row(result.memory, "all", answers)


def _row(memory: str, category: str, answers: Sequence[Answer]) -> Sequence[Cell]:
    return (memory, category, len(answers), *map(fmean, zip(*(answer.scores for answer in answers), strict=True)))


async def run(
    files: Sequence[Path], url: str, embedder: TimedEmbedder | None, *, with_peers: bool, report: Report
) -> None:
    """Examine adk-memory on an empty database, and the peers that are installed."""
    sets = [retrieval_sets.load(file) for file in files]
    async with open_memory(url, embedder=embedder) as service:
        await service.migrate()
        memories = [AdkMemory(service, embedder), *(peers(embedder, say) if with_peers else ())]
        results = [await examine(memory, sets, embedder) for memory in memories]
    for table in tabulate(results):
        report.add(table)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="in the format of LoCoMo, or of SQuAD (name.LANGUAGE.json)")
    parser.add_argument("--database", help="URL of an empty database; without it a temporary SQLite file")
    parser.add_argument("--embedder", choices=[*EMBEDDERS], default="none")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path, help="where to save the figures")
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        url = options.database or f"sqlite:///{directory}/memory.db"
        embedder = EMBEDDERS[options.embedder]()
        asyncio.run(run(options.files, url, embedder, with_peers=not options.no_peers, report=report))
    if options.json:
        report.save(options.json)


if __name__ == "__main__":
    main()
