"""The report of a delete: an int to those who knew it as one, with the same parts on every backend."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Awaitable, Callable

import pytest

from adk_memory import Content, Erasure, MemoryEntry, MemoryService, open_memory
from adk_memory._sql import erasing
from field_reports.embedders import HashEmbedder

APP, USER = "app", "ana"
WORDLESS = MemoryEntry(Content("model", [{"n": 1}]), id="wordless")
Erase = Callable[[MemoryService], Awaitable[int]]


def test_an_erasure_is_the_number_of_entries() -> None:
    erasure = Erasure(3, vectors=2, index_entries=1, scopes=4)

    assert erasure == 3
    assert hash(erasure) == hash(3)
    assert (erasure + 1, sum([erasure, erasure])) == (4, 6)
    assert (f"{erasure}", f"{erasure:,}", str(erasure), f"{erasure!s}", json.dumps(erasure)) == (
        "3",
        "3",
        "3",
        "3",
        "3",
    )
    assert not Erasure()
    assert isinstance(erasure, int)


def test_its_parts_are_read_and_never_written() -> None:
    erasure = Erasure(3, vectors=2, index_entries=1, scopes=4)

    assert (erasure.entries, erasure.vectors, erasure.index_entries, erasure.scopes) == (3, 2, 1, 4)
    assert repr(erasure) == "Erasure(entries=3, vectors=2, index_entries=1, scopes=4)"
    for part in erasure.parts():
        with pytest.raises(AttributeError):
            setattr(erasure, part, 7)


def test_it_survives_pickling_and_copying_and_adds_up() -> None:
    erasure = Erasure(3, vectors=2, index_entries=1, scopes=4)

    for copied in (pickle.loads(pickle.dumps(erasure)), copy.copy(erasure), copy.deepcopy(erasure)):
        assert (type(copied), copied.parts()) == (Erasure, erasure.parts())
    assert Erasure.of([erasure, Erasure(1), erasure]).parts() == {
        "entries": 7, "vectors": 4, "index_entries": 2, "scopes": 8
    }  # fmt: skip
    assert Erasure.of([]).parts() == Erasure().parts()


@pytest.mark.parametrize(
    ("erase", "parts"),
    [
        (lambda s: s.delete(APP, USER, "x"), (3, 3, 3, 0)),
        (lambda s: s.delete(APP, USER, "wordless"), (2, 0, 0, 0)),
        (lambda s: s.delete(APP, USER, "nothing"), (0, 0, 0, 0)),
        (lambda s: s.delete_entries(APP, USER, "green tea", dry_run=True), (1, 1, 1, 0)),
        (lambda s: s.delete_entries(APP, USER, "green tea"), (1, 1, 1, 0)),
        (lambda s: s.delete_entries(APP, USER, "..."), (0, 0, 0, 0)),
        (lambda s: s.delete_session(APP, USER, "s1"), (6, 4, 4, 0)),
        (lambda s: s.delete_project(APP, USER, "A"), (3, 2, 2, 1)),
        (lambda s: s.delete_user(APP, USER), (8, 6, 6, 3)),
        (lambda s: s.delete_user(APP, "nobody"), (0, 0, 0, 0)),
    ],
)  # fmt: skip
async def test_every_delete_says_what_it_removed(url: str, erase: Erase, parts: tuple[int, ...]) -> None:
    async with open_memory(url, embedder=HashEmbedder()) as service:
        for project in (None, "A"):
            entries = [MemoryEntry("green tea", id="x"), MemoryEntry("black tea"), WORDLESS]
            await service.add_session(APP, USER, "s1", entries, project_id=project)
        await service.add_entry(APP, USER, MemoryEntry("white tea", id="x"))
        await service.add_entry(APP, USER, MemoryEntry("gone"), project_id="B")
        await service.add_session(APP, "ben", "s1", [MemoryEntry("green tea", id="x")], project_id="A")

        erased = await erase(service)

        assert isinstance(erased, Erasure)
        assert tuple(erased.parts().values()) == parts


async def test_a_scope_that_was_emptied_counts_and_one_that_never_was_does_not(url: str) -> None:
    async with open_memory(url) as service:
        await service.add_session(APP, USER, "s1", [MemoryEntry("tea")], project_id="A")
        await service.add_session(APP, USER, "s1", [], project_id="B")
        await service.add_session(APP, USER, "s1", [], project_id="C", existing="replace")
        await service.delete_session(APP, USER, "s1")

        erased = await service.delete_user(APP, USER)
        again = await service.delete_user(APP, USER)

    assert repr(erased) == repr(Erasure(0, scopes=2))
    assert repr(again) == repr(Erasure())


async def test_without_a_provider_there_are_no_vectors(url: str) -> None:
    async with open_memory(url) as service:
        await service.add_session(APP, USER, "s1", [MemoryEntry("green tea"), MemoryEntry("black tea"), WORDLESS])

        assert repr(await service.delete_user(APP, USER)) == repr(Erasure(3, index_entries=2, scopes=1))


async def test_the_report_adds_up_what_goes_in_parts(sql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "_AT_ONCE", 10)
    async with open_memory(sql_url, embedder=HashEmbedder()) as service:
        await service.add_session(APP, USER, "long", [MemoryEntry(f"zanzibar {n}") for n in range(35)])

        assert repr(await service.delete_user(APP, USER)) == repr(Erasure(35, vectors=35, index_entries=35, scopes=1))


async def test_a_dry_run_of_very_many_entries_counts_them_all(url: str) -> None:
    async with open_memory(url) as service:
        await service.add_session(APP, USER, "long", [MemoryEntry(f"zanzibar {n}") for n in range(2_500)])

        would = await service.delete_entries(APP, USER, "zanzibar", dry_run=True)
        did = await service.delete_entries(APP, USER, "zanzibar")

    assert repr(would) == repr(did) == repr(Erasure(2_500, index_entries=2_500))
