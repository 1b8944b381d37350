import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.skipping.core.filetable import FileTable, Listing, match, tags_of_dropped

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
