"""Stores of every backend for the leak hunt: migrated, empty, as many as a test needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from conftest import migrate

BACKENDS = ("memory", "sqlite", "postgresql")


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=BACKENDS)
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """What makes a store of one backend and returns its URL."""
    numbers = count()

    def new() -> str:
        if request.param == "memory":
            return "memory://"
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path / f'{next(numbers)}.db'}"
            migrate(url)
            return url
        server = request.getfixturevalue("postgres_server")
        return str(databases.enter_context(server.database(request.getfixturevalue("postgres_template"))))

    with ExitStack() as databases:
        yield new
