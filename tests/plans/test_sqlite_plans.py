"""On SQLite too the indexes of the scope are used, and a MATCH is run once, not for each row of something else."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from adk_memory import Author, MemoryEntry, SearchRequest, SqliteMemoryService
from adk_memory._sql import sqlite
from adk_memory.testing import ToyEmbedder

APP, USER = "app", "ana"
MATCHES = re.compile(r"VIRTUAL TABLE INDEX \d+:M")
Step = tuple[int, int, str]
"""Its number, that of the step it is a part of, and what it is."""


class Traced:
    """A store whose statements are seen as SQLite sees them."""

    def __init__(self, memory: SqliteMemoryService, file: Path, sent: list[str]) -> None:
        self.memory = memory
        self._file = file
        self._sent = sent

    async def plans(self, operation: Awaitable[Any]) -> dict[str, list[Step]]:
        """Return how SQLite goes about each statement of an operation; those without a plan are left out."""
        self._sent.clear()
        await operation
        sent = [statement for statement in self._sent if not statement.startswith("--")]
        connection = sqlite3.connect(self._file)
        sqlite._set_up(connection)
        explained = {
            statement: [(row[0], row[1], row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
            for statement in sent
            if statement.split()[0] in {"SELECT", "WITH", "UPDATE", "DELETE"}
        }
        connection.close()
        return explained


@pytest.fixture
async def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Traced]:
    """More entries than are scored at once, in a project and beside it."""
    sent: list[str] = []
    set_up = sqlite._set_up

    def set_up_and_trace(connection: sqlite3.Connection) -> None:
        set_up(connection)
        connection.set_trace_callback(sent.append)

    file = tmp_path / "memory.db"
    async with SqliteMemoryService(f"sqlite:///{file}", embedder=ToyEmbedder()) as memory:
        monkeypatch.setattr(sqlite, "_set_up", set_up_and_trace)
        await memory.migrate()
        await memory.add_session(APP, USER, "s1", [MemoryEntry(f"common rare{n}") for n in range(1_100)])
        await memory.add_session(APP, USER, "s2", [MemoryEntry(f"common paged{n}") for n in range(20)], project_id="P")
        monkeypatch.undo()
        yield Traced(memory, file, sent)


OPERATIONS: dict[str, Callable[[SqliteMemoryService], Awaitable[Any]]] = {
    "search": lambda memory: memory.search(SearchRequest("rare7 rare9", APP, USER, "P")),
    "search, filtered": lambda memory: memory.search(SearchRequest("rare7", APP, USER, "P", filter=Author("bo"))),
    "search, more than is scored": lambda memory: memory.search(SearchRequest("common rare7", APP, USER, "P")),
    "search, both": lambda memory: memory.search(SearchRequest("common 7", APP, USER, "P", filter=Author("user"))),
    "list": lambda memory: memory.list_recent(APP, USER),
    "page": lambda memory: memory.list_page(APP, USER, with_total=True, filter=Author("user")),
    "list users": lambda memory: memory.list_users(APP, prefix="an", after="ana"),
    "get": lambda memory: memory.get(APP, USER, "unknown"),
    "add": lambda memory: memory.add_session(APP, USER, "s1", [MemoryEntry("one more")]),
    "rewrite": lambda memory: memory.add_session(APP, USER, "s3", [MemoryEntry("a", id="x"), MemoryEntry("b", id="x")]),
    "delete": lambda memory: memory.delete(APP, USER, "unknown"),
    "delete entries": lambda memory: memory.delete_entries(APP, USER, "rare7"),
    "delete session": lambda memory: memory.delete_session(APP, USER, "s1"),
    "delete user": lambda memory: memory.delete_user(APP, USER),
    "purge": lambda memory: memory.purge_expired(),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_no_table_is_read_from_end_to_end(traced: Traced, name: str) -> None:
    plans = await traced.plans(OPERATIONS[name](traced.memory))

    assert plans
    tables = r"SCAN adk_memory_(scope|entry|embedding|embedding_model)\b"
    assert [(sql, plan) for sql, plan in plans.items() if any(re.match(tables, step) for _, _, step in plan)] == []


@pytest.mark.parametrize("name", [name for name in OPERATIONS if "search" in name or name == "delete entries"])
async def test_a_match_is_run_once(traced: Traced, name: str) -> None:
    plans = await traced.plans(OPERATIONS[name](traced.memory))

    asked = {sql: plan for sql, plan in plans.items() if any(MATCHES.search(step) for _, _, step in plan)}
    assert asked
    assert [(sql, plan) for sql, plan in asked.items() if _repeats_a_match(plan)] == []


def _repeats_a_match(plan: list[Step]) -> bool:
    steps = {number: (parent, step) for number, parent, step in plan}

    def repeated(number: int) -> bool:
        """Whether a step is run for each row of one before it, or is a part of one that is."""
        parent, step = steps[number]
        before = [each for each, (of, what) in steps.items() if of == parent and each < number and _is_loop(what)]
        inner = step.startswith("CORRELATED") or (_is_loop(step) and bool(before))
        return inner or (parent in steps and repeated(parent))

    return any(repeated(number) for number, _, step in plan if MATCHES.search(step))


def _is_loop(step: str) -> bool:
    return step.startswith(("SCAN", "SEARCH"))


def test_a_repeated_match_would_be_noticed() -> None:
    match = "SCAN adk_memory_search_entry VIRTUAL TABLE INDEX 0:M1"

    assert _repeats_a_match([(1, 0, "SCAN adk_memory_entry"), (2, 0, match)])
    assert _repeats_a_match([(1, 0, "SCAN adk_memory_entry"), (2, 0, "CORRELATED SCALAR SUBQUERY 1"), (3, 2, match)])
    assert not _repeats_a_match([(1, 0, match), (2, 0, "SEARCH adk_memory_entry USING INTEGER PRIMARY KEY (rowid=?)")])
    assert not _repeats_a_match([(1, 0, "SEARCH adk_memory_entry"), (2, 0, "LIST SUBQUERY 1"), (3, 2, match)])
