"""What the command prints: tables for people, JSON for machines, nothing that steers the terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from adk_memory._validation import JsonValue
from adk_memory.erasure import Erasure
from adk_memory.types import Memory

# Controls of the terminal, and those that reorder the text around them.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_CONTROLS_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # json escapes the others
_GAP = 2
_MAX_COLUMN_WIDTH = 18
_MIN_TEXT_WIDTH = 20
_MAX_SHOWN_CHARACTERS = 400  # more than a line of any terminal


def print_json(document: JsonValue) -> None:
    """Print one JSON document."""
    unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
    print(_without_controls(json.dumps(document, ensure_ascii=not unicode, indent=2)))


def line_of_json(document: JsonValue) -> str:
    """Return a JSON document as one line, whatever else a reader takes for a line break."""
    return _without_controls(json.dumps(document, ensure_ascii=False, allow_nan=False))


def _without_controls(text: str) -> str:
    return _CONTROLS_IN_JSON.sub(lambda control: f"\\u{ord(control[0]):04x}", text)


def print_memories(memories: Sequence[Memory], *, ids: bool = False) -> None:
    """Print a table with two or, with ``ids``, three lines for each memory."""
    if not memories:
        say("No memories.")
        return
    scored = memories[0].score is not None
    rows = [
        (*([_score(memory)] if scored else []), _project(memory), _described(memory, ids=ids)) for memory in memories
    ]
    print_table(("Score", "Project", "Memory") if scored else ("Project", "Memory"), rows)


def print_answers(memories: Iterable[Memory]) -> None:
    """Print an indented table with one line for each memory."""
    rows = [(_score(memory), _project(memory), _beginning(memory)) for memory in memories]
    print_table(("Score", "Project", "Memory"), rows, indent=3)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Text]], *, indent: int = 0) -> None:
    """Print a table whose last column gets the room that the others, at most 18 wide, leave of a line."""
    widths = [
        min(max(cell_len(heading), *(row[column].cell_len for row in rows)), _MAX_COLUMN_WIDTH)
        for column, heading in enumerate(headings[:-1])
    ]
    room = _console().width - indent - sum(width + _GAP for width in widths)
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for heading, width in zip(headings, [*widths, max(room, _MIN_TEXT_WIDTH)], strict=True):
        table.add_column(heading, no_wrap=True, overflow="ellipsis", width=width)
    for row in rows:
        table.add_row(*row)
    _print(Padding(table, (0, 0, 0, indent)))


def say(text: str, style: str = "") -> None:
    """Print a text for people; the terminal breaks its lines, so that a path or a command can be copied."""
    _print(Text(text, style), soft_wrap=True)


def complain(text: str) -> None:
    """Print an error on stderr."""
    lines = (_CONTROLS.sub(_escape, line) for line in text.split("\n"))
    print("adk-memory:", "\n".join(lines), file=sys.stderr)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr, where that is a terminal; yield what is to be told how many are done, and of how many."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def counted(count: int, noun: str = "memory", plural: str = "memories") -> str:
    """Return ``"1 memory"`` or ``"2 memories"``."""
    return f"{count:,} {noun if count == 1 else plural}"


def memory_json(memory: Memory) -> JsonValue:
    """Return a memory as the JSON object that the command prints."""
    return {
        "id": memory.id,
        "score": memory.score,
        "project_id": memory.project_id,
        "session_id": memory.session_id,
        "author": memory.author,
        "timestamp": memory.timestamp.isoformat(),
        "expires_at": None if memory.expires_at is None else memory.expires_at.isoformat(),
        "text": memory.text,
        "content": memory.content.as_json(),
        "metadata": memory.metadata,
    }


def parts_json(erased: int) -> dict[str, JsonValue]:
    """Return what went with erased entries, where the backend counted it, as the command prints it."""
    parts = erased.parts() if isinstance(erased, Erasure) else {}
    return {name: part for name, part in parts.items() if name != "entries"}


def one_line(text: str) -> str:
    """Return ``text`` without line breaks, its control characters shown as escapes."""
    return _CONTROLS.sub(_escape, " ".join(text.split()))


def without_passwords(text: str) -> str:
    """Return ``text`` with everything masked that can be the password of a URL in it."""
    text = re.sub(r"://[^\n]*@", "://***@", text)
    text = re.sub(r"[^\s:/'\"]*:(?!//)[^\s]*@", "***@", text)
    return re.sub(r"""(?i)(password['"]?\s*[=:]\s*)('[^']*'|"[^"]*"|[^\s&,'"]+)""", r"\1***", text)


def _print(renderable: RenderableType, *, soft_wrap: bool = False) -> None:
    console = _console()
    with console.capture() as capture:
        console.print(renderable, soft_wrap=soft_wrap)
    for line in capture.get().removesuffix("\n").split("\n"):
        print(line.rstrip())  # rich fills its lines with spaces


def _console() -> Console:
    return Console(markup=False, emoji=False, highlight=False)


def _described(memory: Memory, *, ids: bool) -> Text:
    where = [] if memory.session_id is None else [f"session {memory.session_id}"]
    details = [memory.author, f"{memory.timestamp:%Y-%m-%d %H:%M}", *where]
    lines = [_beginning(memory), Text(one_line(" · ".join(details)), "dim")]
    if ids:
        lines.append(Text(one_line(memory.id), "dim"))
    return Text("\n").join(lines)


def _beginning(memory: Memory) -> Text:
    if memory.text:
        return Text(one_line(memory.text[:_MAX_SHOWN_CHARACTERS]))
    return Text(f"(no text, {counted(len(memory.content.parts), 'part', 'parts')})", "dim")


def _score(memory: Memory) -> Text:
    return Text("" if memory.score is None else f"{memory.score:.3f}")


def _project(memory: Memory) -> Text:
    return Text("(global)", "dim") if memory.project_id is None else Text(one_line(memory.project_id))


def _escape(control: re.Match[str]) -> str:
    code = ord(control[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
