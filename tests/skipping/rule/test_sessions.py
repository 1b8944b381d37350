"""Sessions in which the rule is installed, and stays."""

from collections.abc import Callable

import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import SETTINGS, KeepNamed

from snaploom.skipping.spark.optimizer import requests


def rules(spark: SparkSession) -> list[str]:
    found = spark._jsparkSession.experimental().extraOptimizations().iterator()
    names = []
    while found.hasNext():
        names.append(found.next().getClass().getSimpleName())
    return names


def replace_rules(spark: SparkSession) -> None:
    converters = spark._jvm.scala.jdk.javaapi.CollectionConverters
    empty = converters.asScala(spark._jvm.java.util.ArrayList()).toSeq()
    getattr(spark._jsparkSession.experimental(), "extraOptimizations_$eq")(empty)


def module(spark: SparkSession, name: str) -> JavaObject:
    return getattr(getattr(spark._jvm, f"{name}$"), "MODULE$")


def test_installing_again_adds_no_second_rule(spark: SparkSession, decider: KeepNamed) -> None:
    requests.install(spark, decider, SETTINGS)
    assert rules(spark).count("SkippingRule") == 1


def test_uninstalled_session_reads_everything(spark, decider, parts):
    requests.uninstall(spark)
    assert not requests.is_installed(spark)
    assert spark.read.parquet(parts).where("id >= 0").count() == 40


def test_new_session_has_the_rule(spark: SparkSession, decider: KeepNamed, parts: str) -> None:
    session = spark.newSession()
    assert session.read.parquet(parts).where("id >= 0").count() == 10
    assert requests.is_installed(session)


def test_rule_survives_a_replaced_list(spark: SparkSession, decider: KeepNamed, parts: str) -> None:
    replace_rules(spark)
    assert rules(spark) == []
    assert spark.read.parquet(parts).where("id >= 0").count() == 10


def test_rules_of_others_stay(spark: SparkSession, decider: KeepNamed) -> None:
    replace_rules(spark)
    others = module(spark, "org.apache.spark.sql.catalyst.optimizer.EliminateLimits")
    experimental = spark._jsparkSession.experimental()
    appended = experimental.extraOptimizations().appended(others)
    getattr(experimental, "extraOptimizations_$eq")(appended)
    requests.install(spark, decider, SETTINGS)
    assert rules(spark)[-1] == "SkippingRule"
    assert len(rules(spark)) == 2
    replace_rules(spark)


@pytest.mark.parametrize(("value", "rows"), [("false", 40), ("true", 10)])
def test_setting_switches_the_rule(spark, decider, parts, value, rows, set_conf):
    set_conf("spark.snaploom.skipping.enabled", value)
    assert spark.read.parquet(parts).where("id >= 0").count() == rows


def test_settings_come_from_the_running_session(spark, decider, parts, set_conf):
    set_conf("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.read.parquet(parts).where("id >= 0").collect()
    settings = decider.requests[-1].header["settings"]
    assert settings == {"spark.sql.not.set": None, "spark.sql.session.timeZone": "Asia/Tokyo"}


def test_setting_changed_after_planning_asks_again(spark, decider, parts, set_conf):
    frame = spark.read.parquet(parts).where("id >= 0")
    frame._jdf.queryExecution().optimizedPlan()
    set_conf("spark.sql.session.timeZone", "Asia/Tokyo")
    frame.collect()
    assert [request.header["mode"] for request in decider.requests] == ["estimate", "list"]


def test_relation_of_a_session_with_other_settings_is_not_pruned(spark, decider, parts):
    spark.read.parquet(parts).createOrReplaceGlobalTempView("everywhere")
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert other.sql("SELECT * FROM global_temp.everywhere WHERE id >= 0").count() == 40
    spark.catalog.dropGlobalTempView("everywhere")


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
def test_wrong_answer_keeps_all_files_and_is_counted(spark, parts, decider, message):
    before, _ = requests.errors(spark)
    requests.install(spark, decider, SETTINGS)
    assert spark.read.parquet(parts).where("id >= 0").count() == 40
    after, text = requests.errors(spark)
    requests.uninstall(spark)
    assert after > before
    assert message in text


def test_concern_that_raises_does_not_change_the_query(spark: SparkSession, parts: str) -> None:
    requests.install(spark, lambda request: "0000", SETTINGS, raises)
    assert spark.read.parquet(parts).where("id >= 0").count() == 40
    requests.uninstall(spark)
    assert requests.errors(spark)[1] == "ValueError: no metadata"


def test_no_answer_leaves_the_plan_as_it_was(spark: SparkSession, parts: str) -> None:
    requests.install(spark, lambda request: None, SETTINGS)
    frame = spark.read.parquet(parts).where("id >= 0")
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    requests.uninstall(spark)
    assert frame.count() == 40
    assert "skipping" not in plan
