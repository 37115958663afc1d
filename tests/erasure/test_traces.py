"""Pieces of what was stored, found wherever they begin, in chunks of any size."""

from __future__ import annotations

from pathlib import Path

import pytest

from adk_memory._sql.traces import Traces, chunks_of_file, chunks_of_values

VALUE = b"zanzibar quokkas!"  # two pieces, and one for its end


@pytest.mark.parametrize("before", range(17))
@pytest.mark.parametrize("size", [1, 3, 8, 1_000])
def test_a_value_is_found_at_any_place(before: int, size: int) -> None:
    held = b"." * before + VALUE + b"..."
    chunks = [held[start : start + size] for start in range(0, len(held), size)]

    assert len(Traces.of([VALUE])) == 3
    assert len(Traces.of([VALUE]).found_in(chunks)) == 3
    assert len(Traces.of([VALUE]).found_in([held[: before + 7]])) == 0


def test_a_part_of_a_value_is_found() -> None:
    assert len(Traces.of([VALUE]).found_in([b"bar quokkas!"])) == 2


@pytest.mark.parametrize("value", [b"", b"quokkas", bytes(64), b"\x00\x3c" * 20, b"        ", None])
def test_what_may_be_anywhere_leaves_no_trace(value: bytes | None) -> None:
    assert len(Traces.of([value])) == 0


def test_of_a_very_long_value_pieces_all_over_it_are_taken() -> None:
    value = b"".join(b"%08x" % (number * 2_654_435_761 % 2**32) for number in range(500_000))
    traces = Traces.of([value])

    assert 900 < len(traces) <= 1_025
    for start in range(0, len(value), 1_000_000):
        assert len(traces.found_in([value[start : start + 1_000_000]])) > 200


def test_sets_are_joined_and_subtracted() -> None:
    traces, others = Traces.of([VALUE, b"green tea"]), Traces.of([b"green tea"])

    assert len(traces) == 5
    assert len(traces.without(others)) == 3
    assert len(traces.without(others).and_those(others)) == 5
    assert len(Traces.of([]).found_in([VALUE])) == 0


def test_values_are_kept_apart() -> None:
    assert len(Traces.of([VALUE]).found_in(chunks_of_values([VALUE[:9], None, VALUE[9:]]))) == 2


def test_a_file_is_read_whole_and_one_that_is_not_there_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10_000_000 + VALUE)

    assert sum(map(len, chunks_of_file(tmp_path / "file"))) == 10_000_000 + len(VALUE)
    assert len(Traces.of([VALUE]).found_in(chunks_of_file(tmp_path / "file"))) == 3
    assert list(chunks_of_file(tmp_path / "none")) == []
