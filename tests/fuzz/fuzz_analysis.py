"""Atheris on the analyser, guided by what is covered: python tests/fuzz/fuzz_analysis.py -max_total_time=60."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["adk_memory"]):
    from adk_memory import _analysis as _instrumented  # noqa: F401

from fuzz.analysing import check


def one_input(data: bytes) -> None:
    """Check one text, made from any bytes."""
    check(data.decode("utf-8", "surrogateescape"))
    check(data.decode("utf-16-le", "surrogatepass" if len(data) % 2 == 0 else "replace"))


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
