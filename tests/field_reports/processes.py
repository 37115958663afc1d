"""Scripts that run in processes of their own: other time zones, several writers, a process that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def start_script(
    folder: Path, script: str, arguments: Sequence[str], environment: Mapping[str, str], *, warnings: str = "error"
) -> subprocess.Popen[str]:
    """Start a Python script; its output can be read."""
    return subprocess.Popen(
        [sys.executable, "-W", warnings, "-c", script, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = 120) -> str:
    """Wait for a script to end well, and return what it printed."""
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        raise AssertionError(f"the script did not end within {seconds} seconds: {output}") from None
    assert process.returncode == 0, output
    return output


def run_script(
    folder: Path, script: str, arguments: Sequence[str], environment: Mapping[str, str], *, warnings: str = "error"
) -> str:
    """Run a Python script to its end and return what it printed."""
    return finish(start_script(folder, script, arguments, environment, warnings=warnings))
