"""Generated tables, indexes and conditions: no file with a row of the answer is left out.

Each test is one table, made from its layout and a seed, with an index set for each index type; each
condition is planned with each index set. A failure prints the smallest case that it finds, and to
see it again, one runs the test of that name. `SNAPLOOM_PROOF_SEEDS=20` makes twenty tables of each
layout.
"""

import os
import random
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.onequalsoff import IndexHome, Verdict, counterexample, judge, needed_files, on_and_off
from support.proofconditions import conditions
from support.proofsets import index_sets
from support.prooftables import LAYOUTS, make_table

SEEDS = range(int(os.environ.get("SNAPLOOM_PROOF_SEEDS", "1")))
CONDITIONS = 80
COLLECTED = 5
"""Conditions of each index set whose rows are compared whole."""

LEAST_SHARES = {
    "MIN_MAX": 0.4, "VALUE_SET": 0.4, "BLOOM_FILTER": 0.2, "PREFIX": 0.1, "TOKENS": 0.1,
    "EXPRESSION": 0.0, "GEO_BOX": 0.2, "PARTITION": 0.01, "WHERE": 0.02, "MIXED": 0.1,
}  # fmt: skip
"""How much of what could be dropped is dropped at least, in every table. Few conditions speak of
the very expression that is indexed, so that these may drop nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_row_is_lost(
    spark: SparkSession, home: IndexHome, tmp_path: Path, layout: str, seed: int
) -> None:
    table = make_table(spark, tmp_path, layout, seed)
    rng = random.Random(f"{layout} {seed} conditions")
    drawn = conditions(rng, table.columns, CONDITIONS)
    needs = needed_files(spark, table, drawn)
    usable = [each for each in drawn if each.text in needs]
    assert len(usable) > 0.9 * CONDITIONS
    verdicts: dict[str, Verdict] = {}
    for indexes in index_sets(rng, table):
        location = home.build(spark, table, indexes)
        mine = [each for each in usable if each.columns & indexes.columns]
        verdict = judge(spark, table, location, mine, needs)
        for condition, _ in verdict.lost[:1]:
            pytest.fail(counterexample(spark, home, table, indexes, condition))
        verdicts[indexes.label] = verdict
        for condition in rng.sample(mine, min(COLLECTED, len(mine))):
            query = partial(table.frame(spark).where, condition.text)
            on, off = on_and_off(spark, location, query)
            assert on == off, condition.text
    shares = {label: verdict.share for label, verdict in verdicts.items()}
    assert not {label: share for label, share in shares.items() if share < LEAST_SHARES[label]}, (
        f"hardly anything is skipped: {shares}"
    )
