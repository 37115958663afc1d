"""What tests of migrations share: engines as a host makes them, revisions to come, processes that migrate."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Row, event, inspect, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_memory import migrate

_DRIVERS: Final = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}
PATIENCE_SECONDS: Final = 60


def host_engine(url: str, **options: Any) -> AsyncEngine:
    """An engine as an application makes it: nothing of ours is set on it."""
    parsed = make_url(url)
    return create_async_engine(parsed.set(drivername=_DRIVERS[parsed.get_backend_name()]), **options)


def on_connect(engine: AsyncEngine, statement: str) -> None:
    """Have a listener of the host execute a statement on every new connection."""

    @event.listens_for(engine.sync_engine, "connect")
    def execute(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(statement)
        cursor.close()


async def table_names(engine: AsyncEngine) -> set[str]:
    async with engine.connect() as connection:
        return set(await connection.run_sync(lambda sync: inspect(sync).get_table_names()))


async def execute(engine: AsyncEngine, *statements: str) -> None:
    async with engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def fetch(engine: AsyncEngine, statement: str) -> list[Row[Any]]:
    async with engine.connect() as connection:
        return list(await connection.execute(text(statement)))


async def store_two_entries(engine: AsyncEngine) -> None:
    """One scope and two entries in it, with their rows in the search index."""
    moment = "1764500000000000" if engine.dialect.name == "sqlite" else "now()"
    row = "'', 'k{0}', {0}, 'user', {1}, '{{}}', 'tea {0}', '{{}}', 2, {1}"
    await execute(
        engine,
        "INSERT INTO adk_memory_scope "
        "(id, fingerprint, app_name, user_id, project_key, entry_count, term_count, version) "
        "VALUES (1, 'f', 'app', 'ana', '', 2, 2, 1)",
        "INSERT INTO adk_memory_entry (id, scope_id, session_key, entry_key, position, author, timestamp, "
        "content, text, metadata, term_count, created_at) "
        f"VALUES (1, 1, {row.format(1, moment)}), (2, 1, {row.format(2, moment)})",
    )
    await index(engine, 1, "tea")
    await index(engine, 2, "tea")


async def index(engine: AsyncEngine, entry_id: int, terms: str) -> None:
    if engine.dialect.name == "sqlite":
        columns, values = "rowid, terms", f"{entry_id}, '{terms}'"
    else:
        columns, values = "scope_id, entry_id, terms, lexemes", f"1, {entry_id}, '{terms}', '@1 {terms}'"
    await execute(engine, f"INSERT INTO adk_memory_search_entry ({columns}) VALUES ({values})")


async def matching(engine: AsyncEngine, term: str) -> list[int]:
    if engine.dialect.name == "sqlite":
        statement = f"SELECT rowid FROM adk_memory_search_entry WHERE terms MATCH '{term}' ORDER BY 1"
    else:
        statement = (
            f"SELECT entry_id FROM adk_memory_search_entry WHERE lexemes @@ CAST('@1 & {term}' AS tsquery) ORDER BY 1"
        )
    return [row[0] for row in await fetch(engine, statement)]


@dataclass(frozen=True)
class Scripts:
    """A copy of the migrations, in use instead of them, to which a test adds revisions."""

    directory: Path
    set_head: Callable[[str], None]

    def add(self, revision: str, after: str, upgrade: str, downgrade: str = "pass") -> None:
        """Add a revision; code stands at no indentation, and may use op, sa and os."""
        path = self.directory / "versions" / f"{revision}_added.py"
        path.write_text(
            "import os, time, pathlib\nimport sqlalchemy as sa\nfrom alembic import op\n"
            f"revision = {revision!r}\ndown_revision = {after!r}\n"
            f"def upgrade():\n{_indented(upgrade)}\ndef downgrade():\n{_indented(downgrade)}\n"
        )
        self.set_head(revision)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.strip().splitlines())


_WORKER = """
import asyncio, sys
from pathlib import Path
import alembic.command
from sqlalchemy.ext.asyncio import create_async_engine
from adk_memory import migrate
from adk_memory._open import open_engine

url, scripts, head = sys.argv[1:]
migrate.scripts_directory = lambda: Path(scripts)
migrate.HEAD = head

async def main():
    engine = open_engine(url)
    await migrate.upgrade(engine)
    await migrate.require_head(engine)
    await engine.dispose()

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


class Worker:
    """A process that imports everything, and migrates to the head when told to."""

    def __init__(self, url: str, **environment: str) -> None:
        command = [sys.executable, "-c", _WORKER, url, str(migrate.scripts_directory()), migrate.HEAD]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    def start(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()[1]

    def discard(self) -> None:
        self.process.kill()
        self.process.communicate()

    def finish(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, errors[-2000:]


def at_once(workers: Iterable[Worker]) -> None:
    """Start all, but none before every one is ready."""
    workers = list(workers)
    for worker in workers:
        worker.wait_until_ready()
    for worker in workers:
        worker.start()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


async def check_models(engine: AsyncEngine) -> None:
    """`alembic check`: raise where the models and the database differ."""
    from alembic import command

    def compare(connection: Any) -> None:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.check(config)

    async with engine.connect() as connection:
        await connection.run_sync(compare)


async def until(task: asyncio.Task[Any], seconds: float) -> bool:
    """Whether the task ends within some seconds; it is left running if not."""
    done, _ = await asyncio.wait({task}, timeout=seconds)
    return bool(done)
