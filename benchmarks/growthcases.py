"""The rows and models of `growth.py`: keys that recur or are NULL, many columns, deep joins."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
from join import DIMENSIONS, MONTHS
from planner import model_of
from pyspark.sql import SparkSession
from widemodels import by_hand, key_of

from snaploom.models.common import now
from snaploom.models.report import Report
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.plan.plan import plan_offline
from snaploom.run.job import Job
from snaploom.run.weaving.outputrun import weave_output

HOT_SHARE = 10
"""Percent of the rows that get one key."""
NULL_SHARE = 30
"""Percent of the rows that get no key."""
PARTITIONS = 64
"""Of a shuffle in the cases of skew: enough that one key of 10 % is seven times the others'."""
_WHOLE_PARTITIONS = {
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
"""Small data would otherwise be put together in as many partitions as there are cores, with the
hot key in one of them."""
SKEW_CASES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "even keys": ("single", {"spark.sql.adaptive.skewJoin.enabled": "false"}),
    "one key": ("one-key", {"spark.sql.adaptive.skewJoin.enabled": "false"}),
    "one key, split": (
        "one-key",
        {
            "spark.sql.adaptive.skewJoin.enabled": "true",
            # A cluster's partitions are as many times larger as these are below Spark's defaults.
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1m",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1m",
        },
    ),
    "NULL keys": ("null-keys", {"spark.sql.adaptive.skewJoin.enabled": "false"}),
}
"""Each case: the folder of its rows, and the settings beyond `_WHOLE_PARTITIONS`."""


def skewed(data: Path, name: str) -> Path:
    """A folder as `single`, with other order keys in the line items; made when it is not there.

    Args:
        data: the folder of a scale factor.
        name: `single`, `one-key` or `null-keys`.
    """
    folder = data / name
    day = folder / MONTHS[0]
    if not (day / "lineitem.parquet").exists():
        day.mkdir(parents=True, exist_ok=True)
        source = data / "single" / MONTHS[0]
        share, key = (HOT_SHARE, "1") if name == "one-key" else (NULL_SHARE, "NULL")
        for dimension in DIMENSIONS:
            shutil.copy(source / f"{dimension}.parquet", day / f"{dimension}.parquet")
        duckdb.sql(
            f"COPY (SELECT * REPLACE (CASE WHEN hash(l_orderkey, l_linenumber) % 100 < {share} "
            f"THEN {key} ELSE l_orderkey END AS l_orderkey) FROM '{source}/lineitem.parquet') "
            f"TO '{day}/lineitem.parquet.new' (FORMAT parquet)"
        )
        os.replace(day / "lineitem.parquet.new", day / "lineitem.parquet")
    return folder


def apply(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Make settings of a case of skew."""
    for name, value in {**_WHOLE_PARTITIONS, **settings}.items():
        spark.conf.set(name, value)


def star(data: Path, columns: int, sources: int, rows: int) -> Bundle:
    """Sources that all join the root, each by a key of its own, and their files.

    Args:
        data: a new folder for the files.
        columns: of all sources together.
        sources: with the root.
        rows: of the root; the others have a tenth.
    """
    members = [["s0", f"s{i}"] for i in range(1, sources)]
    return _written(data, members, rows, max(rows // 10, 1), columns // sources)


def chain(data: Path, columns: int, depth: int, rows: int) -> Bundle:
    """Sources each of which joins the one before, and their files.

    Args:
        data: a new folder for the files.
        columns: of each source.
        depth: how many sources are joined, one below the other.
        rows: of each source.
    """
    members = [[f"s{i}", f"s{i + 1}"] for i in range(depth)]
    return _written(data, members, rows, rows, columns)


def weave_bundle(spark: SparkSession, bundle: Bundle) -> Report:
    """Weave what is due, as a run does."""
    return weave_output(spark, bundle, Job(now=now(), clock=now, emit=lambda event: None))


def weave_bundle_by_hand(spark: SparkSession, bundle: Bundle, data: Path, target: Path) -> None:
    """Write the same nested rows by plain joins."""
    tree = plan_offline(bundle).tree
    frames = {node.field_name: spark.read.parquet(str(data / node.source)) for node in tree.nodes}
    by_hand(tree, frames).write.option("compression", "snappy").parquet(str(target))


def _written(
    data: Path, members: Sequence[Sequence[str]], rows: int, others: int, columns: int
) -> Bundle:
    """Files of the sources that relationships join, and what is woven of them."""
    sources = len(members) + 1
    bundle = bundle_for("OutputDataset", "wide", model_of(sources, members, str(data)))
    tree = plan_offline(bundle).tree
    for node in tree.nodes:
        children = [one for one in tree.joins if one.parent_number == node.number]
        # A key of the source's own is its row; one of another source recurs as often as it must.
        keys = [f"i AS {key_of(node)}"] if node.number else []
        keys += [f"i % {others} AS {key_of(one)}" for one in children]
        values = [f"hash(i * {n + 1}) % 1000 AS v{n}" for n in range(columns - len(keys))]
        target = data / node.source / "rows.parquet"
        target.parent.mkdir(parents=True)
        duckdb.sql(
            f"COPY (SELECT {', '.join((*keys, *values))} "
            f"FROM range({others if node.number else rows}) r(i)) TO '{target}' (FORMAT parquet)"
        )
    return bundle
