"""The row-count rule: what multiplies rows fails, what cannot is legal, and counts never hang."""

import json
import subprocess
import sys
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from support.weaving.smallmodels import Loom, Woven, same_key, weave_into

from snaploom.engine.fold import Counts, Observing, Point
from snaploom.engine.rowcounts import Weaving, null_key_warnings
from snaploom.errors import RowsMultiplied
from snaploom.models.report import JoinMeasure

pytestmark = pytest.mark.spark
PAIR = Loom("l", ["r"], [same_key("k", "l r")])
CHAIN = Loom("l", ["r", "s"], [same_key("k", "l r"), same_key("j", "r s")])
WORLD = Loom(
    "l",
    ["r", "s", "t", "u"],
    [same_key("k", "l r"), same_key("j", "r s"), same_key("g", "l t"), same_key("h", "t u")],
    group_by={"t": ["g"]},
)
Weaver = Callable[[Loom, dict[str, DataFrame]], Woven]


def values(spark: SparkSession, columns: str, *rows: tuple[int | None, ...]) -> DataFrame:
    schema = ", ".join(f"{name} int" for name in columns.split())
    return spark.createDataFrame(list(rows), schema)


def in_files(folder: Path, frames: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The same rows in Parquet files, so that nothing is counted while they pass."""
    for name, frame in frames.items():
        frame.write.parquet(f"{folder}/{name}")
    return {
        name: frame.sparkSession.read.parquet(f"{folder}/{name}") for name, frame in frames.items()
    }


@pytest.fixture(params=["", "l", "lrstu"], ids=["observed", "mixed", "late"])
def weaver(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Weaver:
    """Weaves rows whose counts are observed, or taken late of those sources that have files."""

    def weave(loom: Loom, frames: dict[str, DataFrame]) -> Woven:
        kept = {name: frame for name, frame in frames.items() if name in request.param}
        frames |= in_files(tmp_path / "sources", kept)
        return weave_into(tmp_path, loom.weave(frames), spark, counts_late=bool(kept))

    return weave


def counted(woven: Woven) -> list[tuple[int, int, int, int, int]]:
    joins = woven.counts.joins
    return [(j.in_, j.out, j.matched, j.null_keys, j.child_null_keys) for j in joins]


def test_duplicate_key_that_matches_fails_with_relationship_counts_and_keys(spark, weaver):
    frames = {
        "l": values(spark, "k", (1,), (2,), (2,), (None,)),
        "r": values(spark, "k v", (1, 1), (2, 2), (2, 3), (2, 4), (7, 7), (7, 7), (None, 1)),
    }
    with pytest.raises(RowsMultiplied) as error:
        weaver(PAIR, frames)
    assert error.value.message == (
        "DataSource/l --> DataRelationship/k --> DataSource/r is one-to-many: "
        "the number of rows increased from 4 to 8"
    )
    assert error.value.found == "rows of `r` that share a key: k = 2 (3 rows)"
    assert "groupBy" in str(error.value)


def test_duplicate_key_inside_a_subtree_fails(spark: SparkSession, weaver: Weaver) -> None:
    frames = {
        "l": values(spark, "k", (1,)),
        "r": values(spark, "k j", (1, 5), (2, 6)),
        "s": values(spark, "j", (5,), (6,), (6,)),
    }
    with pytest.raises(RowsMultiplied, match="DataSource/r --> DataRelationship/j"):
        weaver(CHAIN, frames)


def test_duplicate_key_that_matches_no_row_is_legal(spark: SparkSession, weaver: Weaver) -> None:
    frames = {
        "l": values(spark, "k", (1,), (1,), (None,), (None,)),
        "r": values(spark, "k", (1,), (7,), (7,), (None,), (None,)),
    }
    assert counted(weaver(PAIR, frames)) == [(4, 4, 2, 2, 2)]


@pytest.mark.parametrize("empty", ["l", "r", "s"])
def test_empty_source_neither_hangs_nor_miscounts(spark, weaver, empty):
    frames = {
        "l": values(spark, "k", (1,), (None,)),
        "r": values(spark, "k j", (1, 5), (2, None)),
        "s": values(spark, "j", (5,)),
    }
    frames[empty] = frames[empty].limit(0)
    first, second = counted(weaver(CHAIN, frames))
    assert first == {"l": (0, 0, 0, 0, 0), "r": (2, 2, 0, 1, 0), "s": (2, 2, 1, 1, 0)}[empty]
    assert second == {"l": (2, 2, 1, 1, 0), "r": (0, 0, 0, 0, 0), "s": (2, 2, 0, 1, 0)}[empty]


def test_empty_snapshot_is_written_with_no_rows(spark: SparkSession, weaver: Weaver) -> None:
    woven = weaver(PAIR, {name: values(spark, "k").limit(0) for name in ("l", "r")})
    assert (woven.counts.rows, woven.frame.count()) == (0, 0)


def test_root_without_children_is_counted(spark: SparkSession, weaver: Weaver) -> None:
    woven = weaver(Loom("l", [], []), {"l": values(spark, "k", (1,), (2,))})
    assert (woven.counts.rows, woven.counts.joins) == (2, ())


def test_source_that_is_left_out_takes_its_descendants_along(spark, tmp_path):
    frames = {"l": values(spark, "k", (1,)), "s": values(spark, "j", (1,))}
    woven = weave_into(tmp_path, CHAIN.weave(frames), spark)
    assert woven.frame.columns == ["data"]


@pytest.mark.parametrize("late", [True, False])
def test_late_counts_need_no_tasks_that_ran_once(spark, tmp_path, late):
    frames = {"l": values(spark, "k", (1,), (2,)), "r": values(spark, "k", (1,))}
    frames = in_files(tmp_path / "sources", frames)
    spark.sparkContext.setJobGroup(f"test-{tmp_path}", "one that fails")
    with suppress(Exception):
        spark.range(1).selectExpr("raise_error('no')").collect()
    woven = weave_into(tmp_path, PAIR.weave(frames), spark, counts_late=late)
    assert (woven.counts.confirmed, counted(woven)) == (not late, [(2, 2, 1, 0, 0)])


@pytest.mark.parametrize("loom", [PAIR, CHAIN, WORLD])
def test_late_counts_do_not_cut_the_plan(spark: SparkSession, tmp_path: Path, loom: Loom) -> None:
    frames = {name: values(spark, "k j g h", (1, 1, 1, 1)) for name in "lrstu"}
    frames = in_files(tmp_path, {node.source: frames[node.source] for node in loom.tree.nodes})
    for late in (True, False):
        woven = Weaving(loom.weave(frames), counts_late=late).frame
        plan = woven._jdf.queryExecution().analyzed().toString()
        assert ("Join" in plan, "CollectMetrics" in plan) == (True, not late)


KEYS = st.sampled_from([None, 1, 2])
ROWS = {name: st.lists(st.tuples(KEYS, KEYS, KEYS, KEYS), max_size=4) for name in "lrstu"}


@settings(max_examples=8)
@given(rows=st.fixed_dictionaries(ROWS))
def test_late_counts_are_those_observed_and_refuse_the_same(spark, tmp_path_factory, rows):
    frames = {name: values(spark, "k j g h", *ones) for name, ones in rows.items()}
    weave = WORLD.weave(in_files(tmp_path_factory.mktemp("s"), frames))

    def outcome(*, late: bool) -> Any:
        try:
            woven = weave_into(tmp_path_factory.mktemp("w"), weave, spark, counts_late=late)
        except RowsMultiplied as error:
            return error.message, error.found
        return woven.counts.rows, woven.counts.joins

    assert outcome(late=True) == outcome(late=False)


def test_task_that_failed_once_is_confirmed_by_exact_counts(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "support" / "weaving" / "retriedtask.py"
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "failedOnce": True,
        "confirmed": True,
        "rows": 8,
        "joins": [[8, 8, 4, 0, 0]],
    }


def seen_nothing(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Counts], Counts], unseen: Container[Point]
) -> None:
    """Let observations at some points come back as if no row had passed them."""
    read = Observing.read

    def changed(observing: Observing, patience: float) -> dict[Point, Counts]:
        found = read(observing, patience)
        return {
            point: change(counts) if point in unseen else counts for point, counts in found.items()
        }

    monkeypatch.setattr(Observing, "read", changed)


POINTS = [Point(number, is_out=out) for number in range(3) for out in (False, True)]
EMPTY: dict[str, Callable[[Counts], Counts]] = {
    "zeros": lambda counts: dict.fromkeys(counts, 0),
    "no metrics": lambda counts: {},
}


@pytest.mark.parametrize("unseen", [POINTS, POINTS[:2], POINTS[2:4], POINTS[1:2], POINTS[4:]])
@pytest.mark.parametrize("change", EMPTY.values(), ids=EMPTY)
def test_observations_that_saw_nothing_prove_nothing(spark, tmp_path, monkeypatch, unseen, change):
    frames = {
        "l": values(spark, "k", (1,), (2,)),
        "r": values(spark, "k j", (1, 5), (2, 6)),
        "s": values(spark, "j", (5,), (6,)),
    }
    seen_nothing(monkeypatch, change, unseen)
    woven = weave_into(tmp_path / "{x}*[y]? {{z \\n", CHAIN.weave(frames), spark)
    assert counted(woven) == [(2, 2, 2, 0, 0), (2, 2, 2, 0, 0)]
    frames["s"] = values(spark, "j", (5,), (6,), (6,))
    with pytest.raises(RowsMultiplied):
        weave_into(tmp_path / "multiplied", CHAIN.weave(frames), spark)


@pytest.mark.parametrize(
    ("ratio", "nulls", "warned"),
    [(0.5, 5, True), (0.5, 4, False), (0.0, 0, False), (None, 9, False)],
)
def test_null_keys_warn_from_the_declared_ratio(ratio, nulls, warned):
    join = JoinMeasure(child="c", in_=10, out=10, matched=0, null_keys=nulls)
    assert bool(null_key_warnings([join], {"c": ratio})) == warned
