import json
import logging
import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import FILES, build_index, counted, last, on_and_off, write_files
from support.skipping.indexinterfaces import plan_text

from snaploom import skipping as public
from snaploom.errors import SkippingNotAvailable
from snaploom.skipping.core.predicates import WIDTH
from snaploom.skipping.spark.interfaces.enable import decider_of, explain, setting, statistics
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.spark.optimizer import requests
from snaploom.skipping.stores import catalog


def kept(frame: DataFrame) -> int:
    decider_of(frame.sparkSession).counting.reset()
    assert frame.where("id = 5").count() == 1
    recent = counted(frame.sparkSession).recent
    return recent[-1].kept_files if recent else FILES


@pytest.mark.parametrize("name", [requests.ENABLED, requests.FLINT_ENABLED])
def test_setting_switches_a_session_off(rows: DataFrame, name: str) -> None:
    with setting(rows.sparkSession, name, "false"):
        assert kept(rows) == FILES
        assert not public.is_enabled(rows.sparkSession)
    assert kept(rows) == 1


def test_evaluate_only_counts_and_drops_nothing(rows: DataFrame) -> None:
    with setting(rows.sparkSession, requests.EVALUATE_ONLY, "true"):
        frame = rows.where("id = 5")
        assert frame.rdd.getNumPartitions() > 0
        assert kept(rows) == 1
        assert last(rows.sparkSession).is_evaluated_only
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert "Skipping" not in plan


def test_enabling_twice_adds_a_location(skipping, location, folder, tmp_path):
    path = write_files(skipping, folder)
    other = str(tmp_path / "other")
    build_index(skipping, other, path, ("id",))
    assert kept(skipping.read.parquet(path)) == FILES
    public.enable(skipping, other)
    assert decider_of(skipping).bases == (location, other)
    assert kept(skipping.read.parquet(path)) == 1


def test_locations_may_come_from_the_session(skipping, folder, tmp_path):
    path = write_files(skipping, folder)
    build_index(skipping, str(tmp_path / "own"), path, ("id",))
    with setting(skipping, catalog.LOCATIONS, f"{tmp_path / 'none'}, {tmp_path / 'own'}"):
        assert kept(skipping.read.parquet(path)) == 1


def test_session_made_from_this_one_skips(skipping: SparkSession, indexed: str) -> None:
    other = skipping.newSession()
    assert public.is_enabled(other)
    assert kept(other.read.parquet(indexed)) == 1


def test_disabled_session_reads_every_file(spark: SparkSession, location: str) -> None:
    public.enable(spark, location)
    public.disable(spark)
    assert not public.is_enabled(spark)
    with pytest.raises(SkippingNotAvailable, match="not enabled"):
        public.statistics(spark)


def test_statistics_have_files_bytes_and_last_use(rows: DataFrame) -> None:
    assert kept(rows) == 1
    found = public.statistics(rows.sparkSession)
    assert (found.relations, found.served, found.dropped_files) == (1, 1, FILES - 1)
    assert 0 < found.kept_bytes < found.bytes
    (use,) = [each for each in found.indexes.values() if each.times]
    assert use.last_used > 0


def test_connect_session_gets_one_clear_message() -> None:
    module = "pyspark.sql.connect.session"
    session = type("SparkSession", (), {"__module__": module})()
    with pytest.raises(SkippingNotAvailable, match="Spark Connect session cannot skip"):
        public.enable(session)


def test_condition_that_no_index_serves_is_asked_about_once(rows: DataFrame) -> None:
    assert rows.where("odd + id = 6").groupBy("odd").count().count() == 2
    assert public.statistics(rows.sparkSession).relations == 1


def test_explanation_shows_which_index_served_what(rows: DataFrame) -> None:
    found = explain(rows.where("id = 5 and c < 'k030' and rlike(c, 'x+') and i <= d"))
    (relation,) = found.relations
    clauses = {clause.text: clause for clause in relation.indexes[0].clauses}
    assert (relation.kept_files, relation.files) == (1, 5)
    assert clauses["id = 5"].dropped == 4
    assert clauses["id = 5"].report.served_by == ("MIN_MAX(id)",)
    assert clauses["c < 'k030'"].dropped == 3
    text = str(found)
    assert "1 of 5 files" in text
    assert "compares columns with each other" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= WIDTH


def test_explanation_names_what_would_help(rows: DataFrame) -> None:
    text = " ".join(str(explain(rows.where("lower(c) = 'x' and odd + 1 = 2"))).split())
    assert "no index on lower(c)" in text
    assert "add an index over the expression lower(c)" in text
    assert "odd >= 1 AND odd <= 1" in text
    assert "what follows for its column stands beside it" in text


def test_explanation_of_what_has_no_index_or_no_condition(skipping, rows, folder):
    path = write_files(skipping, folder)
    joined = skipping.read.parquet(path).where("id > 3").join(rows, "id", "left_anti")
    text = " ".join(str(explain(joined)).split())
    assert "no skipping index of these files in" in text
    assert "not skipping: no condition of the query reaches its files" in str(
        explain(rows.select("id"))
    )


def test_explaining_counts_nothing_and_is_data(rows: DataFrame) -> None:
    found = explain(rows.where("id = 5"))
    assert statistics(rows.sparkSession).relations == 0
    (relation,) = json.loads(found.to_json())
    clauses = relation["indexes"][0]["clauses"]
    assert sorted(clause["text"] for clause in clauses) == ["id = 5", "id IS NOT NULL"]


def test_explaining_needs_an_enabled_session(spark: SparkSession, indexed: str) -> None:
    with pytest.raises(SkippingNotAvailable, match="not enabled"):
        explain(spark.read.parquet(indexed))


def test_explain_of_spark_names_index_files_and_bytes(rows: DataFrame) -> None:
    text = plan_text(rows.where("id = 5 and odd = 1"))
    size = r"\d+\.\d KiB"
    found = rf"FileScan parquet \[skipping by MIN_MAX\(id\): 1 of 5 files, {size} of {size}\]"
    assert re.search(found, text)
    assert "skipping" not in plan_text(rows.where("lower(c) <=> 'x'"))


def test_explain_of_spark_names_the_index_of_second_generation_scans(skipping, indexed):
    with setting(skipping, "spark.sql.sources.useV1SourceList", ""):
        frame = skipping.read.parquet(indexed).where("id = 5")
        text = plan_text(frame)
        assert frame.count() == 1
    assert re.search(r"BatchScan parquet \S+ \[skipping by MIN_MAX\(id\): 1 of 5 files, ", text)


INDEXED = ("a > b", "a = 7 AND c = 'x'", "contains(c, 'yy') OR b < 0", "NOT (c LIKE '%z%')")
ASKED = {
    "a > b": 1,
    "b < a": 1,
    "NOT (a <= b)": 1,
    "a <= b": FILES,
    "a > b AND a >= 0": 1,
    "c = 'x' AND a = 7": 1,
    "c = 'x' AND b >= 0 AND a = 7": 1,
    "(a = 7 AND c = 'x') OR a > b": 2,
    "b < 0 OR contains(c, 'yy')": 1,
    "c NOT LIKE '%z%'": FILES - 1,
    "c LIKE '%z%'": 1,
}
"""Conditions with the number of files that they need."""


@pytest.fixture
def path(skipping: SparkSession, location: str, folder: Path) -> str:
    """Five files: in one each a condition holds that bounds of columns cannot decide."""
    rows = skipping.range(0, 100, 1, FILES).selectExpr(
        "int(id % 20) + if(id = 5, 1, 0) a",
        "int(id % 20) b",
        "CASE WHEN id = 27 THEN 'x' WHEN id = 45 THEN 'myy'"
        " WHEN id DIV 20 = 3 THEN 'az' ELSE 'n' END c",
    )
    rows.write.parquet(str(folder))
    builder = skipping_index(skipping, location).on_path(str(folder))
    for text in INDEXED:
        builder = builder.add_expression("VALUE_SET", text)
    builder.build()
    return str(folder)


def test_conditions_are_found_in_every_form(skipping: SparkSession, path: str) -> None:
    for condition, files in ASKED.items():
        frame = skipping.read.parquet(path).where(condition)
        assert explain(frame).relations[0].kept_files == files, condition
        on, off = on_and_off(skipping, lambda frame=frame: frame.select("*"))
        assert on == off, condition


def test_explanation_names_the_condition_as_a_whole(skipping: SparkSession, path: str) -> None:
    text = str(explain(skipping.read.parquet(path).where("a > b")))
    assert "by VALUE_SET(a > b)" in text


def test_condition_without_an_index_names_the_one_that_would_help(skipping, path):
    text = " ".join(str(explain(skipping.read.parquet(path).where("a + 1 = b"))).split())
    assert "compares columns with each other: add an index over this expression" in text


@pytest.mark.parametrize(
    ("expression", "is_asked"),
    [
        ("CAST(a AS bigint)", False),
        ("CAST(a AS bigint) + 1", True),
        ("a > b", True),
        ("a = 7 AND c = 'x'", True),
        ("a + b", True),
        ("a", True),
        ("upper(c)", True),
    ],
)
def test_creation_warns_of_an_index_that_no_query_can_use(
    skipping: SparkSession,
    tmp_path: Path,
    path: str,
    expression: str,
    is_asked: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "snaploom.skipping"):
        builder = skipping_index(skipping, str(tmp_path / "other")).on_path(path)
        builder.add_expression("MIN_MAX", expression).create()
    warned = [message for message in caplog.messages if "no query can use MIN_MAX" in message]
    assert bool(warned) is not is_asked, caplog.messages
