"""Refreshes with nothing to do, which open no file."""

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from snaploom.models.allowances import ALLOW_VARIABLE, Allowances
from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.targets.targetfiles import file_listing_of

OPTIONS = {"csv": {"header": "true", "inferSchema": "true"}, "json": {}, "orc": {}, "parquet": {}}


@pytest.fixture(params=sorted(OPTIONS))
def file_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(spark: SparkSession, file_format: str, tmp_path: Path) -> Path:
    """Three days of files with a time in each row."""
    frame = spark.range(6).selectExpr(
        "id",
        "timestamp_seconds(id * 1000) AS at",
        "date_add(DATE '2020-01-01', int(id / 2)) AS day",
    )
    writer = frame.repartition("day").write.partitionBy("day").options(header="true")
    writer.format(file_format).save(str(tmp_path / "t"))
    for checksum in (tmp_path / "t").rglob(".*.crc"):
        checksum.unlink()  # the test writes files by other means
    return tmp_path / "t"


def on(
    spark: SparkSession, folder: Path, file_format: str, tmp_path: Path, **options: str
) -> IndexBuilder:
    builder = skipping_index(spark, str(tmp_path / "i"))
    return builder.on_path(str(folder), file_format, **OPTIONS[file_format], **options)


@pytest.fixture
def built(spark: SparkSession, folder: Path, file_format: str, tmp_path: Path) -> IndexBuilder:
    builder = on(spark, folder, file_format, tmp_path)
    builder.add_min_max("id", "at").add_partitions("day").build()
    return builder


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[SparkSession]:
    yield spark
    for name in ("spark.sql.timestampType", "spark.sql.caseSensitive"):
        spark.conf.unset(name)


@pytest.fixture
def jobs(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """How many jobs this test ran so far."""
    context, group = spark.sparkContext, secrets.token_hex(8)
    context.setJobGroup(group, "a test of listings")
    yield lambda: len(context.statusTracker().getJobIdsForGroup(group))
    context.setLocalProperty("spark.jobGroup.id", None)


def test_nothing_to_do_runs_no_job(built: IndexBuilder, jobs: Callable[[], int]) -> None:
    result = built.refresh()
    assert jobs() == 0
    assert str(result.plan).endswith("0 new, 0 changed, 0 removed, 3 unchanged")
    assert result.state.checked_at >= result.state.refreshed_at
    built.refresh(RefreshMode.FULL)
    assert jobs() > 0


def test_new_changed_and_removed_files_are_noticed(
    spark: SparkSession, built: IndexBuilder, folder: Path
) -> None:
    first, second, third = sorted(path for path in folder.glob("day=*/part-*"))
    first.unlink()
    second.write_bytes(third.read_bytes())
    (folder / "day=2020-01-09").mkdir()
    third.rename(folder / "day=2020-01-09" / third.name)
    changes = str(built.refresh().plan.changes)
    assert changes == "1 new, 1 changed, 2 removed, 0 unchanged"
    assert built.refresh().plan.changes.is_empty


def test_the_mode_full_reads_again(built: IndexBuilder) -> None:
    assert built.refresh(RefreshMode.FULL).indexed == 3


@pytest.mark.parametrize(
    ("setting", "value"),
    [("spark.sql.caseSensitive", "true"), ("spark.sql.timestampType", "TIMESTAMP_NTZ")],
)
def test_another_reader_is_noticed(
    setting: str, value: str, settings: SparkSession, built: IndexBuilder, file_format: str
) -> None:
    settings.conf.set(setting, value)
    is_watched = setting == "spark.sql.caseSensitive" or file_format in ("csv", "json")
    assert built.refresh().plan.mode is (
        RefreshMode.FULL if is_watched else RefreshMode.INCREMENTAL
    )


def test_other_options_of_the_reader_are_noticed(
    spark: SparkSession, built: IndexBuilder, folder: Path, file_format: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    # Options of ORC and Parquet that change values are not on the list by themselves.
    allowed = Allowances(options=("orc.mode", "parquet.mode"))
    monkeypatch.setenv(ALLOW_VARIABLE, allowed.dump_json())
    other = on(spark, folder, file_format, tmp_path, mode="FAILFAST")
    assert other.refresh().plan.mode is RefreshMode.FULL


def test_a_listing_has_the_partitions_that_opening_has(
    spark: SparkSession, built: IndexBuilder, folder: Path, file_format: str
) -> None:
    listing = file_listing_of(
        spark, str(folder), f"file:{folder}", file_format, OPTIONS[file_format]
    )
    definition = built.describe().definition
    assert listing is not None
    assert definition is not None
    assert listing.target == definition.target
    assert listing.reads_alike(definition)
    assert listing.list_files("day > DATE '2020-01-01'").num_rows == 2


@pytest.mark.parametrize("path", ["gone", "[0-9]*"])
def test_there_is_no_listing_of_what_cannot_be_opened(
    path: str, spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text(json.dumps({"id": 1}))
    place = str(tmp_path / path)
    assert file_listing_of(spark, place, f"file:{place}", "json", {}) is None
