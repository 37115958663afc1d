"""Pieces of what was stored, found wherever they begin, in chunks of any size."""

from __future__ import annotations

from pathlib import Path

import pytest

from adk_memory._sql import traces as traces_module
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


def test_of_a_long_value_half_a_page_of_a_file_is_enough() -> None:
    value = b"".join(b"%08x" % (number * 2_654_435_761 % 2**32) for number in range(500_000))
    traces = Traces.of([value])

    assert len(traces) < 8_000
    for start in range(0, len(value), 100_003):
        assert len(traces.found_in([value[start : start + 2_048]])) > 0


def test_of_a_text_of_some_sentences_any_sentence_is_enough() -> None:
    value = b"".join(b"%08x" % (number * 2_654_435_761 % 2**32) for number in range(50))
    traces = Traces.of([value])

    for start in range(len(value) - 32):
        assert len(traces.found_in([value[start : start + 32]])) > 0


def test_many_values_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [b"value-%04d" % number for number in range(100)]
    whole = Traces.of(values)

    monkeypatch.setattr(traces_module, "_AT_ONCE", 64)

    assert len(Traces.of(values)) == len(whole) == len(Traces.of(values).found_in(values))


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
