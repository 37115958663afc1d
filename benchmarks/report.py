"""What a benchmark prints, saves and publishes: tables of figures, and the machine that they were measured on."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.table import Table as RichTable

Cell = str | int | float | None
_MIN_WIDTH = 160  # a table that is piped into a file or a test is not cut to 80 columns


def describe_machine() -> str:
    """Describe this machine, and how busy it is."""
    load = "/".join(f"{average:.1f}" for average in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{os.cpu_count()} cores ({_processor()}), load average {load} at the start, {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        + ", ".join(f"{name} {version(name)}" for name in ("adk-memory", "sqlalchemy", "numpy"))
    )


@dataclass(frozen=True, slots=True)
class Table:
    """Figures under one heading; a `None` was not measured."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def markdown(self) -> str:
        """Return the table for a Markdown page."""
        lines = [self.columns, ["---" if self._is_text(i) else "--:" for i in range(len(self.columns))]]
        lines += [[_shown(cell) for cell in row] for row in self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"### {self.title}\n\n{table}\n" + (f"\n{self.note}\n" if self.note else "")

    def print(self, console: Console) -> None:
        """Print the table for a reader at a terminal."""
        table = RichTable(title=self.title, caption=self.note or None, title_justify="left", caption_justify="left")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="left" if self._is_text(i) else "right")
        for row in self.rows:
            table.add_row(*map(_shown, row))
        console.print(table)

    def _is_text(self, column: int) -> bool:
        return any(isinstance(row[column], str) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Report:
    """The tables of one run, and what has to be known to repeat it."""

    command: str = field(default_factory=lambda: " ".join(["python", *sys.argv]))
    date: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    machine: str = field(default_factory=describe_machine)
    tables: list[Table] = field(default_factory=list)

    def add(self, table: Table) -> None:
        """Print a table, and keep it."""
        table.print(_console())
        self.tables.append(table)

    def save(self, path: Path) -> None:
        """Write the report as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a report that `save` wrote."""
        stored = json.loads(path.read_text("utf-8"))
        return cls(**{**stored, "tables": [Table(**table) for table in stored["tables"]]})


def say(message: str) -> None:
    """Tell the reader at the terminal what goes on; it is no part of the report."""
    _console().print(message, style="dim", markup=False, highlight=False)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_MIN_WIDTH)


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    if not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) else cell
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}" if abs(cell) >= 1 else f"{cell:.3f}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or platform.machine()
    lines = cpuinfo.read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
