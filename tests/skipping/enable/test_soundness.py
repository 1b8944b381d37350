"""Files that changed, readers that changed, indexes that cannot be used: every file is read."""

import logging
import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import FILES, build_index, counted, last, write_files

from snaploom.skipping.spark.interfaces import explain as explaining
from snaploom.skipping.spark.interfaces.enable import decider_of, setting
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index


def data_files(path: str) -> list[Path]:
    return sorted(Path(path).glob("part-*.parquet"))


@pytest.fixture
def own(skipping: SparkSession, location: str, folder: Path) -> str:
    """A folder of its own, indexed by id."""
    path = write_files(skipping, folder)
    build_index(skipping, location, path, ("id",))
    return path


def test_file_rewritten_in_place_is_read(skipping: SparkSession, own: str) -> None:
    first = data_files(own)[0]
    skipping.range(500, 501).selectExpr("id").coalesce(1).write.parquet(f"{own}-other")
    first.write_bytes(data_files(f"{own}-other")[0].read_bytes())
    (first.parent / f".{first.name}.crc").unlink()
    frame = skipping.read.schema("id long").parquet(own).where("id = 500")
    assert frame.count() == 1
    assert (last(skipping).kept_files, last(skipping).indexes[0].stale) == (1, 1)


def test_file_touched_is_read(skipping: SparkSession, own: str) -> None:
    os.utime(data_files(own)[0], (1, 1))
    assert skipping.read.parquet(own).where("id = 99").count() == 1
    assert last(skipping).kept_files == 2


def test_file_added_is_read(skipping: SparkSession, own: str) -> None:
    skipping.range(5, 6).coalesce(1).write.mode("append").parquet(own)
    assert skipping.read.schema("id long").parquet(own).where("id = 5").count() == 2
    assert (last(skipping).kept_files, last(skipping).indexes[0].missing) == (2, 1)


def test_column_read_as_another_type_is_not_served(skipping: SparkSession, own: str) -> None:
    frame = skipping.read.schema("id decimal(20,0)").parquet(own).where("id = 5")
    assert frame.count() == 1
    assert last(skipping).kept_files == FILES


def test_other_reader_does_not_use_the_index(rows: DataFrame) -> None:
    spark = rows.sparkSession
    with setting(spark, "spark.sql.files.ignoreCorruptFiles", "true"):
        assert rows.where("id = 5").count() == 1
        text = str(explaining.explain(rows.where("id = 5")))
    assert last(spark).kept_files == FILES
    assert "the reader has changed: spark.sql.files.ignoreCorruptFiles" in text


def test_index_never_refreshed_prunes_nothing_and_logs_it(
    skipping: SparkSession, location: str, folder: Path
) -> None:
    path = write_files(skipping, folder)
    skipping_index(skipping, location=location).on_path(path).add_min_max("id").create()
    frame = skipping.read.parquet(path).where("id = 5")
    assert frame.count() == 1
    assert not counted(skipping).recent
    assert "it was never refreshed" in str(explaining.explain(frame))


def test_damaged_index_is_logged_once_and_reads_every_file(
    skipping: SparkSession, own: str, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    decider_of(skipping).forget()
    (folder,) = [
        path.parents[1]
        for path in Path(location).rglob("manifest/*.json")
        if own in path.read_text()
    ][:1]
    for segment in (folder / "segments").iterdir():
        segment.write_bytes(b"nothing of the kind")
    with caplog.at_level(logging.WARNING, "snaploom.skipping"):
        for wanted in (5, 6):
            assert skipping.read.parquet(own).where(f"id = {wanted}").count() == 1
    assert last(skipping).kept_files == FILES
    assert sum("unreadable" in record.message for record in caplog.records) == 1
