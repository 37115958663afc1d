"""A real PgBouncer in transaction mode, between the service and the server."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, text

from adk_memory import SearchRequest, open_memory
from faults.sound import assert_sound
from faults.workload import APP, WITH_VECTORS, CheapEmbedder, Life, assert_kept
from field_reports.tables import looking
from postgres_server import account, free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
TASKS = 20
SERVER_CONNECTIONS = 3
"""Fewer than the service has to the pooler, so that each goes from hand to hand."""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed: apt-get install pgbouncer")


@contextmanager
def running_pooler(server_url: str, folder: Path) -> Iterator[str]:
    """Run a pooler before a database, and yield its URL of that database."""
    server, port = make_url(server_url), free_port()
    target = f"host={server.host} port={server.port} dbname={server.database}"
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"""
        [databases]
        memory = {target} user={server.username} password={server.password}
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = {port}
        unix_socket_dir =
        auth_type = any
        pool_mode = transaction
        default_pool_size = {SERVER_CONNECTIONS}
        """
    )
    settings.chmod(0o644)
    runs_as = account()
    with (folder / "pgbouncer.log").open("w") as log, settings.open() as given:
        # Without -d it stays in the foreground. As root it would refuse, and whom it runs as can't enter the folder.
        pooler = subprocess.Popen(
            [str(PROGRAM), "/dev/stdin"], stdin=given, stdout=log, stderr=log, cwd="/",
            user=runs_as and runs_as.pw_uid, group=runs_as and runs_as.pw_gid, extra_groups=[] if runs_as else None,
        )  # fmt: skip
    try:
        yield f"postgresql://anyone:anything@127.0.0.1:{port}/memory"
        assert pooler.poll() is None, (folder / "pgbouncer.log").read_text()
    finally:
        pooler.terminate()
        pooler.wait(timeout=20)


async def until_it_answers(url: str) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            async with looking(f"{url}?prepared_statement_cache_size=0") as connection:
                await connection.exec_driver_sql("SELECT 1")
                return
        except OSError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_a_whole_life_goes_through_a_pooler_in_transaction_mode(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    notes: list[str] = []
    with running_pooler(migrated_postgres_url, tmp_path) as pooled:
        await until_it_answers(pooled)
        async with open_memory(f"{pooled}?pgbouncer=true", embedder=CheapEmbedder()) as service:
            assert (await service.health_check()).backend == "postgresql"

            async def live(number: int) -> None:
                name = f"{WITH_VECTORS} {number}"
                life = Life(name, random.Random(number), notes.append)
                for kind in (*Life.KINDS, "grow", "alone", "many", "replace", "forget"):
                    await life.step(service, kind)
                    mode: Any = ("keyword", "vector", "hybrid", None)[number % 4]
                    await service.search(SearchRequest("green tea", APP, name, mode=mode))
                listed = await service.list_recent(APP, name)
                assert (await service.list_page(APP, name, with_total=True)).total == len(listed)
                assert await service.get(APP, name, listed[0].id, project_id=listed[0].project_id) == listed[0]
                assert await service.delete_entries(APP, name, "green tea coffee", dry_run=True) >= 0

            await asyncio.gather(*(live(number) for number in range(TASKS)))
            assert await service.reindex() > 0
            assert await assert_kept(migrated_postgres_url, notes) == (0, 0)
            for number in range(TASKS):
                await service.delete_user(APP, f"{WITH_VECTORS} {number}")
                await service.delete_user(APP, f"{WITH_VECTORS} {number} side")

        async with looking(migrated_postgres_url) as connection:
            assert await connection.scalar(text("SELECT count(*) FROM adk_memory_scope")) == 0
    await assert_sound(migrated_postgres_url)
