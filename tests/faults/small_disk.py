"""A disk that is soon full: a file system in memory, of a few megabytes, which can be made larger."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from postgres_server import account


@dataclass(frozen=True)
class SmallDisk:
    """Where it is; whom the database server runs as may write to it."""

    folder: Path

    def grow(self, megabytes: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={megabytes}m", self.folder], check=True)

    def free(self) -> int:
        """Return how many bytes are left."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount one for the time of the block, or skip the test."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    try:
        if runs_as := account():
            os.chown(folder, runs_as.pw_uid, runs_as.pw_gid)
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()
