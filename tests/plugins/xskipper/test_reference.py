"""Files that Xskipper 1.6.0 wrote on Spark 3.5.7: everything in them is understood.

They are about two files of twenty rows, `n` = 0 and 1; their rows are in `VALUES`.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.servers.keyservices import MemoryKeyService

from snaploom.errors import KeyUnavailable
from snaploom.plugins.xskipper.javastream import read_bloom, write_bloom
from snaploom.plugins.xskipper.storefiles import StoredMetadata, read_part
from snaploom.skipping.core.hashes import BloomFilter, ItemHashes
from snaploom.skipping.formats.parquetfiles import ParquetKeys

FILES = Path(__file__).parents[2] / "support" / "components" / "xskipper"
KEYS = {"footers": b"0123456789abcdef", "columns": b"fedcba9876543210"}
IDS = range(20)

_EPOCH = date(1970, 1, 1).toordinal()


def day(n: int, row: int) -> int:
    return date(1500, 1, 1).toordinal() + n * 100 + row - _EPOCH


def moment(n: int, row: int) -> int:
    since = datetime(1850 + 20 * n, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + row) * 1_000_000 + 123456


VALUES: dict[str, Callable[[int, int], object]] = {
    "i": lambda n, row: n * 100 + row,
    "l": lambda n, row: n * 100 + row,
    "b": lambda n, row: row,
    "s": lambda n, row: n + row,
    "f": lambda n, row: float(n * 100 + row),
    "d": lambda n, row: float(n * 100 + row),
    "m": lambda n, row: Decimal(n * 10 + row) + Decimal("0.25"),
    "mm": lambda n, row: Decimal(n * 10 + row),
    "t": lambda n, row: f"näm🎉{n}-{row}".encode(),
    "o": lambda n, row: row % 2 == n % 2,
    "day": day,
    "ts": moment,
    "bin": lambda n, row: f"x{n}{row}".encode(),
    "st.k": lambda n, row: n * 100 + row,
    "st.r.q": lambda n, row: f"z{n}".encode(),
    "a_b": lambda n, row: n * 100 + row,
    "h#x": lambda n, row: f"h{n}".encode(),
    "nul": lambda n, row: row,
}


def of(column: str, n: int) -> list[object]:
    return [VALUES[column](n, row) for row in IDS]


@pytest.fixture(scope="module")
def store() -> StoredMetadata:
    return read_part((FILES / "plain.parquet").read_bytes(), "plain", None)


def both(store: StoredMetadata, column: str) -> list[object]:
    return store.rows.sort_by("path")[column].to_pylist()


def test_the_store_names_its_subject(store: StoredMetadata) -> None:
    layout = store.layout
    assert (layout.version, layout.table_identifier) == (4, "/data/awkward")
    assert layout.partitions == (("p1", "int"), ("P_2", "string"))
    assert (both(store, "p0"), both(store, "p1")) == (
        [0, None],
        ["p ä/%0".encode(), "p ä/%1".encode()],
    )
    folders = ["p1=0/P_2=p ä%2F%250", "p1=__HIVE_DEFAULT_PARTITION__/P_2=p ä%2F%251"]
    assert [Path(str(path)).parent for path in both(store, "path")] == [
        Path("/data/awkward", folder) for folder in folders
    ]
    assert store.left_out == ()
    assert len(layout.indexes) == 15 + 17 + 8


def test_bounds_are_those_of_the_rows(store: StoredMetadata) -> None:
    for position, index in enumerate(store.layout.indexes):
        if index.name == "minmax":
            (column,) = index.columns
            expected = [of(column, n) for n in (0, 1)]
            assert both(store, f"{position}.min") == [min(each) for each in expected], column
            assert both(store, f"{position}.max") == [max(each) for each in expected], column


def test_sets_hold_the_values_of_the_rows(store: StoredMetadata) -> None:
    for position, index in enumerate(store.layout.indexes):
        if index.name == "valuelist":
            (column,) = index.columns
            kept = [sorted(each) for each in both(store, f"{position}.set")]
            assert kept == [sorted(set(of(column, n))) for n in (0, 1)], column


def test_filters_equal_ours_bit_by_bit(store: StoredMetadata) -> None:
    for position, index in enumerate(store.layout.indexes):
        if index.name == "bloomfilter":
            (column,) = index.columns
            built = [filter_of(of(column, n)) for n in (0, 1)]
            assert both(store, f"{position}.filter") == built, column


def filter_of(values: list[object]) -> bytes:
    bloom = BloomFilter.sized(50, 0.05)
    if isinstance(values[0], bytes):
        bloom.put(ItemHashes.of_bytes(pa.array(values, pa.large_binary())))
    else:
        bloom.put(ItemHashes.of_longs(np.array(values, dtype=np.int64)))
    return bloom.serialised()


def test_streams_come_back_byte_for_byte() -> None:
    # All that differs is how Spark 3.5, which wrote them, and Spark 3.0 describe their class.
    described, as_of_old = bytes.fromhex("a6dea6a48cba1ff6"), bytes.fromhex("8303774076ceabf6")
    table = pq.read_table(FILES / "plain.parquet")
    names = [name for name in table.column_names if "_bloomfilter_" in name]
    streams = [stream for name in names for stream in table[name].to_pylist()]
    expected = [stream.replace(described, as_of_old) for stream in streams]
    assert [write_bloom(read_bloom(stream)) for stream in streams] == expected


@pytest.mark.parametrize("name", ["encrypted", "readable-footer"])
def test_encrypted_ones_need_their_keys(name: str) -> None:
    data = (FILES / f"{name}.parquet").read_bytes()
    store = read_part(data, name, ParquetKeys(MemoryKeyService(KEYS)))
    labels = [(index.label, index.key_label) for index in store.layout.indexes]
    assert labels == [
        ("minmax(i)", "columns"),
        ("valuelist(t)", "footers"),
        ("minmax(st.k)", ""),
        ("bloomfilter(l)", "columns"),
    ]
    assert (both(store, "0.min"), both(store, "2.max")) == ([0, 100], [19, 119])
    assert sorted(both(store, "1.set")[1]) == sorted(of("t", 1))
    wrong = {**KEYS, "columns": b"another key here"}
    for keys in (None, ParquetKeys(MemoryKeyService(wrong)), ParquetKeys(MemoryKeyService({}))):
        with pytest.raises(KeyUnavailable):
            read_part(data, name, keys)
