"""The proof of an erasure: complete where nothing is left, and it finds a planted remainder of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from adk_memory import (
    Content,
    Erasure,
    ErasureProof,
    MemoryEntry,
    MemoryService,
    ScrubReport,
    SearchRequest,
    open_memory,
)
from adk_memory._sql import sqlite_scrub
from erasure.files import APP, bytes_of, raw, remember, remember_many
from field_reports.embedders import HashEmbedder
from field_reports.tables import looking

USER, OTHER = "canary-user", "other-user"
ENTRIES = [
    MemoryEntry("zanzibar quokkas", author="xylophonist", id="wombat-burrow"),
    MemoryEntry(Content("model", [{"text": "running in Zürich"}, {"call": {"to": 'obelisks\n"naïve"'}}])),
    MemoryEntry('"Ärger"\n"Öde"\n"Übel"'),
    MemoryEntry("shared by both of us", metadata={"mood": "tangerine dream"}),
]
SHARED = [MemoryEntry("shared by both of us"), MemoryEntry("other words, running too")]


async def fill(service: MemoryService) -> None:
    for project in (None, "canary-project"):
        await service.add_session(APP, USER, "canary-session", ENTRIES, project_id=project)
    await service.add_session(APP, OTHER, "other-session", SHARED)
    await service.add_session("another app", USER, "another-session", SHARED)


async def test_nothing_is_found_of_an_erased_user(url: str) -> None:
    async with open_memory(url, embedder=HashEmbedder()) as service:
        await fill(service)

        proof = await service.erase_user(APP, USER)

        assert proof.complete
        assert proof.scrub.complete
        assert proof.erased.parts() == {"entries": 8, "vectors": 8, "index_entries": 8, "scopes": 2}
        assert {"entries", "vectors", "index entries"} <= set(proof.found)
        assert set(proof.found.values()) == {0}, proof.found
        if url.startswith("sqlite"):
            assert {"index segments", "file", "write-ahead log", "shared memory file"} <= set(proof.found)
        assert len(await service.list_recent(APP, OTHER)) == len(await service.list_recent("another app", USER)) == 2
        again = await service.erase_user(APP, USER)
        assert (int(again.erased), again.complete) == (0, True)


async def test_a_user_whom_nobody_knows_is_proven_absent(url: str) -> None:
    async with open_memory(url) as service:
        await fill(service)

        proof = await service.erase_user(APP, "nobody")

    assert (repr(proof.erased), proof.complete) == ("Erasure(entries=0, vectors=0, index_entries=0, scopes=0)", True)


def test_a_proof_is_as_good_as_what_was_found() -> None:
    assert ErasureProof(erased=Erasure(), scrub=ScrubReport(), found={"entries": 0}).complete
    assert not ErasureProof(erased=Erasure(), scrub=ScrubReport(), found={"entries": 0, "vectors": 1}).complete


_ENTRY = (
    "INSERT INTO adk_memory_entry (scope_id, session_key, entry_key, position, author, timestamp, content, text, "
    "metadata, term_count, created_at) SELECT {scope}, 's', 'k', 1, 'a', timestamp, '{{}}', 't', '{{}}', 0, created_at "
    "FROM adk_memory_entry LIMIT 1"
)
_VECTOR = (
    "INSERT INTO adk_memory_embedding (scope_id, model_id, entry_id, vector) "
    "SELECT {scope}, model_id, 77, vector FROM adk_memory_embedding LIMIT 1"
)
_SCOPE = (
    "INSERT INTO adk_memory_scope (fingerprint, app_name, user_id, project_key, entry_count, term_count, version) "
    "VALUES ('f', 'app', 'canary-user', 'p', 0, 0, 0)"
)
PLANTED = {
    "sqlite": {
        "entries": _ENTRY,
        "vectors": _VECTOR,
        "scopes": _SCOPE,
        "index entries": "INSERT INTO adk_memory_search_entry_content (id, c0) VALUES (77, '{scope}_a {scope}_b')",
        "index terms": "INSERT INTO adk_memory_search_entry (rowid, terms) VALUES (77, '{scope}_tea')",
    },
    "postgresql": {
        "entries": _ENTRY,
        "vectors": _VECTOR,
        "scopes": _SCOPE,
        "index entries": "INSERT INTO adk_memory_search_entry VALUES ({scope}, 77, 'tea', '')",
        "index terms": "INSERT INTO adk_memory_search_entry VALUES (0, 77, 'tea', '''@{scope}'' tea')",
    },
}


@pytest.mark.parametrize("kind", PLANTED["sqlite"])
async def test_a_row_that_was_left_is_found(sql_url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = "sqlite" if sql_url.startswith("sqlite") else "postgresql"
    async with open_memory(sql_url, embedder=HashEmbedder()) as service:
        await fill(service)
        async with looking(sql_url) as connection:
            scope = await connection.scalar(text("SELECT min(id) FROM adk_memory_scope WHERE user_id = 'canary-user'"))
            if backend == "sqlite":
                await connection.execute(text("PRAGMA foreign_keys = OFF"))
            else:
                await connection.execute(
                    text("ALTER TABLE adk_memory_entry DROP CONSTRAINT adk_memory_entry_scope_id_fk")
                )
        scrub = service.scrub

        async def plant_and_scrub(**options: Any) -> ScrubReport:
            async with looking(sql_url) as connection:
                await connection.execute(text(PLANTED[backend][kind].format(scope=scope)))
            return await scrub(**options)

        monkeypatch.setattr(service, "scrub", plant_and_scrub)
        proof = await service.erase_user(APP, USER)

    assert not proof.complete
    assert proof.found[kind] == 1
    others = {"index terms": {"index entries", "index segments"}} if backend == "sqlite" else {}
    assert {name for name, found in proof.found.items() if found} - others.get(kind, set()) == {kind}


async def test_words_in_segments_of_the_index_are_found(
    migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_scrub, "_merge", lambda *_arguments, **_more: False)
    async with open_memory(migrated_sqlite_url) as service:
        await remember(service, USER, "tea")  # a word too short for a trace
        await remember(service, OTHER, "tea")

        proof = await service.erase_user(APP, USER)

    assert {name for name, found in proof.found.items() if found} == {"index segments"}


async def test_bytes_in_the_log_are_found(migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_scrub, "_PATIENCE_SECONDS", 0.0)
    async with open_memory(migrated_sqlite_url, embedder=HashEmbedder()) as service:
        await fill(service)
        file = Path(migrated_sqlite_url.removeprefix("sqlite:///"))
        with raw(file) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM adk_memory_entry").fetchone()
            proof = await service.erase_user(APP, USER)
            reader.execute("COMMIT")

    assert not proof.scrub.complete
    assert proof.found["write-ahead log"] > 0


@pytest.mark.parametrize(
    "planted",
    [
        b"xx zanzibar quokkas xx",  # a text, at any place
        b'{"mood": "tangerine dream"}',
        b"xylophonist",
        b"wombat-burrow",
        b"canary-session",
        b"canary-project",
        "running in Zürich".encode(),
        '"Ärger"\n"Öde"\n"Übel"'.encode(),  # as no JSON has it
        rb"obelisks\n\"na",  # as JSON escapes it
    ],
)
async def test_bytes_in_free_space_of_the_file_are_found(
    migrated_sqlite_url: str, file: Path, monkeypatch: pytest.MonkeyPatch, planted: bytes
) -> None:
    async with open_memory(migrated_sqlite_url, embedder=HashEmbedder()) as service:
        await fill(service)
        proof = await erase_and_plant(service, file, planted, monkeypatch)

    assert {name for name, found in proof.found.items() if found} == {"file"}


async def test_the_bytes_of_a_vector_are_found(
    migrated_sqlite_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(migrated_sqlite_url, embedder=HashEmbedder()) as service:
        await fill(service)
        with raw(file) as connection:
            [vector] = connection.execute("SELECT vector FROM adk_memory_embedding LIMIT 1").fetchone()

        proof = await erase_and_plant(service, file, vector, monkeypatch)

    assert proof.found["file"] > 0


async def test_a_term_with_its_scope_is_found(
    migrated_sqlite_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(migrated_sqlite_url) as service:
        await fill(service)
        [scope] = raw_scope(file)

        proof = await erase_and_plant(service, file, f"{scope}_zanzibar".encode()[:8], monkeypatch)

    assert proof.found["file"] > 0


@pytest.mark.parametrize("planted", [b"shared by both of us", b"running", b"tea", bytes(64), b'"role": "model"'])
async def test_what_others_hold_and_what_is_too_short_is_no_remainder(
    migrated_sqlite_url: str, file: Path, monkeypatch: pytest.MonkeyPatch, planted: bytes
) -> None:
    async with open_memory(migrated_sqlite_url, embedder=HashEmbedder()) as service:
        await fill(service)
        await service.add_session(APP, OTHER, "more", [MemoryEntry(Content("model", [{"n": 1}]))])

        proof = await erase_and_plant(service, file, planted, monkeypatch)

    assert proof.complete, proof.found


async def test_what_a_table_of_others_holds_is_no_remainder(migrated_sqlite_url: str, file: Path) -> None:
    with raw(file) as connection:
        connection.execute('CREATE TABLE "the host\'s" (id INTEGER PRIMARY KEY, "a ""note""" TEXT)')
        connection.execute("INSERT INTO \"the host's\" VALUES (1, 'zanzibar quokkas of canary-user')")
    async with open_memory(migrated_sqlite_url) as service:
        await fill(service)

        assert (await service.erase_user(APP, USER)).complete


@pytest.mark.parametrize("values", [("of zanzi", "bar quokkas"), ("bar quokkas", "of zanzi")])
async def test_what_lies_side_by_side_in_a_row_or_an_index_is_no_remainder(
    migrated_sqlite_url: str, file: Path, values: tuple[str, str]
) -> None:
    with raw(file) as connection:
        connection.execute("CREATE TABLE host (id INTEGER PRIMARY KEY, a TEXT, b TEXT)")
        connection.execute("CREATE INDEX host_index ON host (b, a)")
        connection.execute("INSERT INTO host VALUES (1, ?, ?)", values)
    async with open_memory(migrated_sqlite_url) as service:
        await fill(service)

        proof = await service.erase_user(APP, USER)

    assert b"zanzibar" in bytes_of(file)
    assert proof.complete, proof.found


async def test_others_may_write_the_same_while_it_looks(
    migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(migrated_sqlite_url) as service:
        await fill(service)
        scrub = service.scrub

        async def scrub_and_write(**options: Any) -> ScrubReport:
            report = await scrub(**options)
            await service.add_session(APP, OTHER, "more", ENTRIES)
            return report

        monkeypatch.setattr(service, "scrub", scrub_and_write)
        proof = await service.erase_user(APP, USER)

        assert proof.complete, proof.found
        assert (await service.search(SearchRequest("zanzibar", APP, OTHER))).memories


async def test_of_many_users_one_is_erased_and_proven(migrated_sqlite_url: str) -> None:
    users = [f"some-user-{number:04}" for number in range(20)]
    async with open_memory(migrated_sqlite_url, embedder=HashEmbedder()) as service:
        await remember_many(service, *users)

        for user in users[3:6]:
            proof = await service.erase_user(APP, user)
            assert (int(proof.erased), proof.complete) == (80, True), proof.found


async def erase_and_plant(
    service: MemoryService, file: Path, planted: bytes, monkeypatch: pytest.MonkeyPatch
) -> ErasureProof:
    """Erase the user, and put bytes behind the last page, where SQLite does not look, before anybody looks."""
    scrub = service.scrub

    async def scrub_and_plant(**options: Any) -> ScrubReport:
        report = await scrub(**options)
        with file.open("ab") as end:
            end.write(b"...." + planted + b"....")
        return report

    monkeypatch.setattr(service, "scrub", scrub_and_plant)
    return await service.erase_user(APP, USER)


def raw_scope(file: Path) -> list[int]:
    with raw(file) as connection:
        rows = connection.execute("SELECT min(id) FROM adk_memory_scope WHERE user_id = 'canary-user'").fetchall()
    return [row[0] for row in rows]
