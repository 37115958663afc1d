"""The wheel and the sdist of this checkout, built without the network."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

REMEMBER = """
import asyncio, sys
from adk_memory import MemoryEntry, open_memory

async def remember(url):
    async with open_memory(url) as memory:
        await memory.migrate()
        entries = [MemoryEntry("green tea"), MemoryEntry("black coffee")]
        await memory.add_session("app", "ana", "monday", entries)

asyncio.run(remember(sys.argv[1]))
"""

RECALL = """
import asyncio, sys
from adk_memory import SearchRequest, open_memory

async def recall(url):
    async with open_memory(url) as memory:
        print([found.text for found in await memory.search(SearchRequest("tea", "app", "ana"))])

asyncio.run(recall(sys.argv[1]))
"""


@dataclass(frozen=True)
class Distributions:
    """What a release consists of, and the wheel that a user builds from the sdist."""

    sdist: Path
    wheel: Path
    wheel_from_sdist: Path


def build_distributions(directory: Path) -> Distributions:
    """Build all three below ``directory``, with the hatchling that is installed."""
    direct, chained = directory / "direct", directory / "chained"
    _build(direct, "--wheel")
    _build(chained)  # an sdist, and from it a wheel
    return Distributions(_only(chained, "*.tar.gz"), _only(direct, "*.whl"), _only(chained, "*.whl"))


def unpack(wheel: Path, directory: Path) -> None:
    """Install a wheel: where it has no compiled parts, that is to unpack it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)


def _build(directory: Path, *options: str) -> None:
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        *options,
        "--outdir",
        str(directory),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)


def _only(directory: Path, pattern: str) -> Path:
    [found] = directory.glob(pattern)
    return found
