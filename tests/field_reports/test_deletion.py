"""F32 and F33: what is deleted is gone from everywhere, and nothing else is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from adk_memory import (
    ALL_PROJECTS,
    MemoryEntry,
    MemoryService,
    PostgresMemoryService,
    StorageUnavailableError,
    ValidationError,
    open_memory,
)
from adk_memory._sql import erasing
from field_reports.calls import APP, USER, MakeService, ask, found, recent, remember, texts
from field_reports.embedders import HashEmbedder
from field_reports.tables import rows_of_users, tables_that_hold

Erase = Callable[[MemoryService], Awaitable[int]]
CANARIES = ["zanzibar", "quokka", "xylophone", "obelisk", "wombat"]
ERASERS: dict[str, Erase] = {
    "delete": lambda service: service.delete(APP, USER, "wombat"),
    "delete_entries": lambda service: service.delete_entries(APP, USER, "Zanzibar trip", project_id="quokka"),
    "delete_entries_in_project": lambda service: service.delete_entries_in_project(APP, USER, "quokka", "ZANZIBAR"),
    "delete_session": lambda service: service.delete_session(APP, USER, "obelisk"),
    "delete_session in its project": lambda service: service.delete_session(APP, USER, "obelisk", project_id="quokka"),
    "delete_project": lambda service: service.delete_project(APP, USER, "quokka"),
    "delete_user": lambda service: service.delete_user(APP, USER),
}


async def remember_canaries(service: MemoryService) -> None:
    entry = MemoryEntry(
        {"parts": ["zanzibar trip", {"call": {"to": "zanzibar"}}], "role": "xylophone"},
        author="xylophone",
        id="wombat",
        metadata={"xylophone": "xylophone"},
    )
    await remember(service, entry, session="obelisk", project="quokka")


@pytest.mark.parametrize("name", ERASERS)
async def test_f32_what_is_deleted_is_found_by_nobody_and_takes_up_no_place(
    make_service: MakeService, name: str
) -> None:
    async with make_service(HashEmbedder()) as service:
        await remember_canaries(service)
        if name != "delete_user":
            await remember(service, "live trip", session="other")

        assert await ERASERS[name](service) == 1

        live = [] if name == "delete_user" else ["live trip"]
        for mode in ("keyword", "vector", "hybrid"):
            assert await found(service, "zanzibar trip", project="quokka", limit=1, mode=mode) == live, mode
        assert await recent(service) == live
        assert await service.get(APP, USER, "wombat", project_id="quokka") is None
        assert await ERASERS[name](service) == 0


@pytest.mark.parametrize("name", ERASERS)
async def test_f32_no_table_holds_anything_of_it(sql_url: str, name: str) -> None:
    async with open_memory(sql_url, embedder=HashEmbedder()) as service:
        await remember_canaries(service)
        before = await tables_that_hold(sql_url, CANARIES)

        await ERASERS[name](service)

    assert {"adk_memory_entry", "adk_memory_scope", "adk_memory_search_entry"} <= set(before)
    keeps_the_scope = name not in ("delete_project", "delete_user")
    assert await tables_that_hold(sql_url, CANARIES) == (["adk_memory_scope"] if keeps_the_scope else [])
    rows = await rows_of_users(sql_url)
    assert rows.pop("adk_memory_scope") == int(keeps_the_scope)
    assert set(rows.values()) == {0}, rows


async def test_f32_the_file_holds_nothing_of_a_deleted_user(migrated_sqlite_url: str) -> None:
    file = Path(migrated_sqlite_url.removeprefix("sqlite:///"))
    async with open_memory(migrated_sqlite_url) as service:
        await remember(service, "live trip", user="someone")
        for number in range(200):
            await remember(service, f"zanzibar quokka {number}", user="xylophone", session=f"obelisk {number}")
    assert b"quokka" in bytes_of(file)

    async with open_memory(migrated_sqlite_url) as service:
        assert await service.delete_user(APP, "xylophone") == 200
        assert (await service.scrub()).complete
        assert await recent(service, user="someone") == ["live trip"]

    everything = bytes_of(file)
    assert [canary for canary in CANARIES if canary.encode() in everything] == []


def bytes_of(file: Path) -> bytes:
    """Return what is in a database file and in the files beside it."""
    return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))


@pytest.mark.parametrize("name", ERASERS)
async def test_f32_ghosts_never_use_up_the_limit(make_service: MakeService, name: str) -> None:
    async with make_service(HashEmbedder()) as service:
        trips = [MemoryEntry("zanzibar trip", id=f"{number}") for number in range(240)]
        await remember(
            service, *trips[:120], MemoryEntry("zanzibar trip", id="wombat"), session="obelisk", project="quokka"
        )
        await remember(service, *trips[120:], session="another", project="quokka")
        await remember(service, "zanzibar island", session="live")

        await ERASERS[name](service)
        left = await recent(service)

        for mode in ("keyword", "vector", "hybrid"):
            hits = texts(await ask(service, "zanzibar", project="quokka", limit=5, mode=mode))
            assert len(hits) == min(5, len(left)), mode
            assert set(hits) <= set(left)


@pytest.mark.parametrize("bad", ["", None, 0, b"ana", ["ana"], ALL_PROJECTS, True, "a" * 257, "a\x00"], ids=repr)
async def test_f33_an_identifier_that_is_none_deletes_nothing(service: MemoryService, bad: Any) -> None:
    await remember(service, "kept", user="ana", project="p")
    await remember(service, "kept too", user="bob")
    calls: list[Callable[[], Awaitable[int]]] = [
        lambda: service.delete_user(APP, bad),
        lambda: service.delete_user(bad, USER),
        lambda: service.delete_project(APP, USER, bad),
        lambda: service.delete_project(APP, bad, "p"),
        lambda: service.delete_project(bad, USER, "p"),
        lambda: service.delete_session(APP, USER, bad),
        lambda: service.delete_session(APP, bad, "s1"),
        lambda: service.delete_entries(APP, bad, "kept"),
        lambda: service.delete_entries(bad, USER, "kept"),
        lambda: service.delete_entries_in_project(APP, USER, bad, "kept"),
        lambda: service.delete(APP, USER, bad),
        lambda: service.delete(APP, bad, "id"),
    ]
    if bad is not ALL_PROJECTS and bad is not None:
        calls += [
            lambda: service.delete_session(APP, USER, "s1", project_id=bad),
            lambda: service.delete_entries(APP, USER, "kept", project_id=bad),
            lambda: service.delete(APP, USER, "id", project_id=bad),
        ]

    for call in calls:
        with pytest.raises(ValidationError):
            await call()
    assert await recent(service, user="ana") == ["kept"]
    assert await recent(service, user="bob") == ["kept too"]


async def test_f33_a_query_that_is_no_text_deletes_nothing(service: MemoryService) -> None:
    await remember(service, "kept None 5")

    for query in (None, 5, b"kept", ["kept"]):
        with pytest.raises(ValidationError, match="query"):
            await service.delete_entries(APP, USER, query)  # type: ignore[arg-type]
    assert await recent(service) == ["kept None 5"]


async def test_f33_every_delete_touches_its_own_scope_alone(service: MemoryService) -> None:
    async def fill(places: Iterable[tuple[str, str, str, str]]) -> None:
        for app, user, project, session in places:
            chosen = None if project == "None" else project
            await remember(service, MemoryEntry("note", id="x"), app=app, user=user, session=session, project=chosen)

    async def survivors() -> set[tuple[str, str, str, str]]:
        return {
            (app, user, str(memory.project_id), str(memory.session_id))
            for app in ("app", "app2")
            for user in ("ana", "bob")
            for memory in await service.list_recent(app, user, 100)
        }

    everything = set(product(("app", "app2"), ("ana", "bob"), ("None", "p", "q"), ("s1", "s2")))
    await fill(everything)
    assert await survivors() == everything
    mine = {key for key in everything if key[:2] == ("app", "ana")}
    expected: list[tuple[Callable[[], Awaitable[int]], set[tuple[str, str, str, str]]]] = [
        (lambda: service.delete_user("app", "ana"), mine),
        (lambda: service.delete_project("app", "ana", "p"), {key for key in mine if key[2] == "p"}),
        (lambda: service.delete_project("app", "ana", "None"), set()),
        (lambda: service.delete_project("app", "ana", "absent"), set()),
        (lambda: service.delete_session("app", "ana", "s1"), {key for key in mine if key[3] == "s1"}),
        (lambda: service.delete_session("app", "ana", "s1", project_id=None), {("app", "ana", "None", "s1")}),
        (lambda: service.delete_session("app", "ana", "s1", project_id="p"), {("app", "ana", "p", "s1")}),
        (lambda: service.delete_entries("app", "ana", "note"), {key for key in mine if key[2] == "None"}),
        (lambda: service.delete_entries("app", "ana", "note", project_id="q"), {key for key in mine if key[2] == "q"}),
        (lambda: service.delete("app", "ana", "x"), mine),
        (lambda: service.delete("app", "ana", "x", project_id=None), {key for key in mine if key[2] == "None"}),
        (lambda: service.delete("app", "ana", "x", project_id="p"), {key for key in mine if key[2] == "p"}),
        (lambda: service.delete_user("app", "absent"), set()),
        (lambda: service.delete_user("absent", "ana"), set()),
        (lambda: service.delete_session("app", "ana", "absent"), set()),
    ]

    for number, (erase, gone) in enumerate(expected):
        assert await erase() == len(gone), number
        assert await survivors() == everything - gone, number
        await fill(gone)


@pytest.mark.parametrize(
    "wildcard", ["%", "_", "__", "a%", "*", "?", "a*", "[a-z]", ".*", "%%", "' OR '1'='1", "ana'--", '"ana"', "\\"]
)
async def test_f33_wildcards_are_ordinary_characters_of_an_id(service: MemoryService, wildcard: str) -> None:
    await remember(service, "kept", project="p")

    assert await service.delete_user(APP, wildcard) == await service.delete_user(wildcard, USER) == 0
    assert await service.delete_project(APP, USER, wildcard) == await service.delete_session(APP, USER, wildcard) == 0
    assert (
        await service.delete(APP, USER, wildcard)
        == await service.delete_entries(APP, USER, wildcard, project_id="p")
        == 0
    )
    assert await recent(service) == ["kept"]


async def test_f33_a_dry_run_deletes_nothing_and_says_what_would_go(service: MemoryService) -> None:
    await remember(service, "red apples", "red pears", "green pears")

    assert await service.delete_entries(APP, USER, "red", dry_run=True) == 2
    assert len(await recent(service)) == 3
    assert await service.delete_entries(APP, USER, "red pears") == 1
    assert sorted(await recent(service)) == ["green pears", "red apples"]


async def test_f33_deleting_needs_every_word_and_not_its_relatives(service: MemoryService) -> None:
    await remember(service, "running late", "he runs late", "run late", "late")

    assert await service.delete_entries(APP, USER, "run tomorrow") == 0
    assert await service.delete_entries(APP, USER, "RUN late") == 1
    assert sorted(await recent(service)) == ["he runs late", "late", "running late"]


async def test_f33_very_many_entries_are_erased_a_part_at_a_time(sql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "_AT_ONCE", 10)
    erased: list[int] = []
    erase = erasing.erase

    def counting(*arguments: Any) -> int:
        erased.append(erase(*arguments))
        return erased[-1]

    monkeypatch.setattr(erasing, "erase", counting)
    async with open_memory(sql_url, embedder=HashEmbedder()) as service:
        await service.add_session(APP, USER, "long", [MemoryEntry(f"zanzibar {n}") for n in range(35)])
        await service.add_session(APP, USER, "short", [MemoryEntry("zanzibar stays")])
        await service.add_session(APP, "bob", "long", [MemoryEntry("zanzibar of bob")])

        assert await service.delete_session(APP, USER, "long") == 35
        assert erased == [10, 10, 10, 5]
        assert await found(service, "zanzibar") == ["zanzibar stays"]

        assert await service.delete_user(APP, USER) == 1
        assert await found(service, "zanzibar", user="bob") == ["zanzibar of bob"]
        assert await service.delete_user(APP, "bob") == 1
    assert not any((await rows_of_users(sql_url)).values())


async def test_f33_an_erasure_whose_confirmation_was_lost_is_not_said_to_have_erased_nothing(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = PostgresMemoryService(migrated_postgres_url)
    await remember(service, "zanzibar")
    dialect: Any = service._database._engine.sync_engine.dialect
    commit = dialect.do_commit

    def commit_and_lose_the_reply(connection: Any) -> None:
        monkeypatch.undo()  # a second attempt would be confirmed
        commit(connection)
        connection.driver_connection.terminate()
        raise dialect.dbapi.InterfaceError("connection is closed")

    monkeypatch.setattr(dialect, "do_commit", commit_and_lose_the_reply)
    with pytest.raises(StorageUnavailableError):
        await service.delete_user(APP, USER)

    assert await recent(service) == []
    assert await service.delete_user(APP, USER) == 0
    await service.close()
