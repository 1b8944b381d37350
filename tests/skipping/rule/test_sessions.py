"""Where the rule is, and stays."""

import pytest
from pyspark.sql import SparkSession
from support.skippingrule import SETTINGS, KeepNamed

from snaploom.skipping.spark import rule


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
    others = spark._jvm.org.apache.spark.sql.catalyst.optimizer.EliminateLimits
    experimental = spark._jsparkSession.experimental()
    appended = experimental.extraOptimizations().appended(others)
    getattr(experimental, "extraOptimizations_$eq")(appended)
    rule.install(spark, decider, SETTINGS)
    assert rules(spark)[-1] == "SkippingRule"
    assert len(rules(spark)) == 2
    replace_rules(spark)


@pytest.mark.parametrize(("value", "rows"), [("false", 40), ("true", 10)])
def test_setting_switches_the_rule(
    spark: SparkSession, decider: KeepNamed, parts: str, value: str, rows: int
) -> None:
    spark.conf.set("spark.snaploom.skipping.enabled", value)
    try:
        assert spark.read.parquet(parts).where("id >= 0").count() == rows
    finally:
        spark.conf.unset("spark.snaploom.skipping.enabled")
