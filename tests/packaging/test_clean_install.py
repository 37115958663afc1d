"""A real ``pip install`` of the wheel into new environments: each Python here, tested and oldest packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from distributions import RECALL, REMEMBER, ROOT, Distributions

pytestmark = pytest.mark.heavy


def _python(version: str) -> Path | None:
    """The interpreter of that version: this one, pyenv's, or the one on the path."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys._base_executable)  # type: ignore[attr-defined]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    for candidate in [*pyenv.glob(f"{version}.*/bin/python"), *([Path(on_path)] if on_path else [])]:
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def _oldest_supported(directory: Path) -> Path:
    """A constraints file that holds each direct requirement at the lowest version that it allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["postgres"]])
    lines = [f"{item.name}=={next(iter(item.specifier)).version}\n" for item in requirements]
    oldest = directory / "oldest.txt"
    oldest.write_text("".join(lines))
    return oldest


@pytest.mark.parametrize(
    ("version", "packages"),
    [("3.11", "tested"), ("3.12", "tested"), ("3.13", "tested"), ("3.14", "tested"), ("3.11", "oldest")],
)
def test_pip_installs_all_that_it_takes(
    version: str,
    packages: str,
    distributions: Distributions,
    postgres_url: str,
    sqlite_url: str,
    tmp_path: Path,
) -> None:
    interpreter = _python(version)
    if interpreter is None:
        pytest.skip(f"there is no Python {version} here")
    constraints = ROOT / "constraints.txt" if packages == "tested" else _oldest_supported(tmp_path)
    environment = tmp_path / "environment"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*command: str | Path) -> str:
        inherited = {name: os.environ[name] for name in os.environ.keys() - {"PYTHONPATH", "VIRTUAL_ENV"}}
        ran = subprocess.run(command, cwd=elsewhere, env=inherited, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    run(interpreter, "-m", "venv", environment)
    python = environment / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", "-c", constraints, f"{distributions.wheel}[postgres]")
    run(python, "-m", "pip", "check")

    for url in (sqlite_url, postgres_url):
        run(python, "-W", "error", "-c", REMEMBER, url)
        assert run(python, "-W", "error", "-c", RECALL, url).strip() == "['green tea']"
    assert run(environment / "bin/adk-memory", "demo")
