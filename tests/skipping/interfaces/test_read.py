"""`snaploom.read` skips files of the published snapshots."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.weaving.loom import Loom, ids

import snaploom
from snaploom import skipping
from snaploom.models.outputdataset import DataFormat
from snaploom.models.report import RunPhase
from snaploom.policy.fileformats import READ_OPTIONS, SPARK_FORMATS
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

DAYS = range(1, 4)
PER_DAY = 100


@pytest.fixture
def base(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    base = str(tmp_path / "indexes")
    skipping.enable(spark, base)
    yield base
    skipping.disable(spark)


def published(spark: SparkSession, loom: Loom, days: range = DAYS) -> None:
    """A snapshot a day, each with keys of its own."""
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
    """Rows, files listed and files kept, of one query."""
    skipping.reset_statistics(spark)
    rows = sorted(tuple(row) for row in frame.select("data.id", "snapshot_epoch").collect())
    decided = skipping.statistics(spark).recent
    return rows, max(each.files for each in decided), min(each.kept_files for each in decided)


@pytest.mark.parametrize("data_format", [f for f in SPARK_FORMATS if f != DataFormat.ICEBERG])
def test_reading_what_is_published_skips(
    spark: SparkSession, tmp_path: Path, base: str, data_format: DataFormat
) -> None:
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


def test_many_snapshots_are_read_by_one_index(
    spark: SparkSession, tmp_path: Path, base: str
) -> None:
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
