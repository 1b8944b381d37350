"""Subtrees that several snapshots share are folded once; their row count proof is the same."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.declared.shop import CUSTOMERS, FIRST_DAY, ORDERS, SECOND_DAY, Shop
from support.declared.sources import by_field
from support.weaving.loom import Loom, ids

import snaploom
from snaploom.engine import latecounts
from snaploom.files.listed import ListedFile
from snaploom.models.report import RunPhase
from snaploom.output import caches, layout
from snaploom.run.runevents import SnapshotStarted
from snaploom.sources.files import reader
from snaploom.sources.files.footers import read_footers

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    """Orders of three days; customers and items of the first, which serve all."""
    loom = Loom(tmp_path)
    window = {"snapshot": {"timeBefore": {"day": 30}}}
    for day in (1, 2, 3):
        loom.write("order", day, ids(*range(day)))
    loom.write("customer", 1, [{"id": n, "name": f"c{n}"} for n in (0, 2)])
    loom.write("item", 1, [{"id": 1, "n": n} for n in (2, 1)])
    loom.join("customer", **window)
    loom.join("item", transformations={"groupBy": {"fieldNames": ["id"]}}, **window)
    return loom


def rows(loom: Loom, spark: SparkSession, day: int) -> list[tuple]:
    found = snaploom.read(spark, loom.uri, at=f"2024-01-{day:02d}T00:00:00Z")
    chosen = found.selectExpr("data.id", "customer.data.name", "item.data.n").collect()
    return sorted(tuple(row) for row in chosen)


EXPECTED = [(0, "c0", None), (1, None, [1, 2]), (2, "c2", None)]


def kept_rows(spark: SparkSession) -> int:
    """Frames that Spark keeps."""
    return spark.sparkContext._jsc.getPersistentRDDs().size()


@pytest.fixture(params=[False, True], ids=["observed", "late"])
def counting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that are observed, and those that are taken late."""
    monkeypatch.setattr(latecounts, "counts_are_late", lambda *_: request.param)


@pytest.mark.usefixtures("counting")
def test_shared_subtrees_are_kept_for_the_run_and_counted_in_every_snapshot(spark, loom) -> None:
    loom.write("order", 1, pa.table({"id": pa.array([], pa.int64())}))
    kept: list[int] = []

    def emit(event: object) -> None:
        if isinstance(event, SnapshotStarted):
            kept.append(kept_rows(spark))

    report = loom.weave(spark, emit=emit).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert (kept, kept_rows(spark)) == ([0, 2, 2], 0)
    assert [[(j.in_, j.out, j.matched) for j in s.joins] for s in report.snapshots] == [
        [(0, 0, 0), (0, 0, 0)],
        [(2, 2, 1), (2, 2, 1)],
        [(3, 3, 2), (3, 3, 1)],
    ]
    assert [rows(loom, spark, day) for day in (2, 3)] == [EXPECTED[:2], EXPECTED]


@pytest.mark.usefixtures("counting")
def test_row_that_matches_twice_is_found_in_a_shared_subtree(spark, loom) -> None:
    loom.write("customer", 1, ids(2, 2))
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "PUBLISHED", 2: "PUBLISHED", 3: "rows_multiplied"}
    assert "from 3 to 4" in woven.report.message
    assert kept_rows(spark) == 0


def test_checkpoint_serves_the_next_run_until_its_source_changes(spark, loom, tmp_path) -> None:
    place = tmp_path / "checkpoints"
    loom.spec["run.checkpointUri"] = f"file://{place}/"

    def documents() -> set[str]:
        return {path.name for path in place.glob("*.json")}

    loom.weave(spark, limit=1)
    assert documents() == set()
    loom.weave(spark, limit=1)
    first = documents()
    assert len(first) == 2
    assert loom.weave(spark).report.phase is RunPhase.SUCCEEDED
    assert documents() == first
    assert rows(loom, spark, 3) == EXPECTED
    assert len({record.schema_hash for record in loom.state().snapshots}) == 1
    loom.write("customer", 1, [{"id": n, "name": "new"} for n in range(3)])
    loom.write("order", 4, ids(0))
    loom.weave(spark)
    assert len(documents() - first) == 1
    assert rows(loom, spark, 4) == [(0, "new", None)]


@pytest.mark.parametrize(
    ("way", "limit"), [("kept", None), ("run.checkpointUri", 1), ("run.snapshotsPerJob", None)]
)
def test_source_that_is_joined_as_of_a_time_is_shared_by_every_way(spark, tmp_path, way, limit):
    loom = Loom(tmp_path)
    ways = {"run.checkpointUri": f"file://{tmp_path}/checkpoints/", "run.snapshotsPerJob": 3}
    loom.spec.update({way: ways[way]} if way in ways else {})
    for day in (1, 2, 3):
        loom.write("order", day, [{"id": 1, "at": day}, {"id": 2, "at": None}])
    loom.write("rate", 1, [{"id": 1, "since": n, "version": 0} for n in (0, 2)])
    rule = {"parentField": "at", "childField": "since", "ties": {"newestBy": "version"}}
    loom.join("rate", asOf=rule, snapshot={"timeBefore": {"day": 30}})
    reports = [loom.weave(spark, limit=limit).report for _ in range(3 if limit else 1)]
    joins = [join for report in reports for s in report.snapshots for join in s.joins]
    counts = [(join.in_, join.out, join.matched, join.null_times) for join in joins if join.in_]
    assert counts == [(2, 2, 1, 1)] * 3
    found = snaploom.read(spark, loom.uri).where("rate is not null")
    chosen = found.selectExpr("data.at", "rate.data.since").collect()
    assert sorted(tuple(row) for row in chosen) == [(1, 0), (2, 2), (3, 2)]


@pytest.mark.parametrize(
    ("way", "limit"), [("kept", None), ("run.checkpointUri", 1), ("run.snapshotsPerJob", None)]
)
def test_source_with_windows_is_shared_by_every_way(spark, tmp_path, way, limit):
    loom = Loom(tmp_path)
    ways = {"run.checkpointUri": f"file://{tmp_path}/checkpoints/", "run.snapshotsPerJob": 3}
    loom.spec.update({way: ways[way]} if way in ways else {})
    days = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    for number, day in enumerate(days, 1):
        loom.write("order", number, [{"id": 1, "at": day}, {"id": 2, "at": None}])
    loom.write("rate", 1, [{"id": 1, "since": day, "value": 2**n} for n, day in enumerate(days)])
    sums = [{"name": f"sum_{days}d", "function": "SUM", "field": "value", "over": f"{days}d"}
            for days in (1, 7)]  # fmt: skip
    rule = {"parentField": "at", "childField": "since", "aggregates": sums}
    loom.join("rate", windows=rule, snapshot={"timeBefore": {"day": 30}})
    reports = [loom.weave(spark, limit=limit).report for _ in range(3 if limit else 1)]
    joins = [join for report in reports for s in report.snapshots for join in s.joins]
    counts = [(join.in_, join.out, join.matched, join.null_times) for join in joins if join.in_]
    assert sorted(counts) == [(2, 2, 0, 1), (2, 2, 1, 1), (2, 2, 1, 1)]
    found = snaploom.read(spark, loom.uri).where("data.id = 1").orderBy("data.at")
    rows = found.select("rate.data.*").collect()
    assert [tuple(row) for row in rows] == [(None, None), (1, 1), (2, 3)]


LONG_AGO = (1_600_000_000, 1_600_000_000)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Orders whose day is a column."""
    shop = Shop(tmp_path)
    shop.raw("orders")["spec"]["hdfsLike"] = {
        "format": "parquet",
        "sourceUriGlobs": [f"file://{tmp_path}/orders/*.parquet"],
        "snapshot": by_field("day", "ISO8601_DATE"),
    }
    shop.day("customers", CUSTOMERS)
    path = shop.day("orders", [{**row, "day": FIRST_DAY} for row in ORDERS])
    os.utime(path, LONG_AGO)
    return shop


def test_file_with_known_days_is_not_opened_by_later_runs_and_plans(spark, shop, monkeypatch):
    monkeypatch.setattr(caches, "SETTLED_AFTER", 0)
    opened: list[str] = []

    def read(files: Sequence[ListedFile], *rest: Any) -> Any:
        opened.extend(file.name for file in files)
        return read_footers(files, *rest)

    monkeypatch.setattr(reader, "read_footers", read)
    assert shop.run().code == 0
    document = shop.published / layout.listing_key("orders")
    assert FIRST_DAY in document.read_text("utf-8")
    assert opened
    opened.clear()
    assert (shop.run().code, shop.plan().code, opened) == (0, 0, [])
    document.unlink()
    shop.day("customers", CUSTOMERS, SECOND_DAY)
    second = shop.day("orders", [{**row, "day": SECOND_DAY} for row in ORDERS], SECOND_DAY)
    assert shop.run().code == 0
    assert set(opened) == {second.name, f"{FIRST_DAY}.parquet"}
