"""Curves against what defines them: bijections, and for Hilbert's no jumps."""

from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis import strategies as st

from snaploom.skipping.core.filetable import FileTable, Listing, match, tags_of_dropped
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.core.valueorder import Curve, boundaries_of, hilbert, position, z_order


def cells(dimensions: int, bits: int) -> np.ndarray:
    return np.array(list(product(range(2**bits), repeat=dimensions)), dtype=np.int64)


@pytest.mark.parametrize("curve", list(Curve))
@pytest.mark.parametrize(("dimensions", "bits"), [(1, 6), (2, 1), (2, 5), (3, 3), (4, 2)])
def test_every_cell_has_a_position_of_its_own(curve: Curve, dimensions: int, bits: int):
    found = position(curve, list(cells(dimensions, bits).T), bits)
    assert sorted(found.tolist()) == list(range(2 ** (dimensions * bits)))


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 1), (2, 4), (2, 6), (3, 1), (3, 4), (4, 3)])
def test_neighbours_on_the_hilbert_curve_are_neighbouring_cells(dimensions: int, bits: int):
    grid = cells(dimensions, bits)
    walk = grid[np.argsort(hilbert(list(grid.T), bits))]
    assert np.abs(np.diff(walk, axis=0)).sum(axis=1).tolist() == [1] * (len(grid) - 1)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_hilbert_fills_a_quarter_before_it_leaves_it(dimensions: int):
    grid = cells(dimensions, 3)
    halves = (grid >> 2)[np.argsort(hilbert(list(grid.T), 3))]
    changes = (np.diff(halves, axis=0) != 0).any(axis=1).sum()
    assert changes == 2**dimensions - 1


@settings(deadline=None)
@given(some.lists(some.integers(0, 2**10 - 1), min_size=1, max_size=6))
def test_z_order_interleaves_bits(ranks: list[int]):
    texts = [f"{rank:010b}" for rank in ranks]
    expected = int("".join("".join(column) for column in zip(*texts, strict=True)), 2)
    (found,) = z_order([np.array([rank]) for rank in ranks], 10)
    assert found == expected


def test_more_bits_than_an_integer_has_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        position(Curve.ZORDER, [np.zeros(1, dtype=np.int64)] * 7, 10)


# Ranks against Python's own order of values.


BITS = 6

CASES = [
    ("bigint", some.integers(-(2**63), 2**63 - 1)),
    ("boolean", some.booleans()),
    ("double", some.floats(allow_nan=False)),
    ("string", some.text(max_size=12).map(str.encode)),
    ("decimal(25,2)", some.integers(-(10**20), 10**20).map(lambda n: Decimal(n) / 100)),
]


@pytest.mark.parametrize(("data_type", "values"), CASES, ids=[case[0] for case in CASES])
@settings(deadline=None)
@given(data=some.data())
def test_ranks_keep_the_order_of_values(data_type: str, values: some.SearchStrategy, data):
    sample = data.draw(some.lists(values, min_size=1, max_size=200))
    rows = data.draw(some.lists(values, min_size=2, max_size=20))
    kept_as = arrow_type(data_type)
    boundaries = boundaries_of(pa.array(sample, kept_as), data_type, BITS)
    found = boundaries.ranks(pa.array(sorted(rows), kept_as))
    assert found.tolist() == sorted(found.tolist())
    assert 1 <= found.min() <= found.max() < 2**BITS


def test_nulls_come_before_all_values():
    boundaries = boundaries_of(pa.array([1, 2, 3, None]), "bigint", BITS)
    assert boundaries.ranks(pa.array([None, -5, 2])).tolist()[0] == 0
    assert (boundaries.ranks(pa.array([-5, 2])) > 0).all()


def test_a_column_without_values_has_one_rank_for_all():
    boundaries = boundaries_of(pa.array([None], pa.int64()), "bigint", BITS)
    assert boundaries.ranks(pa.array([7, 8])).tolist() == [1, 1]


def test_few_distinct_values_are_spread_over_all_ranks():
    sample = pa.array([b"a"] * 50 + [b"b"] * 50 + [b"c"] * 50, pa.large_binary())
    found = boundaries_of(sample, "string", BITS).ranks(pa.array([b"a", b"b", b"c"], sample.type))
    assert np.diff(found).min() >= 2**BITS // 4


#


FILES = [("file:/t/a", 10, 1000, "e1"), ("file:/t/b", 20, 2000, None), ("file:/t/ü", 30, 3000, "")]


def test_listing_is_parsed_from_joined_strings():
    listing = Listing.parse("10,20", "1700000000000,2", "file:/t/a b\nfile:/t/ü")
    assert listing.paths.to_pylist() == ["file:/t/a b", "file:/t/ü"]
    assert listing.lengths.tolist() == [10, 20]
    assert listing.modified.tolist() == [1700000000000, 2]


def test_empty_listing_has_no_files():
    assert len(Listing.parse("", "", "")) == 0
    assert match(_table(FILES), Listing.parse("", "", "")).rows.tolist() == []


@pytest.mark.parametrize("sent", [("1,2", "1", "a\nb"), ("1", "1", "a\nb"), ("1,2", "1,2", "a")])
def test_listing_of_unequal_parts_is_refused(sent):
    with pytest.raises(ValueError, match="one of each"):
        Listing.parse(*sent)


def test_ambiguous_path_is_unknown():
    table = _table([("", 1, 1, None), ("file:/t/a", 2, 2, None)])
    matched = match(table, Listing.parse("1,2", "1,2", "\nfile:/t/a"))
    assert matched.rows.tolist() == [-1, 1]
    assert (matched.stale, matched.missing) == (0, 1)


def test_path_that_is_no_text_is_unknown():
    listing = Listing.parse("1,2", "1,2", "file:/t/\ud800\nfile:/t/a")
    assert listing.paths.to_pylist() == ["", "file:/t/a"]


@pytest.mark.parametrize(
    ("length", "modified", "path", "counts"),
    [
        (11, 1000, "file:/t/a", (1, 0)),
        (10, 1001, "file:/t/a", (1, 0)),
        (10, 1000, "file:/t/A", (0, 1)),
    ],
)
def test_file_that_is_another_now_is_unknown(length, modified, path, counts):
    matched = match(_table(FILES), Listing.parse(str(length), str(modified), path))
    assert matched.rows.tolist() == [-1]
    assert (matched.stale, matched.missing) == counts


@pytest.mark.parametrize(("etag", "row"), [("e1", 0), ("e2", -1), (None, 0)])
def test_etags_are_compared_where_both_have_one(etag, row):
    etags = pa.array([etag], pa.large_string())
    paths = pa.array(["file:/t/a"], pa.large_string())
    listing = Listing(paths, np.array([10]), np.array([1000]), etags)
    assert match(_table(FILES), listing).rows.tolist() == [row]


def test_path_known_twice_is_unknown():
    table = _table([*FILES, FILES[0]])
    matched = match(table, _listing(FILES))
    assert matched.rows.tolist() == [-1, 1, 2]
    assert (matched.stale, matched.missing) == (1, 0)


@given(st.permutations(range(3)))
def test_files_are_found_in_any_order(order):
    matched = match(_table([FILES[at] for at in order]), _listing(FILES))
    assert [order[row] for row in matched.rows] == [0, 1, 2]
    assert (matched.stale, matched.missing) == (0, 0)


def test_unknown_files_are_kept_whatever_the_rows_contain():
    matched = match(
        _table(FILES), Listing.parse("10,5,30", "1000,5,3000", "file:/t/a\nx\nfile:/t/ü")
    )
    assert matched.keep(np.array([False, False, True])).tolist() == [False, True, True]


def _table(files):
    paths, lengths, modified, etags = zip(*files, strict=True)
    return FileTable.of(
        pa.table(
            {
                "path": pa.array(paths, pa.large_string()),
                "length": pa.array(lengths, pa.int64()),
                "modified": pa.array(modified, pa.int64()),
                "etag": pa.array(etags, pa.large_string()),
            }
        )
    )


def _listing(files):
    paths, lengths, modified, _ = zip(*files, strict=True)
    return Listing.parse(
        ",".join(map(str, lengths)), ",".join(map(str, modified)), "\n".join(paths)
    )


def test_tags_of_dropped_local_files_are_in_order() -> None:
    paths = pa.array(["file:/t/a", "file:/t/b", "s3a://t/c", "file:/t/d"], pa.large_string())
    listing = Listing(paths, np.zeros(4, np.int64), np.zeros(4, np.int64))
    keep = np.array([False, True, False, False])
    tags = pa.array(["1.1", "2.2", "tag", None], pa.large_string())
    assert tags_of_dropped(listing, [(None, None), (keep, tags)]) == "1.1,,"
    assert tags_of_dropped(listing, [(np.ones(4, np.bool_), tags)]) == ""
