"""A store as an older analyser left it, and what has to be true of it once it is indexed anew."""

from __future__ import annotations

import random
from typing import Any

import pytest
from sqlalchemy import text

from adk_memory import ALL_PROJECTS, Memory, MemoryEntry, MemoryService, SearchRequest, _analysis, open_memory
from field_reports.calls import APP, remember
from field_reports.tables import fts5_is_sound, index_differences, looking

USERS = ("ana", "bob", "cyd")
QUERIES = ("running", "tea house", "éclair", "東京", "user name", "🍕 emails")
_WORDS = ["runs", "running", "tea", "houses", "éclairs", "東京タワー", "🍕", "getUserName", "e-mail", "!!!", "x"]
_OLDER = 0


def older_terms(words: str) -> list[str]:
    """What an analyser did that knew neither stems nor scripts; of some texts it made nothing."""
    return [] if words.startswith("x") else [word for word in words.split() if word.isalnum()]


async def store_with_older_analyser(url: str, count: int, patch: pytest.MonkeyPatch, users: Any = USERS) -> None:
    """Fill a migrated, empty database with so many entries in several scopes, as the older analyser did."""
    await set_meta(url, analyser=str(_OLDER))
    with patch.context() as older:
        older.setattr(_analysis, "VERSION", _OLDER)
        older.setattr(_analysis, "terms", older_terms)
        await fill(url, count, users)


async def fill(url: str, count: int, users: Any = USERS) -> None:
    chooser = random.Random(5)
    async with open_memory(url) as service:
        for start in range(0, count, 50):
            said = [
                MemoryEntry(" ".join(chooser.choices(_WORDS, k=chooser.randrange(5))), id=f"{number}", timestamp=number)
                for number in range(start, min(start + 50, count))
            ]
            project = chooser.choice([None, None, "p"])
            await remember(service, *said, user=chooser.choice(users), session=f"s{start}", project=project)


async def answers(service: MemoryService, users: Any = USERS) -> list[list[Memory]]:
    """Return what is found, with the scores: they depend on all that the index and its counters say."""
    return [
        list(await service.search(SearchRequest(query, APP, user, project, 1_000)))
        for user in users
        for query in QUERIES
        for project in (None, "p")
    ]


async def everything(service: MemoryService, user: str) -> list[Memory]:
    return await service.list_recent(APP, user, 100_000, project_id=ALL_PROJECTS)


async def meta(url: str) -> dict[str, str]:
    async with looking(url) as connection:
        rows = await connection.execute(text("SELECT key, value FROM adk_memory_meta"))
        return {row.key: row.value for row in rows}


async def set_meta(url: str, **facts: str) -> None:
    async with looking(url) as connection:
        for key, value in facts.items():
            await connection.execute(text("DELETE FROM adk_memory_meta WHERE key = :key"), {"key": key})
            row = {"key": key, "value": value}
            await connection.execute(text("INSERT INTO adk_memory_meta (key, value) VALUES (:key, :value)"), row)


async def assert_sound(url: str) -> None:
    """Each entry is indexed once, by the terms of its text, and the counters are what a recount says."""
    assert await index_differences(url) == []
    if url.startswith("sqlite"):
        assert await fts5_is_sound(url)
    key = "s.rowid" if url.startswith("sqlite") else "s.entry_id"
    async with looking(url) as connection:
        entries = await connection.execute(
            text(
                "SELECT e.scope_id, e.text, e.term_count, s.terms FROM adk_memory_entry AS e "
                f"LEFT JOIN adk_memory_search_entry AS s ON {key} = e.id"
            )
        )
        recounted: dict[int, tuple[int, int]] = {}
        for scope_id, words, term_count, indexed in entries:
            terms = _analysis.terms(words)
            prefix = f"{scope_id}_" if url.startswith("sqlite") else ""
            assert (indexed or "") == " ".join(prefix + term for term in terms)
            assert term_count == len(terms)
            held, counted = recounted.get(scope_id, (0, 0))
            recounted[scope_id] = held + bool(terms), counted + len(terms)
        scopes = await connection.execute(text("SELECT id, entry_count, term_count FROM adk_memory_scope"))
        assert {row[0]: (row[1], row[2]) for row in scopes if row[1]} == {
            scope_id: counts for scope_id, counts in recounted.items() if counts[0]
        }
