"""What is told of an operation: counts, durations and types, never a text, a query or an id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

_COUNTED: Final = {
    "add": "entries.stored",
    "search": "memories.returned",
    "get": "memories.returned",
    "list": "memories.returned",
    "export": "memories.returned",
    "delete": "entries.erased",
    "erase": "entries.erased",
    "purge": "entries.erased",
    "embed": "entries.embedded",
    "reindex": "entries.indexed",
}
"""What an operation's answer is the number of, by the first word of its name."""


@dataclass(slots=True)
class Observation:
    """What one operation did.

    Attributes:
        operation: its name.
        backend: ``"sqlite"``, ``"postgresql"``, ``"memory"``, or a name of the backend's own.
        counted: what ``count`` is the number of: ``"entries.stored"``, ``"memories.returned"``...
        count: how many; `None` where nothing is counted, or it failed.
        mode: how a search was answered.
        partial: whether similarity did not reach all that a search saw.
        error: the type of what was raised; `None` where nothing was.
        seconds: how long it took.
    """

    operation: str
    backend: str
    counted: str | None
    count: int | None = None
    mode: str | None = None
    partial: bool | None = None
    error: str | None = None
    seconds: float = 0.0

    def answer(self, answer: Any) -> None:
        """Note what came back."""
        if self.counted is not None:
            self.count = _number(answer)
        if self.operation == "search":
            self.mode, self.partial = answer.mode, answer.partial

    def __str__(self) -> str:
        if self.error is not None:
            outcome = f"failed with {self.error}"
        else:
            told = [] if self.count is None else [f"{self.count} {(self.counted or '').replace('.', ' ')}"]
            told += [self.mode] if self.mode is not None else []
            told += ["partial"] if self.partial else []
            outcome = ", ".join(told) or "done"
        return f"{self.operation} on {self.backend}: {outcome}, {self.seconds * 1000:.1f} ms"


def counted_by(operation: str, *, dry_run: bool) -> str | None:
    """Return what the answer of an operation is the number of, if of anything."""
    return "entries.matched" if dry_run else _COUNTED.get(operation.partition("_")[0])


def _number(answer: Any) -> int | None:
    answer = getattr(answer, "erased", answer)  # of a proof
    if isinstance(answer, int):
        return int(answer)
    if answer is None:
        return 0
    if isinstance(answer, str) or not hasattr(answer, "__len__"):
        return 1  # an id, or a memory
    return len(answer)
