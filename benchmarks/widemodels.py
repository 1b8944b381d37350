"""Models of many sources: what Spark needs to analyse and plan them: `make bench-models`.

The same nested joins are built twice in one session, by Snaploom with everything that it counts,
and by plain calls of Spark; each up to Spark's physical plan, in turn. Nothing is read or written.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from time import perf_counter

from figures import Figure, publish
from planner import declared_model
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from snaploom.engine.fold import Weave
from snaploom.engine.rowcounts import Weaving
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.plan.bundles import bundle_for
from snaploom.plan.plan import plan_offline
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.run.session.spark import build_session

COLUMNS = 5
"""Columns of each source: 200 sources have 1,000."""
SIZES = ((20, 6), (200, 60))
"""Sources and relationships."""
SETTINGS = RunSettings(spark=SparkSettings(driver=DriverSettings(memory="6g")))


def main() -> None:
    """Compare both for every size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="pairs, after one to warm up")
    repeat = parser.parse_args().repeat
    spark = build_session("benchmark", SETTINGS)
    figures = [
        figure
        for sources, relationships in SIZES
        for figure in compared(spark, sources, relationships, repeat)
    ]
    spark.stop()
    publish("Models", "make bench-models", figures)


def compared(
    spark: SparkSession, sources: int, relationships: int, repeat: int
) -> tuple[Figure, Figure, Figure]:
    """Seconds of both until there is a physical plan, and their ratio."""
    bundle = bundle_for("OutputDataset", "wide", declared_model(sources, relationships))
    tree = plan_offline(bundle).tree
    by_name = {one.name: one for one in bundle.data_relationships}
    frames = {node.field_name: source_frame(spark, node, tree) for node in tree.nodes}
    ways: dict[str, Callable[[], DataFrame]] = {
        "Snaploom": partial(woven, tree, frames, by_name),
        "by hand": partial(by_hand, tree, frames),
    }
    assert ways["Snaploom"]().schema.simpleString() == ways["by hand"]().schema.simpleString()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for attempt in range(repeat + 1):
        for name, way in sorted(ways.items(), reverse=bool(attempt % 2)):
            seconds = planned(way)
            if attempt:
                taken[name].append(seconds)
    ours, hand = median(taken["Snaploom"]), median(taken["by hand"])
    what = f"{sources} sources, {sources * COLUMNS:,} columns, analysis and planning"
    return (
        Figure(f"{what}, seconds, Snaploom", round(ours, 2)),
        Figure(f"{what}, seconds, by hand", round(hand, 2)),
        Figure.at_most(f"{what}, ratio", ours / hand, 1.1),
    )


def planned(way: Callable[[], DataFrame]) -> float:
    """Seconds until Spark has a physical plan of a new frame."""
    started = perf_counter()
    way()._jdf.queryExecution().executedPlan()
    return perf_counter() - started


def source_frame(spark: SparkSession, node: JoinNode, tree: JoinTree) -> DataFrame:
    """A source: the keys of its relationships, and other columns."""
    joins = [node, *(one for one in tree.joins if one.parent_number == node.number)]
    keys = sorted({key_of(one) for one in joins if one.number})
    others = [f"v{i}" for i in range(COLUMNS - len(keys))]
    return spark.range(1000).selectExpr(*(f"id as {name}" for name in (*keys, *others)))


def key_of(node: JoinNode) -> str:
    """The column that joins a node with its parent; it has the same name on both sides."""
    return f"{node.relationship}_id"


def woven(
    tree: JoinTree,
    frames: Mapping[str, DataFrame],
    relationships: Mapping[str, DataRelationship],
) -> DataFrame:
    """The frame that Snaploom writes, with all that it counts."""
    return Weaving(Weave(tree, frames, relationships)).frame


def by_hand(tree: JoinTree, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The same rows by plain joins; each node is packed before it is joined, as one does."""

    def side(node: JoinNode) -> tuple[DataFrame, list[str]]:
        frame = frames[node.field_name]
        own = frame.columns
        children = sorted(
            (one for one in tree.joins if one.parent_number == node.number),
            key=lambda one: one.field_name,
        )
        for child in children:
            right, fields = side(child)
            key = f"key_{child.number}"
            packed = right.select(
                sf.col(key_of(child)).alias(key), sf.struct(*fields).alias(child.field_name)
            )
            frame = frame.join(packed, sf.col(key_of(child)) == sf.col(key), "left").drop(key)
        names = [child.field_name for child in children]
        data = sf.struct(*own).alias("data")
        keys = [key_of(node)] if node.number else []
        return frame.select(*keys, data, *names), ["data", *names]

    frame, fields = side(tree.root)
    return frame.select(*fields)


if __name__ == "__main__":
    main()
