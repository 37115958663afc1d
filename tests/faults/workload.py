"""Writers whose every doing is noted before and after: what is stored can then be held against what was promised.

A life is a user with sessions, a project and single entries, and a user at their side who is erased now and then. It
does one thing after the other, and each of these is all or nothing. So if it ends in the middle, what is stored of it
is what the last acknowledged one left, or what the one after it would have left, and nothing else.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import shake_256
from typing import Any

from sqlalchemy import text

from adk_memory import MemoryEntry, MemoryService, SessionEntries
from field_reports.tables import looking

APP = "app"
WITH_VECTORS = "vectors"
"""What the names of lives begin with whose entries have vectors."""

State = dict[str, dict[str, str]]
"""The texts of entries by their ids, by where they are: user, project and session with `|` between them."""
_SESSIONS = ("s1", "s2")
_WORDS = ["green", "tea", "black", "coffee", "house", "river", "mountain", "東京", "café", "running"]


class CheapEmbedder:
    """Vectors that cost next to nothing and are the same everywhere."""

    model = "cheap"
    dimensions = 8

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[byte - 127.5 for byte in shake_256(passage.encode()).digest(self.dimensions)] for passage in texts]


class Life:
    """Does one thing after the other, and tells ``note`` of each, before and after."""

    KINDS = ("grow", "replace", "alone", "erase", "forget", "many", "leave")

    def __init__(self, name: str, chance: random.Random, note: Callable[[str], None]) -> None:
        self._name = name
        self._side = f"{name} side"
        self._chance = chance
        self._note = note
        self._state: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._done = 0

    async def step(self, service: MemoryService, kind: str | None = None) -> None:
        """Do something of a kind, or of a random one."""
        prepare = getattr(self, f"_{kind or self._chance.choice(self.KINDS)}")
        sets, call = prepare(service)
        self._note(json.dumps({"life": self._name, "begins": self._done, "sets": sets}))
        await call
        self._note(json.dumps({"life": self._name, "ends": self._done}))
        self._state.update(sets)
        self._done += 1

    def _grow(self, service: MemoryService) -> tuple[State, Awaitable[object]]:
        """Add a session, a longer version of one, or one of which some entries are other than before."""
        key, project, session = self._somewhere()
        entries = self._state[key] | self._entries(self._chance.randint(1, 4))
        return {key: entries}, self._add(service, project, session, entries, "update")

    def _replace(self, service: MemoryService) -> tuple[State, Awaitable[object]]:
        key, project, session = self._somewhere()
        kept = {name: words for name, words in self._state[key].items() if self._chance.random() < 0.5}
        entries = kept | self._entries(2)
        return {key: entries}, self._add(service, project, session, entries, "replace")

    def _alone(self, service: MemoryService) -> tuple[State, Awaitable[object]]:
        key = f"{self._name}||"
        entries = self._entries(1)
        [(name, words)] = entries.items()
        call = service.add_entry(APP, self._name, MemoryEntry(words, id=name))
        return {key: self._state[key] | entries}, call

    def _erase(self, service: MemoryService) -> tuple[State, Awaitable[object]]:
        session = self._chance.choice(_SESSIONS)
        sets: State = {f"{self._name}|{project}|{session}": {} for project in ("", "P")}
        return sets, service.delete_session(APP, self._name, session)

    def _forget(self, service: MemoryService) -> tuple[State, Awaitable[object]]:
        key = f"{self._name}||"
        name = self._chance.choice([*self._state[key], "e0"])
        sets = {
            where: {entry: words for entry, words in entries.items() if entry != name}
            for where, entries in self._state.items()
            if where.startswith(f"{self._name}|") and name in entries
        }
        return sets, service.delete(APP, self._name, name)

    def _many(self, service: MemoryService) -> tuple[State, Awaitable[object]]:
        sets = {
            f"{self._side}||{session}": self._state[f"{self._side}||{session}"] | self._entries(3)
            for session in (*_SESSIONS, "")
        }
        items = [
            SessionEntries(APP, self._side, where.split("|")[2] or None, self._as_entries(entries))
            for where, entries in sets.items()
        ]
        return sets, service.add_many(items)

    def _leave(self, service: MemoryService) -> tuple[State, Awaitable[object]]:
        sets: State = {where: {} for where in self._state if where.startswith(f"{self._side}|")}
        return sets, service.delete_user(APP, self._side)

    def _somewhere(self) -> tuple[str, str, str]:
        project, session = self._chance.choice(("", "", "P")), self._chance.choice(_SESSIONS)
        return f"{self._name}|{project}|{session}", project, session

    def _entries(self, count: int) -> dict[str, str]:
        names = self._chance.sample(range(12), count)
        return {f"e{number}": " ".join(self._chance.choices(_WORDS, k=6)) for number in names}

    def _as_entries(self, entries: dict[str, str]) -> list[MemoryEntry]:
        return [MemoryEntry(words, id=name) for name, words in entries.items()]

    def _add(
        self, service: MemoryService, project: str, session: str, entries: dict[str, str], existing: Any
    ) -> Awaitable[object]:
        stored = self._as_entries(entries)
        return service.add_session(APP, self._name, session, stored, project_id=project or None, existing=existing)


async def assert_kept(url: str, notes: Iterable[str]) -> tuple[int, int]:
    """Hold what is stored of all lives against their notes; return how many were ended in a doing, and in how many it
    was stored nevertheless.
    """
    promised: defaultdict[str, State] = defaultdict(dict)
    begun: dict[str, State] = {}
    for line in notes:
        note = json.loads(line)
        if "begins" in note:
            begun[note["life"]] = note["sets"]
            promised[note["life"]] |= {where: {} for where in note["sets"] if where not in promised[note["life"]]}
        else:
            promised[note["life"]] |= begun.pop(note["life"])
    found = await _stored(url)
    stored_nevertheless = 0
    for life, state in promised.items():
        stored = {where: found.pop(where, {}) for where in state}
        if stored != state:
            assert life in begun, f"{life} was promised {state}, and there is {stored}"
            assert stored == state | begun[life], f"half of something: {life} began {begun[life]} on {state}: {stored}"
            stored_nevertheless += 1
    assert found == {}, "entries that nobody began to write"
    return len(begun), stored_nevertheless


async def _stored(url: str) -> State:
    """Return all that is stored, and see that what should have a vector has one."""
    statement = """
        SELECT s.user_id, s.project_key, e.session_key, e.entry_key, e.text, count(v.entry_id) AS vectors
        FROM adk_memory_entry AS e JOIN adk_memory_scope AS s ON s.id = e.scope_id
        LEFT JOIN adk_memory_embedding AS v ON v.scope_id = e.scope_id AND v.entry_id = e.id
        GROUP BY s.user_id, s.project_key, e.session_key, e.entry_key, e.text
    """
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    async with looking(url) as connection:
        for row in await connection.execute(text(statement)):
            assert row.vectors == row.user_id.startswith(WITH_VECTORS), f"{row.user_id} has {row.vectors} vectors"
            found[f"{row.user_id}|{row.project_key}|{row.session_key}"][row.entry_key] = row.text
    return dict(found)
