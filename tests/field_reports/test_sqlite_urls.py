"""F25: SQLite URLs in every spelling, and databases in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

from adk_memory import ConfigurationError, MemoryService, SchemaMissingError, StorageUnavailableError, open_memory
from field_reports.calls import found, recent, remember

ODD_NAMES = [
    "plain.db", "with spaces.db", "percent%20sign.db", "100%.db", "%41.db", "%zz.db", "plus+sign.db", "at@sign.db",
    "hash.db#x",
    "ümläut.db", "数据.db", "amp&ersand=1.db", "colon:name.db", "semi;colon.db", "quote'd.db", "brackets[1].db",
    "file.db.",
    "tilde~.db", "$dollar.db", "back\\slash.db", "{braces}.db", "no-extension", ".hidden", "🍕.db", "a,b.db",
]  # fmt: skip
IN_MEMORY = [
    "sqlite://", "sqlite:///:memory:", "sqlite+aiosqlite://", "sqlite+aiosqlite:///:memory:", "sqlite:///",
    "sqlite::memory:",
    "sqlite+aiosqlite:///:memory:\n", " sqlite:// ", "SQLITE://",
]  # fmt: skip


def files_in(folder: Path) -> set[str]:
    """Return the names of the databases in a folder."""
    return {path.name.removesuffix("-wal").removesuffix("-shm") for path in folder.iterdir()}


async def works(service: MemoryService) -> None:
    async with service:
        await service.migrate()
        assert (await service.health_check()).backend == "sqlite"
        await remember(service, "a note")
        assert await found(service, "note") == ["a note"]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_f25_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    await works(open_memory(f"sqlite:///{tmp_path}/{quote(name)}"))

    assert files_in(tmp_path) == {name}


@pytest.mark.parametrize("folder", ["with spaces", "50% off", "ümläut", "%20", "a+b@c"])
async def test_f25_a_folder_may_have_any_name(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()

    await works(open_memory(f"sqlite+aiosqlite:///{tmp_path}/{quote(folder)}/memory.db"))

    assert (tmp_path / folder / "memory.db").is_file()


@pytest.mark.parametrize("name", ["with spaces.db", "ümläut.db", "plus+sign.db", "at@sign.db", "100%.db", "quote'd.db"])
async def test_f25_a_name_that_is_not_encoded_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    await works(open_memory(f"sqlite:///{tmp_path}/{name}"))

    assert (tmp_path / name).is_file()


@pytest.mark.parametrize(
    "shape",
    [
        "sqlite:///{}",
        "sqlite+aiosqlite:///{}",
        "sqlite:///{}\n",
        "  sqlite:///{}\r\n",
        "sqlite:{}",
        "sqlite:///./{}",
        "SQLite:///{}",
    ],
)
async def test_f25_relative_paths_are_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.chdir(tmp_path)

    await works(open_memory(shape.format("rel.db")))

    assert (tmp_path / "rel.db").is_file()


async def test_f25_what_is_written_through_one_spelling_is_read_through_another(tmp_path: Path) -> None:
    path = tmp_path / "with spaces.db"
    await works(open_memory(f"sqlite:///{path}"))

    for url in (f"sqlite+aiosqlite:///{quote(str(path))}", f"sqlite:///{quote(str(path))}\n", f"sqlite:///{path}"):
        async with open_memory(url) as service:
            assert await recent(service) == ["a note"]


@pytest.mark.parametrize("url", IN_MEMORY, ids=repr)
async def test_f25_a_database_in_memory_is_one_for_all_calls(url: str) -> None:
    async with open_memory(url) as service:
        await service.migrate()
        await asyncio.gather(*[remember(service, f"note {number}", session=f"s{number}") for number in range(20)])

        answers = await asyncio.gather(*[found(service, "note") for _ in range(20)])
        assert all(len(answer) == 20 for answer in answers)
        await asyncio.gather(*[service.delete_session("app", "ana", f"s{number}") for number in range(10)])
        assert len(await recent(service)) == 10


@pytest.mark.parametrize("url", IN_MEMORY, ids=repr)
async def test_f25_two_services_in_memory_share_nothing(url: str) -> None:
    async with open_memory(url) as first, open_memory(url) as second:
        await first.migrate()
        await remember(first, "mine")
        with pytest.raises(SchemaMissingError):
            await recent(second)
        await second.migrate()
        await remember(second, "yours")

        assert (await recent(first), await recent(second)) == (["mine"], ["yours"])


async def test_f25_memory_needs_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("memory://", "memory:", "MEMORY://", " memory://\n"):
        async with open_memory(url) as service:
            await service.migrate()
            await remember(service, "a note")
            assert (await service.health_check()).backend == "memory"
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize(
    "url",
    ["", " ", "memory.db", "/var/lib/memory.db", "C:\\memory.db", "file:memory.db", "mysql://u:secret@h/d", "sqlite",
    "postgres",
     "sqlite//x.db", "http://example.com", "sqlite+pysqlcipher", "sqlite://memory.db", "sqlite://folder/memory.db",
     "://", ":",
     "mongodb://u:secret@h", "redis://h"],
)  # fmt: skip
def test_f25_what_is_no_url_of_ours_is_explained_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_memory(url)

    assert "secret" not in str(raised.value)
    assert "sqlite" in str(raised.value).lower()


@pytest.mark.parametrize("bad", [None, 5, b"sqlite://", Path("memory.db"), Ellipsis], ids=repr)
def test_f25_what_is_neither_url_nor_engine_is_refused(bad: object) -> None:
    with pytest.raises(ConfigurationError):
        open_memory(bad)  # type: ignore[arg-type]


async def test_f25_a_missing_folder_and_a_folder_in_place_of_a_file_are_explained(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    for path in (tmp_path / "missing" / "memory.db", tmp_path / "folder.db"):
        async with open_memory(f"sqlite:///{path}") as service:
            for call in (service.migrate, service.health_check, service.schema_version):
                with pytest.raises(StorageUnavailableError, match="folder"):
                    await call()
