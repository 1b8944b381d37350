"""`snaploom.read` skips files of the published snapshots."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexinterfaces import Lake
from support.weaving import smallmodels
from support.weaving.loom import Loom, ids
from support.weaving.smallmodels import key_field, relationship

import snaploom
from snaploom import skipping
from snaploom.cli.main import run_command
from snaploom.engine.publishedfiles import READ_OPTIONS, SPARK_FORMATS
from snaploom.engine.rowcounts import Weaving
from snaploom.models.datarelationship import Normalization
from snaploom.models.outputdataset import DataFormat
from snaploom.models.report import RunPhase
from snaploom.policy.fileformats import AVRO_CLASS
from snaploom.skipping.spark.interfaces import enable
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.types.merge import normalized

DAYS = range(1, 4)
PER_DAY = 100


@pytest.fixture
def base(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    base = str(tmp_path / "indexes")
    skipping.enable(spark, base)
    yield base
    skipping.disable(spark)


def published(spark: SparkSession, loom: Loom, days: range = DAYS) -> None:
    for day in days:
        loom.write("order", day, ids(*range(day * PER_DAY, day * PER_DAY + 10)))
    assert loom.weave(spark, at="2024-03-20T00:00:00Z").report.phase is RunPhase.SUCCEEDED


def index(
    spark: SparkSession, loom: Loom, base: str, data_format: DataFormat = DataFormat.PARQUET
) -> None:
    uri = f"file://{loom.out}/data"
    is_avro = data_format is DataFormat.AVRO  # whose class is nobody's to name
    file_format, options = (
        "avro" if is_avro else SPARK_FORMATS[data_format],
        READ_OPTIONS[data_format],
    )
    made = skipping_index(spark, base).on_path(uri, file_format, **options)
    made.add_min_max("data.id").add_partitions("snapshot_epoch").build()


def read_files(spark: SparkSession, frame: DataFrame) -> tuple[list[tuple], int, int]:
    skipping.reset_statistics(spark)
    rows = sorted(tuple(row) for row in frame.select("data.id", "snapshot_epoch").collect())
    decided = skipping.statistics(spark).recent
    return rows, max(each.files for each in decided), min(each.kept_files for each in decided)


@pytest.mark.parametrize("data_format", [f for f in SPARK_FORMATS if f != DataFormat.ICEBERG])
def test_reading_what_is_published_skips(spark, tmp_path, base, data_format):
    loom = Loom(tmp_path, folder={"dataFormat": data_format.value})
    published(spark, loom)
    chosen = snaploom.read(spark, loom.uri).where("data.id = 205")
    with skipping.without_skipping(spark):
        expected = sorted(
            tuple(row) for row in chosen.select("data.id", "snapshot_epoch").collect()
        )
    index(spark, loom, base, data_format)
    again = snaploom.read(spark, loom.uri).where("data.id = 205")
    assert read_files(spark, again) == (expected, len(DAYS), 1), skipping.explain(again)
    assert len(expected) == 1


def test_many_snapshots_are_read_by_one_index(spark, tmp_path, base):
    loom = Loom(tmp_path)
    published(spark, loom, range(1, 26))
    index(spark, loom, base)
    frame = snaploom.read(spark, loom.uri)
    _, files, kept = read_files(spark, frame.where("data.id >= 2400"))
    assert (files, kept) == (25, 2)
    newest = frame.where("snapshot_epoch > 1705000000000 AND data.id < 1500")
    rows, _, kept = read_files(spark, newest)
    assert kept <= 4
    assert {row[0] // PER_DAY for row in rows} == {12, 13, 14}


@pytest.mark.parametrize("step", list(Normalization))
def test_an_index_loses_no_row_of_a_join_by_normalised_keys(spark, tmp_path, base, step):
    spellings = [" ab-1", "AB-1", "ab1", "001", "1.0", "e\u0301", "\u00e9", "x"]
    folder = tmp_path / "rows"
    folder.mkdir()
    for number, text in enumerate(spellings):
        pq.write_table(pa.table({"k": [text]}), folder / f"{number}.parquet")
    made = skipping_index(spark, base).on_path(folder.as_uri())
    made.add_min_max("k").add_value_set("k").build()
    keys = relationship("key", {s: [key_field("k", "string", normalize=[step])] for s in "lr"})
    left = spark.sql("SELECT * FROM VALUES ('AB1'), ('\u00e9'), ('1') AS t(k)")
    frames = {"l": left, "r": spark.read.parquet(folder.as_uri())}
    loom = smallmodels.Loom("l", ["r"], [keys], group_by={"r": ["k"]})

    def matches() -> list[list[str]]:
        rows = Weaving(loom.weave(frames)).frame.orderBy("data.k").collect()
        return [[one.data.k for one in row.r or ()] for row in rows]

    found = matches()
    for text, partners in zip(["1", "AB1", "\u00e9"], found, strict=True):
        wanted = normalized(text, [step])
        expected = sorted(one for one in spellings if wanted == normalized(one, [step]))
        assert partners == (expected if wanted else [])
    with skipping.without_skipping(spark):
        assert matches() == found


def by_sql(spark: SparkSession, lake: Lake) -> None:
    enable.sql(spark, f"CREATE SKIPPING INDEX ON avro.`{lake.data}` (id MIN_MAX)")
    enable.sql(spark, f"REFRESH SKIPPING INDEX ON avro.`{lake.data}`")


def by_builder(spark: SparkSession, lake: Lake) -> None:
    skipping.skipping_index(spark).on_path(lake.data, "avro").add_min_max("id").build()


def by_command(spark: SparkSession, lake: Lake) -> None:
    place = (lake.data, "--format", "avro", "--location", lake.base)
    assert run_command(["index", "build", *place, "-i", "id MIN_MAX"]) == 0


def by_resource(spark: SparkSession, lake: Lake) -> None:
    path = lake.declare(
        target={"path": {"uri": lake.data, "format": "avro"}},
        indexes=[{"type": "MIN_MAX", "column": "id"}],
    )
    assert run_command(["index", "apply", "-f", str(path)]) == 0


@pytest.mark.parametrize("declare", [by_sql, by_builder, by_command, by_resource])
def test_avro_is_indexed_and_skipped_by_its_short_name(spark, lake, declare):
    files = Lake(lake.folder / "avro")
    spark.conf.set("spark.snaploom.skipping.locations", files.base)
    for number in range(2):
        rows = spark.range(number * 10, number * 10 + 10).coalesce(1)
        rows.write.format(AVRO_CLASS).mode("append").save(files.data)
    declare(spark, files)
    assert files.definition().target.format == "avro"
    skipping.enable(spark, files.base)
    assert spark.read.format(AVRO_CLASS).load(files.data).where("id >= 10").count() == 10
    assert skipping.statistics(spark).dropped_files == 1
    skipping.disable(spark)
