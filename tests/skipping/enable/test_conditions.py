"""Indexes over conditions: queries ask them, in whatever form the condition is written."""

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import FILES, on_and_off

from snaploom.skipping.spark.interfaces.explain import explain
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

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


def test_condition_without_an_index_names_the_one_that_would_help(
    skipping: SparkSession, path: str
) -> None:
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
