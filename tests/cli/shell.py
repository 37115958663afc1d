"""What the tests of the command share: what a call leaves behind, and whose memories they are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

OWNER = ("--app", "notes", "--user", "ana")
TALK: list[dict[str, object]] = [
    {"content": "Green tea at four", "author": "ana", "timestamp": "2026-03-01T10:00:00Z"},
    {"content": {"role": "model", "parts": ["Noted: tea, green"]}, "author": "bot"},
    {"content": "緑茶が好きです", "id": "note-3", "metadata": {"mood": "calm"}},
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


def command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "adk_memory", *arguments]


def jsonl(*lines: object) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
