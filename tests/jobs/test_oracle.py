"""Random worlds woven by real runs, and by plain Python that follows the rules' text.

Every row of every snapshot is compared, and the schema, what was left out and why, what was
skipped, and what failed: trees, grouping, windows, missing modes, NULL keys, casts of keys, and
FieldTransformers. `make prove` weaves hundreds of worlds.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.runner.proofscope import sampled
from support.weaving.oracle import outcomes
from support.weaving.oracledeclarations import woven
from support.weaving.oraclegenerated import world_of
from support.weaving.oracleworld import Outcome

SEEDS = range(400)
"""Of worlds."""

BELOW_WHAT_IS_LEFT_OUT = 1647
"""A world in which a transformer fails on a source whose parent is not part of the snapshot."""


def canonical(value: Any) -> str:
    """One text a value; arrays in an order of their own."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{canonical(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(canonical, value))) + "]"
    return repr(value)


def agree(got: Outcome, expected: Outcome) -> None:
    assert got.is_refused == expected.is_refused
    assert got.skipped == expected.skipped
    assert got.failed.keys() == expected.failed.keys()
    assert all(got.failed[day] <= expected.failed[day] for day in got.failed)
    assert got.published.keys() == expected.published.keys()
    for day, snapshot in expected.published.items():
        assert got.published[day].schema == snapshot.schema
        assert got.published[day].excluded == snapshot.excluded
        assert Counter(map(canonical, got.published[day].rows)) == Counter(
            map(canonical, snapshot.rows)
        )


def kinds_of(outcome: Outcome) -> set[str]:
    """What there is to see in a run."""
    kinds = {"refused"} if outcome.is_refused else set()
    kinds |= {f"skipped {reason}" for reason in outcome.skipped.values()}
    kinds |= {f"failed {reason}" for reasons in outcome.failed.values() for reason in reasons}
    for snapshot in outcome.published.values():
        kinds |= {f"without {reason}" for reason in snapshot.excluded.values()}
        joined = (value for row in snapshot.rows for name, value in row.items() if name != "data")
        kinds |= {f"joined {type(value).__name__}" for value in joined}
    return kinds


def test_worlds_are_of_every_kind() -> None:
    runs = [outcome for seed in SEEDS for outcome in outcomes(world_of(seed))]
    seen = {kind for outcome in runs for kind in kinds_of(outcome)}
    fields = ("JOIN_FIELD_MISSING", "GROUP_BY_FIELD_MISSING", "SNAPSHOT_MISSING")
    assert seen >= {
        "refused",
        "joined dict",
        "joined list",
        "joined NoneType",
        "without PATH_MISSING",
        "without PARENT_EXCLUDED",
        "failed ROWS_MULTIPLIED",
        "failed HISTORY_INCOMPATIBLE",
        "failed SOURCE_FAILED",
        "skipped EARLIER_FAILURE",
        *(f"without {reason}" for reason in fields),
        *(f"skipped {reason}" for reason in fields),
        *(f"failed {reason}" for reason in fields),
    }


@pytest.mark.spark
@pytest.mark.parametrize("per_job", [1, 12])
@pytest.mark.parametrize("seed", [*sampled(SEEDS, 10), BELOW_WHAT_IS_LEFT_OUT])
def test_runs_do_what_the_oracle_computes(
    spark: SparkSession, tmp_path: Path, seed: int, per_job: int
) -> None:
    world = world_of(seed)
    got = woven(spark, world, tmp_path, per_job)
    for one, expected in zip(got, outcomes(world), strict=True):
        agree(one, expected)
