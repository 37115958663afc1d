"""What a vector of an entry or a request may be, before any service sees it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from adk_memory import MemoryEntry, SearchRequest, ValidationError

NO_VECTORS = [
    "text",
    b"bytes",
    {1.0: 2.0},
    {1.0},
    5,
    [[1.0], [2.0]],
    [[1.0], []],
    [None],
    ["1.0"],
    [1j],
    [True],
    object,
]


@pytest.mark.parametrize("vector", NO_VECTORS)
def test_what_is_no_sequence_of_numbers_is_refused(vector: Any) -> None:
    with pytest.raises(ValidationError, match=r"vector must be"):
        MemoryEntry("green tea", vector=vector)
    with pytest.raises(ValidationError, match=r"vector must be"):
        SearchRequest("tea", "app", "ana", vector=vector)


def test_a_vector_is_kept_as_numbers_and_not_shown() -> None:
    given = np.array([0.5, 2.0], np.float32)
    entry, request = MemoryEntry("green tea", vector=given), SearchRequest("tea", "app", "ana", vector=given)
    given[0] = 9.0

    assert entry.vector == request.vector == (0.5, 2.0)
    assert "vector" not in repr(entry) + repr(request)
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_an_entry_has_no_vector_unless_one_is_given() -> None:
    assert MemoryEntry("green tea").vector is None
    assert "vector" not in MemoryEntry("green tea", vector=None).model_fields_set
