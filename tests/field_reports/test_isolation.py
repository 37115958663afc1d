"""F34 and F35: a user sees what is theirs, by exact identifiers; and what "no project" means, in one table."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adk_memory import ALL_PROJECTS, MemoryEntry, MemoryService, SearchRequest, ValidationError
from field_reports.calls import APP, USER, ask, found, recent, remember

LOOKALIKES = [
    "john_doe", "john-doe", "johnXdoe", "john_doe2", "JOHN_DOE", "John_Doe", "john_doe ", " john_doe", "john%",
    "john_", "%",
    "_", "a\\_b", "a_b", "a\\b", "john", "john_do", "john*", "john?", "[john]", "'", "''", '"', "john'--", "--", ";",
    "null",
    "None", "0", "00", "0.0", "1", "true", "john.doe", "john:doe", "john/doe", "john|doe", "john,doe", "john\tdoe",
    "john\ndoe",
    "jöhn", unicodedata.normalize("NFD", "jöhn"), "ﬁ", "fi", "straße", "strasse", "İ", "i̇", "ı", "I", "i", "👩",
    "👩‍👩",
    "\ufeff", "\u200b", " ", "\u00a0", "Ａ", "A", "[]", "{}", '["a", "b"]', "a" * 256, "a" * 255, "\U0010ffff", "$1",
    ":id",
]  # fmt: skip
APPS = ["acme", "acme:corp", "acme.corp", "acme-corp", "ACME", "acme ", "acme_", "acme%", "acm"]


def secret(number: int) -> str:
    return f"secret number{number}x of theirs"


async def test_f34_lookalike_users_never_meet(service: MemoryService) -> None:
    assert len(set(LOOKALIKES)) == len(LOOKALIKES)
    for number, user in enumerate(LOOKALIKES):
        await remember(service, MemoryEntry(secret(number), id="same"), user=user)

    for number, user in enumerate(LOOKALIKES):
        assert await found(service, "secret of theirs", user=user) == [secret(number)], user
        assert await found(service, f"number{(number + 1) % len(LOOKALIKES)}x", user=user) == []
        assert await recent(service, user=user) == [secret(number)]
        kept = await service.get(APP, user, "same")
        assert kept is not None
        assert kept.text == secret(number)


async def test_f34_deletes_of_lookalike_users_reach_themselves_alone(service: MemoryService) -> None:
    left = dict(enumerate(LOOKALIKES))
    for number, user in left.items():
        await remember(service, MemoryEntry(secret(number), id="same"), user=user)

    for number, user in enumerate(LOOKALIKES):
        ways: list[Callable[[str], Awaitable[int]]] = [
            lambda name: service.delete_user(APP, name),
            lambda name: service.delete_session(APP, name, "s1"),
            lambda name: service.delete_entries(APP, name, "secret"),
            lambda name: service.delete(APP, name, "same"),
        ]
        assert await ways[number % 4](user) == 1, user
        del left[number]
        if number % 8 == 0:
            for other, name in left.items():
                assert await recent(service, user=name) == [secret(other)], (user, name)


async def test_f34_lookalike_apps_projects_sessions_and_ids_never_meet(service: MemoryService) -> None:
    for number, name in enumerate(APPS):
        await remember(service, secret(number), app=name)
        await remember(service, secret(number), user="p", project=name)
        await remember(service, secret(number), user="s", session=name)
        await remember(service, MemoryEntry(secret(number), id=name), user="e")

    for number, name in enumerate(APPS):
        kept = await service.get(APP, "e", name)
        assert kept is not None
        assert kept.text == secret(number)
        assert await found(service, "secret", app=name) == [secret(number)]
        assert await found(service, "secret", user="p", project=name) == [secret(number)]
        assert await service.delete_user(name, USER) == 1
        assert await service.delete_project(APP, "p", name) == 1
        assert await service.delete_session(APP, "s", name) == 1
        assert await service.delete(APP, "e", name) == 1


async def test_f34_parts_of_a_scope_can_not_be_shifted(service: MemoryService) -> None:
    shifted = [
        ("a", "b:c"),
        ("a:b", "c"),
        ("a", "b"),
        ("ab", "c"),
        ("a", "bc"),
        ('a"', 'b"'),
        ('a","b', "c"),
        ("a\\", '"b'),
    ]
    for number, (app, user) in enumerate(shifted):
        await remember(service, secret(number), app=app, user=user)
        await remember(service, secret(number), app="app", user=app, project=user)

    for number, (app, user) in enumerate(shifted):
        assert await recent(service, app=app, user=user) == [secret(number)]
        assert await found(service, "secret", app="app", user=app, project=user) == [secret(number)]


async def test_f34_percent_and_underscore_in_a_query_are_text(service: MemoryService) -> None:
    await remember(service, "100% sure", "snake_case name", "nothing of it")

    assert await found(service, "100%") == ["100% sure"]
    assert await found(service, "snake_case") == ["snake_case name"]
    for query in ("%", "_", "%%", "n%", "no_hing", "%othing", "n_"):
        assert await found(service, query) == [], query
        assert await service.delete_entries(APP, USER, query) == 0, query


@pytest.mark.parametrize(
    "bad", ["", None, 5, 5.0, True, b"ana", ["ana"], ("ana",), {"ana": 1}, Ellipsis, ALL_PROJECTS], ids=repr
)
async def test_f34_an_identifier_that_is_no_string_is_refused_by_every_reader(service: MemoryService, bad: Any) -> None:
    await remember(service, "kept", user="None")
    await remember(service, "kept", user="5")

    for app, user in ((bad, USER), (APP, bad)):
        with pytest.raises(ValidationError):
            SearchRequest("kept", app, user)
    for call in (
        lambda: service.list_recent(bad, USER),
        lambda: service.list_recent(APP, bad),
        lambda: service.get(APP, bad, "id"),
        lambda: service.get(APP, USER, bad),
        lambda: service.add_session(APP, bad, "s1", [MemoryEntry("x")]),
        lambda: service.add_session(APP, USER, bad, [MemoryEntry("x")]),
        lambda: service.add_entry(bad, USER, MemoryEntry("x")),
    ):
        with pytest.raises(ValidationError):
            await call()


async def test_f34_a_string_of_another_type_counts_as_its_text(service: MemoryService) -> None:
    class Name(str):
        __slots__ = ()

        def __eq__(self, _other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    await remember(service, "mine", user=Name("ana"))
    await remember(service, "theirs", user="bob")

    assert await recent(service, user="ana") == ["mine"]
    assert await recent(service, user=Name("bob")) == ["theirs"]


async def fill_projects(service: MemoryService) -> None:
    for project in (None, "P1", "P2"):
        await remember(service, MemoryEntry(f"note of {project}", id="x", timestamp=0), project=project)


NAMES = {None: "note of None", "P1": "note of P1", "P2": "note of P2"}


async def test_f35_what_each_project_sees(service: MemoryService) -> None:
    await fill_projects(service)
    sees: dict[Any, set[Any]] = {
        None: {None},
        "P1": {None, "P1"},
        "P2": {None, "P2"},
        "P3": {None},
        "None": {None},
        "p1": {None},
    }

    for project, visible in sees.items():
        expected = {NAMES[name] for name in visible}
        assert set(await found(service, "note", project=project)) == expected, project
        assert {hit.project_id for hit in await ask(service, "note", project=project)} == visible
        listed = await service.list_recent(APP, USER, project_id=project)
        assert {memory.text for memory in listed} == expected, project
    listed = await service.list_recent(APP, USER, project_id=ALL_PROJECTS)
    assert {memory.text for memory in listed} == set(NAMES.values()) == set(await recent(service))


async def test_f35_what_each_project_erases(service: MemoryService) -> None:
    erases: list[tuple[Any, set[Any]]] = [
        (lambda: service.delete_entries(APP, USER, "note"), {None}),
        (lambda: service.delete_entries(APP, USER, "note", project_id="P1"), {"P1"}),
        (lambda: service.delete_entries_in_project(APP, USER, "P2", "note"), {"P2"}),
        (lambda: service.delete_entries(APP, USER, "note", project_id="P3"), set()),
        (lambda: service.delete_session(APP, USER, "s1"), {None, "P1", "P2"}),
        (lambda: service.delete_session(APP, USER, "s1", project_id=None), {None}),
        (lambda: service.delete_session(APP, USER, "s1", project_id="P1"), {"P1"}),
        (lambda: service.delete_session(APP, USER, "s1", project_id="P3"), set()),
        (lambda: service.delete_project(APP, USER, "P1"), {"P1"}),
        (lambda: service.delete_project(APP, USER, "P3"), set()),
        (lambda: service.delete(APP, USER, "x", project_id=None), {None}),
        (lambda: service.delete(APP, USER, "x", project_id="P2"), {"P2"}),
        (lambda: service.delete(APP, USER, "x"), {None, "P1", "P2"}),
        (lambda: service.delete_user(APP, USER), {None, "P1", "P2"}),
    ]

    for number, (erase, gone) in enumerate(erases):
        await fill_projects(service)
        assert await erase() == len(gone), number
        assert set(await recent(service)) == {NAMES[name] for name in NAMES if name not in gone}, number


async def test_f35_where_a_project_and_the_global_entries_share_an_id_each_keeps_its_own(
    service: MemoryService,
) -> None:
    await fill_projects(service)

    for project in (None, "P1", "P2"):
        await remember(service, MemoryEntry(f"rewritten {project}", id="x", timestamp=1), project=project)
    assert len(await recent(service)) == 3
    kept = await service.get(APP, USER, "x")
    assert kept is not None
    assert kept.text == "rewritten None"


@pytest.mark.parametrize("bad", ["", 5, True, b"p", ["p"], "p" * 257, "p\x00", "\ud800"], ids=ascii)
async def test_f35_a_project_that_is_no_identifier_is_refused(service: MemoryService, bad: Any) -> None:
    await fill_projects(service)

    with pytest.raises(ValidationError, match="project_id"):
        SearchRequest("note", APP, USER, bad)
    for call in (
        lambda: service.list_recent(APP, USER, project_id=bad),
        lambda: service.get(APP, USER, "x", project_id=bad),
        lambda: remember(service, "note", project=bad),
        lambda: service.add_entry(APP, USER, MemoryEntry("note"), project_id=bad),
        lambda: service.delete_project(APP, USER, bad),
        lambda: service.delete_session(APP, USER, "s1", project_id=bad),
    ):
        with pytest.raises(ValidationError, match="project_id"):
            await call()
    assert len(await recent(service)) == 3


async def test_f35_all_projects_is_no_project_to_search_or_to_write(service: MemoryService) -> None:
    everything: Any = ALL_PROJECTS
    await fill_projects(service)

    with pytest.raises(ValidationError):
        SearchRequest("note", APP, USER, everything)
    for call in (
        lambda: service.add_session(APP, USER, "s1", [MemoryEntry("note")], project_id=everything),
        lambda: service.add_session(APP, USER, "s1", [], project_id=everything, existing="replace"),
        lambda: service.add_entry(APP, USER, MemoryEntry("note"), project_id=everything),
        lambda: service.delete_entries(APP, USER, "note", project_id=everything),
        lambda: service.delete_entries(APP, USER, "note", project_id=everything, dry_run=True),
        lambda: service.delete_project(APP, USER, everything),
        lambda: service.get(APP, USER, "x", project_id=everything),
    ):
        with pytest.raises(ValidationError):
            await call()
    assert len(await recent(service)) == 3
