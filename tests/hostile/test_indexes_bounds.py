"""What is bounded before memory or time is taken: pages of Parquet, Java's objects, filters."""

import io
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hostile.thriftedit import (
    INT32,
    INT64,
    OWN_PARENT,
    STREAMS,
    Value,
    edited,
    long_paths,
    text,
    whole,
)
from support.skipping.indexstores import definition

from snaploom.errors import IndexUnreadable
from snaploom.plugins.xskipper.javastream import (
    StreamInvalid,
    read_bloom,
    read_bounds,
    read_stream,
    read_values,
)
from snaploom.skipping.core.hashes import BloomColumn, BloomFilter, ItemHashes
from snaploom.skipping.formats import parquetfiles
from snaploom.skipping.formats.parquetfiles import BoundedParquet, SidecarReader, write_sidecars

LIMIT = 8 << 20


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquetfiles, "MOST_DECODED", LIMIT)
    monkeypatch.setattr(parquetfiles, "_BATCH_BYTES", 1 << 20)


def written(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue()


def one_text(rows: int, length: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, np.int32)), pa.array(["x" * length], pa.large_string())
    )


BOMBS: dict[str, Callable[[], bytes]] = {
    "dictionary": lambda: written(pa.table({"a": one_text(2000, 100_000)})),
    "dictionary-in-lists": lambda: written(
        pa.table({"a": pa.LargeListArray.from_arrays(pa.array([0, 2000]), one_text(2000, 9_000))})
    ),
    "texts-like-the-one-before": lambda: written(
        pa.table({"a": pa.array(["x" * 50_000] * 400)}),
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY"},
    ),
    "runs": lambda: written(pa.table({"a": pa.array(np.zeros(2_000_000, np.int64))})),
    "runs-of-nulls": lambda: written(pa.table({"a": pa.nulls(2_000_000, pa.int64())})),
    "packed-well": lambda: written(
        pa.table({"a": pa.array([b"\0" * 3_000_000] * 4, pa.large_binary())}), use_dictionary=False
    ),
}


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_what_unpacks_to_too_much_is_refused(name: str) -> None:
    data = BOMBS[name]()
    assert len(data) < LIMIT / 20
    before = pa.total_allocated_bytes()
    with pytest.raises(IndexUnreadable, match="beyond"):
        BoundedParquet(data, None, "a file").read(["a"], is_encrypted=False)
    assert pa.total_allocated_bytes() - before < LIMIT


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_what_fits_is_read_whole(encoding: str) -> None:
    table = pa.table({
        "a": pa.array([f"s3a://lake/flights/part-{n:09}" for n in range(40_000)], pa.string()),
        "b": pa.array(range(40_000), pa.int64()),
    })  # fmt: skip
    options = {"use_dictionary": False, "column_encoding": {"a": encoding, "b": "PLAIN"}}
    data = written(table, row_group_size=9_000, data_page_size=1 << 15, **options)
    found = BoundedParquet(data, None, "a file")
    assert found.read(["b", "a"], is_encrypted=False).equals(table.select(["b", "a"]))


@pytest.mark.parametrize("kind", ["snappy", "gzip", "brotli", "lz4", "zstd", "none"])
def test_dictionaries_of_every_codec_are_measured(kind: str) -> None:
    sink = io.BytesIO()
    table = pa.table({"a": pa.array(["short", "x" * 900] * 5000)})
    pq.write_table(table, sink, compression=kind)
    found = BoundedParquet(sink.getvalue(), None, "a file")
    # 10,000 texts of 900 bytes at most are more than the limit, 5,000 are not.
    with pytest.raises(IndexUnreadable):
        found.read(["a"], is_encrypted=False)
    sink = io.BytesIO()
    pq.write_table(table.slice(0, 5000), sink, compression=kind)
    half = BoundedParquet(sink.getvalue(), None, "a file").read(["a"], is_encrypted=False)
    assert half.num_rows == 5000


def test_paths_that_take_thousands_of_times_their_footer_are_not_made() -> None:
    data = edited(written(pa.table({"a": [1]})), long_paths)
    assert len(data) < parquetfiles.LONGEST_FOOTER
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(IndexUnreadable, match="beyond"):
        BoundedParquet(data, None, "a file")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def with_column(number: int, value: Value) -> Callable[[Value], None]:
    def edit(footer: Value) -> None:
        for group in footer.get(4).members:
            group.get(1).members[0].put(number, value)

    return edit


def short_place(footer: Value) -> None:
    """Store the offset of a dictionary as a number of 32 bits, which Arrow ignores."""
    footer.get(4).members[0].get(1).members[0].get(3).put(11, whole(4, INT32))


def schema_twice(footer: Value) -> None:
    footer.fields.append((2, footer.get(2)))


@pytest.mark.parametrize(
    "edit",
    [with_column(9, text(b"x")), with_column(8, whole(1)), short_place, schema_twice,
     with_column(2 + (1 << 16), whole(4, INT64))],
    ids=["content-without-key", "key-of-another-kind", "place", "twice", "number"],
)  # fmt: skip
def test_a_footer_that_two_readers_read_differently_is_refused(edit):
    data = written(pa.table({"a": ["x", "y"]}))
    same = BoundedParquet(edited(data, lambda footer: None), None, "a file")
    assert same.read(["a"], is_encrypted=False).num_rows == 2
    with pytest.raises(IndexUnreadable, match=r"beyond|damaged"):
        BoundedParquet(edited(data, edit), None, "a file").read(["a"], is_encrypted=False)


def test_bits_that_flip_in_a_segment_are_found() -> None:
    rows = pa.table({
        "path": pa.array([f"part-{n:05}" for n in range(300)], pa.large_string()),
        "length": pa.array(range(300), pa.int64()),
        "modified": pa.array(range(300), pa.int64()),
        "etag": pa.nulls(300, pa.large_string()),
        "i1.min": pa.array([n * n % 991 for n in range(300)], pa.int64()),
    })  # fmt: skip
    (file,) = write_sidecars([rows], definition("1"), None)
    whole_file = SidecarReader(file.data, "a", None)
    good = whole_file.read(whole_file.columns)
    body = len(file.data) - 8 - int.from_bytes(file.data[-8:-4], "little")
    for place in range(4, body, 7):
        flipped = bytearray(file.data)
        flipped[place] ^= 0x10
        with suppress(IndexUnreadable):
            reader = SidecarReader(bytes(flipped), "a", None)
            assert reader.read(reader.columns).equals(good)


def test_a_footer_longer_than_any_is_not_parsed() -> None:
    text = "x" * (parquetfiles.LONGEST_FOOTER + 1)
    table = pa.table({"a": [1]}).replace_schema_metadata({"k": text})
    with pytest.raises(IndexUnreadable):
        BoundedParquet(written(table), None, "a file")


@pytest.mark.parametrize("count", [parquetfiles.MOST_COLUMNS + 1])
def test_a_file_of_too_many_columns_is_refused(count: int) -> None:
    table = pa.table({f"c{n}": pa.array([1], pa.int8()) for n in range(count)})
    with pytest.raises(IndexUnreadable, match=r"beyond|damaged"):
        BoundedParquet(written(table), None, "a file")


def test_a_file_of_too_many_row_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquetfiles, "MOST_ROW_GROUPS", 10)
    table = pa.table({"a": list(range(11))})
    with pytest.raises(IndexUnreadable, match="beyond"):
        BoundedParquet(written(table, row_group_size=1), None, "a file")


def test_an_encrypted_column_without_a_key_does_not_end_the_process() -> None:
    # pyarrow aborts when it is asked for the footer's statistics of such a column.
    seen = Path(__file__).parents[2] / "sparkjobs/src/snaploom"
    for file in ("skipping/formats/parquetfiles.py", "plugins/xskipper/storefiles.py"):
        assert ".row_group(" not in (seen / file).read_text()


READERS = [read_stream, read_bounds, read_values, read_bloom]


@pytest.mark.parametrize("name", sorted(STREAMS))
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_no_stream_of_java_is_more_than_refused(name: str, read: Callable[[bytes], object]) -> None:
    began = time.monotonic()
    with suppress(StreamInvalid):
        read(STREAMS[name])
    assert time.monotonic() - began < 10


def test_a_class_that_is_its_own_parent_is_refused() -> None:
    with pytest.raises(StreamInvalid, match="no class"):
        read_stream(OWN_PARENT)


def test_a_text_referred_to_many_times_is_counted_each_time() -> None:
    with pytest.raises(StreamInvalid, match="too long"):
        read_values(STREAMS["references"])


@pytest.mark.parametrize("name", ["decimal-scale", "decimal-digits"])
def test_a_decimal_of_too_many_digits_is_refused(name: str) -> None:
    with pytest.raises(StreamInvalid, match="digits"):
        read_bounds(STREAMS[name])


def test_a_filter_of_endless_functions_is_unknown() -> None:
    data = bytes.fromhex("000000017fffffff00000001") + b"\0" * 8
    items = ItemHashes.of_longs(np.array([1], dtype=np.int64))
    filters = BloomColumn(pa.array([data], pa.large_binary()))
    assert filters.might_contain_any(items).tolist() == [True]
    with pytest.raises(ValueError, match="not a Bloom"):
        BloomFilter.parsed(data)
