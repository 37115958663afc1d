"""Hostile sizes: an answer, or an error of ours, in bounded time and memory; the same on every backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import migrate
from fuzz.sizes import SIZES

QUICK: Final = frozenset(
    {"1,000 levels in content", "1,000 levels in metadata", "10,000 keys", "a filter of 1,000 levels"}
)
SECONDS: Final = 120
MEGABYTES: Final = 1_500
ROOT: Final = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.heavy) for name in SIZES]
)
def test_a_hostile_size_is_answered_alike_in_bounded_time_and_memory(
    name: str, sqlite_url: str, migrated_postgres_url: str
) -> None:
    migrate(sqlite_url)

    tried = [_tried(name, url) for url in ("memory://", sqlite_url, migrated_postgres_url)]

    print(name, tried)
    assert tried[1]["outcome"] == tried[0]["outcome"]
    assert tried[2]["outcome"] == tried[0]["outcome"]
    assert max(attempt["seconds"] for attempt in tried) < SECONDS
    assert max(attempt["megabytes"] for attempt in tried) < MEGABYTES


def _tried(name: str, url: str) -> dict[str, Any]:
    path = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, "-m", "fuzz.sizes", name, url],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS * 2,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    tried: dict[str, Any] = json.loads(ran.stdout)
    return tried
