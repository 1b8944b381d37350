"""Outputs sorted through their declarations, and indexes over them afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from support.declared.shop import CommandResult, snaploom
from support.weaving.flightsfolder import ROWS, published_folder, sort_quietly, state_of
from support.weaving.loom import NOW, OUTPUT, Loom, ids

from snaploom import skipping
from snaploom.reader import read
from snaploom.skipping.core.valueorder import SortRequest
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import PathName


@pytest.fixture
def base(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    base = str(tmp_path / "indexes")
    skipping.enable(spark, base)
    yield base
    skipping.disable(spark)


@pytest.fixture
def loom(spark: SparkSession, tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    for day in (1, 2):
        loom.write("order", day, ids(*range(10, 0, -1)))
    return loom


def declared_index(loom: Loom) -> Path:
    path = loom.place / "index.yaml"
    document = {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "SkippingIndex",
        "metadata": {"name": "by-id"},
        "spec": {
            "target": {"outputDataset": OUTPUT},
            "store": {"parquet": {"location": str(loom.place / "indexes")}},
            "indexes": [{"type": "MIN_MAX", "column": "data.id"}],
            "refresh": {"trigger": "ON_PUBLISH"},
        },
    }
    path.write_text(yaml.safe_dump(document))
    return path


def indexed_files(loom: Loom, index: Path) -> dict[str, int]:
    result = snaploom("index", "describe", "by-id", "-f", loom.save(), index, "-o", "json")
    files: dict[str, int] = result.document["files"]
    return {name: count for name, count in files.items() if count}


def sort(loom: Loom, name: str, *options: object) -> CommandResult:
    flag = "--acknowledge-readers"
    return snaploom("index", "sort", name, "-f", loom.save(), "--by", "data.id", flag, *options)


def kept(spark: SparkSession, root: Path, condition: str) -> tuple[int, int, int]:
    """Rows, files listed and files kept, of one query."""
    frame = read(spark, str(root)).where(condition)
    skipping.reset_statistics(spark)
    rows = len(frame.collect())
    (decided,) = skipping.statistics(spark).recent
    return rows, decided.files, decided.kept_files


def test_a_selective_query_reads_fewer_files_afterwards(spark, tmp_path, base):
    root = tmp_path / "flights"
    published_folder(spark, root)
    files = PathName("parquet", f"{root}/data")
    skipping_index(spark, base).on_path(files.path).add_min_max("data.flight").build()
    selective = "data.flight BETWEEN 100 AND 119"
    assert kept(spark, root, selective) == (20, 4, 4)
    size = sum(file.bytes for file in state_of(root).snapshots[0].files) // 4
    sort_quietly(root, SortRequest(("data.flight",), target_file_size=size))
    rows, new, unknown = kept(spark, root, selective)
    assert (rows, unknown) == (20, new)
    SkippingIndexes(spark, base).refresh(files)
    assert kept(spark, root, selective) == (20, new, 1)
    assert read(spark, str(root)).count() == ROWS


def test_an_output_is_sorted_and_its_indexes_follow(loom: Loom, tmp_path: Path) -> None:
    index = declared_index(loom)
    published = snaploom("run", OUTPUT, "-f", loom.save(), index, "--now", NOW)
    assert published.code == 0, published.err
    old = sum(len(record.files) for record in loom.state().snapshots)
    assert indexed_files(loom, index) == {"indexed": old}
    result = sort(loom, OUTPUT, "-f", index, "-o", "json")
    assert (result.code, len(result.document["snapshots"])) == (0, 2), result.err
    new = sum(len(record.files) for record in loom.state().snapshots)
    assert indexed_files(loom, index) == {"indexed": old + new}
    assert snaploom("gc", loom.uri, "--grace", "0s", "--below-reader-grace").code == 0
    refreshed = snaploom("index", "apply", "-f", loom.save(), index)
    assert refreshed.code == 0, refreshed.err
    assert indexed_files(loom, index) == {"indexed": new}
    assert loom.is_clean()


def test_an_index_names_the_output_that_it_is_about(spark: SparkSession, loom: Loom) -> None:
    loom.weave(spark)
    result = sort(loom, "by-id", "-f", declared_index(loom))
    assert result.code == 0, result.err
    assert "2 snapshots sorted" in result.out
    assert "were not refreshed" not in result.out


def test_a_folder_without_declarations_does_not_refresh_indexes(spark, loom):
    loom.weave(spark)
    result = snaploom("index", "sort", loom.uri, "--by", "data.id", "--acknowledge-readers")
    assert result.code == 0, result.err
    assert "were not refreshed" in result.out


def test_a_folder_of_other_settings_is_refused_and_unchanged(spark, loom):
    loom.weave(spark)
    before = loom.state()
    loom.folder = {"dataFormat": "AVRO"}
    result = sort(loom, OUTPUT)
    assert (result.code, "begun with other settings" in result.err) == (1, True), result.err
    assert loom.state() == before


def test_an_output_that_never_ran_has_nothing_to_sort(loom: Loom) -> None:
    result = sort(loom, OUTPUT)
    assert result.code == 1
    assert not loom.out.exists()


def test_the_next_run_and_retention_go_on_from_the_new_versions(spark, loom):
    loom.weave(spark)
    assert sort(loom, OUTPUT).code == 0
    loom.write("order", 3, ids(7))
    loom.folder = {"snapshotAutoDelete": {"maxOldSnapshots": 1}}
    report = loom.weave(spark).report
    assert [snapshot.time for snapshot in report.snapshots] == ["2024-01-03T00:00:00Z"]
    assert loom.live_days() == [2, 3]
    assert [ended.rule for ended in loom.state().tombstones] == [
        "REPLACED", "REPLACED", "maxOldSnapshots",
    ]  # fmt: skip
    assert read(spark, loom.uri).count() == 11
