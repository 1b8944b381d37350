"""Profiles: hashes, sketches and keys, against plain Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.plugins.discovery import profiles
from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.profiles import combined, hashes_of, inclusion, is_unique, sketch_of

_NUMBERS = st.lists(st.none() | st.integers(-(2**60), 2**60), max_size=50)
_FEW = st.lists(st.integers(0, 5), min_size=1, max_size=30)


@given(_NUMBERS)
def test_equal_numbers_and_texts_have_equal_hashes(numbers: list[int | None]) -> None:
    texts = [None if number is None else str(number) for number in numbers]
    whole = hashes_of(pa.array(numbers, pa.int64()), Family.WHOLE)
    text = hashes_of(pa.array(texts, pa.string()), Family.TEXT)
    assert (whole == text).all()
    assert len(np.unique(whole)) == len(set(numbers))


@given(_NUMBERS, _NUMBERS)
def test_inclusion_is_the_share_of_distinct_values(
    child: list[int | None], parent: list[int | None]
) -> None:
    mine, theirs = set(child) - {None}, set(parent) - {None}
    sketches = [
        sketch_of(hashes_of(pa.array(v, pa.int64()), Family.WHOLE)) for v in (child, parent)
    ]
    found = inclusion(*sketches)
    assert found.distinct == found.compared == len(mine)
    assert found.share == (len(mine & theirs) / len(mine) if mine else 0)


@pytest.mark.slow
def test_a_sketch_of_many_values_estimates_the_share() -> None:
    child = sketch_of(hashes_of(pa.array(range(400_000)), Family.WHOLE))
    parent = sketch_of(hashes_of(pa.array(range(100_000, 1_000_000)), Family.WHOLE))
    assert len(child.kept) == len(parent.kept) == profiles.SKETCH_VALUES
    assert child.distinct == 400_000
    assert abs(inclusion(child, parent).share - 0.75) < 0.02


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 2)), max_size=20))
def test_uniqueness_is_within_a_snapshot(rows: list[tuple[int, int, int]]) -> None:
    first, second = (
        hashes_of(pa.array([row[i] for row in rows], pa.int64()), Family.WHOLE) for i in (0, 1)
    )
    snapshot = np.array([row[2] for row in rows], dtype=np.uint64)
    expected = bool(rows) and len(set(rows)) == len(rows)
    assert is_unique(combined([first, second]), snapshot) == expected
