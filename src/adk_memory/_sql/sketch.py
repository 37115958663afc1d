"""Sketches: a few bits of each dimension, whose Hamming distance tells cheaply which vectors may be near.

A thermometer code: a bit says whether a number is above a threshold, and each dimension has some thresholds of its
own, which cut a sample of the model's vectors into equal parts. The sign alone is not enough: in the vectors of some
models most dimensions have the same sign nearly always.
"""

from __future__ import annotations

from math import ceil
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from adk_memory._ranking import Vector

Thresholds: TypeAlias = npt.NDArray[np.float32]
"""By the number of the bit, and by dimension."""

SAMPLE: Final = 256
"""So many vectors set the thresholds of their model."""
_FEWEST_BITS = 1_024  # of a vector: with fewer, too many that are not near look near
_MOST_BITS = 16_000  # an entry of an index has 2,704 bytes at most


def bits_of_a_dimension(dimensions: int) -> int:
    """Return how many bits each dimension has; 0 where vectors are too long to have sketches."""
    bits = max(2, ceil(_FEWEST_BITS / dimensions))
    return bits if bits * dimensions <= _MOST_BITS else 0


def thresholds_of(sample: npt.NDArray[np.float32]) -> Thresholds:
    """Return the thresholds that cut each dimension of a sample, one vector a row, into equal parts."""
    bits = bits_of_a_dimension(sample.shape[1])
    parts = np.arange(1, bits + 1) / (bits + 1)
    return np.quantile(sample, parts, axis=0).astype(np.float32)


def sketch(vector: Vector, thresholds: Thresholds) -> str:
    """Return the sketch of a vector, as zeros and ones."""
    return (np.asarray(vector > thresholds).view(np.uint8) + ord("0")).tobytes().decode("ascii")


def packed(thresholds: Thresholds) -> bytes:
    """Return thresholds as they are stored: little-endian, one bit's after the other's."""
    return thresholds.astype("<f4").tobytes()


def unpacked(stored: bytes, dimensions: int) -> Thresholds:
    return np.frombuffer(stored, "<f4").reshape(-1, dimensions).astype(np.float32)
