"""Sessions in which the rule is installed, and stays."""

import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from support.skipping.skippingrule import SETTINGS, KeepNamed, SetConf

from snaploom.skipping.spark.optimizer import rule


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
    """The instance of a Scala object."""
    return getattr(getattr(spark._jvm, f"{name}$"), "MODULE$")


def test_installing_again_adds_no_second_rule(spark: SparkSession, decider: KeepNamed) -> None:
    rule.install(spark, decider, SETTINGS)
    assert rules(spark).count("SkippingRule") == 1


def test_uninstalled_session_reads_everything(
    spark: SparkSession, decider: KeepNamed, parts: str
) -> None:
    rule.uninstall(spark)
    assert not rule.is_installed(spark)
    assert spark.read.parquet(parts).where("id >= 0").count() == 40


def test_new_session_has_the_rule(spark: SparkSession, decider: KeepNamed, parts: str) -> None:
    session = spark.newSession()
    assert session.read.parquet(parts).where("id >= 0").count() == 10
    assert rule.is_installed(session)


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
    rule.install(spark, decider, SETTINGS)
    assert rules(spark)[-1] == "SkippingRule"
    assert len(rules(spark)) == 2
    replace_rules(spark)


@pytest.mark.parametrize(("value", "rows"), [("false", 40), ("true", 10)])
def test_setting_switches_the_rule(
    spark: SparkSession,
    decider: KeepNamed,
    parts: str,
    value: str,
    rows: int,
    set_conf: SetConf,
) -> None:
    set_conf("spark.snaploom.skipping.enabled", value)
    assert spark.read.parquet(parts).where("id >= 0").count() == rows


def test_settings_come_from_the_running_session(
    spark: SparkSession, decider: KeepNamed, parts: str, set_conf: SetConf
) -> None:
    set_conf("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.read.parquet(parts).where("id >= 0").collect()
    settings = decider.requests[-1].header["settings"]
    assert settings == {"spark.sql.not.set": None, "spark.sql.session.timeZone": "Asia/Tokyo"}


def test_setting_changed_after_planning_asks_again(
    spark: SparkSession, decider: KeepNamed, parts: str, set_conf: SetConf
) -> None:
    frame = spark.read.parquet(parts).where("id >= 0")
    frame._jdf.queryExecution().optimizedPlan()
    set_conf("spark.sql.session.timeZone", "Asia/Tokyo")
    frame.collect()
    assert [request.header["mode"] for request in decider.requests] == ["estimate", "list"]


def test_relation_of_a_session_with_other_settings_is_not_pruned(
    spark: SparkSession, decider: KeepNamed, parts: str
) -> None:
    spark.read.parquet(parts).createOrReplaceGlobalTempView("everywhere")
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert other.sql("SELECT * FROM global_temp.everywhere WHERE id >= 0").count() == 40
    spark.catalog.dropGlobalTempView("everywhere")
