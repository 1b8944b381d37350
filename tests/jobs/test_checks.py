"""Checks of the output's rows: measured before publication, shown in manifest and Report."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from support.weaving.loom import Loom, ids

from snaploom.engine.expectations import Expectations
from snaploom.models.common import CheckMode
from snaploom.run.runevents import Warned

pytestmark = pytest.mark.spark


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    """One day of three orders, of which two have a customer."""
    loom = Loom(tmp_path)
    loom.write("order", 1, [{"id": 1, "amount": 5}, {"id": 2, "amount": 7}, {"id": 2, "amount": 9}])
    loom.write("customer", 1, ids(1, 2))
    loom.join("customer")
    return loom


def expect(loom: Loom, *checks: tuple[str, str]) -> None:
    loom.spec["checks"] = [
        {"name": f"c{number}", "expression": text, "mode": mode}
        for number, (text, mode) in enumerate(checks)
    ]


def test_checks_that_hold_are_published_and_reported_everywhere(spark, loom) -> None:
    expressions = [
        "count(*) > 0",
        "data.amount >= 5",
        "count(DISTINCT data.id) = 2",
        "sum(data.amount) FILTER (WHERE data.id = 2) = 16",
        "bool_and(customer.data.id = data.id)",
    ]
    expect(loom, *((text, "FAIL") for text in expressions))
    report = loom.weave(spark).report
    (record,), (reported,) = loom.state().snapshots, report.snapshots
    assert [check.holds for check in reported.checks] == [True] * 5
    assert reported.checks == record.checks == report.newest.checks


@pytest.mark.parametrize(
    ("expression", "measured"),
    [
        ("count(*) > 3", "COUNT(*) = 3"),
        ("count(DISTINCT data.amount) = 2", "COUNT(DISTINCT data.amount) = 3"),
        ("data.amount > 5", "1 rows break it"),
        ("nullif(data.amount, 7) > 0", "1 rows break it"),
        ("avg(nullif(data.amount, data.amount)) > 0", "= None"),
    ],
)
def test_what_does_not_hold_is_not_published(spark, loom, expression, measured) -> None:
    expect(loom, (expression, "FAIL"))
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "check_failed"}
    assert measured in woven.report.failed[0].message
    assert woven.report.reason == "CheckFailed"
    assert (loom.live_days(), loom.is_clean()) == ([], True)


def test_too_few_matches_publish_nothing_and_warn_where_that_is_wanted(spark, loom) -> None:
    loom.write("customer", 1, ids(1))
    loom.others[0]["matchedRows"] = {"atLeast": 0.5}
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "check_failed"}
    assert "1 of 3 rows found a match (33.33%" in woven.report.failed[0].message
    assert (loom.live_days(), loom.is_clean()) == ([], True)
    loom.others[0]["matchedRows"]["mode"] = "WARN"
    (published,) = loom.weave(spark).report.snapshots
    assert "matchedRows.atLeast is 0.5" in published.warnings[0]


def test_a_warning_publishes_and_shows_what_was_measured(spark, loom) -> None:
    expect(loom, ("data.amount < 9", "WARN"), ("gone.data.id > 0", "WARN"))
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "PUBLISHED"}
    reported = woven.report.snapshots[0].checks
    assert [(check.name, check.mode, check.holds) for check in reported] == [
        ("c0", CheckMode.WARN, False),
        ("c1", CheckMode.WARN, False),
    ]
    assert reported[0].measured == "1 rows break it"
    assert "cannot be measured" in reported[1].measured
    assert len(woven.events_of(Warned)) == 2


def test_counts_of_a_group_with_a_failed_task_are_taken_again(spark, loom, tmp_path) -> None:
    """Rule W25: tasks that failed may have added to what was observed."""
    expect(loom, ("count(*) = 3", "FAIL"))
    table = tmp_path / "sources/order/2024-01-01/part.parquet"
    frame = spark.read.parquet(str(table)).selectExpr("struct(*) AS data")
    asked = []
    for group, broken in (("sound", "1"), ("suspect", "raise_error('no')")):
        spark.sparkContext.setJobGroup(group, group)
        expectations = Expectations(loom.bundle().output, frame)
        expectations.frame.write.parquet(str(tmp_path / group))
        with suppress(Exception):
            spark.range(1).selectExpr(broken).collect()

        def staged(group: str = group) -> DataFrame:
            asked.append(group)
            return spark.read.parquet(str(tmp_path / group))

        assert [one.holds for one in expectations.settle(spark, group, staged)] == [True]
    assert asked == ["suspect"]


@pytest.mark.parametrize("expression", ["gone.data.id > 0", "data.amount + 1"])
def test_what_cannot_be_measured_is_not_published(spark, loom, expression) -> None:
    expect(loom, (expression, "FAIL"))
    report = loom.weave(spark).report
    assert (report.reason, report.failed[0].path) == ("CheckInvalid", "spec.checks[0].expression")
    assert loom.live_days() == []


def test_root_key_that_is_not_unique_is_refused_with_its_keys(spark, loom) -> None:
    loom.spec["dataModel.rootDataSource.rootKey"] = ["ID"]
    report = loom.weave(spark).report
    assert "rootKey: (2) in 2 rows" in report.failed[0].message
    assert "WARN" not in report.failed[0].message
    assert "name columns in rootKey that identify a row" in report.failed[0].message
    loom.spec["dataModel.rootDataSource.rootKey"] = ["id", "amount"]
    (reported,) = loom.weave(spark).report.snapshots
    assert [(check.name, check.holds) for check in reported.checks] == [("rootKey", True)]


def test_null_in_a_root_key_is_refused(spark, loom) -> None:
    loom.write("order", 1, [{"id": 1}, {"id": None}])
    loom.spec["dataModel.rootDataSource.rootKey"] = ["id"]
    assert "(None) in 1 rows" in loom.weave(spark).report.failed[0].message
