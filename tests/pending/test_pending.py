"""Vectors that are made later, on the databases: who shares the work, who is killed, and what is open meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import text

from adk_memory import EmbeddingError, MemoryEntry, SessionEntries, open_memory
from adk_memory._sql import backlog, pending
from adk_memory.testing import ToyEmbedder
from field_reports.calls import APP, USER, ask, remember
from field_reports.processes import start_script
from field_reports.tables import looking
from pending.support import Slow, Watching, fill, vectors


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "_ENTRIES_AT_A_TIME", 40)
    monkeypatch.setattr(backlog, "BATCH", 25)


@pytest.mark.parametrize("policy", ["raise", "defer"])
async def test_no_transaction_is_open_while_the_provider_is_at_work(url: str, policy: str) -> None:
    provider = Watching(url)
    await fill(url, 3)
    async with open_memory(url, embedder=provider, on_embedding_error=policy) as service:  # type: ignore[arg-type]
        await remember(service, "window seats", MemoryEntry("aisle seats", id="a"))
        await remember(service, "window seats", MemoryEntry("middle seats", id="a"), existing="replace")
        await service.add_entry(APP, USER, MemoryEntry("one more"))
        await service.add_many([SessionEntries(APP, USER, f"s{n}", [MemoryEntry(f"many {n}")]) for n in range(3)])
        await ask(service, "window")
        assert await service.embed_pending() == 30

    assert provider.open == [0] * 6


async def test_the_watch_would_notice_an_open_transaction(url: str) -> None:
    provider = Watching(url)
    if url.startswith("sqlite"):
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await provider.embed(["a note"])
        other.close()
    else:
        async with looking(url) as connection:
            await connection.execute(text("BEGIN"))
            await provider.embed(["a note"])
            await connection.execute(text("ROLLBACK"))

    assert provider.open == [1]


@pytest.mark.usefixtures("small_steps")
async def test_several_share_the_work(url: str) -> None:
    await fill(url, 40)
    provider = Slow()
    async with (
        open_memory(url, embedder=provider) as one,
        open_memory(url, embedder=provider) as two,
        open_memory(url, embedder=provider) as three,
    ):
        shares = await asyncio.gather(one.embed_pending(), two.embed_pending(), three.embed_pending())

        assert sum(shares) == 400
        assert min(shares) > 0
        assert len(set(provider.asked)) == 400
        # What is at a provider when a walk ends may be taken once more by who joined it, and walks again.
        assert len(provider.asked) <= 400 + 2 * 25
        assert (await one.health_check()).pending == 0
    assert await vectors(url) == {"toy-64": 400}


@pytest.mark.usefixtures("small_steps")
async def test_who_joins_others_in_the_middle_makes_what_they_left_behind(url: str) -> None:
    await fill(url, 20)
    async with open_memory(url, embedder=ToyEmbedder()) as service:
        assert await service.embed_pending(limit=60) == 60
        assert (await service.health_check()).pending == 140
        async with looking(url) as connection:  # as if who took them had been killed before they were stored
            await connection.execute(
                text(
                    "DELETE FROM adk_memory_embedding WHERE entry_id IN "
                    "(SELECT entry_id FROM adk_memory_embedding ORDER BY scope_id, entry_id LIMIT 30)"
                )
            )

        assert await service.embed_pending() == 170
        assert (await service.health_check()).pending == 0


EMBED = """
import asyncio, sys
from adk_memory import open_memory
from adk_memory._sql import backlog
from adk_memory.testing import ToyEmbedder

backlog.BATCH = 25

class Slow(ToyEmbedder):
    async def embed(self, texts):
        print(len(texts), flush=True)
        await asyncio.sleep(0.05)
        return await super().embed(texts)

async def main():
    async with open_memory(sys.argv[1], embedder=Slow()) as service:
        await service.embed_pending()

asyncio.run(main())
"""


async def test_who_is_killed_leaves_what_is_done(url: str, tmp_path: Path) -> None:
    await fill(url, 40)
    done = 0
    for _ in range(3):
        process = start_script(tmp_path, EMBED, [url], {})
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()  # the third batch is at the provider: two are stored
        process.kill()
        process.communicate()
        stored = (await vectors(url))["toy-64"]
        assert done + 50 <= stored < 400
        done = stored

    async with open_memory(url, embedder=ToyEmbedder()) as service:
        assert await service.embed_pending() == 400 - done
        assert (await service.health_check()).pending == 0
    assert await vectors(url) == {"toy-64": 400}


@pytest.mark.usefixtures("small_steps")
async def test_what_was_done_is_kept_when_the_provider_breaks_down(url: str) -> None:
    class Exhausted(ToyEmbedder):
        """Has a budget of some texts."""

        async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            if len(self.asked) >= 75:
                raise OSError("no more")
            return await super().embed(texts)

    await fill(url, 20)
    async with open_memory(url, embedder=Exhausted()) as service:
        with pytest.raises(EmbeddingError, match="OSError"):
            await service.embed_pending()
        assert await vectors(url) == {"toy-64": 75}
    async with open_memory(url, embedder=ToyEmbedder()) as service:
        assert await service.embed_pending() == 125


@pytest.mark.usefixtures("small_steps")
async def test_texts_that_are_refused_do_not_stop_the_walk(url: str) -> None:
    await fill(url, 20)
    provider = ToyEmbedder()
    provider.answers = {f"note 3 {turn}": OSError("refused") for turn in range(10)}
    provider.answers |= {f"note 17 {turn}": [float("nan")] * 64 for turn in range(10)}
    async with open_memory(url, embedder=provider) as service:
        with pytest.raises(EmbeddingError, match=r"20 of the texts.*180 others") as raised:
            await service.embed_pending()
        assert "note" not in str(raised.value)
        assert (await service.health_check()).pending == 20
        provider.answers.clear()

        assert await service.embed_pending() == 20


async def test_a_whole_store_is_walked_in_parts_and_few_texts_are_read_at_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_CHARACTERS", 1_000)
    parts: list[int] = []

    class Counting(ToyEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            parts.append(sum(map(len, texts)))
            return await super().embed(texts)

    async with open_memory(url) as service:
        await remember(service, *(f"{number} {'word ' * 60}" for number in range(20)), "word " * 1_000)
    async with open_memory(url, embedder=Counting()) as service:
        assert await service.embed_pending() == 21
    assert sorted(parts)[-1] == 5_000
    assert max(sorted(parts)[:-1]) <= 1_000


async def test_zero_vectors_are_noted_and_erased_with_their_entries(url: str) -> None:
    provider = ToyEmbedder()
    provider.answers = {"a note": [0.0] * 64}
    async with open_memory(url) as service:
        await remember(service, "a note", "another note")
    async with open_memory(url, embedder=provider) as service:
        assert await service.embed_pending() == 2
        assert (await service.health_check()).pending == 0
        provider.asked.clear()
        await remember(service, "a note", "another note")
        assert provider.asked == []  # it said what it has to say
        await remember(service, MemoryEntry("a note", vector=[1.0] * 64), "another note")
        assert (await service.health_check()).pending == 0
        await remember(service, MemoryEntry("a note", vector=[0.0] * 64), "another note")
        assert (await service.health_check()).pending == 1
        assert await service.embed_pending() == 1
        assert await service.delete_user(APP, USER) == 2
        assert (await service.health_check()).pending == 0
    async with looking(url) as connection:
        assert (await connection.execute(text("SELECT count(*) FROM adk_memory_embedding"))).scalar_one() == 0
