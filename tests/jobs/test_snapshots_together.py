"""Snapshots woven by one job (`run.snapshotsPerJob`), or beside each other, are as one by one."""

import threading
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from support.weaving.loom import Loom, Woven, ids

import snaploom
from snaploom.engine import latecounts
from snaploom.engine.rowcounts import Weaving
from snaploom.engine.write import Folders
from snaploom.errors import SourceNotReadable
from snaploom.models.common import now
from snaploom.models.report import Report, RunPhase
from snaploom.output.folder import CrashPoint
from snaploom.output.gc import find_garbage
from snaploom.run.runevents import Interruption, JoinPlanned, SnapshotPublished
from snaploom.run.weaving import ahead
from snaploom.run.weaving.ahead import SnapshotsAhead
from snaploom.run.weaving.requests import RunOptions

pytestmark = pytest.mark.spark
DAYS = range(1, 6)
PER_JOB = "run.snapshotsPerJob"
TOGETHER = RunOptions(parallel_snapshots=3)
PATIENCE = 120
"""Seconds after which two snapshots that do not meet are a failure."""
FORMATS = [
    {"dataFormat": "PARQUET", "dataCompression": "SNAPPY"},
    {"dataFormat": "AVRO"},
    {"dataFormat": "JSONL", "dataCompression": "GZIP"},
    {"columnMetadata": "MANIFEST"},
    {"clusterBy": ["data.id"], "targetFileSizeMiB": 1},
]


def shop(folder: Path, per_job: int = 12) -> Loom:
    """Orders of five days; customers change on the fourth, items never; some keys are NULL."""
    loom = Loom(folder, spec={PER_JOB: per_job})
    window = {"snapshot": {"timeBefore": {"day": 30}}}
    for day in DAYS:
        loom.write("order", day, [*ids(*range(day)), {"id": None}])
    for day in (1, 4):
        loom.write("customer", day, [{"id": n, "name": f"c{n} of {day}"} for n in (0, 2)])
    loom.write("item", 1, [{"id": 1, "n": n} for n in (2, 1)])
    loom.join("customer", **window)
    loom.join("item", transformations={"groupBy": {"fieldNames": ["id"]}}, **window)
    return loom


def facts(report: Report) -> list[tuple[Any, ...]]:
    return [
        (s.time, s.rows, s.joins, s.checks, times, s.excluded, s.warnings)
        for s in report.snapshots
        for times in ([(one.source, one.time) for one in s.sources],)
    ]


def rows(loom: Loom, spark: SparkSession) -> list[str]:
    return sorted(str(row) for row in snaploom.read(spark, loom.uri).collect())


@dataclass(frozen=True)
class OneByOne:
    """What a run publishes that weaves one snapshot after the other."""

    facts: list[tuple[Any, ...]]
    rows: list[str]
    joins_planned: int


@pytest.fixture(scope="module")
def one_by_one(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> OneByOne:
    loom = shop(tmp_path_factory.mktemp("single"), 1)
    woven = loom.weave(spark)
    return OneByOne(facts(woven.report), rows(loom, spark), len(woven.events_of(JoinPlanned)))


def kept_rows(spark: SparkSession) -> int:
    """Frames that Spark keeps."""
    return spark.sparkContext._jsc.getPersistentRDDs().size()


@pytest.mark.parametrize("per_job", [2, 12])
def test_rows_counts_and_order_are_those_of_one_by_one(
    spark, tmp_path, monkeypatch, one_by_one, per_job
) -> None:
    together = shop(tmp_path, per_job)
    monkeypatch.setattr(
        latecounts, "counts_are_late", lambda _, form: per_job == 12 and form.value == "PARQUET"
    )
    woven = together.weave(spark)
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert facts(woven.report) == one_by_one.facts
    assert rows(together, spark) == one_by_one.rows
    # Two joins a job: of days 1 to 3 and 4 to 5, or of 1 to 2, 3, and 4 to 5.
    jobs = {2: 3, 12: 2}[per_job]
    assert len(woven.events_of(JoinPlanned)) == 2 * jobs
    assert one_by_one.joins_planned == 2 * len(DAYS)
    assert together.is_clean()
    assert kept_rows(spark) == 0


@pytest.mark.parametrize("spread_by", [["id"], []], ids=str)
@pytest.mark.parametrize(("values", "tasks"), [(1, 1), (3, 1), (5, 3), (12, 2)])
def test_tasks_write_files_of_one_snapshot_each(spark, tmp_path, values, tasks, spread_by) -> None:
    numbers = spark.range(200).select((sf.col("id") % values).cast("int").alias("n"), "id")
    folders = Folders("n", values, tasks)
    folders.brought_together(numbers, list(map(sf.col, spread_by))).write.parquet(f"{tmp_path}/out")
    found = [
        (folders.folder_of(file.name), row["id"])
        for file in (tmp_path / "out").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    ]
    assert sorted(found, key=itemgetter(1)) == [(f"n={n % values}", n) for n in range(200)]


@pytest.mark.long
@pytest.mark.parametrize("folder", FORMATS, ids=str)
def test_every_kind_of_file_holds_the_rows_of_its_snapshot(spark, tmp_path, folder) -> None:
    single, together = shop(tmp_path / "single", 1), shop(tmp_path / "together")
    for loom in (single, together):
        loom.folder |= folder
    expected = single.weave(spark).report
    assert facts(together.weave(spark).report) == facts(expected)
    assert rows(together, spark) == rows(single, spark)
    schemas = [record.schema_hash for record in together.state().snapshots]
    assert schemas == [record.schema_hash for record in single.state().snapshots]
    assert together.is_clean()


def test_expectations_are_measured_on_each_snapshot(spark, tmp_path) -> None:
    outcomes = []
    for per_job in (1, 12):
        loom = shop(tmp_path / str(per_job), per_job)
        loom.write("order", 3, [*ids(0, 1, 1), {"id": None}])
        few = {"name": "few", "expression": "count(*) < 5", "mode": "WARN"}
        loom.spec["checks"] = [few, {"name": "small", "expression": "max(data.id) < 4"}]
        report = loom.weave(spark).report
        outcomes.append((facts(report), [s.time for s in report.failed], report.message))
        assert loom.live_days() == [1, 2, 3, 4]
        assert loom.is_clean()
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("keep_going", [False, True])
def test_snapshot_whose_rows_multiply_fails_by_itself(spark, tmp_path, keep_going) -> None:
    outcomes = []
    for per_job in (1, 12):
        loom = shop(tmp_path / str(per_job), per_job)
        loom.write("customer", 1, ids(2, 2))
        woven = loom.weave(spark, options=RunOptions(keep_going=keep_going))
        outcomes.append((woven.outcomes, woven.report.message))
        assert loom.is_clean()
        assert kept_rows(spark) == 0
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0][3] == "rows_multiplied"
    assert outcomes[0][0][2] == "PUBLISHED"


def test_snapshots_with_other_columns_or_without_rows_are_woven_by_themselves(spark, tmp_path):
    loom = shop(tmp_path)
    loom.write("order", 2, pa.table({"id": pa.array([], pa.int64())}))
    loom.write("order", 3, [{"id": 1, "more": 1}])
    woven = loom.weave(spark)
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert [snapshot.rows for snapshot in woven.report.snapshots] == [2, 0, 1, 5, 6]
    # Two joins for each job: days 1 and 2, then 2 since it has no rows, then 3, then 4 and 5.
    assert len(woven.events_of(JoinPlanned)) == 2 * 4
    assert all(record.files for record in loom.state().snapshots)
    assert loom.is_clean()


@pytest.mark.parametrize("column", ["_snapshot", "_SNAPSHOT"])
def test_column_with_the_name_of_the_number_keeps_its_values(spark, tmp_path, column) -> None:
    loom = Loom(tmp_path, spec={PER_JOB: 12})
    for day in (1, 2):
        loom.write("order", day, [{"id": 1, column: 70 + day}])
    loom.weave(spark)
    found = snaploom.read(spark, loom.uri).selectExpr(f"data.{column}").collect()
    assert sorted(row[0] for row in found) == [71, 72]


def weave_the_first(loom: Loom, spark: SparkSession) -> Woven:
    """Interrupt a run when it has published one snapshot."""
    interruption = Interruption()

    def emit(event: object) -> None:
        if isinstance(event, SnapshotPublished):
            interruption.request()

    return loom.weave(spark, emit=emit, interruption=interruption)


def test_interruption_removes_what_was_woven_ahead(spark, tmp_path) -> None:
    loom = shop(tmp_path)
    woven = weave_the_first(loom, spark)
    assert woven.report.phase is RunPhase.INTERRUPTED
    assert loom.live_days() == [1]
    assert loom.is_clean()


def test_files_that_a_dead_run_wove_ahead_are_found_as_garbage(spark, tmp_path, monkeypatch):
    loom = shop(tmp_path)
    monkeypatch.setattr(SnapshotsAhead, "forget", lambda self: None)  # a dead run removes nothing
    weave_the_first(loom, spark)
    folder, state = loom.opened(), loom.state()
    left = loom.data_files() - set(state.live_files)
    assert len(left) >= 2
    assert {item.key for item in find_garbage(folder.store, state, now(), 0, "data/")} >= left


def test_failed_common_job_leads_to_snapshots_one_by_one(spark, tmp_path, monkeypatch, one_by_one):
    together = shop(tmp_path)
    groups: list[object] = []

    def settle(self: Weaving, *args: object) -> object:
        groups.append(args[1])
        if self.weave.snapshots > 1:
            raise SourceNotReadable("an executor is gone", hint="run again")
        return original(self, *args)

    original = Weaving.settle
    monkeypatch.setattr(Weaving, "settle", settle)
    assert facts(together.weave(spark).report) == one_by_one.facts
    assert together.is_clean()
    assert kept_rows(spark) == 0
    # Jobs of a snapshot are not in the group of those that failed, or all would be counted again.
    assert len([group for group in groups if str(group).endswith("-together")]) == 2
    assert len(groups) == 2 + len(DAYS)


def test_files_of_a_failed_common_job_are_gone_before_the_next_snapshot(
    spark, tmp_path, monkeypatch
) -> None:
    loom = shop(tmp_path)
    original = Weaving.settle
    staged: list[set[str]] = []

    def settle(self: Weaving, *args: object) -> object:
        files = {file for file in loom.data_files() if "/_snapshot=" in file}
        if self.weave.snapshots > 1:
            assert files
            raise SourceNotReadable("an executor is gone", hint="run again")
        staged.append(files)
        return original(self, *args)

    monkeypatch.setattr(Weaving, "settle", settle)
    assert loom.weave(spark).report.phase is RunPhase.SUCCEEDED
    assert staged == [set()] * len(DAYS)


def test_root_of_unknown_size_is_woven_one_by_one(spark, tmp_path, monkeypatch) -> None:
    def unknown(frame: object) -> int:
        raise SourceNotReadable("no estimate", hint="run again")

    monkeypatch.setattr(ahead, "_estimated_bytes", unknown)
    loom = shop(tmp_path)
    woven = loom.weave(spark)
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert len(woven.events_of(JoinPlanned)) == 2 * len(DAYS)


@pytest.mark.parametrize("most", [2, 5])
def test_rows_counts_and_order_are_those_of_one_after_the_other(spark, tmp_path, one_by_one, most):
    beside = shop(tmp_path, 1)
    report = beside.weave(spark, options=RunOptions(parallel_snapshots=most)).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert facts(report) == one_by_one.facts
    assert rows(beside, spark) == one_by_one.rows
    records = beside.state().snapshots
    assert [record.seq for record in records] == sorted(record.seq for record in records)
    assert beside.is_clean()
    assert kept_rows(spark) == 0


def test_snapshots_are_under_way_at_the_same_time(spark, tmp_path) -> None:
    loom = Loom(tmp_path)
    for day in (1, 2):
        loom.write("order", day, ids(day))
    meeting = threading.Barrier(2, timeout=PATIENCE)

    def reached(point: CrashPoint) -> None:
        if point is CrashPoint.BEFORE_STAGING:
            meeting.wait()

    woven = loom.weave(spark, reached=reached, options=TOGETHER)
    assert woven.outcomes == {1: "PUBLISHED", 2: "PUBLISHED"}


@pytest.mark.parametrize("keep_going", [False, True])
def test_failure_in_the_middle_has_the_outcomes_of_one_after_the_other(spark, tmp_path, keep_going):
    outcomes = []
    for most in (1, 3):
        loom = Loom(tmp_path / str(most))
        for day in DAYS:
            loom.write("order", day, [{"id": 1, "price": "one" if day == 2 else 1}])
        options = RunOptions(parallel_snapshots=most, keep_going=keep_going)
        outcomes.append(loom.weave(spark, options=options).outcomes)
        assert loom.is_clean()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][2] == "history_incompatible"
    assert outcomes[0][3] == ("PUBLISHED" if keep_going else "EARLIER_FAILURE")


def test_interruption_leaves_what_is_published_and_nothing_else(spark, tmp_path) -> None:
    loom, interruption = shop(tmp_path, 1), Interruption()

    def emit(event: object) -> None:
        if isinstance(event, SnapshotPublished):
            interruption.request()

    woven = loom.weave(spark, emit=emit, interruption=interruption, options=TOGETHER)
    assert woven.report.phase is RunPhase.INTERRUPTED
    assert loom.live_days() == [1]
    assert loom.is_clean()


def test_retention_deletes_what_it_would_one_after_the_other(spark, tmp_path) -> None:
    loom = shop(tmp_path, 1)
    loom.folder["snapshotAutoDelete"] = {"maxOldSnapshots": 1}
    report = loom.weave(spark, options=TOGETHER).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert loom.live_days() == [4, 5]
