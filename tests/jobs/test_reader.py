"""`snaploom.read`: what is committed, as it was woven, whatever the files are."""

import datetime as dt
import decimal
import math
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from support.weaving.loom import Loom, ids

import snaploom
from snaploom.errors import ArgumentInvalid, FolderNotOurs, ObjectNotFound
from snaploom.models.report import RunPhase
from snaploom.output.folder import CrashPoint
from snaploom.output.history import NothingPublished

pytestmark = pytest.mark.spark

WRITABLE = [
    *(("PARQUET", codec) for codec in ("SNAPPY", "ZSTD", "GZIP", "NONE")),
    *(("AVRO", codec) for codec in ("SNAPPY", "ZSTD", "NONE")),
    *(("JSONL", codec) for codec in ("SNAPPY", "GZIP", "NONE")),
]
FORMATS = ("PARQUET", "AVRO", "JSONL")
UTC = dt.UTC


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    loom.write("order", 1, ids(1))
    return loom


def woven_days(loom: Loom, spark, *days: int) -> None:
    for day in days:
        loom.write("order", day, ids(*range(day)))
    assert loom.weave(spark).report.phase is RunPhase.SUCCEEDED


def counts(frame) -> dict[int, int]:
    rows = frame.groupBy("snapshot_epoch").count().collect()
    return {(row[0] - 1_704_067_200_000) // 86_400_000 + 1: row[1] for row in rows}


def test_at_and_between_choose_snapshots(spark, loom) -> None:
    woven_days(loom, spark, 1, 2, 4)
    read = snaploom.read
    assert counts(read(spark, loom.uri)) == {1: 1, 2: 2, 4: 4}
    assert counts(read(spark, loom.uri, at="2024-01-03T00:00:00Z")) == {2: 2}
    assert counts(read(spark, loom.uri, at=dt.date(2024, 1, 4))) == {4: 4}
    assert counts(read(spark, loom.uri, at=dt.datetime(2024, 1, 4, tzinfo=UTC))) == {4: 4}
    both = (dt.date(2024, 1, 2), dt.date(2024, 1, 4))
    assert counts(read(spark, loom.uri, between=both)) == {2: 2, 4: 4}
    none = read(spark, loom.uri, between=(dt.date(2024, 1, 3), dt.date(2024, 1, 3)))
    assert none.count() == 0
    assert none.schema == read(spark, loom.uri).schema


def test_manifest_gives_back_what_was_there(spark, loom) -> None:
    woven_days(loom, spark, 1)
    seq = loom.state().seq
    woven_days(loom, spark, 2)
    assert counts(snaploom.read(spark, loom.uri, manifest=seq)) == {1: 1}
    assert counts(snaploom.read(spark, loom.out)) == {1: 1, 2: 2}
    with pytest.raises(ObjectNotFound):
        snaploom.read(spark, loom.uri, manifest=99)


def test_deleted_snapshot_can_be_read_at_its_manifest_until_it_is_collected(spark, loom) -> None:
    woven_days(loom, spark, 1)
    seq = loom.state().seq
    pinned = snaploom.read(spark, loom.uri)
    loom.folder["snapshotAutoDelete"] = {"maxOldSnapshots": 0}
    woven_days(loom, spark, 2)
    assert counts(snaploom.read(spark, loom.uri)) == {2: 2}
    assert counts(pinned) == {1: 1}
    assert counts(snaploom.read(spark, loom.uri, manifest=seq)) == {1: 1}


def test_nothing_published_and_no_folder_are_clear_errors(spark, loom) -> None:
    with pytest.raises(FolderNotOurs):
        snaploom.read(spark, loom.uri)
    woven_days(loom, spark, 1)
    with pytest.raises(NothingPublished, match="the first is 2024-01-01"):
        snaploom.read(spark, loom.uri, at="2023-12-31T00:00:00Z")
    with pytest.raises(NothingPublished):
        snaploom.read(spark, loom.uri, manifest=1)
    with pytest.raises(ArgumentInvalid, match="not both"):
        snaploom.read(spark, loom.uri, at="2024-01-01T00:00:00Z", between=("", ""))
    with pytest.raises(ArgumentInvalid, match="time zone"):
        snaploom.read(spark, loom.uri, at=dt.datetime(2024, 1, 1))


def test_only_committed_files_are_read(spark, loom) -> None:
    woven_days(loom, spark, 1)
    partition = next((loom.out / "data").glob("snapshot_epoch=*"))
    content = next(partition.glob("*.parquet")).read_bytes()
    (partition / "foreign.parquet").write_bytes(content)
    orphan = "20240101T000000000Z-0123456789ab-01234567-00000.snappy.parquet"
    (partition / orphan).write_bytes(content)
    (loom.out / "data" / "snapshot_epoch=1704153600000").mkdir()
    (loom.out / "data" / "snapshot_epoch=1704153600000" / orphan).write_bytes(content)
    assert counts(snaploom.read(spark, loom.uri)) == {1: 1}


def test_snapshot_that_is_being_published_is_not_seen(spark, loom) -> None:
    woven_days(loom, spark, 1)
    loom.write("order", 2, ids(1, 2))
    seen = []

    def look(point: CrashPoint) -> None:
        if point in (CrashPoint.AFTER_STAGING, CrashPoint.AFTER_PROMOTION, CrashPoint.AFTER_COMMIT):
            seen.append(counts(snaploom.read(spark, loom.uri)))

    loom.weave(spark, reached=look)
    assert seen == [{1: 1}, {1: 1}, {1: 1, 2: 2}]


@pytest.mark.parametrize(
    ("settings", "expected", "kind"),
    [
        ({"timestampFormat": "UNIX_MILLISECONDS"}, 1_704_067_200_000, "bigint"),
        ({"timestampFormat": "UNIX_SECONDS"}, 1_704_067_200, "bigint"),
        ({"timestampFormat": "ISO8601_DATE_TIME"}, "2024-01-01T00:00:00Z", "string"),
        (
            {"timestampFormat": "ISO8601_DATE_TIME", "outputTimezone": "Asia/Kolkata"},
            "2024-01-01T05:30:00+05:30",
            "string",
        ),
    ],
)
@pytest.mark.parametrize("data_format", FORMATS)
def test_partition_column_has_the_time(spark, loom, settings, expected, kind, data_format) -> None:
    settings = {"fieldName": "Taken", **settings}
    loom.folder |= {"snapshotFormat.hivePartitioned": settings, "dataFormat": data_format}
    woven_days(loom, spark, 1)
    frame = snaploom.read(spark, loom.uri)
    assert frame.columns == ["data", "Taken"]
    assert dict(frame.dtypes)["Taken"] == kind
    assert [row["Taken"] for row in frame.collect()] == [expected]
    assert frame.where(frame["Taken"] == expected).count() == 1


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("name", ["a b", "a[1]{2}", "50%25", "naïve-表", "it's,*?", "a;b=c#d"])
def test_folder_may_have_any_name(spark, tmp_path, name, data_format) -> None:
    (tmp_path / name).mkdir()
    loom = Loom(tmp_path, folder={"dataFormat": data_format})
    loom.folder["folderUri"] = f"file://{tmp_path}/{name}/out/"
    loom.write("order", 1, ids(1, 2))
    assert loom.weave(spark).report.phase is RunPhase.SUCCEEDED
    assert (tmp_path / name / "out" / "snaploom.json").exists()
    assert snaploom.read(spark, loom.folder["folderUri"]).count() == 2


def all_types() -> pa.Table:
    """Three rows: values, edge values, NULLs."""
    stamp = dt.datetime(2024, 2, 29, 23, 59, 59, 123457, tzinfo=UTC)
    old = dt.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    inner = pa.struct({"a": pa.int64(), "b": pa.list_(pa.timestamp("us", "UTC"))})
    columns = {
        "id": pa.array([1, 2, 3], pa.int64()),
        "boolean": pa.array([True, False, None]),
        "byte": pa.array([1, -128, None], pa.int8()),
        "short": pa.array([1, -(2**15), None], pa.int16()),
        "int": pa.array([1, -(2**31), None], pa.int32()),
        "long": pa.array([2**53 + 1, -(2**63), None], pa.int64()),
        "float": pa.array([0.1, math.inf, None], pa.float32()),
        "double": pa.array([0.1, -math.inf, None], pa.float64()),
        "nan": pa.array([math.nan, -0.0, None], pa.float64()),
        "tiny": pa.array([5e-324, 1.7976931348623157e308, None], pa.float64()),
        "decimal": pa.array(
            [decimal.Decimal("1.10"), decimal.Decimal("-9" * 1 + "9" * 19 + ".99"), None],
            pa.decimal128(38, 2),
        ),
        "string": pa.array(["", 'a"b\\c\n\u2028é😀\x00', None]),
        "spaces": pa.array([" x ", "null", None]),
        "binary": pa.array([b"", b"\x00\xff\xfe", None]),
        "date": pa.array([dt.date(2024, 2, 29), dt.date(1500, 1, 1), None]),
        "timestamp": pa.array([stamp, old, None], pa.timestamp("us", "UTC")),
        "ntz": pa.array([stamp.replace(tzinfo=None), old.replace(tzinfo=None), None]),
        "array": pa.array([[1, None, 3], [], None], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": [stamp, None]}, {"a": None, "b": None}, None], inner),
        "map": pa.array([[("k", 1), ("", None)], [], None], pa.map_(pa.string(), pa.int64())),
        "structs": pa.array([[{"a": 1, "b": []}, None], [], None], pa.list_(inner)),
    }
    return pa.table(columns)


def plain(value):
    """A value that compares equal when it is the same: NaN, signs of zero, bytes."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def rows_read(spark, loom: Loom) -> list[dict]:
    frame = snaploom.read(spark, loom.uri).orderBy("snapshot_epoch", "data.id")
    return [plain(row.asDict(recursive=True)) for row in frame.collect()]


@pytest.fixture(scope="module")
def parquet_rows(spark, tmp_path_factory) -> list[dict]:
    loom = Loom(tmp_path_factory.mktemp("types"))
    loom.write("order", 1, all_types())
    assert loom.weave(spark).report.message == ""
    rows = rows_read(spark, loom)
    assert rows[0]["data"]["timestamp"].microsecond == 123457
    return rows


@pytest.mark.parametrize(("data_format", "compression"), WRITABLE)
def test_every_type_comes_back_as_from_parquet(spark, loom, parquet_rows, data_format, compression):
    loom.write("order", 1, all_types())
    loom.folder |= {"dataFormat": data_format, "dataCompression": compression}
    assert loom.weave(spark).report.message == ""
    rows = rows_read(spark, loom)
    assert len(rows) == len(parquet_rows)
    for found, expected in zip(rows, parquet_rows, strict=True):
        assert found["data"] == expected["data"]


@pytest.mark.parametrize("data_format", FORMATS)
def test_schemas_of_all_snapshots_are_merged(spark, loom, data_format) -> None:
    loom.folder["dataFormat"] = data_format
    decimals = [decimal.Decimal("1.5"), decimal.Decimal("123456789012.25")]
    loom.write(
        "order",
        1,
        pa.table(
            {
                "id": pa.array([1]),
                "b": pa.array([7], pa.int8()),
                "f": pa.array([0.1], pa.float32()),
                "d": pa.array([decimals[0]], pa.decimal128(5, 1)),
                "s": pa.array(
                    [{"x": 1, "gone": "g"}], pa.struct({"x": pa.int32(), "gone": pa.string()})
                ),
                "l": pa.array([[{"y": 1}, None]], pa.list_(pa.struct({"y": pa.int16()}))),
                "Old": pa.array(["o"]),
            }
        ),
    )
    loom.write(
        "order",
        2,
        pa.table(
            {
                "id": pa.array([2]),
                "b": pa.array([2**40], pa.int64()),
                "f": pa.array([0.1], pa.float64()),
                "d": pa.array([decimals[1]], pa.decimal128(20, 2)),
                "s": pa.array(
                    [{"X": 2**40, "come": True}], pa.struct({"X": pa.int64(), "come": pa.bool_()})
                ),
                "l": pa.array(
                    [[{"y": 2**20, "z": "z"}]],
                    pa.list_(pa.struct({"y": pa.int32(), "z": pa.string()})),
                ),
                "new": pa.array([[1]]),
            }
        ),
    )
    assert loom.weave(spark).report.message == ""
    first, second = (row["data"] for row in rows_read(spark, loom))
    assert first == {
        "id": 1, "b": 7, "f": repr(0.10000000149011612), "d": decimals[0],
        "s": {"x": 1, "gone": "g", "come": None}, "l": [{"y": 1, "z": None}, None],
        "Old": "o", "new": None,
    }  # fmt: skip
    assert second == {
        "id": 2, "b": 2**40, "f": repr(0.1), "d": decimals[1],
        "s": {"x": 2**40, "gone": None, "come": True}, "l": [{"y": 2**20, "z": "z"}],
        "Old": None, "new": [1],
    }  # fmt: skip


@pytest.mark.parametrize("data_format", FORMATS)
def test_source_left_out_of_one_snapshot_is_null_there(spark, loom, data_format) -> None:
    loom.folder["dataFormat"] = data_format
    loom.join("customer", snapshot={"snapshotMissingMode": "CONTINUE_IGNORE"})
    loom.write("customer", 2, [{"id": 0, "name": "ann"}])
    woven_days(loom, spark, 1, 2)
    frame = snaploom.read(spark, loom.uri).orderBy("snapshot_epoch", "data.id")
    names = [row[0] for row in frame.select("customer.data.name").collect()]
    assert names == [None, "ann", None]
    assert frame.where("customer is null").count() == 2


@pytest.mark.parametrize("data_format", FORMATS)
def test_metadata_of_columns_comes_back(spark, loom, data_format) -> None:
    loom.folder["dataFormat"] = data_format
    fields = [
        {"name": "id", "dataType": {"long": {}}, "metadata": {"unit": "order"}},
        {"name": "n", "dataType": {"integer": {}}, "metadata": {"pii": "no"}},
    ]
    source = loom._source("order")
    source["spec"]["hdfsLike"]["schemaFields"] = fields
    loom.more.append(source)
    loom.write("order", 1, pa.table({"id": [1], "n": pa.array([1], pa.int32())}))
    loom.write("order", 2, pa.table({"id": [1], "n": pa.array([1], pa.int32())}))
    assert loom.weave(spark).report.message == ""
    fields[1]["dataType"] = {"long": {}}
    loom.write("order", 3, pa.table({"id": [1], "n": pa.array([1], pa.int64())}))
    assert loom.weave(spark).report.message == ""
    data = snaploom.read(spark, loom.uri).schema["data"].dataType
    assert {field.name: field.metadata for field in data} == {
        "id": {"unit": "order"},
        "n": {"pii": "no"},
    }


@pytest.mark.parametrize("data_format", FORMATS)
def test_snapshot_without_rows_has_no_rows(spark, loom, data_format) -> None:
    loom.folder["dataFormat"] = data_format
    loom.write("order", 1, pa.table({"id": pa.array([], pa.int64())}))
    assert loom.weave(spark).report.message == ""
    frame = snaploom.read(spark, loom.uri)
    assert frame.count() == 0
    assert frame.columns == ["data", "snapshot_epoch"]
    woven_days(loom, spark, 2)
    assert counts(snaploom.read(spark, loom.uri)) == {2: 2}


def test_every_column_may_be_null_whatever_was_read(spark, loom) -> None:
    woven_days(loom, spark, 1)
    frames = [
        snaploom.read(spark, loom.uri),
        snaploom.read(spark, loom.uri, between=(dt.date(2025, 1, 1), dt.date(2025, 1, 1))),
    ]
    assert frames[0].schema == frames[1].schema
    assert all(field.nullable for field in frames[0].schema)


def test_a_date_may_be_text_and_an_invalid_time_is_an_error(spark, loom) -> None:
    woven_days(loom, spark, 1, 2)
    assert counts(snaploom.read(spark, loom.uri, at="2024-01-01")) == {1: 1}
    for question in (snaploom.schema, snaploom.absences, partial(snaploom.read, spark)):
        with pytest.raises(ArgumentInvalid, match=r"'01.02.2024'[^:]*\n  expected: ISO 8601"):
            question(loom.uri, at="01.02.2024")
        with pytest.raises(ArgumentInvalid, match="this is not the number of a manifest"):
            question(loom.uri, manifest="3")
