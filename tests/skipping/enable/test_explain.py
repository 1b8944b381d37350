import json
import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import write_files
from support.skipping.skippingrule import plan_text

from snaploom.errors import SkippingNotAvailable
from snaploom.skipping.core.predicates import WIDTH
from snaploom.skipping.spark.interfaces.enable import setting, statistics
from snaploom.skipping.spark.interfaces.explain import explain


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


def test_explanation_of_what_has_no_index_or_no_condition(
    skipping: SparkSession, rows: DataFrame, folder: Path
) -> None:
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


def test_explain_of_spark_names_the_index_of_second_generation_scans(
    skipping: SparkSession, indexed: str
) -> None:
    with setting(skipping, "spark.sql.sources.useV1SourceList", ""):
        frame = skipping.read.parquet(indexed).where("id = 5")
        text = plan_text(frame)
        assert frame.count() == 1
    assert re.search(r"BatchScan parquet \S+ \[skipping by MIN_MAX\(id\): 1 of 5 files, ", text)
