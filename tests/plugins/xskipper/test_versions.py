"""Stores of every version, made by hand, and every odd thing in them."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from support.skipping.xskipperfiles import (
    NEW_BLOOM,
    OLD_BLOOM,
    OLD_PACKAGE,
    array_of,
    bloom_of_longs,
    field,
    index_metadata,
    java_bloom,
    java_bounds,
    java_int,
    java_set,
    java_string,
    java_type,
    struct_of,
    write_part,
)

from snaploom.errors import IndexNotFound, IndexUnreadable
from snaploom.files.local import LocalObjectStore
from snaploom.plugins.xskipper.storefiles import StoredMetadata, XskipperDirectory

BOUNDS = pa.struct([("min", pa.int32()), ("max", pa.int32())])
V4 = {"version": 4, "tableIdentifier": "/data/t"}


def read(folder: Path) -> StoredMetadata:
    return XskipperDirectory(LocalObjectStore(folder, create=False)).read()


def of_bounds(
    values: list[object], names: list[str], kind: pa.DataType = BOUNDS
) -> dict[str, pa.Array]:
    return {"obj_name": pa.array(names), "x_minmax_1": pa.array(values, kind)}


def v4_fields(kind: str = "integer") -> list[object]:
    return [
        field("obj_name", "string", V4),
        field("x_minmax_1", struct_of(kind), index_metadata("minmax", ["x"])),
    ]


@pytest.mark.parametrize("versioned", [True, False])
def test_version_0_has_java_objects_and_names_the_table_with_each_index(tmp_path, versioned):
    more = {"tableIdentifier": "bucket/t"}
    write_part(
        tmp_path,
        "part-0.parquet",
        [
            field("obj_name", "string", {"version": 0} if versioned else {}),
            field("a_minmax", java_type("M"), index_metadata("minmax", ["a"], **more)),
            field("b_valuelist", java_type("V"), index_metadata("valuelist", ["b"], **more)),
            field("a:b_my", java_type("X"), index_metadata("my", ["a", "b"], **more)),
            field("k_bloomfilter", java_type("B"), index_metadata("bloomfilter", ["k"], **more)),
        ],
        {
            "obj_name": pa.array(["/data/t/a#1", "/data/t/b#2"]),
            "a_minmax": pa.array([java_bounds(java_int(-5), java_int(7)), None], pa.binary()),
            "b_valuelist": pa.array(
                [java_set([java_string("x"), java_string("🎉\0")]), java_set([])], pa.binary()
            ),
            "a:b_my": pa.array([b"?", None], pa.binary()),
            "k_bloomfilter": pa.array(
                [java_bloom(bloom_of_longs([1]), f"{OLD_PACKAGE}.Bloom"), b"torn"], pa.binary()
            ),
        },
    )
    found = read(tmp_path)
    assert found.layout.version == 0
    assert found.layout.table_identifier == "bucket/t"
    assert [index.columns for index in found.layout.indexes] == [("a",), ("b",), ("a", "b"), ("k",)]
    assert [index.data_type for index in found.layout.indexes] == ["int", "string", None, None]
    rows = found.rows
    assert rows["0.min"].to_pylist() == [-5, None]
    assert rows["0.max"].to_pylist() == [7, None]
    assert rows["0.present"].to_pylist() == [True, False]
    assert rows["1.set"].to_pylist() == [[b"x", "🎉\0".encode()], []]
    assert rows["2.known"].to_pylist() == [False, False]
    assert rows["3.filter"].to_pylist() == [bloom_of_longs([1]), None]
    assert any("my(a, b)" in reason for reason in found.left_out)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        pytest.param(java_bounds(java_int(1), java_string("x")), "several types", id="mixed"),
        pytest.param(java_bounds(java_int(1), b"\x70"), "one bound", id="half"),
        pytest.param(java_set([java_int(1)], stated=2), "no bounds", id="another class"),
        pytest.param(b"\xac\xed\x00\x05\x73\x72\x00\x05ab", "early", id="cut"),
        pytest.param(b"", "early", id="empty"),
    ],
)
def test_java_object_that_is_not_understood_is_unknown(tmp_path, stored, why):
    identified = index_metadata("minmax", ["x"], tableIdentifier="t")
    write_part(
        tmp_path,
        "part-0.parquet",
        [field("obj_name", "string"), field("x_minmax_1", java_type("M"), identified)],
        of_bounds([stored], ["/data/t/a#1"], pa.binary()),
    )
    found = read(tmp_path)
    assert found.rows["0.known"].to_pylist() == [False]
    assert why in found.left_out[0]


def test_set_with_another_count_is_unknown(tmp_path: Path) -> None:
    identified = index_metadata("valuelist", ["x"], tableIdentifier="t")
    write_part(
        tmp_path,
        "part-0.parquet",
        [field("obj_name", "string"), field("x_minmax_1", java_type("V"), identified)],
        of_bounds(
            [java_set([java_int(1)], stated=2), java_set([java_int(3)])],
            ["/a#1", "/b#1"],
            pa.binary(),
        ),
    )
    assert read(tmp_path).rows["0.set"].to_pylist() == [None, [3]]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions_1_to_3_differ_in_names_parameters_and_blooms(tmp_path, version):
    old = version < 3
    prefix = "spark.ibm.metaindex" if old else "io.xskipper"
    properties = {f"{prefix}.index.bloom.fpp": "0.02", f"{prefix}.index.bloom.ndv": "5:0"}
    params: object = (
        [f"{name}:{value}" for name, value in properties.items()] if old else properties
    )
    name = "a_b_bloomfilter" if version == 1 else "a_b_bloomfilter_3"
    data = java_bloom(bloom_of_longs([1, 2]), OLD_BLOOM if old else NEW_BLOOM, block=700)
    write_part(
        tmp_path,
        "part-0.parquet",
        [
            field("obj_name", "string", {"version": version, "tableIdentifier": "db.t"}),
            field(name, java_type("B"), index_metadata("bloomfilter", ["a_b"], params=params)),
        ],
        {"obj_name": pa.array(["/data/t/a#b#12"]), name: pa.array([data], pa.binary())},
    )
    found = read(tmp_path)
    (index,) = found.layout.indexes
    assert index.columns == ("a_b",)
    assert dict(index.parameters) == {
        "io.xskipper.index.bloom.fpp": "0.02",
        "io.xskipper.index.bloom.ndv": "5:0",
    }
    assert found.rows.select(["path", "modified"]).to_pylist() == [
        {"path": "/data/t/a#b", "modified": 12}
    ]
    assert found.rows["0.filter"].to_pylist() == [bloom_of_longs([1, 2])]


def test_version_4_reads_every_type_and_what_is_null(tmp_path: Path) -> None:
    moment = datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)
    old = datetime(1, 1, 1, tzinfo=UTC)
    stamp = pa.timestamp("us", "UTC")
    write_part(
        tmp_path,
        "part-0.parquet",
        [
            field("obj_name", "string", V4),
            field("virtual_Dt", "date"),
            field("t", struct_of("timestamp"), index_metadata("minmax", ["t"])),
            field("s", array_of("double"), index_metadata("valuelist", ["s"])),
        ],
        {
            "obj_name": pa.array(["/a#1", "/b#2", "/c#3"]),
            "virtual_Dt": pa.array([date(2020, 1, 1), None, date(1, 1, 1)]),
            "t": pa.array(
                [{"min": old, "max": moment}, None, {"min": None, "max": None}],
                pa.struct([("min", stamp), ("max", stamp)]),
            ),
            "s": pa.array([[-0.0, None, 2.5], None, []], pa.list_(pa.float64())),
        },
    )
    found = read(tmp_path)
    rows = found.rows
    assert found.layout.partitions == (("Dt", "date"),)
    assert rows["p0"].to_pylist() == [18262, None, -719162]
    assert rows["0.min"].to_pylist() == [-62135596800000000, None, None]
    assert rows["0.max"].to_pylist() == [1577836800123456, None, None]
    assert rows["0.present"].to_pylist() == [True, False, False]
    assert rows["0.known"].to_pylist() == [True, True, True]
    assert str(rows["1.set"].to_pylist()) == "[[0.0, 2.5], [], []]"
    assert rows["1.present"].to_pylist() == [True, False, False]


@pytest.mark.parametrize(
    "footer",
    [
        pytest.param({}, id="no version"),
        pytest.param({"org.apache.spark.version": "2.4.8"}, id="old Spark"),
        pytest.param(
            {"org.apache.spark.version": "3.2.0", "org.apache.spark.legacyINT96": ""}, id="legacy"
        ),
    ],
)
def test_old_timestamps_of_the_old_calendar_are_unknown_bounds(tmp_path, footer):
    stamp = pa.timestamp("us", "UTC")
    old, new = datetime(1500, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    kind = pa.struct([("min", stamp), ("max", stamp)])
    columns = of_bounds([{"min": old, "max": new}], ["/a#1"], kind)
    write_part(tmp_path, "part-0.parquet", v4_fields("timestamp"), columns, footer)
    row = read(tmp_path).rows.to_pylist()[0]
    assert (row["0.known"], row["0.present"]) == (True, True)
    assert (row["0.min"], row["0.max"]) == (None, 1577836800000000)


def test_several_parts_and_hidden_files_are_one_store(tmp_path: Path) -> None:
    value = {"min": 1, "max": 2}
    write_part(tmp_path, "part-0.parquet", v4_fields(), of_bounds([value], ["/a#1"]))
    write_part(tmp_path, "part-1.parquet", v4_fields(), of_bounds([value, None], ["/a#1", "/b#1"]))
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.parquet.crc").write_bytes(b"crc")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part-9.parquet").write_bytes(b"half")
    assert read(tmp_path).rows["path"].to_pylist() == ["/a", "/b"]


def test_file_about_which_rows_contradict_one_another_is_left_out(tmp_path: Path) -> None:
    one, other = {"min": 1, "max": 2}, {"min": 1, "max": 3}
    write_part(tmp_path, "part-0.parquet", v4_fields(), of_bounds([one, one], ["/a#1", "/b#1"]))
    write_part(tmp_path, "part-1.parquet", v4_fields(), of_bounds([other, one], ["/a#1", "/a#2"]))
    found = read(tmp_path)
    assert found.rows.select(["path", "modified"]).to_pylist() == [
        {"path": "/b", "modified": 1},
        {"path": "/a", "modified": 2},
    ]
    assert "contradict" in found.left_out[0]


def test_part_that_lacks_an_index_knows_nothing_of_it(tmp_path: Path) -> None:
    second = field("y_minmax_1", struct_of("integer"), index_metadata("minmax", ["y"]))
    write_part(tmp_path, "part-0.parquet", v4_fields(), of_bounds([None], ["/a#1"]))
    columns = of_bounds([None], ["/b#1"]) | {"y_minmax_1": pa.array([None], BOUNDS)}
    write_part(tmp_path, "part-1.parquet", [*v4_fields(), second], columns)
    assert read(tmp_path).rows["1.known"].to_pylist() == [False, True]


def test_row_that_names_no_file_is_left_out(tmp_path: Path) -> None:
    names = ["/a", "/a#", "/a#x", "/a#1", "/a#٣"]
    write_part(tmp_path, "part-0.parquet", v4_fields(), of_bounds([None] * 5, names))
    found = read(tmp_path)
    assert found.rows["path"].to_pylist() == ["/a"]
    assert found.left_out == ("4 rows that name no file and time",)


def test_values_of_another_type_than_in_the_schema_are_unknown(tmp_path: Path) -> None:
    columns = of_bounds([{"min": 1, "max": 2}], ["/a#1"])
    write_part(tmp_path, "part-0.parquet", v4_fields("long"), columns)
    found = read(tmp_path)
    assert found.rows["0.known"].to_pylist() == [False]
    assert "another type" in found.left_out[0]


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        pytest.param(V4 | {"version": 5}, "Upgrade Snaploom", id="newer"),
        pytest.param(V4 | {"version": "4"}, "natural number", id="text"),
        pytest.param({"version": 4}, "name one table", id="no table"),
        pytest.param(
            V4 | {"encryption": {"encryption.footer.key": "f"}}, "column key list", id="half keys"
        ),
        pytest.param(
            V4
            | {
                "encryption": {
                    "encryption.footer.key": "f",
                    "encryption.column.keys": "f:obj_name;k:x_minmax_1.min,x_minmax_1.max",
                }
            },
            "is not the one in the column key list",
            id="another key",
        ),
    ],
)
def test_store_that_contradicts_itself_is_refused(tmp_path, metadata, why):
    fields = [field("obj_name", "string", metadata), *v4_fields()[1:]]
    write_part(tmp_path, "part-0.parquet", fields, of_bounds([None], ["/a#1"]))
    with pytest.raises(IndexUnreadable, match=why):
        read(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1garbagePAR1"])
def test_damaged_part_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "part-0.parquet").write_bytes(data)
    with pytest.raises(IndexUnreadable, match="damaged"):
        read(tmp_path)


def test_parquet_of_others_is_no_store(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(IndexUnreadable, match="no part of a metadata store"):
        read(tmp_path)


def test_empty_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound):
        read(tmp_path)
