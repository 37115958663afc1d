"""Providers that look at the database while they are at work, and at what is stored of their vectors."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

from sqlalchemy import text

from adk_memory import MemoryEntry, MemoryService, SessionEntries, open_memory
from adk_memory.testing import ToyEmbedder
from field_reports.calls import APP
from field_reports.tables import looking


class Watching(ToyEmbedder):
    """Notes, whenever it is asked, what a transaction that is open meanwhile would show.

    Attributes:
        open: how many transactions of others there were on Postgres, or 1 where SQLite could not be written to.
    """

    def __init__(self, url: str, model: str = "watching") -> None:
        super().__init__(model=model)
        self.url = url
        self.open: list[int] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.open.append(await self._open_transactions())
        return await super().embed(texts)

    async def _open_transactions(self) -> int:
        if self.url.startswith("sqlite"):
            return await asyncio.to_thread(self._is_locked)
        async with looking(self.url) as connection:
            counted = await connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'"
                )
            )
            return int(counted.scalar_one())

    def _is_locked(self) -> int:
        writer = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)
        try:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("UPDATE adk_memory_meta SET value = value")
            writer.execute("COMMIT")
        except sqlite3.OperationalError:
            return 1
        finally:
            writer.close()
        return 0


class Slow(ToyEmbedder):
    """Gives way to others before it answers."""

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        await asyncio.sleep(0.01)
        return await super().embed(texts)


async def fill(url: str, sessions: int, *, users: int = 7, entries: int = 10) -> None:
    """Store sessions of so many entries each, without vectors; the text of each is its own."""

    async def items(service: MemoryService) -> None:
        await service.add_many(
            SessionEntries(
                APP,
                f"user {session % users}",
                f"s{session}",
                [MemoryEntry(f"note {session} {turn}") for turn in range(entries)],
                "p" if session % 3 == 0 else None,
            )
            for session in range(sessions)
        )

    async with open_memory(url) as service:
        await items(service)


async def vectors(url: str) -> dict[str, int]:
    """Return how many vectors there are of each model that has any."""
    async with looking(url) as connection:
        rows = await connection.execute(
            text(
                "SELECT m.name, count(*) FROM adk_memory_embedding AS e "
                "JOIN adk_memory_embedding_model AS m ON m.id = e.model_id GROUP BY m.name"
            )
        )
        return {row[0]: row[1] for row in rows}
