"""Every failure keeps every file, and is counted."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from support.skipping.skippingrule import SETTINGS

from snaploom.skipping.spark.optimizer import rule


def raises(request: str) -> str | None:
    raise ValueError("no metadata")


WRONG: dict[str, tuple[Callable[[str], str | None], str]] = {
    "raises": (raises, "ValueError: no metadata"),
    "too short": (lambda request: "1", "an answer about 1 files of 4"),
    "too long": (lambda request: "10000", "an answer about 5 files of 4"),
    "signs": (lambda request: "10x1", "neither 0 nor 1"),
    "type": (lambda request: 7, "an answer about 1 files of 4"),
}


@pytest.mark.parametrize(("decider", "message"), WRONG.values(), ids=WRONG)
def test_wrong_answer_keeps_all_files_and_is_counted(
    spark: SparkSession, parts: str, decider: Callable[[str], str | None], message: str
) -> None:
    before, _ = rule.errors(spark)
    rule.install(spark, decider, SETTINGS)
    assert spark.read.parquet(parts).where("id >= 0").count() == 40
    after, text = rule.errors(spark)
    rule.uninstall(spark)
    assert after > before
    assert message in text


def test_concern_that_raises_does_not_change_the_query(spark: SparkSession, parts: str) -> None:
    rule.install(spark, lambda request: "0000", SETTINGS, raises)
    assert spark.read.parquet(parts).where("id >= 0").count() == 40
    rule.uninstall(spark)
    assert rule.errors(spark)[1] == "ValueError: no metadata"


def test_no_answer_leaves_the_plan_as_it_was(spark: SparkSession, parts: str) -> None:
    rule.install(spark, lambda request: None, SETTINGS)
    frame = spark.read.parquet(parts).where("id >= 0")
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    rule.uninstall(spark)
    assert frame.count() == 40
    assert "skipping" not in plan
