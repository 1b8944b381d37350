"""Version 4 as it is written: Spark's schema, what is left out, what is refused."""

import io
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.skipping.xskipperfiles import (
    ROW_METADATA,
    a_definition,
    bloom_of_longs,
    field,
    identity,
    index_metadata,
    index_of,
    some_rows,
    struct_of,
    write_part,
)

from snaploom.errors import IndexNotPossible
from snaploom.files.local import LocalObjectStore
from snaploom.files.stores import open_store
from snaploom.plugins.xskipper.storefiles import XskipperDirectory
from snaploom.plugins.xskipper.translation import layout_of
from snaploom.skipping.core.definition import (
    IndexDefinition,
    SkippingDefinition,
    arrow_type,
    expression_term,
)

BOUNDS = index_of("i1", "MIN_MAX", "Price", "int")
BLOOM = index_of("i2", "BLOOM_FILTER", "k", "bigint", items="VALUES", fpp="0.02")


def directory(folder: Path) -> XskipperDirectory:
    return XskipperDirectory(LocalObjectStore(folder, create=True))


def test_schema_in_the_footer_is_the_reference_s(tmp_path: Path) -> None:
    rows = some_rows().append_column("i2.values", pa.array([1, 1], pa.int64()))
    filters = pa.array([bloom_of_longs([1]), None], pa.large_binary())
    rows = rows.append_column("i2.words", filters)
    definition = a_definition(BOUNDS, BLOOM, partitions=[("Dt", "date")])
    written = directory(tmp_path).write([rows], definition)
    (part,) = tmp_path.glob("part-00000-*-c000.snappy.parquet")
    file = pq.ParquetFile(io.BytesIO(part.read_bytes()))
    schema = json.loads(file.metadata.metadata[ROW_METADATA.encode()])
    assert (written.files, written.rows, written.left_out) == (1, 2, 0)
    assert [each["name"] for each in schema["fields"]] == [
        "obj_name", "virtual_Dt", "price_minmax_5", "k_bloomfilter_1",
    ]  # fmt: skip
    name, virtual, bounds, bloom = schema["fields"]
    assert name["nullable"] is False
    assert name["metadata"] == {"tableIdentifier": "/data/t", "version": 4}
    assert (virtual["type"], virtual["metadata"]) == ("date", {})
    assert bounds["type"] == struct_of("integer")
    assert bounds["metadata"] == {"index": {"name": "minmax", "cols": ["price"]}}
    assert bloom["type"]["class"].endswith("ParquetBaseClauseTranslator$BloomFilterMetaDataTypeUDT")
    assert bloom["metadata"]["index"]["params"] == {
        "io.xskipper.index.bloom.fpp": "0.02",
        "io.xskipper.index.bloom.ndv": "100000",
    }
    assert str(file.schema.column(0).logical_type) == "String"
    assert file.schema.column(0).max_definition_level == 0


def test_file_without_a_value_has_a_null_and_unknown_ones_have_no_row(tmp_path: Path) -> None:
    paths = [f"file:/data/t/{name}" for name in "abcd"]
    rows = pa.table(
        {
            **identity(paths, [1, 2, 3, 4]),
            "i1.values": pa.array([3, 0, None, 3], pa.int64()),
            "i1.min": pa.array([1, None, None, 1], pa.int32()),
            "i1.max": pa.array([2, None, None, None], pa.int32()),
        }
    )
    written = directory(tmp_path).write([rows], a_definition(BOUNDS))
    (part,) = tmp_path.glob("*.parquet")
    assert (written.rows, written.left_out) == (2, 2)
    assert pq.read_table(part).to_pylist() == [
        {"obj_name": "/data/t/a#1", "price_minmax_5": {"min": 1, "max": 2}},
        {"obj_name": "/data/t/b#2", "price_minmax_5": None},
    ]


def test_text_that_is_not_utf_8_leaves_the_file_out(tmp_path: Path) -> None:
    index = index_of("i1", "VALUE_SET", "s", "string")
    sets = pa.array([[b"a", "é".encode()], [b"\xff"]], pa.list_(pa.large_binary()))
    columns = {**identity(["file:/a", "file:/b"], [1, 2]), "i1.values": [1, 1], "i1.set": sets}
    assert directory(tmp_path).write([pa.table(columns)], a_definition(index)).rows == 1
    assert directory(tmp_path).read().rows["0.set"].to_pylist() == [[b"a", "é".encode()]]


def test_partition_values_come_from_the_folders_names(tmp_path: Path) -> None:
    paths = [
        "file:/t/Dt=2020-01-01/s=a%2Fb/x",
        "file:/t/Dt=__HIVE_DEFAULT_PARTITION__/s=/x",
        "file:/t/Dt=no/x",
    ]
    definition = a_definition(partitions=[("Dt", "date"), ("s", "string")])
    directory(tmp_path).write([pa.table(identity(paths, [1, 2, 3]))], definition)
    rows = directory(tmp_path).read().rows
    assert rows["p0"].to_pylist() == [date(2020, 1, 1).toordinal() - 719163, None, None]
    assert rows["p1"].to_pylist() == [b"a/b", b"", None]


VALUES: dict[str, st.SearchStrategy[object]] = {
    "tinyint": st.integers(-128, 127),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False).map(lambda number: number + 0.0),
    "double": st.floats(allow_nan=False).map(lambda number: number + 0.0),
    "boolean": st.booleans(),
    "date": st.integers(-719162, 2932896),
    "timestamp": st.integers(-62135596800000000, 253402300799999999),
    "string": st.text(st.characters(exclude_categories=["Cs"])).map(str.encode),
    "binary": st.binary(),
    "decimal(5,2)": st.decimals(-999, 999, places=2),
    "decimal(18,3)": st.decimals(-(10**14), 10**14, places=3),
    "decimal(38,0)": st.integers(-(10**37), 10**37).map(Decimal),
}
names = st.text(alphabet="aB#.$_é🎉 ", min_size=1, max_size=5)


@settings(deadline=None, max_examples=examples(60))
@given(st.data(), st.sampled_from(sorted(VALUES)), names, names)
def test_what_is_written_is_read_again(data, data_type, column, file):
    kept_as = arrow_type(data_type)
    values = data.draw(st.lists(VALUES[data_type], min_size=2, max_size=4))
    indexes = (
        index_of("i1", "MIN_MAX", column, data_type),
        index_of("i2", "VALUE_SET", column, data_type),
    )
    rows = pa.table(
        {
            **identity([f"file:/data/t/{file}"], [7]),
            "i1.values": [1],
            "i1.min": pa.array(values[:1], kept_as),
            "i1.max": pa.array(values[1:2], kept_as),
            "i2.values": [1],
            "i2.set": pa.array([values], pa.list_(kept_as)),
        }
    )
    store = open_store("memory:", create=True)
    XskipperDirectory(store).write([rows], a_definition(*indexes))
    found = XskipperDirectory(store).read()
    assert [index.columns for index in found.layout.indexes] == [(column.lower(),)] * 2
    assert found.rows["path"].to_pylist() == [f"/data/t/{file}"]
    assert found.rows["0.min"].to_pylist() == values[:1]
    assert found.rows["0.max"].to_pylist() == values[1:2]
    assert found.rows["1.set"].to_pylist() == [values]


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (index_of("i1", "TOKENS", "c", "string"), "the type TOKENS is none of the store's"),
        (index_of("i1", "BLOOM_FILTER", "c", "string"), "hold hashes"),
        (index_of("i1", "BLOOM_FILTER", "c", "date", items="VALUES"), "not date"),
        (index_of("i1", "MIN_MAX", "c", "timestamp_ntz"), "no values of type timestamp_ntz"),
        (
            IndexDefinition("i1", "MIN_MAX", (expression_term({}, "int", "f(c)"),)),
            "an expression is no column",
        ),
    ],
)
def test_index_that_version_4_cannot_hold_is_refused_by_name(index, why):
    with pytest.raises(IndexNotPossible, match="cannot hold") as raised:
        layout_of(a_definition(BOUNDS, index))
    assert f"{index.label}: " in str(raised.value)
    assert why in str(raised.value)


def test_table_is_named_without_spark_s_own_catalog() -> None:
    definition = a_definition(BOUNDS)
    target = replace(definition.target, table="spark_catalog.db.t")
    assert layout_of(replace(definition, target=target)).table_identifier == "db.t"


class Recorded(LocalObjectStore):
    """A store that records what was written and deleted, in order."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, create=True)
        self.done: list[str] = []

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.done.append("put")
        super().put_if_absent(key, data)

    def delete(self, keys: object) -> None:
        self.done.append("delete")
        super().delete(keys)  # type: ignore[arg-type]


def refreshed(folder: Path, definition: SkippingDefinition) -> list[str]:
    store = Recorded(folder)
    XskipperDirectory(store).write([some_rows()], definition)
    assert len(list(folder.glob("*.parquet"))) == 1
    return store.done


def test_parts_of_the_same_columns_are_written_before_old_ones_are_deleted(tmp_path):
    directory(tmp_path).write([some_rows()], a_definition(BOUNDS))
    assert refreshed(tmp_path, a_definition(BOUNDS)) == ["put", "delete"]


def test_parts_of_other_columns_are_deleted_before_new_ones_are_written(tmp_path: Path) -> None:
    directory(tmp_path).write([some_rows()], a_definition(BOUNDS))
    assert refreshed(tmp_path, a_definition(BOUNDS, BLOOM))[0] == "delete"


def test_old_version_is_upgraded_by_the_next_write(tmp_path: Path) -> None:
    kind = pa.struct([("min", pa.int32()), ("max", pa.int32())])
    master = {"version": 2, "tableIdentifier": "/data/t"}
    bounds = field("price_minmax_5", struct_of("integer"), index_metadata("minmax", ["price"]))
    columns = {"obj_name": pa.array(["/data/t/a#1"]), "price_minmax_5": pa.array([None], kind)}
    write_part(tmp_path, "part-0.parquet", [field("obj_name", "string", master), bounds], columns)
    assert refreshed(tmp_path, a_definition(BOUNDS))[0] == "delete"
    assert directory(tmp_path).read().layout.version == 4


def test_store_without_rows_still_lists_its_indexes(tmp_path: Path) -> None:
    directory(tmp_path).write([], a_definition(BOUNDS))
    found = directory(tmp_path).read()
    assert (found.rows.num_rows, len(found.layout.indexes)) == (0, 1)


def test_blooms_are_kept_bit_for_bit(tmp_path: Path) -> None:
    bloom = bloom_of_longs(list(np.arange(500)), items=100_000)
    columns = {
        **identity(["file:/a", "file:/b"], [1, 2]),
        "i2.values": [1, None],
        "i2.words": pa.array([bloom, None], pa.large_binary()),
    }
    assert directory(tmp_path).write([pa.table(columns)], a_definition(BLOOM)).rows == 2
    assert directory(tmp_path).read().rows["0.filter"].to_pylist() == [bloom, None]
