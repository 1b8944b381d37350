"""Bounds of a column that a condition on an expression needs, against Spark's result of each value.

One file holds every value of every type that is near an edge. Each condition is evaluated on each
by Spark, as ANSI and as the old way, and what is concluded for the column must be TRUE wherever the
condition is. A conclusion that left out nothing would be right and of no use, so that is counted.
"""

import json
import os
import random
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.skipping.catalystrows import holds
from support.skipping.proofconditions import FORMS, range_conditions
from support.skipping.prooftables import ARROW, POOLS, Value

from snaploom.skipping.core.predicates import And, Constant, Or, Predicate, Unknown, normal_form
from snaploom.skipping.spark.interfaces.enable import setting
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.relations.fingerprint import REQUESTED, columns
from snaploom.skipping.spark.relations.hadoop import JavaRule

pytestmark = pytest.mark.long

EACH = int(os.environ.get("SNAPLOOM_PROOF_SEEDS", "1")) * 6
"""Conditions of each form."""
LEAST_SHARE = 0.5
"""Of the values for which a condition is not TRUE, how many are left out at least, by type; an
oracle that evaluates the expression leaves out all."""
ZONES = ("UTC", "America/New_York")


def values_of(data_type: str, ansi: str) -> list[Value]:
    """Values of a type, random ones too; with ANSI none with which arithmetic fails."""
    rng = random.Random(data_type)
    values = list(POOLS[data_type])
    if data_type in ("int", "bigint"):
        values += [rng.randint(-(2**30), 2**30) for _ in range(20)]
        values += list(range(-30, 30))
    if ansi == "false" or data_type in ("float", "double"):
        return values
    if data_type == "tinyint":
        return [value for value in values if abs(int(str(value))) <= 7]
    if data_type in FORMS and data_type[:3] in ("sma", "int", "big", "dec"):
        return [value for value in values if abs(float(str(value))) < 300]
    return [value for value in values if "1600" < str(value) < "2500"]


def internal(value: Value | None, data_type: str) -> object:
    if value is None:
        return None
    if data_type == "float":
        return float(np.float32(value))
    if isinstance(value, datetime):
        return round(
            (value.replace(tzinfo=None) - datetime(1970, 1, 1)) / timedelta(microseconds=1)
        )
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def about_column(predicate: Predicate) -> Predicate:
    match predicate:
        case And(parts):
            return And(tuple(map(about_column, parts)))
        case Or(parts):
            return Or(tuple(map(about_column, parts)))
        case Unknown():
            return Constant(True)
        case Constant():
            return predicate
        case leaf:
            return leaf if leaf.term.names is not None else Constant(True)


def evaluated(frame: DataFrame, conditions: list[str]) -> dict[str, list[bool]]:
    """For each condition, for each row whether it is TRUE; without those that Spark refuses."""
    try:
        rows = frame.selectExpr("k", *conditions).collect()
    except PySparkException:
        if len(conditions) == 1:
            return {}
        half = len(conditions) // 2
        return evaluated(frame, conditions[:half]) | evaluated(frame, conditions[half:])
    ordered = sorted(rows, key=lambda row: row["k"])
    return {
        text: [row[number + 1] is True for row in ordered] for number, text in enumerate(conditions)
    }


def concluded(frame: DataFrame, conditions: list[str]) -> list[Predicate]:
    """What each condition demands of the column, as the rule finds it."""
    rule = JavaRule(frame.sparkSession)
    (header,) = rule.describe(frame._jdf, REQUESTED)
    known = columns(json.loads(header))
    serialised = json.loads(rule.serialise(frame.selectExpr(*conditions)._jdf))
    return [
        about_column(normal_form(catalyst.predicate([each["expression"]], known)))
        for each in serialised
    ]


@pytest.mark.parametrize("ansi", ["false", "true"])
@pytest.mark.parametrize("data_type", FORMS)
def test_what_is_concluded_of_a_column_holds_wherever_the_condition_does(
    spark: SparkSession, tmp_path: Path, data_type: str, ansi: str
) -> None:
    values = [*values_of(data_type, ansi), None]
    table = {"k": range(len(values)), "c": pa.array(values, ARROW[data_type])}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    rng = random.Random(f"{data_type} {ansi}")
    texts = list(dict.fromkeys(range_conditions(rng, "c", data_type, EACH)))
    zone = rng.choice(ZONES)
    with (
        setting(spark, "spark.sql.ansi.enabled", ansi),
        setting(spark, "spark.sql.session.timeZone", zone),
    ):
        frame = spark.read.parquet(str(tmp_path))
        truths = evaluated(frame, texts)
        asked = list(truths)
        demands = concluded(frame, asked)
    assert len(asked) > 0.6 * len(texts)
    others = left_out = 0
    for text, demand in zip(asked, demands, strict=True):
        for value, is_true in zip(values, truths[text], strict=True):
            is_kept = holds(demand, {"c": internal(value, data_type)})
            assert is_kept is True or not is_true, (text, value, demand)
            others += not is_true
            left_out += is_kept is not True
    assert left_out / others > LEAST_SHARE, left_out / others
