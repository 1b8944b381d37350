"""Rows about files, against the rows that Spark and duckdb read."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import build, expression_index, index, names, one_file

from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetlookup import open_path

ALL_TYPES: Mapping[str, str] = {
    "boolean": "id % 2 = 0",
    "tinyint": "CAST(id AS tinyint) - 100Y",
    "smallint": "CAST(id AS smallint) - 200S",
    "int": "CAST(id AS int) * 1000",
    "bigint": "id * 10000000000",
    "float": "CAST(id AS float) / 3",
    "double": "IF(id = 3, double('NaN'), -id / 7D)",
    "decimal(9,2)": "CAST(id / 4 AS decimal(9,2))",
    "decimal(30,4)": "CAST(id AS decimal(30,4)) * -1.5BD",
    "date": "date_add(DATE '1500-01-01', CAST(id AS int) * 40000)",
    "timestamp": "timestamp_micros(id * 100000000000001 + 9)",
    "timestamp_ntz": "CAST(timestamp_micros(id * 1000000007) AS timestamp_ntz)",
    "string": "concat('é', chr(100 + id), repeat('\U0001f600', CAST(id AS int)))",
    "binary": "CAST(concat('b', id) AS binary)",
}


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose settings a test may change."""
    before = dict(spark.conf.getAll)
    yield spark
    for name, value in spark.conf.getAll.items():
        if before.get(name) != value:
            spark.conf.set(name, before[name]) if name in before else spark.conf.unset(name)


def min_max(target: SparkTarget, *columns: str) -> list[Mapping[str, object]]:
    return build(
        target, *(index(target, "MIN_MAX", c, index_id=f"i{i}") for i, c in enumerate(columns))
    )


def column(row: Mapping[str, object], index_id: str = "i1") -> dict[str, object]:
    return {
        key.split(".", 1)[1]: value for key, value in row.items() if key.startswith(f"{index_id}.")
    }


@pytest.mark.parametrize("data_type", ALL_TYPES)
@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_footers_and_scan_agree(data_type, stored, settings, tmp_path):
    settings.conf.set("spark.sql.parquet.outputTimestampType", stored)
    settings.conf.set("spark.sql.session.timeZone", "America/New_York")
    settings.conf.set("spark.sql.ansi.enabled", "false")
    value = f"CAST(IF(id = 5, NULL, {ALL_TYPES[data_type]}) AS {data_type})"
    frame = settings.range(10).selectExpr(f"{value} AS c", f"{value} AS d")
    one_file(frame, tmp_path / "t", "a.parquet")
    one_file(frame, tmp_path / "o", "a.orc", "orc")
    footer = open_path(settings, str(tmp_path / "t"), "parquet")
    scanned = open_path(settings, str(tmp_path / "o"), "orc")
    (row,), (other,) = (build(t, index(t, "MIN_MAX", "c")) for t in (footer, scanned))
    assert column(row) == pytest.approx(column(other), nan_ok=True)
    assert (row["i1.values"], row["i1.nulls"]) == (9, 1)
    assert row["i1.min"] is not None


def test_bounds_equal_duckdbs(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 1000, 1, 4).selectExpr(
        "id", "sha1(string(id)) AS t", "id / 3D AS d"
    ).write.parquet(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    rows = min_max(target, "id", "t", "d")
    query = f"""SELECT filename, min(id), max(id), min(t), max(t), min(d), max(d)
        FROM read_parquet('{tmp_path}/t/*.parquet', filename = true) GROUP BY 1 ORDER BY 1"""
    found = [
        (str(r["path"]).removeprefix("file:"), r["i0.min"], r["i0.max"],
         r["i1.min"].decode(), r["i1.max"].decode(), r["i2.min"], r["i2.max"])
        for r in rows
    ]  # fmt: skip
    assert found == duckdb.sql(query).fetchall()


def test_min_max_of_parquet_reads_footers_only(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 100, 1, 2).write.parquet(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    assert [row["i0.max"] for row in min_max(target, "id")] == [49, 99]
    assert (target.counters.footer_files, target.counters.scanned_files) == (2, 0)
    sizes = [
        int.from_bytes(p.read_bytes()[-8:-4], "little") for p in (tmp_path / "t").glob("*.parquet")
    ]
    assert target.counters.footer_bytes == sum(sizes) + 16 * len(sizes)


def test_only_files_whose_footer_proves_nothing_are_read(spark, tmp_path):
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"c": [1, 2]}), tmp_path / "t" / "a.parquet")
    pq.write_table(pa.table({"c": [3, 4]}), tmp_path / "t" / "b.parquet", write_statistics=False)
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    rows = min_max(target, "c")
    assert [(r["i0.min"], r["i0.max"], r["i0.values"]) for r in rows] == [(1, 2, 2), (3, 4, 2)]
    assert target.counters.direct_files + target.counters.scanned_files == 1


def test_several_indexes_come_from_one_pass(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(100).selectExpr(
        "id % 3 AS a", "string(id) AS b", "IF(id < 40, NULL, id) AS c"
    )
    one_file(frame, tmp_path / "t", "a.json", "json")
    target = open_path(spark, str(tmp_path / "t"), "json")
    (row,) = build(
        target,
        index(target, "VALUE_SET", "a", index_id="i1"),
        index(target, "BLOOM_FILTER", "b", index_id="i2"),
        index(target, "MIN_MAX", "c", index_id="i3"),
    )
    assert sorted(row["i1.set"]) == [0, 1, 2]
    assert row["i2.values"] == 100
    assert column(row, "i3") == {"values": 60, "nulls": 40, "min": 40, "max": 99}


@pytest.mark.parametrize("file_format", ["csv", "json", "orc", "parquet", "text"])
def test_every_format_is_built(file_format: str, spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(5, 10).selectExpr("string(id) AS value")
    one_file(frame, tmp_path / "t", f"a.{file_format}", file_format)
    spark.createDataFrame([], frame.schema).coalesce(1)
    options = {"inferSchema": "false"} if file_format == "csv" else {}
    target = open_path(spark, str(tmp_path / "t"), file_format, options)
    (row,) = min_max(target, "_c0" if file_format == "csv" else "value")
    assert column(row, "i0") == {"values": 5, "nulls": 0, "min": b"5", "max": b"9"}


def test_a_file_in_several_splits_is_merged(settings: SparkSession, tmp_path: Path) -> None:
    settings.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    settings.conf.set("spark.sql.files.openCostInBytes", "0")
    one_file(settings.range(5000).selectExpr("id AS c"), tmp_path / "t", "a.json", "json")
    one_file(settings.range(5000, 5100).selectExpr("id AS c"), tmp_path / "t", "b.json", "json")
    target = open_path(settings, str(tmp_path / "t"), "json")
    rows = min_max(target, "c")
    found = [(r["i0.values"], r["i0.min"], r["i0.max"]) for r in rows]
    assert found == [(5000, 0, 4999), (100, 5000, 5099)]


def test_odd_paths_are_distinguished(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c#d[1]{2}é=x+y?'q\"^`|\\~&;@!$(),"
    odd = ["\u00a0\u3000\U0001f600.json", "%25 %.json", "a=b;c.json", "x*y.json", "\u2028.json"]
    for number, name in enumerate(odd):
        one_file(spark.range(number, number + 1), folder, name, "json")
    target = open_path(
        spark,
        str(folder)
        .replace("\\", "\\\\")
        .replace("[", "\\[")
        .replace("{", "\\{")
        .replace("?", "\\?"),
        "json",
    )
    rows = min_max(target, "id")
    assert {str(row["path"]).rsplit("/", 1)[-1]: row["i0.min"] for row in rows} == {
        name: number for number, name in enumerate(odd)
    }


def test_partition_values_come_from_the_listing(spark: SparkSession, tmp_path: Path) -> None:
    values = ["plain", "a b/c%d=e", "é:\U0001f600", None]
    rows = [(number, value) for number, value in enumerate(values)]
    spark.createDataFrame(rows, "id long, p string").write.partitionBy("p").json(
        str(tmp_path / "t")
    )
    target = open_path(spark, str(tmp_path / "t"), "json")
    found = build(
        target, index(target, "PARTITION", "p"), index(target, "MIN_MAX", "id", index_id="i2")
    )
    expected = {n: (None if v is None else v.encode(), int(v is not None)) for n, v in rows}
    assert {r["i2.min"]: (r["i1.value"], r["i1.values"]) for r in found} == expected


def test_partition_column_reads_no_file(spark: SparkSession, tmp_path: Path) -> None:
    days = spark.range(2).selectExpr("id", "date_add(DATE '2020-01-03', CAST(id AS int)) AS day")
    days.write.partitionBy("day").parquet(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    found = build(target, index(target, "PARTITION", "day"))
    assert [row["i1.value"] for row in found] == [18264, 18265]
    assert (target.counters.footer_files, target.counters.scanned_files) == (0, 0)


def test_min_max_of_a_partition_column_is_its_value(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(
        str(tmp_path / "t")
    )
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    assert {(r["i0.min"], r["i0.max"]) for r in min_max(target, "p")} == {(0, 0), (1, 1)}


def test_an_expression_is_built(spark: SparkSession, tmp_path: Path) -> None:
    one_file(spark.sql("SELECT explode(array('B', 'a', NULL)) AS c"), tmp_path / "t", "a.parquet")
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    (row,) = build(target, expression_index(target, "MIN_MAX", "lower(c)"))
    assert column(row) == {"values": 2, "nulls": 1, "min": b"a", "max": b"b"}


def test_files_without_rows_are_known_to_be_empty(spark: SparkSession, tmp_path: Path) -> None:
    one_file(spark.range(0), tmp_path / "p", "empty.parquet")
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "blank.json").write_text("\n\n")
    one_file(spark.range(3), tmp_path / "j", "full.json", "json")
    parquet = min_max(open_path(spark, str(tmp_path / "p"), "parquet"), "id")
    json = min_max(open_path(spark, str(tmp_path / "j"), "json"), "id")
    assert [(r["i0.values"], r["i0.nulls"]) for r in parquet] == [(0, 0)]
    assert [(r["i0.values"], r["i0.nulls"]) for r in json] == [(0, 0), (3, 0)]


@pytest.mark.parametrize("options", [{}, {"ignoreCorruptFiles": "true"}])
def test_a_corrupt_file_stays_unknown_and_others_do_not(options, spark, tmp_path):
    spark.range(0, 40, 1, 4).selectExpr("id / 2D AS d").write.parquet(str(tmp_path / "t"))
    damaged = sorted((tmp_path / "t").glob("*.parquet"))[1]
    content = bytearray(damaged.read_bytes())
    content[4:60] = b"\xff" * 56
    damaged.write_bytes(content)
    target = open_path(spark, str(tmp_path / "t"), "parquet", options)
    rows = build(target, index(target, "MIN_MAX", "d"))
    assert len(rows) == 3
    assert damaged.name not in names(rows)
    assert [path.rsplit("/", 1)[-1] for path in target.counters.failures] == [damaged.name]


def test_a_file_rewritten_while_it_is_read_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 20, 1, 2).write.parquet(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    listed = target.list_files("")
    changed = str(listed.column("path")[0]).removeprefix("file:")
    pq.write_table(pa.table({"id": [1]}), changed)
    (rows,) = target.build([index(target, "MIN_MAX", "id")], listed, lambda done, total: None)
    assert rows.column("path").to_pylist() == [str(listed.column("path")[1])]
    assert target.counters.failures == {f"file:{changed}": "changed while it was read"}


def test_a_removed_file_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 20, 1, 2).write.json(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "json")
    listed = target.list_files("")
    os.unlink(str(listed.column("path")[0]).removeprefix("file:"))
    (rows,) = target.build([index(target, "MIN_MAX", "id")], listed, lambda done, total: None)
    assert rows.column("path").to_pylist() == [str(listed.column("path")[1])]


def test_a_file_from_the_future_stays_unknown(spark: SparkSession, tmp_path: Path) -> None:
    path = one_file(spark.range(3), tmp_path / "t", "a.parquet")
    os.utime(path, (4_000_000_000, 4_000_000_000))
    assert min_max(open_path(spark, str(tmp_path / "t"), "parquet"), "id") == []


def test_some_files_of_many_are_built_on_their_own(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 100, 1, 10).write.json(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "json")
    some = target.list_files("").slice(3, 2)
    progress: list[tuple[int, int]] = []
    (rows,) = target.build(
        [index(target, "MIN_MAX", "id")], some, lambda *seen: progress.append(seen)
    )
    assert rows.column("path").to_pylist() == some.column("path").to_pylist()
    assert rows.column("i1.values").to_pylist() == [10, 10]
    assert progress == [(0, 2), (2, 2)]


def test_new_files_are_seen_at_the_next_listing(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).coalesce(1).write.json(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "json")
    assert target.list_files("").num_rows == 1
    spark.range(10).coalesce(1).write.mode("append").json(str(tmp_path / "t"))
    assert target.list_files("").num_rows == 2


def test_decimals_keep_their_scale(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT CAST(1.50 AS decimal(20,3)) AS d")
    one_file(frame, tmp_path / "t", "a.parquet")
    (row,) = min_max(open_path(spark, str(tmp_path / "t"), "parquet"), "d")
    assert (row["i0.min"], row["i0.max"]) == (Decimal("1.500"), Decimal("1.500"))


@pytest.mark.parametrize(
    ("notes", "is_known"),
    [
        ({"org.apache.spark.version": "4.3.0"}, True),
        ({"org.apache.spark.version": "2.4.8"}, False),
        ({"org.apache.spark.version": "4.3.0", "org.apache.spark.legacyDateTime": ""}, False),
        (
            {
                "org.apache.spark.version": "4.3.0",
                "org.apache.spark.legacyDateTime": "",
                "org.apache.spark.timeZone": "Europe/Paris",
            },
            True,
        ),
    ],
)
def test_timestamps_of_the_readers_zone_stay_unknown(notes, is_known, spark, tmp_path):
    (tmp_path / "t").mkdir()
    times = pa.array([datetime(1850, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    table = pa.table({"t": times, "id": [1]}).replace_schema_metadata(notes)
    pq.write_table(table, tmp_path / "t" / "a.parquet")
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    (row,) = min_max(target, "id", "t")
    assert row["i0.values"] == 1
    assert (row["i1.values"] is not None) is is_known


def test_many_small_pieces_make_the_same_rows(spark, tmp_path, monkeypatch):
    spark.range(0, 70, 1, 7).write.json(str(tmp_path / "t"))
    target = open_path(spark, str(tmp_path / "t"), "json")
    whole = min_max(target, "id")
    monkeypatch.setattr("snaploom.skipping.spark.builds.filerows._PIECE_FILES", 3)
    progress: list[tuple[int, int]] = []
    pieces = target.build(
        [index(target, "MIN_MAX", "id", index_id="i0")],
        target.list_files(""),
        lambda *seen: progress.append(seen),
    )
    rows = sorted(pa.concat_tables(pieces).to_pylist(), key=lambda row: str(row["path"]))
    assert rows == whole
    assert progress == [(0, 7), (3, 7), (6, 7), (7, 7)]
