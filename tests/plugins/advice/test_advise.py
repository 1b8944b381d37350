"""Advice about real files, checked by following it."""

import json
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake

from snaploom.cli.main import run_command
from snaploom.errors import IndexNotPossible
from snaploom.plugins.advice.advise import ADVICE_COLUMNS, AdviceRequest, advise_target, read_log
from snaploom.plugins.advice.report import Report
from snaploom.skipping.spark.interfaces.enable import disable, enable, sql
from snaploom.skipping.spark.targets.targetlookup import open_path


def advice(spark: SparkSession, folder: str, *queries: str) -> Report:
    target = open_path(spark, folder, "parquet")
    log = read_log(spark, target, queries) if queries else None
    return advise_target(target, AdviceRequest(log), lambda done, total: None)


def test_advice_from_the_data_without_queries(spark: SparkSession, plane: str):
    report = advice(spark, plane)
    labels = [index.label for index in report.advice.indexes]
    assert "MIN_MAX(id)" in labels
    assert {"BLOOM_FILTER(x)", "BLOOM_FILTER(name)"} <= set(labels)
    assert str(report) == str(advice(spark, plane))


def test_a_log_decides_what_matters(spark: SparkSession, plane: str):
    whole = f"SELECT count(*) FROM parquet.`{plane}` p WHERE y < 30 AND exists(SELECT 1)"
    report = advice(
        spark, plane, "x BETWEEN 100 AND 200", "WHERE y > 1590", whole, "nonsense >", "", "-- no"
    )
    assert report.queries == 3
    assert {column.term.label for column in report.advice.columns} == {"x", "y"}
    assert report.advice.order is not None
    assert [doubt.startswith("nonsense >") for doubt in report.doubts] == [True]


def test_reading_a_log_leaves_skipping_as_it_was(spark: SparkSession, plane: str, tmp_path: Path):
    enable(spark, str(tmp_path))
    try:
        report = advice(spark, plane, f"SELECT * FROM parquet.`{plane}` WHERE id = 5")
        assert report.advice.share > 0.9
        assert spark.read.parquet(plane).where("id = 5").count() == 1
    finally:
        disable(spark)


def test_queries_without_conditions_are_refused(spark: SparkSession, plane: str):
    with pytest.raises(IndexNotPossible, match="none of the queries"):
        advice(spark, plane, "SELECT 1")


def test_what_is_advised_can_be_applied_and_skips(spark, plane, tmp_path, capsys):
    log = tmp_path / "queries.sql"
    log.write_text("id BETWEEN 100 AND 200\nid = 7\n")
    command = ["index", "advise", plane, "--log", str(log), "--location", str(tmp_path / "indexes")]
    assert run_command([*command, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["skipped"] > 0.9
    assert run_command(command) == 0
    text = capsys.readouterr().out
    assert "* id" in text
    resource = text[text.index("apiVersion") :]
    assert yaml.safe_load(resource) == yaml.safe_load(document["resource"])
    (tmp_path / "index.yaml").write_text(resource)
    assert run_command(["index", "apply", "-f", str(tmp_path / "index.yaml")]) == 0
    query = f"SELECT * FROM parquet.`{plane}` WHERE id = 7"
    capsys.readouterr()
    place = ["--location", str(tmp_path / "indexes")]
    assert run_command(["index", "explain", query, *place, "-o", "json"]) == 0
    (relation,) = json.loads(capsys.readouterr().out)
    assert relation["kept_files"] == 1
    disable(spark)


def test_the_command_sorts(spark, plane, tmp_path, capsys):
    command = ["index", "sort", plane, str(tmp_path / "new"), "--by", "x", "--by", "y"]
    assert run_command([*command, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 16_000
    assert run_command(command) == 1
    assert "not empty" in capsys.readouterr().err


def test_sizes_and_counts_that_mean_nothing_are_refused(plane: str, tmp_path: Path):
    new = str(tmp_path / "new")
    assert run_command(["index", "sort", plane, new, "--by", "x", "--file-size", "0"]) == 2
    assert run_command(["index", "advise", plane, "--files", "0"]) == 2


def test_analyze_answers_with_the_indexes_that_would_help(spark, tmp_path):
    data = Lake(tmp_path).fill().data
    advised = sql(spark, f"ANALYZE SKIPPING INDEX ON parquet.`{data}`")
    assert advised.columns == list(ADVICE_COLUMNS)
    rows = {row["column_name"]: row for row in advised.collect()}
    assert rows["price"]["data_type"] == "double"
    assert rows["price"]["skipping_type"] in ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")
    assert 0.5 < float(rows["price"]["skipped"]) < 1
    assert "of 3 files" in rows["price"]["reason"]
