"""Traces: pieces of what a user had stored, in the bytes in which it was stored, to be looked for in files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

_PIECE: Final = 8
_DISTINCT_BYTES: Final = 5
"""A piece with fewer of them, such as the zeros of a sparse vector, is anywhere."""
_PIECES_PER_VALUE: Final = 16
_FARTHEST: Final = 64
"""Of a long value, no two pieces that are looked for have more than so many between them: 512 bytes."""
_AT_ONCE: Final = 1 << 25
_CHUNK: Final = 1 << 22
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_GAP: Final = bytes(_PIECE)
# To close a file that SQLite has open in this process would drop SQLite's locks on it; another process may.
_COPY: Final = "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer, 1 << 20)"


class Traces:
    """A set of pieces of 8 bytes. A value of fewer bytes leaves none: it proves nothing wherever it is found."""

    def __init__(self, pieces: NDArray[np.uint64]) -> None:
        self._pieces = pieces  # in order
        bits = min(max(pieces.size.bit_length() + 4, 16), 26)
        self._shift = np.uint64(64 - bits)
        self._sieve = np.zeros(1 << bits, dtype=np.bool_)
        self._sieve[self._places(pieces)] = True

    @classmethod
    def of(cls, values: Iterable[bytes | None]) -> Self:
        """Return the pieces of values; of long ones some, spread over the whole."""
        found = [np.empty(0, dtype=np.uint64)]
        cut = bytearray()
        for value in values:
            if value is not None and len(value) >= _PIECE:
                whole = len(value) // _PIECE
                stride = min(max(1, whole // _PIECES_PER_VALUE), _FARTHEST)
                for start in range(0, whole * _PIECE, stride * _PIECE):
                    cut += value[start : start + _PIECE]
                cut += value[-_PIECE:]
            if len(cut) >= _AT_ONCE:
                found.append(_telling(cut))
                cut.clear()
        return cls(np.unique(np.concatenate([*found, _telling(cut)])))

    def __len__(self) -> int:
        return int(self._pieces.size)

    def found_in(self, chunks: Iterable[bytes]) -> Traces:
        """Return those that are in the bytes that the chunks are together."""
        found = [np.empty(0, dtype=np.uint64)]
        tail = b""
        for chunk in chunks if len(self) else ():
            looked_at = tail + chunk
            tail = looked_at[1 - _PIECE :]
            for start in range(min(_PIECE, len(looked_at) - _PIECE + 1)):
                count = (len(looked_at) - start) // _PIECE
                words = np.frombuffer(looked_at, dtype="<u8", count=count, offset=start)
                likely = words[self._sieve[self._places(words)]]
                if likely.size:
                    # In order, so that each is looked up without sorting all of them once more.
                    place = np.minimum(np.searchsorted(self._pieces, likely), self._pieces.size - 1)
                    found.append(np.unique(likely[self._pieces[place] == likely]))
        return Traces(np.unique(np.concatenate(found)))

    def and_those(self, others: Traces) -> Traces:
        return Traces(np.union1d(self._pieces, others._pieces))

    def without(self, others: Traces) -> Traces:
        return Traces(np.setdiff1d(self._pieces, others._pieces))

    def _places(self, pieces: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return (pieces * _MULTIPLIER) >> self._shift


def _telling(cut: bytearray) -> NDArray[np.uint64]:
    """Return those of the pieces that are not to be expected anywhere."""
    pieces = np.unique(np.frombuffer(bytes(cut), dtype="<u8"))
    ordered = np.sort(pieces.view(np.uint8).reshape(-1, _PIECE), axis=1)
    telling: NDArray[np.uint64] = pieces[(ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) >= _DISTINCT_BYTES - 1]
    return telling


def chunks_of_file(path: Path) -> Iterator[bytes]:
    """Read a file that SQLite may have open; one that is not there has no bytes."""
    if not path.exists():
        return
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", _COPY, path], stdout=subprocess.PIPE) as reader:  # noqa: S603
        if reader.stdout is not None:
            while chunk := reader.stdout.read(_CHUNK):
                yield chunk
    if reader.returncode and path.exists():
        raise OSError(f"a file of the database could not be read: {path.name}")


def chunks_of_values(values: Iterable[bytes | None]) -> Iterator[bytes]:
    """Yield values, kept apart, in chunks."""
    chunk = bytearray()
    for value in values:
        if value is not None and len(value) >= _PIECE:
            chunk += value + _GAP
        if len(chunk) >= _CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)
