"""The thermometer code itself: what its bits say, and how well they tell what is near."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from adk_memory._sql.sketch import bits_of_a_dimension, packed, sketch, thresholds_of, unpacked

Vectors = npt.NDArray[np.float32]


@pytest.mark.parametrize(
    ("dimensions", "bits"), [(1, 1_024), (64, 16), (256, 4), (384, 3), (512, 2), (3_072, 2), (8_000, 2), (8_001, 0)]
)
def test_short_vectors_have_more_bits_to_a_dimension_and_very_long_ones_none(dimensions: int, bits: int) -> None:
    assert bits_of_a_dimension(dimensions) == bits


def test_thresholds_cut_each_dimension_into_equal_parts() -> None:
    sample = np.random.default_rng(1).normal(np.arange(512), size=(300, 512)).astype(np.float32)

    thresholds = thresholds_of(sample)

    assert thresholds.shape == (2, 512)
    assert np.abs((sample > thresholds[0]).sum(axis=0) - 200).max() <= 1
    assert np.abs((sample > thresholds[1]).sum(axis=0) - 100).max() <= 1


def test_a_bit_says_whether_a_number_is_above_a_threshold() -> None:
    thresholds = np.array([[0.0, 1.0], [0.5, 2.0]], np.float32)

    assert sketch(np.array([0.2, 3.0], np.float32), thresholds) == "1101"
    assert sketch(np.array([0.0, 1.0], np.float32), thresholds) == "0000"  # above, not at


def test_thresholds_are_stored_without_loss() -> None:
    thresholds = thresholds_of(np.random.default_rng(1).normal(size=(256, 100)).astype(np.float32))

    assert np.array_equal(unpacked(packed(thresholds), 100), thresholds)


def test_what_all_vectors_have_in_common_does_not_hide_what_is_near() -> None:
    """Vectors of e5 point into one direction: the signs of most dimensions are those of all."""
    random = np.random.default_rng(1)
    common, topics = random.normal(size=(1, 384)), random.normal(size=(64, 384))

    def made(count: int) -> Vectors:
        latent = random.normal(size=(count, 64)) / np.sqrt(np.arange(1, 65))
        vectors = 6.0 * common + latent @ topics / 2 + 0.3 * random.normal(size=(count, 384))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    stored, questions, sample = made(5_000), made(20), made(256)
    nearest = np.argsort(-questions @ stored.T, axis=1)[:, :10]

    def recall(thresholds: Vectors) -> float:
        bits = (stored[:, None, :] > thresholds).reshape(len(stored), -1)
        found = 0
        for question, wanted in zip(questions, nearest, strict=True):
            distances = (bits != (question > thresholds).ravel()).sum(axis=1)
            found += len(set(wanted) & set(np.argsort(distances)[:250]))
        return found / nearest.size

    assert recall(thresholds_of(sample)) > 0.98
    assert recall(np.zeros((1, 384), np.float32)) < 0.8
