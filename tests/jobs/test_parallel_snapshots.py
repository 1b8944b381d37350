"""Snapshots woven beside each other give what they give one after the other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.weaving.loom import Loom, ids

import snaploom
from snaploom.models.report import Report, RunPhase
from snaploom.output.folder import CrashPoint
from snaploom.run.runevents import Interruption, SnapshotPublished
from snaploom.run.weaving.requests import RunOptions

pytestmark = pytest.mark.spark
DAYS = range(1, 6)
TOGETHER = RunOptions(parallel_snapshots=3)
PATIENCE = 120
"""Seconds after which two snapshots that do not meet are a failure."""


def shop(folder: Path) -> Loom:
    """Orders of five days; customers change on the fourth, items never."""
    loom = Loom(folder)
    window = {"snapshot": {"timeBefore": {"day": 30}}}
    for day in DAYS:
        loom.write("order", day, ids(*range(day)))
    for day in (1, 4):
        loom.write("customer", day, [{"id": n, "name": f"c{n} of {day}"} for n in (0, 2)])
    loom.write("item", 1, [{"id": 1, "n": n} for n in (2, 1)])
    loom.join("customer", **window)
    loom.join("item", transformations={"groupBy": {"fieldNames": ["id"]}}, **window)
    return loom


def facts(report: Report) -> list[tuple]:
    return [
        (s.time, s.rows, s.joins, [(one.source, one.time) for one in s.sources], s.excluded)
        for s in report.snapshots
    ]


def rows(loom: Loom, spark: SparkSession) -> list[str]:
    return sorted(str(row) for row in snaploom.read(spark, loom.uri).collect())


@pytest.mark.parametrize("most", [2, 5])
def test_rows_counts_and_order_are_those_of_one_after_the_other(spark, tmp_path, most) -> None:
    single, beside = shop(tmp_path / "single"), shop(tmp_path / "beside")
    expected = single.weave(spark).report
    report = beside.weave(spark, options=RunOptions(parallel_snapshots=most)).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert facts(report) == facts(expected)
    assert rows(beside, spark) == rows(single, spark)
    records = beside.state().snapshots
    assert [record.seq for record in records] == sorted(record.seq for record in records)
    assert beside.is_clean()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


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
def test_failure_in_the_middle_has_the_outcomes_of_one_after_the_other(
    spark, tmp_path, keep_going
) -> None:
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
    loom, interruption = shop(tmp_path), Interruption()

    def emit(event: object) -> None:
        if isinstance(event, SnapshotPublished):
            interruption.request()

    woven = loom.weave(spark, emit=emit, interruption=interruption, options=TOGETHER)
    assert woven.report.phase is RunPhase.INTERRUPTED
    assert loom.live_days() == [1]
    assert loom.is_clean()


def test_retention_deletes_what_it_would_one_after_the_other(spark, tmp_path) -> None:
    loom = shop(tmp_path)
    loom.folder["snapshotAutoDelete"] = {"maxOldSnapshots": 1}
    report = loom.weave(spark, options=TOGETHER).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert loom.live_days() == [4, 5]
