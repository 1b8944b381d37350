"""Files with snapshots by a column: one schema for all, and an unchanged file is read once."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from support.declared.sources import NOW, a_bundle, by_field, files, reader, rows_at, snapshot_times

from snaploom.errors import SourceSchemaInvalid
from snaploom.files.local import LocalObjectStore
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.output.caches import Listings
from snaploom.sources.files import reader as columnreader
from snaploom.sources.files import reader as schemas
from snaploom.sources.files.footers import read_footers
from snaploom.sources.port import SourceReader
from snaploom.sources.readers import Sources
from snaploom.spark.hadoopstore import HadoopObjectStore
from snaploom.spark.jvm import client_of

pytestmark = pytest.mark.spark

FIRST, SECOND = "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"


def write(folder: Path, name: str, days: Sequence[int], **columns: object) -> Path:
    """A file with rows of some days of January 2020, long ago."""
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table({"day": [f"2020-01-{day:02d}" for day in days], **columns}), path)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path


def by_day(folder: object, data_format: str = "parquet", **settings: Any) -> dict[str, Any]:
    snapshot = by_field("day", "ISO8601_DATE")
    return files(data_format, f"{folder}/*.{data_format}", snapshot=snapshot, **settings)


def opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with the names of files whose footers are read."""
    opened: list[str] = []

    def read(files, *rest):
        opened.extend(file.name for file in files)
        return read_footers(files, *rest)

    for module in (columnreader, schemas):
        monkeypatch.setattr(module, "read_footers", read)
    return opened


def remembering(spark: SparkSession, spec: dict[str, Any], place: Path) -> SourceReader:
    """A reader that begins with what an earlier one left, and leaves what it learns."""
    much_later = EpochNanos(time.time_ns() + 3600 * 10**9)
    listings = Listings(LocalObjectStore(place, create=True), much_later)
    source = Sources(spark, a_bundle(spec), NOW, listings).reader("orders")
    source.listing()
    listings.keep()
    return source


@contextmanager
def jobs_of(spark: SparkSession, name: str) -> Iterator[list[int]]:
    """The Spark jobs of a block."""
    found: list[int] = []
    spark.sparkContext.setJobGroup(name, name)
    yield found
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    found += spark.sparkContext.statusTracker().getJobIdsForGroup(name)


def test_rows_of_all_files_have_the_columns_of_any_and_the_wider_type(spark, tmp_path):
    write(tmp_path, "1", [1], n=pa.array([1], pa.int32()), old=["x"])
    write(tmp_path, "2", [1, 2], n=pa.array([2**40, 3], pa.int64()), new=[1.5, None])
    source = reader(spark, by_day(tmp_path))
    frame = source.read(parse_instant(FIRST)).frame
    assert frame.schema.simpleString() == "struct<n:bigint,old:string,new:double>"
    assert rows_at(source, FIRST) == [(1, "x", None), (2**40, None, 1.5)]
    assert rows_at(source, SECOND) == [(3, None, None)]


def test_types_that_have_nothing_in_common_are_refused_with_both_files(spark, tmp_path):
    one = write(tmp_path, "1", [1], n=[1])
    other = write(tmp_path, "2", [2], n=["two"])
    with pytest.raises(SourceSchemaInvalid, match="nothing in common") as caught:
        reader(spark, by_day(tmp_path)).listing()
    assert caught.value.found == f"n is long in file:{one} and string in file:{other}"


@pytest.mark.parametrize("data_format", ["orc", "json"])
def test_columns_of_newer_files_are_read_in_other_formats_too(spark, tmp_path, data_format):
    for number, more in enumerate([[], [sf.lit(5).alias("new")]]):
        frame = spark.range(1).select(sf.lit(f"2020-01-0{number + 1}").alias("day"), *more)
        frame.write.format(data_format).save(f"{tmp_path}/{number}")
    snapshot = by_field("day", "ISO8601_DATE")
    source = reader(spark, files(data_format, f"{tmp_path}/*/*.{data_format}", snapshot=snapshot))
    assert [rows_at(source, time) for time in (FIRST, SECOND)] == [[(None,)], [(5,)]]


def test_snapshots_are_listed_from_footers_without_a_job(spark, tmp_path):
    write(tmp_path, "1", [1, 1], n=[1, 2])
    write(tmp_path, "2", [2, 2], n=[3, 4])
    source = reader(spark, by_day(tmp_path))
    assert source.source._column.field.path == "day"  # inferring the schema takes a job
    with jobs_of(spark, "footers") as jobs:
        times = snapshot_times(source)
    assert jobs == []
    assert rows_at(source, times[1]) == [(3,), (4,)]
    assert [Path(file).name for file in source.read(times[1]).frame.inputFiles()] == ["2.parquet"]


def test_known_files_are_not_opened_again_and_others_are(spark, tmp_path, monkeypatch):
    data, place, opened = tmp_path / "data", tmp_path / "known", opened_files(monkeypatch)
    data.mkdir()
    write(data, "1", [1, 2], n=[1, 2])
    spec = by_day(data)
    remembering(spark, spec, place)
    opened.clear()
    write(data, "2", [2, 3], n=[3, 4])
    source = remembering(spark, spec, place)
    assert len(snapshot_times(source)) == 3
    assert set(opened) == {"2.parquet"}
    opened.clear()
    with jobs_of(spark, "nothing new") as jobs:
        assert snapshot_times(remembering(spark, spec, place)) == snapshot_times(source)
    assert (jobs, opened) == ([], [])
    write(data, "1", [5], n=[1])
    assert len(snapshot_times(remembering(spark, spec, place))) == 3


@pytest.mark.parametrize("glob", ["*.parquet", "{1,2}.parquet"])
def test_a_file_that_is_rewritten_with_its_length_and_time_is_opened(spark, tmp_path, glob):
    data, place = tmp_path / "data", tmp_path / "known"
    data.mkdir()
    spec = files("parquet", f"file://{data}/{glob}", snapshot=by_field("day", "ISO8601_DATE"))
    first = write(data, "1", [1], n=[1]).stat()
    before = remembering(spark, spec, place)
    second = write(data, "1", [4], n=[2]).stat()
    assert (first.st_size, first.st_mtime) == (second.st_size, second.st_mtime)
    after = remembering(spark, spec, place)
    (old,), (new,) = snapshot_times(before), snapshot_times(after)
    assert old != new
    assert before.read(old).fingerprint != after.read(new).fingerprint


def test_what_was_read_otherwise_is_not_believed(spark, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    write(data, "1", [1, 2], n=[1, 2], at=["2021-01-01", "2021-01-02"])
    remembering(spark, by_day(data), tmp_path / "known")
    other = files("parquet", f"{data}/*", snapshot=by_field("at", "ISO8601_DATE"))
    times = snapshot_times(remembering(spark, other, tmp_path / "known"))
    assert times == [parse_instant("2021-01-01T00:00:00Z"), parse_instant("2021-01-02T00:00:00Z")]


def test_footers_on_hdfs_are_read_without_a_job(spark, hdfs, tmp_path):
    store = HadoopObjectStore(client_of(spark), f"{hdfs}/listed", create=True)
    for day in (1, 2):
        path = write(tmp_path, str(day), [day, day], n=[day, day])
        store.put(path.name, path.read_bytes())
    source = reader(spark, by_day(f"{hdfs}/listed"))
    assert source.source._column.field.path == "day"
    with jobs_of(spark, "remote") as jobs:
        times = snapshot_times(source)
    assert jobs == []
    assert [rows_at(source, time) for time in times] == [[(1,), (1,)], [(2,), (2,)]]
