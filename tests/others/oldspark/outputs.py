"""Outputs that are tables of Iceberg, in catalogs too, or of Delta: read by many readers."""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame, SparkSession
from support.declared.declarations import document, put
from support.declared.shop import (
    CUSTOMERS,
    NOW,
    ORDERS,
    SECOND_DAY,
    CommandResult,
    Shop,
    snaploom,
    wide,
)
from support.declared.sources import by_field
from support.servers.s3servers import S3Server
from support.weaving.loom import Loom
from support.weaving.oldspark import rows_by_duckdb, rows_of_delta

from snaploom.output.folder import CrashPoint
from snaploom.reader import read

THIRD_DAY = "2024-05-03"
DEAD_RUN = "20240101T000000000Z-0123456789ab"
DAYS = ("2024-05-01", SECOND_DAY, THIRD_DAY)


@dataclass(frozen=True)
class Kind:
    """A table in the output's folder, or of a catalog."""

    spark: SparkSession
    endpoint: str
    catalog: str
    form: str = "iceberg"
    name: str = field(default_factory=lambda: f"shop_{secrets.token_hex(4)}.wide")

    @property
    def declared(self) -> dict[str, Any]:
        """What `outputFolder` has."""
        table = {"table": {"catalog": self.catalog, "name": self.name}} if self.catalog else {}
        return {"dataFormat": self.form.upper(), **table}

    def place(self, folder: Path) -> str:
        return f"file://{folder}/{'data' if self.form == 'delta' else 'iceberg'}"

    def source(self, folder: Path) -> dict[str, Any]:
        by_name = {"table": self.declared.get("table")}
        place = by_name if self.catalog else {"sourceUriGlobs": [self.place(folder)]}
        snapshot = by_field("snapshot_epoch", "UNIX_MILLISECONDS")
        return {"hdfsLike": {"format": self.form, **place, "snapshot": snapshot}}

    def table(self, folder: Path) -> DataFrame:
        if self.catalog:
            return self.spark.table(f"{self.catalog}.{self.name}")
        return self.spark.read.format(self.form).load(self.place(folder))

    def history(self, folder: Path) -> list[dict[str, str]]:
        """Summaries of the table's snapshots, the oldest first."""
        if self.form == "delta":
            found = DataFrame(self.delta(folder).history(), self.spark).orderBy("version")
            ours = [row.userMetadata for row in found.select("userMetadata").collect()]
            return [json.loads(metadata) for metadata in ours if metadata]
        place = f"{self.catalog}.{self.name}.snapshots" if self.catalog else ""
        reader = self.spark.read.format("iceberg")
        frame = reader.load(place or f"file://{folder}/iceberg#snapshots")
        return [row.summary for row in frame.orderBy("committed_at").collect()]

    def without_spark(self, folder: Path) -> list[list[dict[str, Any]]]:
        """Rows of the table as Polars, DuckDB, and PyIceberg or delta-rs read them."""
        if self.form == "delta":
            return [ordered(found) for found in rows_of_delta(self.place(folder))]
        if self.catalog == "rest":
            duckdb = rows_by_duckdb(self.name, self.endpoint)
            table: Any = RestCatalog("rest", uri=self.endpoint).load_table(self.name)
            polars = pl.scan_iceberg(table).collect()
        else:
            newest = self._newest(folder)
            duckdb = rows_by_duckdb(newest)
            table, polars = StaticTable.from_metadata(newest), pl.scan_iceberg(newest).collect()
        found = (table.scan().to_arrow().to_pylist(), polars.to_dicts(), duckdb)
        return [ordered(rows) for rows in found]

    def delta(self, folder: Path) -> Any:
        tables = self.spark._jvm.io.delta.tables.DeltaTable
        return tables.forPath(self.spark._jsparkSession, self.place(folder))

    def rollback(self, folder: Path) -> Callable[[], object]:
        """What makes the version live again which is live now."""
        if self.form == "delta":
            newest = len(list((folder / "data" / "_delta_log").glob("*.json"))) - 1
            return lambda: self.delta(folder).restoreToVersion(newest)
        refs = self.spark.table(f"{self.catalog}.{self.name}.refs").where("name = 'main'")
        newest = refs.first()["snapshot_id"]
        call = f"CALL {self.catalog}.system.rollback_to_snapshot('{self.name}', {newest})"
        return lambda: self.spark.sql(call)

    def _newest(self, folder: Path) -> str:
        if self.catalog:
            log = self.spark.table(f"{self.catalog}.{self.name}.metadata_log_entries")
            return str(max(log.collect(), key=lambda entry: entry.timestamp).file)
        versions = (folder / "iceberg" / "metadata").glob("v*.metadata.json")
        return f"file://{max(versions, key=lambda path: int(path.name.split('.')[0][1:]))}"


@pytest.fixture(params=["folder", "rest", "jdbc", "hive", "glue", "delta"])
def kind(request: pytest.FixtureRequest, spark: SparkSession, rest_catalog: S3Server) -> Kind:
    if request.param == "delta":
        return Kind(spark, "", "", "delta")
    catalog = "" if request.param == "folder" else request.param
    return Kind(spark, rest_catalog.endpoint, catalog)


@pytest.fixture
def shop(tmp_path: Path, kind: Kind) -> Shop:
    """Three days of orders and customers."""
    made = Shop(tmp_path)
    for number, day in enumerate(DAYS):
        made.day("orders", [{**row, "amount": row["amount"] + number} for row in ORDERS], day)
        made.day("customers", CUSTOMERS, day)
    for name, value in kind.declared.items():
        made.set("wide", f"outputFolder.{name}", value)
    return made


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return ordered([row.asDict(recursive=True) for row in frame.collect()])


def ordered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: (row["snapshot_epoch"], row["data"]["order_id"]))


def millis(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)


def expected(days: Sequence[str] = DAYS) -> list[dict[str, Any]]:
    names = {row["customer_id"]: row for row in CUSTOMERS}
    return [
        {
            "data": {**order, "amount": order["amount"] + DAYS.index(day)},
            "customers": {"data": names[order["customer_id"]]}
            if order["customer_id"] in names
            else None,
            "snapshot_epoch": millis(day),
        }
        for day in days
        for order in ORDERS
    ]


def snapshots(shop: Shop) -> list[dict[str, Any]]:
    listed = snaploom("snapshots", shop.published, "-o", "json").document["snapshots"]
    return [{k: v for k, v in one.items() if k != "seq"} for one in listed]


def forget_the_last_publication(folder: Path) -> None:
    """Leave the log as a run leaves it that dies when the table has its commit."""
    entries = sorted((folder / "metadata" / "manifest").glob("*.json"))
    last = max(i for i, path in enumerate(entries) if '"action":"publish"' in path.read_text())
    for path in (*entries[last:], folder / "metadata" / "_latest"):
        path.unlink()


def published(shop: Shop) -> list[str]:
    return [one["time"][:10] for one in shop.run("-o", "json").document["snapshots"]]


def collected(shop: Shop, kind: Kind) -> int:
    """Remove files of ended snapshots without grace, and return how many there were."""
    looked, result = gc(shop, kind, "--dry-run"), gc(shop, kind)
    assert (looked.code, result.code) == (0, 0), looked.err + result.err
    would_go = [one for one in looked.document["garbage"] if one["verdict"] == "REMOVE"]
    assert (looked.document["removed"], len(would_go)) == (0, result.document["removed"])
    return int(result.document["removed"])


def gc(shop: Shop, kind: Kind, *options: str) -> CommandResult:
    place = ("wide", "-f", shop.write()) if kind.catalog else (shop.published,)
    grace = ("--grace", "0s", "--below-reader-grace")
    return snaploom("gc", *place, *grace, "-o", "json", *options)


def test_three_snapshots_are_read_by_iceberg_as_by_snaploom(spark, kind, shop) -> None:
    result = shop.run("-o", "json")
    assert result.code == 0, result.err + result.out
    assert rows(kind.table(shop.published)) == expected()
    assert rows(read(spark, str(shop.published))) == expected()
    day = kind.table(shop.published).where(f"snapshot_epoch = {millis(SECOND_DAY)}")
    assert rows(day) == expected([SECOND_DAY])
    summaries = kind.history(shop.published)
    run = result.document["runId"]
    assert [one["snaploom.snapshot-time"][:10] for one in summaries] == list(DAYS)
    assert {one["snaploom.run-id"] for one in summaries} == {run}
    assert snaploom("check", shop.published).code == 0
    assert published(shop) == []


def test_log_that_lacks_what_the_table_has_is_completed_and_nothing_published_twice(
    spark, kind, shop
) -> None:
    shop.run()
    before = snapshots(shop)
    forget_the_last_publication(shop.published)
    assert len(snapshots(shop)) == 2
    result = shop.run("-o", "json").document
    assert (result["snapshots"], [one["reason"] for one in result["skipped"]]) == (
        [],
        ["ALREADY_PUBLISHED"],
    )
    assert snapshots(shop) == before
    assert rows(kind.table(shop.published)) == expected()
    assert len(kind.history(shop.published)) == 3


def test_lost_manifest_is_repaired_from_the_table(spark, kind, shop) -> None:
    shop.run()
    for path in sorted((shop.published / "metadata").rglob("*.json")):
        path.unlink()
    (shop.published / "metadata" / "_latest").unlink()
    (shop.published / "snaploom.json").unlink()
    result = snaploom("repair", "wide", "-f", shop.write(), "--yes", "-o", "json")
    assert (result.code, [one["rows"] for one in result.document["snapshots"]]) == (0, [3, 3, 3])
    assert rows(read(spark, str(shop.published))) == expected()
    assert published(shop) == []


def test_of_two_runs_at_once_each_snapshot_is_published_by_one(spark, kind, tmp_path) -> None:
    loom = Loom(tmp_path, folder=kind.declared)
    for day in (1, 2):
        loom.write("order", day, [{"id": 1}, {"id": 2}])
    winners = []

    def overtake(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_PROMOTION and not winners:
            winners.append(loom.weave(spark).report)

    woven = loom.weave(spark, reached=overtake)
    assert woven.outcomes == {1: "ALREADY_PUBLISHED", 2: "ALREADY_PUBLISHED"}
    assert kind.table(loom.out).count() == 4
    assert {one["snaploom.run-id"] for one in kind.history(loom.out)} == {winners[0].run_id}


def test_old_snapshots_leave_the_table_and_then_the_disk(spark, kind, shop) -> None:
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 1})
    last = shop.folder / "orders" / f"{DAYS[2]}.parquet"
    kept = last.rename(shop.folder / "later.parquet")
    assert published(shop) == list(DAYS[:2])
    kept.rename(last)
    assert published(shop) == [DAYS[2]]
    assert [one["snaploom.snapshot-time"][:10] for one in kind.history(shop.published)] == [
        *DAYS,
        DAYS[0],
    ]
    assert rows(kind.table(shop.published)) == expected(DAYS[1:])
    assert collected(shop, kind) > 0
    assert rows(kind.table(shop.published)) == expected(DAYS[1:])
    assert rows(read(spark, str(shop.published))) == expected(DAYS[1:])
    assert published(shop) == []


def test_restated_snapshot_takes_the_place_of_the_old_one_in_one_commit(
    spark, kind, shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # its own planner is not installed
    shop.run()
    before = len(kind.history(shop.published))
    shop.day("orders", [{**ORDERS[0], "amount": 1.0}], SECOND_DAY)
    when = ("--time", f"{SECOND_DAY}T00:00:00Z", "--now", "2024-06-01T00:00:00Z")
    result = snaploom(
        "restate", "wide", "-f", shop.write(), *when, "--acknowledge-readers", "--reason", "wrong"
    )
    assert result.code == 0, result.err + result.out
    summaries = kind.history(shop.published)
    assert [one["snaploom.snapshot-time"][:10] for one in summaries[before:]] == [SECOND_DAY]
    found = rows(kind.table(shop.published))
    assert [
        row["data"]["amount"] for row in found if row["snapshot_epoch"] == millis(SECOND_DAY)
    ] == [1.0]
    assert found == rows(read(spark, str(shop.published)))
    assert kind.without_spark(shop.published) == [found] * 3
    assert collected(shop, kind) > 0
    assert rows(kind.table(shop.published)) == found


@pytest.mark.parametrize("kind", ["folder"], indirect=True)
def test_table_stays_readable_when_a_dead_run_is_revoked_and_a_snapshot_is_empty(
    spark, kind, tmp_path
) -> None:
    loom = Loom(tmp_path, folder=kind.declared)
    loom.write("order", 1, [{"id": 1}])
    loom.write("order", 2, pa.table({"id": pa.array([], pa.int64())}))
    assert loom.weave(spark).outcomes == {1: "PUBLISHED", 2: "PUBLISHED"}
    left = loom.out / "data" / "snapshot_epoch=1" / f"{DEAD_RUN}-00000000-00000.parquet"
    left.parent.mkdir()
    left.write_bytes(b"of a run that died")
    options = ("--grace", "0s", "--below-reader-grace", "-o", "json")
    assert snaploom("gc", loom.out, *options).document["removed"] == 1
    newest = sorted((loom.out / "iceberg" / "metadata").glob("v*.json"))[-1]
    assert DEAD_RUN in newest.read_text("utf-8")
    loom.write("order", 3, [{"id": 3}])
    assert loom.weave(spark).outcomes == {3: "PUBLISHED"}
    assert sorted(row.data.id for row in kind.table(loom.out).collect()) == [1, 3]
    assert len(kind.history(loom.out)) == 3


def test_snapshots_that_fail_leave_the_table_as_it_was(spark, kind, shop) -> None:
    shop.set("wide", "checks", [{"name": "few", "expression": "sum(data.amount) < 24"}])
    result = shop.run("-o", "json").document
    assert [one["reason"] for one in result["failed"]] == ["CHECK_FAILED"]
    assert rows(kind.table(shop.published)) == expected(DAYS[:1])


def test_columns_widen_and_come_while_old_files_stay_readable(spark, kind, shop) -> None:
    narrow = pa.int64() if kind.form == "delta" else pa.int32()  # types of Delta stay
    shop.day("orders", pa.table({"order_id": pa.array([1], narrow)}), DAYS[0])
    wider = {
        "order_id": pa.array([2**40], pa.int64()),
        "at": pa.array([datetime(2024, 5, 2, 3, 4, 5, 678901, UTC)]),
        "since": pa.array([date(2024, 5, 2)]),
        "price": pa.array([Decimal("1.25")]),
        "tags": pa.array([["a", "b"]]),
    }
    shop.documents = [shop.documents[0], _single_source(shop)]
    shop.day("orders", pa.table(wider), DAYS[1])
    (shop.folder / "orders" / f"{DAYS[2]}.parquet").unlink()
    assert shop.run().code == 0
    found = rows(kind.table(shop.published))
    assert [row["data"]["order_id"] for row in found] == [1, 2**40]
    assert [row["data"]["tags"] for row in found] == [None, ["a", "b"]]
    assert found[1]["data"]["price"] == Decimal("1.25")
    assert found == rows(read(spark, str(shop.published)))
    shop.day("orders", pa.table({"ORDER_ID": pa.array([3], pa.int64())}), DAYS[2])
    result = shop.run()
    assert (result.code, "in other letters" in result.out + result.err) == (1, True)
    assert rows(kind.table(shop.published)) == found


def _single_source(shop: Shop) -> dict[str, Any]:
    wide = shop.raw("wide")
    wide["spec"]["dataModel"] |= {"otherDataSources": [], "dataRelationships": []}
    return wide


@pytest.mark.parametrize("kind", ["rest", "jdbc", "hive", "glue"], indirect=True)
def test_check_shows_whether_it_compared_the_table_and_finds_what_others_removed(spark, kind, shop):
    shop.run()
    name = f"{kind.catalog}.{kind.name}"
    result = snaploom("check", "wide", "-f", shop.write(), "-o", "json")
    assert (result.code, result.document["table"]) == (0, {"name": name, "isChecked": True})
    unseen = snaploom("check", shop.published, "--files-only")
    assert (unseen.code, f"table {name} was not looked at" in unseen.out) == (0, True)
    spark.sql(f"DELETE FROM {name} WHERE snapshot_epoch = {millis(SECOND_DAY)}")
    result = snaploom("check", "wide", "-f", shop.write(), "-o", "json")
    found = [(one["kind"], one["snapshot"][:10]) for one in result.document["faults"]]
    assert (result.code, found) == (1, [("TABLE", SECOND_DAY)])


@pytest.mark.parametrize("kind", ["folder"], indirect=True)
@pytest.mark.parametrize("catalog", ["rest", "jdbc", "hive"])
def test_table_that_moves_to_a_catalog_is_read_and_published_there(
    spark, kind, shop, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # its own planner is not installed
    last = shop.folder / "orders" / f"{DAYS[2]}.parquet"
    later = last.rename(shop.folder / "later.parquet")
    assert published(shop) == list(DAYS[:2])
    files = sorted((shop.published / "data").rglob("*.parquet"))
    later.rename(last)
    moved = Kind(spark, kind.endpoint, catalog)
    shop.set("wide", "outputFolder.table", moved.declared["table"])
    early = shop.run()
    assert (early.code, "'snaploom migrate'" in early.err) == (1, True), early.err
    result = snaploom("migrate", "wide", "-f", shop.write(), "-o", "json")
    assert (result.code, result.document["snapshots"]) == (0, 2), result.err
    assert sorted((shop.published / "data").rglob("*.parquet")) == files
    assert rows(moved.table(shop.published)) == expected(DAYS[:2])
    assert published(shop) == [DAYS[2]]
    found = rows(moved.table(shop.published))
    assert found == rows(read(spark, str(shop.published))) == expected()
    assert moved.without_spark(shop.published) == [found] * 3
    checked = snaploom("check", "wide", "-f", shop.write(), "-o", "json").document
    assert (checked["table"]["isChecked"], checked["faults"]) == (True, [])
    assert rows(kind.table(shop.published)) == expected(DAYS[:2])
    second = wide(shop.folder, relationships=())
    second["metadata"]["name"] = "second"
    put(second["spec"], "dataModel.rootDataSource.dataSource", "by-place")
    put(second["spec"], "outputFolder.folderUri", f"file://{shop.folder}/second/")
    shop.documents += [document("DataSource", "by-place", kind.source(shop.published)), second]
    refused = snaploom("run", "second", "-f", shop.write(), "--now", NOW)
    assert (refused.code, "has moved to a catalog" in refused.err) == (1, True), refused.err


@pytest.mark.parametrize("kind", ["rest", "jdbc", "hive", "glue", "delta"], indirect=True)
def test_gc_leaves_files_that_a_rollback_shows_again_until_they_are_restated(spark, kind, shop):
    shop.run()
    before, roll_back = rows(kind.table(shop.published)), kind.rollback(shop.published)
    shop.day("orders", ORDERS[:1], SECOND_DAY)
    when = ("--time", f"{SECOND_DAY}T00:00:00Z", "--now", NOW, "--acknowledge-readers")
    restate = ("restate", "wide", "-f", shop.write(), *when, "--reason", "wrong")
    assert snaploom(*restate).code == 0
    roll_back()
    refused = gc(shop, kind)
    assert (refused.code, "shows files that are to be removed" in refused.err) == (1, True)
    assert rows(kind.table(shop.published)) == before
    assert snaploom(*restate).code == 0
    assert collected(shop, kind) > 0
    assert rows(kind.table(shop.published)) == rows(read(spark, str(shop.published))) != before


def test_output_is_a_source_of_another_one_which_has_its_turn_after_it(spark, kind, shop, tmp_path):
    query = {
        "dataSource": "wide-table",
        "alias": "w",
        "dataQuery": "SELECT data.customer_id, max(customers.data.name) AS name, "
        "sum(data.amount) AS spent FROM w GROUP BY data.customer_id",
    }
    second = wide(tmp_path, relationships=())
    second["metadata"]["name"] = "a-first-by-name"
    put(second["spec"], "dataModel.rootDataSource.dataSource", "spending")
    put(second["spec"], "outputFolder.folderUri", f"file://{tmp_path}/spent/")
    shop.documents += [
        document("DataSource", "wide-table", kind.source(shop.published)),
        document("DataSource", "spending", {"simpleVirtual": query}),
        second,
    ]
    result = snaploom("run", "--all", "-f", shop.write(), "--now", NOW)
    assert result.code == 0, result.err + result.out
    found = read(spark, f"{tmp_path}/spent/").collect()
    spent = {
        (row.snapshot_epoch, row.data.customer_id, row.data.name, row.data.spent) for row in found
    }
    names = {row["customer_id"]: row["name"] for row in CUSTOMERS}
    assert spent == {
        (row["snapshot_epoch"], row["data"]["customer_id"],
         names.get(row["data"]["customer_id"]), row["data"]["amount"])
        for row in expected()
    }  # fmt: skip
    assert len(found) == len(expected())


def test_sorted_snapshot_is_the_same_table(spark, kind, shop) -> None:
    shop.run()
    result = snaploom(
        "index", "sort", "wide", "-f", shop.write(), "--by", "data.amount", "--acknowledge-readers"
    )
    assert result.code == 0, result.err + result.out
    assert rows(kind.table(shop.published)) == expected()
    assert collected(shop, kind) > 0
    assert rows(kind.table(shop.published)) == expected()


@pytest.mark.parametrize("kind", ["delta"], indirect=True)
def test_commits_of_others_to_a_table_of_delta_are_kept_and_vacuum_removes_nothing(
    spark, kind, shop
) -> None:
    kept = shop.folder / "orders" / f"{DAYS[2]}.parquet"
    later = kept.rename(shop.folder / "later.parquet")
    shop.run()
    place, files = kind.place(shop.published), sorted(shop.published.rglob("*.parquet"))
    kind.table(shop.published).limit(1).write.format("delta").mode("append").save(place)
    kind.delta(shop.published).optimize().executeCompaction()
    kind.delta(shop.published).vacuum()
    assert set(files) <= set(shop.published.rglob("*.parquet"))
    later.rename(kept)
    assert published(shop) == [DAYS[2]]
    found = rows(kind.table(shop.published))
    assert len(found) == len(expected()) + 1
    assert kind.without_spark(shop.published) == [found] * 3
    assert rows(read(spark, str(shop.published))) == expected()
    time = ("--time", f"{DAYS[0]}T00:00:00Z", "--now", NOW, "--acknowledge-readers")
    assert snaploom("restate", "wide", "-f", shop.write(), *time, "--reason", "wrong").code == 0
    assert rows(kind.table(shop.published)) == expected()
