"""docs/field-reports.md names a test for every report, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = (ROOT / "docs" / "field-reports.md").read_text()
HERE: Final = "tests/field_reports/"
REPORTS: Final = [f"F{number:02}" for number in range(1, 40)]
ROW: Final = re.compile(r"^\| (F\d\d) \| .+ \| (.+) \|$", re.MULTILINE)
NAMED: Final = re.compile(r"`(?:([\w/]+\.py)::)?(test_\w+)`")
WRITTEN: Final = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


def written(paths: list[Path]) -> set[str]:
    return {name for path in paths for name in WRITTEN.findall(path.read_text())}


OURS: Final = written(sorted((ROOT / HERE).glob("test_*.py")))


def test_every_report_has_one_row() -> None:
    assert [report for report, _ in ROW.findall(DOCUMENT)] == REPORTS


def test_every_row_names_tests_that_are_there() -> None:
    for report, tests in ROW.findall(DOCUMENT):
        named = NAMED.findall(tests)
        assert named, report
        for file, test in named:
            assert test in (written([ROOT / file]) if file else OURS), f"{report}: {file or HERE}::{test}"


def test_every_report_that_names_no_other_file_has_tests_of_its_name() -> None:
    for report, tests in ROW.findall(DOCUMENT):
        if not any(file for file, _ in NAMED.findall(tests)):
            assert any(f"_{report.lower()}_" in f"{name}_" for name in OURS), report
