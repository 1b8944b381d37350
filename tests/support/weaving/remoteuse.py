"""What is done with an output on another store: read as a source, arranged, registered, indexed."""

import copy
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from support.declared.shop import (
    FIRST_DAY,
    NOW,
    ORDERS,
    SECOND_DAY,
    Shop,
    done,
    snaploom,
)
from support.declared.sources import by_field, files, reader, rows_at

from snaploom import skipping
from snaploom.files.listed import ListedFile
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import format_instant
from snaploom.output.publication import Work
from snaploom.policy.addresses import S3, hadoop_uri, kind_of
from snaploom.reader import read
from snaploom.run.weaving import ahead, preparation, snapshot
from snaploom.sources.files.buckets import BucketFiles
from snaploom.sources.files.hadoop import HadoopFiles
from snaploom.sources.readers import Sources
from snaploom.spark.jvm import client_of

STAGES = ("listing", "planned", "read", "writing", "written", "looked", "promoted")
"""Of a run, in their order: each follows what it is called after, but `writing`, which is before.
What is replaced until `written` is found by the look, and what is replaced later is not read."""
PAIRS = tuple(combinations_with_replacement(STAGES, 2))
"""When a child is replaced, and then the root."""
STORE_PAIRS = tuple(pair for pair in PAIRS if "written" in pair)
"""Those of which one is after the read and before the look: tried on each store."""
_CALLS = (
    (preparation, "_listing", "", "listing"),
    (preparation, "plan_listed", "", "planned"),
    (snapshot.SnapshotWeaver, "_write", "read", ""),
    (snapshot, "write_frame", "writing", "written"),
    (ahead, "write_frame", "writing", "written"),
    (Sources, "list_again", "again", ""),
    (Work, "stage", "", "looked"),
    (Work, "promote", "", "promoted"),
)
"""Functions that are called at stages: which, the stage before it, and the one after it."""
Act = Callable[[], object]


@dataclass
class Stages:
    """What is done when a run reaches a stage: for the first time, or each time."""

    acts: dict[str, list[Act]] = field(default_factory=dict)
    is_repeated: bool = False

    def at(self, stage: str, act: Act) -> None:
        self.acts.setdefault(stage, []).append(act)

    @contextmanager
    def in_runs(self) -> Iterator[None]:
        """Runs of this process reach stages, as long as the block lasts."""
        with pytest.MonkeyPatch.context() as patch:
            for owner, name, before, after in _CALLS:
                patch.setattr(owner, name, self._around(getattr(owner, name), before, after))
            yield

    def _around(self, original: Any, before: str, after: str) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            self._reach(before)
            result = original(*given, **named)
            self._reach(after)
            return result

        return wrapped

    def _reach(self, stage: str) -> None:
        for act in self.acts.get(stage, []) if self.is_repeated else self.acts.pop(stage, []):
            act()


def versions_after(first: str, then: str) -> tuple[str, str]:
    """Which version of child and root is published, where they are replaced at two stages."""
    child, root = ("old" if stage in ("looked", "promoted") else "new" for stage in (first, then))
    return child, root


ORPHAN = "wide/data/snapshot_epoch=86400000/20240101T000000000Z-0123456789ab-00000000-00000.parquet"
"""Left by a run that died."""
THIRD_DAY = "2024-05-03"
MARKS = (
    f"{THIRD_DAY}_$folder$",
    f"{THIRD_DAY}/_SUCCESS",
    f"{THIRD_DAY}/part_$folder$",
    f"{FIRST_DAY}/.part.crc",
    "_$folder$",
)
"""Objects without a byte, by which other tools mark folders that are there, or were written."""


def used(base: str, shop: Shop, store: ObjectStore) -> dict[str, Any]:
    """Facts about the output `wide` of a shop whose life has begun.

    Args:
        base: where everything is, without `/` at its end.
        shop: its declarations.
        store: the store of `base`.
    """
    spark = SparkSession.Builder().getOrCreate()
    return {
        "as_source": _read_as_source(spark, base, shop, store),
        "by_column": _by_footers(spark, base, store),
        "arranged": _arranged(spark, base, shop),
        "skipped": _skipped(spark, base),
        **_moments(base, shop, store),
        "otherwise_listed": _otherwise_listed(spark, base) if kind_of(base) is S3 else [],
    }


def put_table(store: ObjectStore, key: str, table: pa.Table) -> None:
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    store.put(key, stream.getvalue())


def _read_as_source(
    spark: SparkSession, base: str, shop: Shop, store: ObjectStore
) -> dict[str, Any]:
    """A reader that has listed, while another day is published, and one that comes after."""
    put_table(store, ORPHAN, pa.table({"data": [{"order_id": -1}]}))
    declared = files(
        "parquet",
        f"{base}/wide/data/*/*.parquet",
        sourceUriPrefix=f"{base}/wide/data/snapshot_epoch={{at:LONG}}/",
        snapshot=by_field("at", "UNIX_MILLISECONDS"),
    )
    before = reader(spark, declared)
    times = [list(before.listing().times)]
    for name, table in (("orders", ORDERS[:1]), ("customers", [{"customer_id": 10, "name": "A"}])):
        put_table(store, f"{name}/{THIRD_DAY}.parquet", pa.Table.from_pylist(list(table)))
    done(shop.run())
    times += [list(before.listing().times), list(reader(spark, declared).listing().times)]
    return {
        "times": [[format_instant(time) for time in each] for each in times],
        "rows": len(rows_at(before, times[0][0])),
    }


def _by_footers(spark: SparkSession, base: str, store: ObjectStore) -> dict[str, Any]:
    """Snapshots of a column, listed without a job once the schema is known."""
    for day in ("2020-01-01", "2020-01-02"):
        put_table(store, f"daily/{day}.parquet", pa.table({"day": [day] * 3, "n": [1, 2, 3]}))
    spec = files("parquet", f"{base}/daily/*", snapshot=by_field("day", "ISO8601_DATE"))
    source: Any = reader(spark, spec)
    tags = [file.file.etag for file in source.source.files.files]
    assert source.source._column.field.path == "day"
    spark.sparkContext.setJobGroup("remote", "remote")
    times = source.listing().times
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("remote")
    return {
        "times": [format_instant(time) for time in times],
        "rows": [len(rows_at(source, time)) for time in times],
        "jobs": list(jobs),
        "tags": tags,
    }


def _moments(base: str, shop: Shop, store: ObjectStore) -> dict[str, Any]:
    """Versions of child and root, by the stages of a run at which they were replaced.

    Beside them stand files without a row, which are a snapshot, and objects that are none.
    """
    shop = Shop(shop.folder / "moments", copy.deepcopy(shop.documents[:4]))
    shop.folder.mkdir()
    for name in ("orders", "customers"):
        place = f"{base}/moments/{name}"
        shop.set(name, "hdfsLike.sourceUriGlobs", [f"{place}/*/*"])
        put_table(store, f"moments/{name}/{SECOND_DAY}/part.parquet", _version("old").slice(0, 0))
        for mark in MARKS:
            store.put(f"moments/{name}/{mark}", b"")
        shop.set(name, "hdfsLike.sourceUriPrefix", f"{place}/{{day:STRING}}/")
    shop.set("wide", "outputFolder.folderUri", f"{base}/moments/wide/")
    shop.raw("wide")["spec"]["outputFolder"].pop("snapshotAutoDelete")
    command: tuple[object, ...] = ("run", "wide", "-f", shop.write(), "--now", NOW)
    spark = SparkSession.Builder().getOrCreate()
    found = {}
    for first, then in STORE_PAIRS:
        stages = Stages()
        for stage, name in ((first, "customers"), (then, "orders")):
            put = partial(put_table, store, f"moments/{name}/{FIRST_DAY}/part.parquet")
            put(_version("old"))
            stages.at(stage, partial(put, _version("new")))
        with stages.in_runs():
            done(snaploom(*command))
        when = ("--time", f"{FIRST_DAY}T00:00:00Z", "--acknowledge-readers")
        command = ("restate", "wide", "-f", shop.model, *when)
        (row,) = read(spark, f"{base}/moments/wide/").collect()
        found[f"{first} {then}"] = [row.customers.data.version, row.data.version]
    published = done(snaploom("snapshots", f"{base}/moments/wide/", "-o", "json")).document
    days = {one["time"][:10]: one["rows"] for one in published["snapshots"]}
    return {"moments": found, "days": days}


def _version(name: str) -> pa.Table:
    """A row of one order or customer; files of all versions are equally long."""
    return pa.table({"order_id": [1], "customer_id": [10], "version": [name]})


def _otherwise_listed(spark: SparkSession, base: str) -> list[str]:
    """Globs of which we list something else than Hadoop's client does."""
    globs = [
        "*", "*/*", "*/*.parquet", "orders/*", "orders/2024-05-0?.parquet", "wide/data/*/*.parquet",
        "wide/*/s*/*", "orders", "orders/2024-05-01.parquet", "*/2024-05-01.parquet", "nowhere/*",
        "orders/*/x", "moments/orders/*", "moments/*/*/*",
    ]  # fmt: skip
    ours, theirs = BucketFiles(os.environ), HadoopFiles(client_of(spark))
    return [
        glob
        for glob in globs
        if _described(ours.matches(f"{base}/{glob}", ""))
        != _described(theirs.matches(f"{base}/{glob}", ""))
    ]


def _described(files: Sequence[ListedFile]) -> list[object]:
    return sorted((file.uri, file.folder, () if file.folder else file.identity) for file in files)


def _arranged(spark: SparkSession, base: str, shop: Shop) -> dict[str, Any]:
    """The same output with files of a size, rows in order, and a table."""
    table = f"arranged_{base.partition(':')[0]}"
    raw = copy.deepcopy(shop.raw("wide"))
    raw["metadata"]["name"] = "arranged"
    raw["spec"]["outputFolder"] |= {
        "folderUri": f"{base}/arranged/",
        "targetFileSizeMiB": 1,
        "clusterBy": ["data.order_id"],
        "registerTable": {"name": f"default.{table}"},
        "snapshotAutoDelete": {"maxOldSnapshots": 1},
    }
    shop.documents.append(raw)
    result = done(snaploom("run", "arranged", "-f", shop.write(), "--now", NOW, "-o", "json"))
    counted = spark.table(table).groupBy("snapshot_epoch").count().orderBy("snapshot_epoch")
    rows = [row[1] for row in counted.collect()]
    spark.sql(f"DROP TABLE {table}")
    published = done(snaploom("snapshots", f"{base}/arranged/", "-o", "json")).document
    return {
        "published": len(result.document["snapshots"]),
        "rows": rows,
        "files": [len(one["files"]) for one in published["snapshots"]],
    }


def _skipped(spark: SparkSession, base: str) -> dict[str, Any]:
    """An index of the orders, kept beside them, built and used by a query."""
    location, orders = f"{base}/indexes", f"{base}/orders"
    index = skipping.skipping_index(spark, location).on_path(orders).add_min_max("order_id")
    built = index.build().indexed
    skipping.enable(spark, location)
    query = spark.read.parquet(hadoop_uri(orders)).where("order_id = 3")
    (outcome,) = skipping.explain(query).relations
    rows = query.count()
    skipping.disable(spark)
    listed = done(snaploom("index", "list", location, "-o", "json")).document
    return {
        "indexed": built,
        "files": [outcome.files, outcome.kept_files],
        "rows": rows,
        "listed": len(listed),
    }
