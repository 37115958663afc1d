"""The thorough check: nothing is wrong with a store that was used, and each kind of fault is found and counted."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from adk_memory import MemoryEntry, MemoryService, SessionEntries, open_memory
from adk_memory._sql import walking
from adk_memory._sql.integrity import FAULTS
from adk_memory.cli import main
from adk_memory.testing import ToyEmbedder
from faults.sound import assert_sound, faults_of
from faults.workload import WITH_VECTORS, CheapEmbedder, Life, assert_kept
from field_reports.calls import APP, USER, remember
from field_reports.tables import looking

CANARY = "xylophone"
MINE = "(SELECT id FROM adk_memory_entry WHERE entry_key = 'mine')"

# What is done to a store, and what the check then says; the words are those of the database that it is about.
BOTH = {
    "UPDATE adk_memory_scope SET entry_count = entry_count + 1 WHERE project_key = ''": {"counters": 1},
    "UPDATE adk_memory_scope SET term_count = term_count - 1": {"counters": 2},
    "UPDATE adk_memory_entry SET position = 1 WHERE session_key = 's1'": {"shared_positions": 2},
    "DELETE FROM adk_memory_search_entry": {"not_indexed": 10},
    "UPDATE adk_memory_entry SET text = 'quite another text' WHERE entry_key = 'mine'": {"indexed_otherwise": 1},
    "UPDATE adk_memory_entry SET text = '' WHERE entry_key = 'mine'": {"indexed_otherwise": 1},
    "UPDATE adk_memory_entry SET term_count = term_count + 1 WHERE entry_key = 'mine'":
        {"indexed_otherwise": 1, "counters": 1},
    "DELETE FROM adk_memory_entry WHERE entry_key = 'mine'":
        {"index_without_entry": 1, "vectors_without_entry": 1, "counters": 1},
    "UPDATE adk_memory_embedding SET entry_id = entry_id + 1000": {"vectors_without_entry": 10},
}  # fmt: skip
SQLITE = {
    "DELETE FROM adk_memory_scope WHERE project_key = ''": {"entries_without_scope": 9},
    "UPDATE adk_memory_search_entry SET terms = terms || ' 1_more' WHERE rowid = {mine}": {"indexed_otherwise": 1},
    # The index of words, past its content; FTS5 tells it, and so does the file's own check from SQLite 3.44 on.
    "UPDATE adk_memory_search_entry_content SET c0 = c0 || ' 1_more' WHERE id = {mine}":
        {"indexed_otherwise": 1, "damage": 1},
}  # fmt: skip
POSTGRES = {
    "UPDATE adk_memory_search_entry SET terms = 'other' WHERE entry_id = {mine}":
        {"indexed_otherwise": 1, "damage": 1},
    "UPDATE adk_memory_search_entry SET lexemes = to_tsvector('simple', 'other') WHERE entry_id = {mine}":
        {"damage": 1},
    "UPDATE adk_memory_search_entry SET lexemes = lexemes || '''@0'''::tsvector WHERE entry_id >= {mine}":
        {"damage": 8},
    "UPDATE adk_memory_search_entry SET scope_id = scope_id + 1000 WHERE entry_id = {mine}":
        {"not_indexed": 1, "index_without_entry": 1, "damage": 1},
}  # fmt: skip


async def fill(url: str) -> None:
    async with open_memory(url, embedder=ToyEmbedder(8)) as service:
        await remember(service, *[f"{CANARY} note {number}, déjà 東京" for number in range(5)], "!?", project="A")
        await service.delete_session(APP, USER, "s1", project_id="A")
        await remember(service, *[f"{CANARY} again {number}" for number in range(2)], session="s1", project="A")
        await remember(service, MemoryEntry("it's a \\ note", id="mine"), "second", "third", session="s1")
        await remember(service, "first of two", "second of two", "!?", session="s2", project=None)
        single = [MemoryEntry(f"alone {number}") for number in range(3)]
        await service.add_many([SessionEntries(APP, USER, None, single)])


@pytest.mark.parametrize("per_step", [2, 500])
async def test_a_store_that_was_used_has_no_faults(url: str, monkeypatch: pytest.MonkeyPatch, per_step: int) -> None:
    monkeypatch.setattr(walking, "_ENTRIES_PER_STEP", per_step)
    assert await faults_of(url) == {}
    await fill(url)

    await assert_sound(url)


async def test_what_comes_after_an_expired_entry_may_stand_in_its_place(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    async with open_memory(url) as service:
        await remember(service, "green tea", MemoryEntry("in Lisbon", expires_at=now + timedelta(hours=1)))
        monkeypatch.setattr("adk_memory._clock.now", lambda: now + timedelta(hours=2))
        await remember(service, "black tea")

        await assert_sound(url)
        await service.purge_expired()

    await assert_sound(url)


async def test_who_writes_meanwhile_is_no_fault(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "_ENTRIES_PER_STEP", 5)
    notes: list[str] = []

    async def live(service: MemoryService, number: int) -> None:
        life = Life(f"{WITH_VECTORS} {number}", random.Random(number), notes.append)
        while not checked.is_set():
            await life.step(service)

    checked = asyncio.Event()
    async with open_memory(url, embedder=CheapEmbedder()) as service:
        living = asyncio.gather(*(live(service, number) for number in range(4)))
        for _ in range(6):
            assert await faults_of(url) == {}
        checked.set()
        await living
    assert len(notes) > 50
    await assert_kept(url, notes)


def _cases() -> list[tuple[str, str, dict[str, int]]]:
    kinds = {"sqlite": {**BOTH, **SQLITE}, "postgresql": {**BOTH, **POSTGRES}}
    return [(kind, statement, found) for kind, cases in kinds.items() for statement, found in cases.items()]


@pytest.mark.parametrize(("kind", "statement", "expected"), _cases())
async def test_each_kind_of_fault_is_counted(
    request: pytest.FixtureRequest, kind: str, statement: str, expected: dict[str, int]
) -> None:
    url = await asyncio.to_thread(
        request.getfixturevalue, "migrated_sqlite_url" if kind == "sqlite" else "migrated_postgres_url"
    )
    await fill(url)
    async with looking(url) as connection:
        await connection.execute(text(statement.replace(":", "\\:").format(mine=MINE)))

    found = await faults_of(url)

    # SQLite from 3.44 on tells of a damaged index once more.
    assert found == expected or (kind == "sqlite" and found == {**expected, "damage": 2})


def test_every_kind_of_fault_is_one_that_a_test_makes() -> None:
    assert {kind for _, _, found in _cases() for kind in found} == set(FAULTS)


def test_the_command_says_how_many_faults_there_are_and_no_content(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(fill(url))
    assert main(["check", url, "--thorough"]) == 0
    assert "agrees with itself" in capsys.readouterr().out
    assert main(["check", url, "--thorough", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["faults"]) == ("ok", dict.fromkeys(FAULTS, 0))

    asyncio.run(_break(url))

    assert main(["check", url]) == 0
    assert main(["check", url, "--thorough"]) == 1
    printed = capsys.readouterr()
    assert f"1 {FAULTS['vectors_without_entry']}\n" in printed.out
    assert f"1 {FAULTS['counters']}\n" in printed.out
    assert FAULTS["not_indexed"] not in printed.out
    assert printed.err.startswith("adk-memory: what is stored does not agree with itself")
    assert main(["check", url, "--thorough", "--json"]) == 1
    printed_json = capsys.readouterr().out
    assert json.loads(printed_json)["status"] == "damaged"
    assert not any(word in printed.out + printed.err + printed_json for word in (CANARY, USER, "mine"))


async def _break(url: str) -> None:
    async with looking(url) as connection:
        await connection.execute(text("DELETE FROM adk_memory_entry WHERE entry_key = 'mine'"))
