"""Values where native engines are known to differ: the same with Comet as without.

`tests/unit/jobs/test_acceleration.py` runs this on the oldest Spark, for which Comet is built.
"""

from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.weaving.loom import Loom, ids

from snaploom.engine.write import write_frame
from snaploom.models.outputdataset import DataCompression, DataFormat
from snaploom.policy.acceleration import BATCH
from snaploom.run.session.accelerator import reasons_of
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.sources.files.checks import choose_batch

DATA = {
    "days": """SELECT id AS k, CAST(d AS date) AS d, CAST(d AS timestamp) AS t,
        CAST(d AS timestamp_ntz) AS n FROM VALUES (1, '1000-01-01'), (2, '1582-10-10'),
        (3, '1899-12-31 23:59:59'), (4, '0500-03-01'), (5, '9999-12-31 23:59:59.999999'),
        (6, '2021-10-31 01:30:00'), (7, NULL) AS v(id, d)""",
    "floats": """SELECT id AS k, CAST(f AS float) AS f, CAST(f AS double) AS g FROM VALUES
        (1, 'NaN'), (2, '-0.0'), (3, '0.0'), (4, '-Infinity'), (5, NULL), (6, '1.5') AS v(id, f)""",
    "decimals": """SELECT id AS k, CAST(d AS decimal(5,2)) AS a, CAST(d AS decimal(18,4)) AS b,
        CAST(d AS decimal(38,10)) AS c FROM VALUES
        (1, '1.25'), (2, '-999.99'), (3, NULL), (4, '0.00') AS v(id, d)""",
    "nested": """SELECT CAST(id AS int) AS k,
        IF(id = 1, NULL, named_struct('a', IF(id = 2, NULL, id), 'b', IF(id = 2, NULL, 'x'))) AS s,
        IF(id = 3, NULL, IF(id = 4, array(), array(id, NULL))) AS l,
        IF(id = 5, NULL, IF(id = 6, map(), map('a', id, 'b', NULL))) AS m,
        IF(id = 1, NULL, array(IF(id = 2, NULL, named_struct('z', id)))) AS ls FROM range(1, 8)""",
    "texts": """SELECT id AS k, t, CAST(t AS binary) AS b, id % 2 = 0 AS o, CAST(id AS tinyint) AS y
        FROM VALUES (1, ''), (2, NULL), (3, 'é€𐍈'), (4, repeat('ab', 200)) AS v(id, t)""",
}
"""A column `k` that is a key, beside values of each kind."""
KEYS = [
    ("floats", "f"), ("floats", "g"), ("days", "d"), ("days", "t"), ("days", "n"), ("texts", "t"),
    ("decimals", "a"), ("decimals", "b"), ("decimals", "c"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """Each of these in a folder, as Spark writes it."""
    place = tmp_path_factory.mktemp("corners")
    with setting(spark, "spark.comet.enabled", "false"):
        for name, query in DATA.items():
            spark.sql(query).write.parquet(str(place / name))
    return place


def rows(frame: DataFrame) -> list[str]:
    with setting(frame.sparkSession, "spark.sql.jsonGenerator.ignoreNullFields", "false"):
        return sorted(frame.toJSON().collect())


def by_spark(frame: DataFrame) -> list[str]:
    with setting(frame.sparkSession, "spark.comet.enabled", "false"):
        return rows(frame)


def joined(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """A weave by hand: every row with itself, where its key is small."""
    frame = spark.read.parquet(str(folder / name))
    right = frame.where("k < 4").select(
        sf.col("k").alias("k2"), sf.struct(sf.struct("*").alias("data")).alias("child")
    )
    data = sf.struct(*frame.columns).alias("data")
    return frame.select("k", data).join(right, sf.col("k") == sf.col("k2"), "left").drop("k", "k2")


def is_native(frame: DataFrame) -> bool:
    return "CometNativeScan" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("name", DATA)
def test_woven_values_are_those_of_spark(spark: SparkSession, folder: Path, name: str) -> None:
    frame = joined(spark, folder, name)
    assert is_native(frame)
    assert rows(frame) == by_spark(frame)


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_keys_match_as_in_spark(spark: SparkSession, folder: Path, name: str, key: str) -> None:
    frame = spark.read.parquet(str(folder / name)).select("k", key)
    right = frame.select(sf.col("k").alias("k2"), sf.col(key).alias("key2"))
    woven = frame.join(right, sf.col(key) == sf.col("key2"), "left")
    assert rows(woven) == by_spark(woven)
    groups = frame.groupBy(key).agg(sf.sort_array(sf.collect_list("k")).alias("ks"))
    assert rows(groups) == by_spark(groups)


@pytest.mark.parametrize("name", DATA)
def test_native_files_hold_what_was_woven(spark, folder, name, tmp_path):
    frame = joined(spark, folder, name)
    uri = f"file:{tmp_path}/out"
    write_frame(frame, uri, DataFormat.PARQUET, DataCompression.ZSTD)
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert all("parquet-rs" in pq.ParquetFile(file).metadata.created_by for file in files)
    assert by_spark(spark.read.parquet(uri)) == by_spark(frame)


def test_native_files_are_read_by_others_with_null_apart_from_structs_of_null(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    frame = spark.read.parquet(str(folder / "nested")).select("k", "s", "l", "ls").coalesce(1)
    write_frame(frame, f"file:{tmp_path}/out", DataFormat.PARQUET, DataCompression.SNAPPY)
    (file,) = (tmp_path / "out").glob("*.parquet")
    metadata = pq.ParquetFile(file).metadata
    wanted = [row.asDict(recursive=True) for row in frame.orderBy("k").collect()]
    assert wanted[0]["s"] is None
    assert wanted[1]["s"] == {"a": None, "b": None}
    assert pq.read_table(file).sort_by("k").to_pylist() == wanted
    assert pl.read_parquet(file).sort("k").to_dicts() == wanted
    found = duckdb.sql(f"SELECT k, s, l, ls FROM '{file}' ORDER BY k").fetchall()
    assert [dict(zip(["k", "s", "l", "ls"], row, strict=True)) for row in found] == wanted
    assert metadata.row_group(0).column(0).statistics.has_min_max


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "INT96"])
def test_days_of_the_julian_calendar_are_read_by_spark(spark, tmp_path, mode, kind):
    loom = Loom(tmp_path)
    loom.write("order", 1, ids(1, 2))
    name = "spark.sql.parquet.{}RebaseModeInWrite"
    with (
        setting(spark, name.format("datetime"), mode),
        setting(spark, name.format("int96"), mode),
        setting(spark, "spark.sql.parquet.outputTimestampType", kind),
        setting(spark, "spark.comet.enabled", "false"),
    ):
        old = spark.sql("SELECT 1L AS id, DATE '1000-01-01' AS d, TIMESTAMP '1000-01-01' AS t")
        old.coalesce(1).write.parquet(f"{tmp_path}/sources/customer/2024-01-01")
    loom.join("customer")
    with setting(spark, "spark.comet.scan.enabled", "true"):
        woven = loom.weave(spark)
        is_left_to_spark = spark.conf.get("spark.comet.scan.enabled") == "false"
    assert woven.report.phase == "SUCCEEDED", (
        woven.report.message,
        woven.report.failed,
        woven.report.skipped,
    )
    query = f"SELECT customer.data.d::text FROM '{tmp_path}/out/data/*/*.parquet' WHERE data.id = 1"
    assert duckdb.sql(query).fetchall() == [("1000-01-01",)]
    assert woven.report.accelerator.startswith("COMET")
    assert is_left_to_spark == (mode == "LEGACY")


def test_columns_with_metadata_are_written_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(3).select(sf.col("id").alias("id", metadata={"unit": "piece"}))
    write_frame(frame, f"file:{tmp_path}/out", DataFormat.PARQUET, DataCompression.ZSTD)
    with setting(spark, "spark.comet.enabled", "false"):
        assert spark.read.parquet(f"file:{tmp_path}/out").schema["id"].metadata == {"unit": "piece"}


def test_what_falls_back_is_reported(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.parquet(str(folder / "texts")).select(sf.input_file_name())
    plan = frame._jdf.queryExecution().executedPlan()
    shown = spark._jvm.org.apache.comet.ExtendedExplainInfo().generateExtendedInfo(plan)  # type: ignore[union-attr]
    reasons = reasons_of(f"== Extended Information (Comet) ==\n{shown}")
    assert any("input_file_name" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("repeat(chr(CAST(65 + id % 26 AS int)), 20)", 65536),
        ("repeat(sha2(CAST(id AS string), 512), 20)", 8192),
        ("repeat(chr(CAST(65 + id % 26 AS int)), 50000)", 8192),
    ],
)
def test_batches_have_as_many_rows_as_memory_allows(spark, tmp_path, text, rows):
    spark.range(2000).select("id", sf.expr(text).alias("text")).write.parquet(f"{tmp_path}/a b")
    frame = spark.read.parquet(f"{tmp_path}/a b")
    choose_batch(spark, [frame, frame])
    assert spark.conf.get(BATCH) == str(rows)
    unknown = [None, [spark.range(1)]]
    for file in (tmp_path / "a b").iterdir():
        file.unlink()
    for joined in (*unknown, [frame]):
        choose_batch(spark, joined)
        assert spark.conf.get(BATCH) == "8192"
