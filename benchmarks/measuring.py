"""Clocks: contenders measured side by side, question by question, so that what disturbs one disturbs all."""

from __future__ import annotations

import ctypes
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")

_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds, call by call: by the wall, of this process' CPU, of the database server's CPU where it has one."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)

    def milliseconds(self) -> tuple[float | None, ...]:
        """Return the median and the 95th percentile by the wall, the medians of both CPUs."""
        return (_median(self.wall), _quantile(self.wall, 0.95), _median(self.cpu), _median(self.server))

    def all_cpu(self) -> float:
        """Return the median milliseconds of CPU, this process' and the server's together."""
        both = map(sum, zip(self.cpu, self.server, strict=True)) if self.server else self.cpu
        return _median(list(both)) or 0.0

    @staticmethod
    def columns() -> tuple[str, ...]:
        """Return the headings of `milliseconds`."""
        return ("p50 ms", "p95 ms", "CPU ms", "server CPU ms")


class ServerClock:
    """The CPU seconds that processes of a database server on this machine have used; nothing where it has none."""

    def __init__(self, process_ids: Iterable[int] = ()) -> None:
        files = (Path(f"/proc/{process_id}/schedstat") for process_id in process_ids)
        self._nanoseconds = {file: 0 for file in files if os.access(file, os.R_OK)}

    def __bool__(self) -> bool:
        return bool(self._nanoseconds)

    def __call__(self) -> float:
        for file in self._nanoseconds:
            with suppress(OSError):  # of a process that has ended, what it had used
                self._nanoseconds[file] = int(file.read_text().split()[0])
        return sum(self._nanoseconds.values()) / 1e9


async def timed(
    timings: Timings,
    call: Callable[[Question], Awaitable[Answer]],
    question: Question,
    server: ServerClock | None = None,
) -> Answer:
    """Make a call, and add what it took to ``timings``."""
    before = server() if server else 0.0
    cpu, wall = time.process_time(), time.perf_counter()
    answer = await call(question)
    timings.wall.append(time.perf_counter() - wall)
    timings.cpu.append(time.process_time() - cpu)
    if server:
        timings.server.append(server() - before)
    return answer


async def side_by_side(
    ways: Mapping[Any, Callable[[Question], Awaitable[Answer]]],
    questions: Sequence[Question],
    server: ServerClock | None = None,
) -> tuple[dict[Any, Timings], dict[Any, list[Answer]]]:
    """Put every question to every way of answering, each time beginning with another; return timings and answers.

    The first question only warms the caches up: it is neither measured nor answered.
    """
    timings = {name: Timings() for name in ways}
    answers: dict[Any, list[Answer]] = {name: [] for name in ways}
    for way in ways.values():
        await way(questions[0])
    for number, question in enumerate(questions[1:]):
        names = list(ways)
        first = number % len(names)
        for name in names[first:] + names[:first]:
            answers[name].append(await timed(timings[name], ways[name], question, server))
    return timings, answers


class PeakMemory:
    """Megabytes by which this process grew, at most, since the clock was made; `None` off Linux."""

    def __init__(self) -> None:
        self._start = None
        if os.access(_CLEAR_REFS, os.W_OK):
            gc.collect()
            with suppress(OSError, AttributeError):  # only glibc can give back what it keeps for later
                ctypes.CDLL(None).malloc_trim(0)
            _CLEAR_REFS.write_text(_RESET_PEAK)
            self._start = _megabytes("VmRSS")

    def __call__(self) -> float | None:
        return None if self._start is None else max(0.0, _megabytes("VmHWM") - self._start)


def _megabytes(name: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def _median(seconds: Sequence[float]) -> float | None:
    return 1e3 * statistics.median(seconds) if seconds else None


def _quantile(seconds: Sequence[float], share: float) -> float | None:
    return 1e3 * sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] if seconds else None
