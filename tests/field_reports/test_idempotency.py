"""F36: a session that is added again, longer, changed, or by several callers at once."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from adk_memory import Content, MemoryEntry, MemoryService, ValidationError, open_memory
from field_reports.calls import APP, USER, MakeService, ask, found, recent, remember, texts
from field_reports.embedders import HashEmbedder
from field_reports.processes import start_script
from field_reports.tables import index_differences, looking, rows_of_users

TALK = [MemoryEntry(f"turn {number}", author="user" if number % 2 else "model") for number in range(12)]

KILLED_AFTER_WRITING = """
import asyncio, os, sys
from adk_memory import MemoryEntry, open_memory
async def main():
    async with open_memory(sys.argv[1]) as service:
        await service.add_session("app", "ana", "s1", [MemoryEntry(f"turn {n}") for n in range(10)])
        print("written", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_f36_adding_a_session_again_leaves_one_copy(service: MemoryService) -> None:
    first = await remember(service, *TALK)
    again = await remember(service, *TALK)

    assert first == again
    assert len(set(first)) == 12
    assert await recent(service) == [entry.text for entry in reversed(TALK)]


async def test_f36_a_growing_session_is_appended_to(service: MemoryService) -> None:
    for length in range(1, 13):
        ids = await remember(service, *TALK[:length])
        assert len(ids) == length
        assert len(await recent(service)) == length

    assert len(await found(service, "turn")) == 12


async def test_f36_entries_made_anew_are_the_same_entries(service: MemoryService) -> None:
    for _ in range(3):
        await remember(service, *[MemoryEntry(entry.text, author=entry.author) for entry in TALK])
        await remember(
            service, *[MemoryEntry({"parts": [{"text": entry.text}], "role": "user"}, entry.author) for entry in TALK]
        )

    assert len(await recent(service)) == 12


async def test_f36_the_order_of_fields_does_not_matter(service: MemoryService) -> None:
    await remember(service, MemoryEntry({"role": "user", "parts": [{"a": 1, "b": {"c": 2, "d": 3}}], "x": 1, "y": 2}))
    await remember(service, MemoryEntry({"y": 2, "x": 1, "parts": [{"b": {"d": 3, "c": 2}, "a": 1}], "role": "user"}))

    assert len(await recent(service)) == 1


async def test_f36_what_differs_in_anything_said_is_another_entry(service: MemoryService) -> None:
    await remember(
        service,
        MemoryEntry("note"),
        MemoryEntry("note", author="model"),
        MemoryEntry("note", timestamp=0),
        MemoryEntry("note", timestamp=1),
        MemoryEntry(Content("model", ["note"])),
        MemoryEntry(Content("user", ["note", {"call": 1}])),
        MemoryEntry("note", id="mine"),
        MemoryEntry("Note"),
        MemoryEntry("note "),
    )

    assert len(await recent(service)) == 9


async def test_f36_concurrent_callers_leave_one_copy(make_service: MakeService) -> None:
    async with make_service(HashEmbedder()) as service:
        answers = await asyncio.gather(*[remember(service, *TALK) for _ in range(10)])

        assert all(answer == answers[0] for answer in answers)
        assert len(await recent(service)) == 12
        assert sorted(await found(service, "turn")) == sorted(entry.text for entry in TALK)


async def test_f36_concurrent_callers_in_several_services_leave_one_copy(sql_url: str) -> None:
    services = [open_memory(sql_url, embedder=HashEmbedder()) for _ in range(4)]
    await asyncio.gather(*[remember(service, *TALK[: 6 + number]) for number in range(6) for service in services])

    assert sorted(await recent(services[0])) == sorted(entry.text for entry in TALK[:11])
    assert await index_differences(sql_url) == []
    rows = await rows_of_users(sql_url)
    assert rows["adk_memory_entry"] == rows["adk_memory_embedding"] == 11
    assert rows["adk_memory_scope"] == 1
    for service in services:
        await service.close()


async def test_f36_concurrent_sessions_of_one_user_are_all_kept(service: MemoryService) -> None:
    projects = [None, "p", "q"]
    await asyncio.gather(
        *[remember(service, *TALK, session=f"s{number}", project=projects[number % 3]) for number in range(15)]
    )

    assert len(await recent(service)) == 15 * 12


async def test_f36_a_caller_that_was_killed_before_the_answer_can_retry(sql_url: str, tmp_path: Path) -> None:
    with start_script(tmp_path, KILLED_AFTER_WRITING, [sql_url], {}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)

    async with open_memory(sql_url) as service:
        await remember(service, *[MemoryEntry(f"turn {number}") for number in range(12)])
        assert sorted(await recent(service)) == sorted(f"turn {number}" for number in range(12))


async def test_f36_the_same_text_in_two_sessions_is_two_entries(service: MemoryService) -> None:
    first = await remember(service, "ok", session="s1")
    second = await remember(service, "ok", session="s2")
    third = await remember(service, "ok", session="s1", project="p")

    assert len({*first, *second, *third}) == 3
    assert await recent(service) == ["ok"] * 3
    assert await service.delete_session(APP, USER, "s2") == 1
    assert await recent(service) == ["ok"] * 2


async def test_f36_identical_messages_of_one_session_are_all_kept(service: MemoryService) -> None:
    ids = await remember(service, "ok", "yes", "ok", "ok")
    again = await remember(service, "ok", "yes", "ok", "ok", "ok")

    assert len(set(ids)) == 4
    assert again[:4] == ids
    assert sorted(await recent(service)) == ["ok", "ok", "ok", "ok", "yes"]


async def test_f36_single_entries_without_an_id_are_always_added(service: MemoryService) -> None:
    entry = MemoryEntry("ok")
    ids = {await service.add_entry(APP, USER, entry) for _ in range(3)}
    named = {await service.add_entry(APP, USER, MemoryEntry("ok", id="mine")) for _ in range(3)}

    assert len(ids) == 3
    assert named == {"mine"}
    assert len(await recent(service)) == 4


async def test_f36_an_edit_reaches_text_vector_and_index_together(make_service: MakeService) -> None:
    async with make_service(HashEmbedder()) as service:
        await remember(service, MemoryEntry("alpha secret", id="x"), MemoryEntry("other", id="y"))
        await remember(service, MemoryEntry("beta", id="x", author="model", metadata={"edited": True}))

        assert await found(service, "secret", mode="keyword") == await found(service, "alpha", mode="keyword") == []
        assert await found(service, "beta", mode="keyword") == ["beta"]
        hits = await ask(service, "beta", mode="vector")
        assert (hits[0].text, hits[0].author, hits[0].metadata, hits.partial) == (
            "beta",
            "model",
            {"edited": True},
            False,
        )
        assert hits[0].score == pytest.approx(1.0, abs=1e-3)
        assert "alpha secret" not in texts(await ask(service, "alpha secret", mode="hybrid"))


async def test_f36_a_whole_session_can_be_edited_in_one_call(make_service: MakeService) -> None:
    async with make_service(HashEmbedder()) as service:
        for version in ("first", "second", "third"):
            await remember(service, *[MemoryEntry(f"{version} text {n}", id=f"{n}", timestamp=n) for n in range(40)])

            assert await recent(service) == [f"{version} text {n}" for n in reversed(range(40))]
            assert len(await found(service, version, mode="keyword")) == 40
        assert await found(service, "first second", mode="keyword") == []


async def test_f36_an_edit_to_nothing_and_back_follows_in_the_index(service: MemoryService) -> None:
    for text, expected in [("alpha", ["alpha"]), ("", []), ("!!!", []), ("alpha again", ["alpha again"])]:
        await remember(service, MemoryEntry(text, id="x"))
        assert await found(service, "alpha") == expected
        assert await recent(service) == [text]


async def test_f36_keep_leaves_the_first_and_replace_leaves_the_last(service: MemoryService) -> None:
    await remember(service, MemoryEntry("first", id="x"), MemoryEntry("kept", id="y"))

    await remember(service, MemoryEntry("second", id="x"), existing="keep")
    assert sorted(await recent(service)) == ["first", "kept"]
    await remember(service, MemoryEntry("third", id="x"), MemoryEntry("new", id="z"), existing="replace")
    assert sorted(await recent(service)) == ["new", "third"]
    await remember(service, existing="replace")
    assert await recent(service) == []
    with pytest.raises(ValidationError, match="existing"):
        await remember(service, "x", existing="append")  # type: ignore[arg-type]


async def test_f36_two_entries_of_one_id_in_one_call_are_one(service: MemoryService) -> None:
    ids = await remember(service, MemoryEntry("first", id="x"), MemoryEntry("second", id="x"))

    assert ids == ["x", "x"]
    assert await recent(service) == ["second"]


async def test_f36_what_replaces_a_session_stands_beside_what_stays(sql_url: str) -> None:
    async with open_memory(sql_url) as service:
        await remember(service, *(MemoryEntry(f"turn {number}", id=str(number)) for number in range(5)))
        await remember(service, MemoryEntry("turn 0", id="0"), MemoryEntry("new turn", id="new"), existing="replace")

    async with looking(sql_url) as connection:
        places = await connection.exec_driver_sql("SELECT entry_key, position FROM adk_memory_entry ORDER BY position")
        assert [tuple(row) for row in places] == [("0", 1), ("new", 2)]
