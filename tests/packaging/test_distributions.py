"""What the wheel and the sdist hold."""

from __future__ import annotations

import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from adk_memory import migrate
from distributions import ROOT, Distributions

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_a_wheel_from_the_sdist_is_the_wheel(distributions: Distributions) -> None:
    assert _contents(distributions.wheel_from_sdist) == _contents(distributions.wheel)


def test_the_wheel_holds_every_module_and_migration_of_the_checkout(distributions: Distributions) -> None:
    expected = {
        str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/adk_memory").rglob("*") if _is_source(path)
    } | {
        f"adk_memory/_migrations/{path.relative_to(ROOT / 'migrations')}"
        for path in (ROOT / "migrations").rglob("*")
        if _is_source(path)
    }

    held = {name for name in _contents(distributions.wheel) if ".dist-info/" not in name}

    assert held == expected
    assert {"adk_memory/py.typed", "adk_memory/_migrations/env.py"} <= held
    assert any(Path(name).name.startswith(migrate.HEAD) for name in held)


def test_the_wheel_installs_one_package_and_no_tests(distributions: Distributions) -> None:
    top = {Path(name).parts[0] for name in _contents(distributions.wheel)}

    assert {name for name in top if not name.endswith(".dist-info")} == {"adk_memory"}


def test_the_sdist_holds_what_is_needed_to_work_on_it(distributions: Distributions) -> None:
    with tarfile.open(distributions.sdist) as sdist:
        held = {str(Path(*Path(name).parts[1:])) for name in sdist.getnames()}

    assert held >= {
        "pyproject.toml", "constraints.txt", "alembic.ini", "LICENSE", "README.md", "CHANGELOG.md",
        "CONTRIBUTING.md", "docs/search.md", "migrations/env.py", "src/adk_memory/__init__.py",
        "tests/conftest.py", "tests/packaging/test_distributions.py",
    }  # fmt: skip
    assert not [name for name in held if name.endswith((".pyc", ".db")) or "/.git/" in name]


def test_the_metadata_tells_license_python_command_and_extra(distributions: Distributions) -> None:
    metadata = _metadata(distributions.wheel)

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == PROJECT["project"]["requires-python"]
    assert "postgres" in metadata.get_all("Provides-Extra", [])
    assert str(metadata.get_payload()) == (ROOT / "README.md").read_text()
    assert "adk-memory = adk_memory.cli:main" in _text(distributions.wheel, "entry_points.txt")


def test_constraints_pin_every_requirement_to_one_tested_version() -> None:
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        requirement = Requirement(line)
        assert str(requirement) == line
        assert [pin.operator for pin in requirement.specifier] == ["=="], line
        pinned[requirement.name] = requirement.specifier

    for text in _direct_requirements():
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"{name} is not pinned in constraints.txt"
        [pin] = pinned[name]
        assert requirement.specifier.contains(pin.version), text


def test_uv_is_given_the_lines_of_the_constraints_file() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()

    assert PROJECT["tool"]["uv"]["constraint-dependencies"] == lines


def _direct_requirements() -> list[str]:
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    listed = [item for items in lists for item in items if isinstance(item, str)]
    return [item for item in listed if Requirement(item).name != project["name"]]


def _is_source(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc"


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _text(wheel: Path, name: str) -> str:
    [found] = [data for path, data in _contents(wheel).items() if path.endswith(f".dist-info/{name}")]
    return found.decode()


def _metadata(wheel: Path) -> Message:
    return Parser().parsestr(_text(wheel, "METADATA"))
