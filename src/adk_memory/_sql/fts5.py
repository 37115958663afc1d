"""A look into the segments of an FTS5 index, past FTS5: it shows no term of an erased row, but may still hold it.

A segment is a sequence of leaf pages, rows of the ``_data`` table; the ``_idx`` table says with which terms they begin.
A page holds terms in order, each after the first without what it shares with the one before, and at its end where they
begin; see https://sqlite.org/fts5.html, "FTS5 Segment B-Trees", and fts5_index.c of SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import Connection

_MAIN_INDEX: Final = b"0"  # stands before each term; indexes of prefixes have other digits
_SEGMENT_BITS: Final = 37


def terms_in_segments(connection: Connection, table: str, prefix: str) -> int:
    """Return how many terms with a prefix, those of erased rows too, there are in the pages of all segments."""
    first = _MAIN_INDEX + prefix.encode()
    last = first[:-1] + bytes([first[-1] + 1])
    rows = connection.exec_driver_sql(f"SELECT segid, pgno, term FROM {table}_idx ORDER BY segid, term")  # noqa: S608
    begins = [(segment, page >> 1, _bytes(term)) for segment, page, term in rows]
    found = sum(term.startswith(first) for _, _, term in begins)
    for (segment, page, begin), (next_segment, _, end) in pairwise([*begins, (None, 0, b"")]):
        if begin < last and (next_segment != segment or end > first):
            block = _page(connection, table, (segment << _SEGMENT_BITS) + page)
            found += sum(term.startswith(first) for term in _terms(block))
    return found


def _page(connection: Connection, table: str, number: int) -> bytes:
    found = connection.exec_driver_sql(f"SELECT block FROM {table}_data WHERE id = ?", (number,)).scalar()  # noqa: S608
    return found or b""  # what a merge has passed is gone before its entry in _idx is


def _terms(page: bytes) -> Iterator[bytes]:
    if not page:
        return
    at = int.from_bytes(page[2:4], "big")  # here the content ends, and the places of its terms begin
    place, term, shares = 0, b"", False
    while at < len(page):
        step, at = _number(page, at)
        place += step
        shared, start = _number(page, place) if shares else (0, place)
        length, start = _number(page, start)
        term = term[:shared] + page[start : start + length]
        shares = True
        yield term


def _number(page: bytes, at: int) -> tuple[int, int]:
    """Return a number of SQLite's variable length, and where it ends."""
    number = 0
    while True:
        byte = page[at]
        number, at = number << 7 | byte & 0x7F, at + 1
        if not byte & 0x80:
            return number, at


def _bytes(term: Any) -> bytes:
    return term.encode() if isinstance(term, str) else term
