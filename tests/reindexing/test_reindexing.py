"""An index that an older analyser made is found out, and made anew in batches, while others search and write."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from sqlalchemy import text

from adk_memory import (
    InMemoryMemoryService,
    MemoryEntry,
    SchemaTooNewError,
    SessionEntries,
    StorageError,
    _analysis,
    open_memory,
)
from adk_memory._sql import reindexing, walking
from field_reports.calls import APP, found, remember
from field_reports.processes import finish, start_script
from field_reports.tables import looking
from reindexing.support import (
    answers,
    assert_sound,
    everything,
    fill,
    meta,
    set_meta,
    store_with_older_analyser,
)

CURRENT = str(_analysis.VERSION)
NEWER = _analysis.VERSION + 1


async def test_what_is_indexed_anew_is_what_would_have_been_indexed_at_first(
    url: str, fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "_ENTRIES_PER_STEP", 70)
    await store_with_older_analyser(url, 400, monkeypatch)
    await fill(fresh_url, 400)
    steps: list[tuple[int, int]] = []

    async with open_memory(url) as service, open_memory(fresh_url) as fresh:
        before = await answers(service)
        indexed = await service.reindex(on_progress=lambda done, total: steps.append((done, total)))

        assert before != await answers(fresh)
        assert await answers(service) == await answers(fresh)
        for user in ("ana", "bob", "cyd"):
            assert await everything(service, user) == await everything(fresh, user)
    assert indexed == 400
    assert steps == [(70, 400), (140, 400), (210, 400), (280, 400), (350, 400), (400, 400)]
    assert await meta(url) == {"analyser": CURRENT}
    await assert_sound(url)


async def test_an_older_index_is_told_and_searched(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await store_with_older_analyser(url, 100, monkeypatch)
    caplog.clear()

    async with open_memory(url) as service:
        assert any(await answers(service))
        assert (await service.health_check()).index_outdated
        await remember(service, "runs after the upgrade")
        assert await found(service, "running after the upgrade", limit=1) == ["runs after the upgrade"]
        warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warnings) == 1
        assert "adk-memory reindex" in warnings[0].getMessage()

        await service.migrate()

        assert not (await service.health_check()).index_outdated
    assert await meta(url) == {"analyser": CURRENT}
    await assert_sound(url)


async def test_an_index_of_this_version_is_made_anew_too(url: str, fresh_url: str) -> None:
    await fill(url, 120)
    await fill(fresh_url, 120)
    async with looking(url) as connection:
        await connection.execute(text("DELETE FROM adk_memory_search_entry"))

    async with open_memory(url) as service, open_memory(fresh_url) as fresh:
        assert await service.reindex() == 120
        assert await service.reindex() == 120
        assert await answers(service) == await answers(fresh)
    await assert_sound(url)


async def test_nothing_is_migrated_twice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> int:
        raise AssertionError("there was nothing to do")

    monkeypatch.setattr(reindexing, "reindex", refuse)

    async with open_memory(url) as service:
        await service.migrate()


async def test_others_search_and_write_meanwhile(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "_ENTRIES_PER_STEP", 20)
    await store_with_older_analyser(url, 600, monkeypatch)
    done = asyncio.Event()
    rounds = 0

    async def others(name: str) -> None:
        nonlocal rounds
        async with open_memory(url) as service:
            number = 0
            while not done.is_set() or number == 0:
                number += 1
                rounds += 1
                words = f"{name} runs {number}"
                await remember(service, words, "houses", user="ana", session=f"{name} {number}")
                assert words in await found(service, f"running {name}")
                # What the walk has not come to yet is rewritten, and what it may be at is erased.
                for user in ("ana", "bob"):
                    rewritten = MemoryEntry(f"rewritten by {name}", id=f"{number}", timestamp=number)
                    await remember(service, rewritten, user=user, session="s0")
                await service.delete_session(APP, "bob", f"s{50 * (number % 12)}")
                await service.delete(APP, "cyd", f"{number * 7 % 600}")

    async def work() -> None:
        async with open_memory(url) as service:
            await service.reindex()
        done.set()

    await asyncio.gather(work(), others("one"), others("two"))

    assert rounds > 4
    assert await meta(url) == {"analyser": CURRENT}
    await assert_sound(url)


async def test_several_share_the_work(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "_ENTRIES_PER_STEP", 30)
    await store_with_older_analyser(url, 600, monkeypatch)

    async with open_memory(url) as one, open_memory(url) as two, open_memory(url) as three:
        shares = await asyncio.gather(one.reindex(), two.reindex(), three.migrate())

    assert shares[0] + shares[1] <= 600 + 30  # the last to begin may come when all is done, and begins anew then
    assert await meta(url) == {"analyser": CURRENT}
    await assert_sound(url)


REINDEX = """
import asyncio, sys
from adk_memory import open_memory
from adk_memory._sql import walking

walking._ENTRIES_PER_STEP = 40

async def main():
    async with open_memory(sys.argv[1]) as service:
        await service.reindex(on_progress=lambda done, total: print(done, flush=True))

asyncio.run(main())
"""


async def test_who_is_killed_goes_on_where_it_stopped(
    url: str, fresh_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_with_older_analyser(url, 1_000, monkeypatch)
    await fill(fresh_url, 1_000)
    left = 1_000
    for _ in range(3):
        process = start_script(tmp_path, REINDEX, [url], {})
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        process.kill()
        process.communicate()
        progress = reindexing.Progress.read((await meta(url))["analyser_progress"])
        assert 0 < progress.done < 1_000
        assert 1_000 - progress.done < left
        left = 1_000 - progress.done

    async with open_memory(url) as service, open_memory(fresh_url) as fresh:
        assert (await service.health_check()).index_outdated
        assert await service.reindex() == left
        assert not (await service.health_check()).index_outdated
        assert await answers(service) == await answers(fresh)
    await assert_sound(url)


async def test_long_texts_come_in_small_batches(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "_TERMS_PER_STEP", 250)
    steps: list[int] = []
    async with open_memory(url) as service:
        await remember(service, *[f"{number} " + "word " * 99 for number in range(5)], "word " * 1_000, "a word")

        await service.reindex(on_progress=lambda done, _total: steps.append(done))

    assert steps == [2, 4, 5, 6, 7]


@pytest.mark.parametrize("stored", [{"analyser": f"{NEWER}"}, {"analyser_progress": f"{NEWER}:0:0:0"}])
async def test_the_index_of_a_newer_version_is_left_alone(url: str, stored: dict[str, str]) -> None:
    async with open_memory(url) as service:
        await remember(service, "green tea")
        await set_meta(url, **stored)

    async with open_memory(url) as service:
        for call in (
            lambda: found(service, "tea"),
            lambda: remember(service, "black tea"),
            service.health_check,
            service.reindex,
            service.migrate,
        ):
            with pytest.raises(SchemaTooNewError, match="install a newer adk-memory"):
                await call()


@pytest.mark.parametrize("stored", [{"analyser": f"{NEWER}"}, {"analyser_progress": f"{NEWER}:0:0:0"}])
async def test_a_service_that_runs_on_writes_nothing_into_a_newer_index(url: str, stored: dict[str, str]) -> None:
    async with open_memory(url) as service:
        await remember(service, MemoryEntry("green tea", id="1"))

        await set_meta(url, **stored)

        for call in (
            lambda: remember(service, MemoryEntry("black tea", id="2")),
            lambda: remember(service, MemoryEntry("black tea", id="1")),
            lambda: remember(service, "black tea", existing="replace"),
            lambda: remember(service, "black tea", user="somebody new"),
            lambda: service.add_entry(APP, "ana", MemoryEntry("black tea"), project_id="p"),
            lambda: service.add_many([SessionEntries(APP, "ana", "s2", [MemoryEntry("black tea")])]),
        ):
            with pytest.raises(SchemaTooNewError):
                await call()
        assert await found(service, "tea") == ["green tea"]
        assert [memory.text for memory in await everything(service, "ana")] == ["green tea"]


WRITE_AS_BEFORE = """
import asyncio, itertools, sys
from adk_memory import MemoryEntry, SchemaTooNewError, _analysis, open_memory

_analysis.VERSION = 0
_analysis.terms = str.split

async def write(service, name):
    for number in itertools.count():
        for user in ("ana", f"{name} {number}"):
            try:
                await service.add_session("app", user, f"{name} {number}", [MemoryEntry("runs past houses")])
            except SchemaTooNewError:
                return
        if number == 3:
            print(name, flush=True)

async def main():
    async with open_memory(sys.argv[1]) as service:
        await asyncio.gather(*(write(service, name) for name in "abcd"))
    print("refused", flush=True)

asyncio.run(main())
"""


async def test_older_writers_are_refused_from_its_first_moment_and_nothing_of_theirs_is_missed(
    url: str, tmp_path: Path
) -> None:
    await set_meta(url, analyser="0")
    older = start_script(tmp_path, WRITE_AS_BEFORE, [url], {})
    assert older.stdout is not None
    for _ in range(4):
        older.stdout.readline()

    async with open_memory(url) as service:
        assert await service.reindex() > 0

        assert finish(older).endswith("refused\n")
        await assert_sound(url)
        assert len(await found(service, "running house")) == len(await everything(service, "ana"))


async def test_who_writes_already_when_it_begins_is_waited_for(migrated_postgres_url: str) -> None:
    async with open_memory(migrated_postgres_url) as service, looking(migrated_postgres_url) as writer:
        await remember(service, "green tea")
        await writer.execute(text("BEGIN"))
        await writer.execute(text("UPDATE adk_memory_scope SET version = version + 1"))

        reindexing = asyncio.create_task(service.reindex())
        await asyncio.sleep(0.5)
        assert not reindexing.done()
        assert await found(service, "tea") == ["green tea"]
        await writer.execute(text("COMMIT"))

        assert await reindexing == 1


async def test_a_damaged_index_is_made_from_scratch(url: str, fresh_url: str) -> None:
    await fill(url, 120)
    await fill(fresh_url, 120)
    schema = text("SELECT name, sql FROM sqlite_master WHERE name LIKE 'adk_memory_search%' ORDER BY name")
    async with looking(url) as connection:
        if url.startswith("sqlite"):
            before = list(await connection.execute(schema))
            await connection.execute(text("UPDATE adk_memory_search_entry_data SET block = x'00' WHERE id > 10"))
        else:
            await connection.execute(
                text("UPDATE adk_memory_search_entry SET lexemes = '@0 lost', entry_id = -entry_id")
            )

    async with open_memory(url) as service, open_memory(fresh_url) as fresh:
        if url.startswith("sqlite"):
            with pytest.raises(StorageError):
                await found(service, "tea")
        assert await service.reindex(from_scratch=True) == 120
        assert await answers(service) == await answers(fresh)
    await assert_sound(url)
    if url.startswith("sqlite"):
        async with looking(url) as connection:
            assert list(await connection.execute(schema)) == before


async def test_without_tables_for_it_an_index_is_made_from_scratch(sqlite_url: str) -> None:
    async with open_memory(sqlite_url) as service:
        await service.migrate()
        await remember(service, "green tea")
        async with looking(sqlite_url) as connection:
            await connection.execute(text("DROP TABLE adk_memory_search_entry"))

        await service.reindex(from_scratch=True)

        assert await found(service, "tea") == ["green tea"]


async def test_one_connection_is_enough() -> None:
    async with open_memory("sqlite://") as service:
        await service.migrate()
        await remember(service, "green tea")

        assert await service.reindex() == 1

        assert await found(service, "tea") == ["green tea"]


async def test_a_backend_without_a_stored_index_has_nothing_to_do() -> None:
    async with InMemoryMemoryService() as service:
        await remember(service, "green tea")

        assert await service.reindex() == 0
        assert not (await service.health_check()).index_outdated
