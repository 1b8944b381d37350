"""Tables of Iceberg and Delta as sources, joined with Parquet, row for row against plain Python."""

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.declared.shop import (
    CUSTOMERS,
    NOW,
    ORDERS,
    SECOND_DAY,
    Shop,
    done,
    same_key,
    snaploom,
    wide,
)
from support.declared.sources import (
    READ_TIME,
    by_field,
    files,
    reader,
    rows_at,
    snapshot_times,
    without_spark,
)
from support.servers.postgresserver import PASSWORD
from support.weaving.oldspark import catalog_settings, jdbc_catalog

from snaploom.errors import SourceNotReadable
from snaploom.files.listed import NoOtherFiles
from snaploom.models.common import parse_instant
from snaploom.plan.intervals import SourceSnapshots
from snaploom.reader import read
from snaploom.sources.sourcefiles import SourceFiles

FORMATS = pytest.mark.parametrize("data_format", ["iceberg", "delta"])
DAYS = ("2024-05-01", SECOND_DAY)


def make(frame: DataFrame, place: Path) -> None:
    """Make an Iceberg table without rows; Spark makes those of its Hadoop kind in catalogs only."""
    spark = frame.sparkSession
    iceberg = spark.sparkContext._gateway.jvm.org.apache.iceberg
    columns = iceberg.spark.SparkSchemaUtil.convert(frame._jdf.schema())
    spec = iceberg.PartitionSpec.unpartitioned()
    tables = iceberg.hadoop.HadoopTables(spark._jsparkSession.sessionState().newHadoopConf())
    tables.create(columns, spec, f"file://{place}")


def write(spark: SparkSession, data_format: str, place: Path, rows: list[dict[str, Any]]) -> None:
    frame = spark.createDataFrame(rows)
    if data_format == "iceberg" and not place.exists():
        make(frame, place)
    frame.coalesce(1).write.format(data_format).mode("append").save(f"file://{place}")


def levels(day: str, start: int = 0) -> list[dict[str, Any]]:
    return [{"customer_id": number, "level": number + start, "day": day} for number in (10, 11, 13)]


@FORMATS
def test_table_joined_with_parquet_gives_what_python_gives(spark, tmp_path, data_format) -> None:
    shop = Shop(tmp_path)
    place = tmp_path / "levels"
    for number, day in enumerate(DAYS):
        shop.day("orders", ORDERS, day)
        shop.day("customers", CUSTOMERS, day)
        write(spark, data_format, place, levels(day, number))
    source = {"format": data_format, "sourceUriGlobs": [f"file://{place}"]}
    source |= {"snapshot": by_field("day", "ISO8601_DATE")}
    shop.documents = [
        *shop.documents[:2],
        {**shop.raw("customers"), "metadata": {"name": "levels"}, "spec": {"hdfsLike": source}},
        same_key("customer-id", "customer_id", "orders", "customers", "levels"),
        wide(tmp_path, "customers", "levels"),
    ]
    result = shop.run("-o", "json")
    assert result.code == 0, result.err + result.out
    frame = read(spark, str(shop.published))
    found = {
        (row.snapshot_epoch, row.data.order_id): (
            row.customers and row.customers.data.name,
            row.levels and row.levels.data.level,
        )
        for row in frame.collect()
    }
    names = {row["customer_id"]: row["name"] for row in CUSTOMERS}
    assert found == {
        (
            int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000),
            order["order_id"],
        ): (
            names.get(order["customer_id"]),
            {row["customer_id"]: row["level"] for row in levels(day, number)}.get(
                order["customer_id"]
            ),
        )
        for number, day in enumerate(DAYS)
        for order in ORDERS
    }
    sources = snaploom("snapshots", shop.published, "-o", "json").document["snapshots"][0]
    pinned = {one["fieldName"]: one["fingerprint"] for one in sources["sources"]}
    assert pinned["levels"].startswith(f"{data_format}:")


@FORMATS
def test_what_its_library_wrote_is_found_from_the_metadata(spark, tmp_path, data_format) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number, day in enumerate(DAYS):
        write(spark, data_format, data / "levels", levels(day, number))
    rows = "".join(f"{row['customer_id']},{row['name']}\n" for row in CUSTOMERS)
    (data / "customers.csv").write_text("customer_id,name\n" + rows)
    result = snaploom("init", tmp_path / "model", "--from", data)
    assert result.code == 0, result.err
    assert "of 3 values of levels.customer_id are in customers.customer_id" in result.out
    text = (tmp_path / "model" / "sources.yaml").read_text()
    assert f"format: {data_format}\n    sourceUriGlobs: ['file://{data}/levels']" in text
    assert "6 rows read" in text


@FORMATS
def test_run_sees_one_version_whatever_is_committed_meanwhile(spark, tmp_path, data_format) -> None:
    place = tmp_path / "levels"
    write(spark, data_format, place, levels(DAYS[0]))
    declared = files(data_format, f"file://{place}", snapshot=by_field("day", "ISO8601_DATE"))
    source = reader(spark, declared)
    first = parse_instant("2024-05-01T00:00:00Z")
    assert snapshot_times(source) == [first]
    read = source.read(first)
    before, listed = read.fingerprint, read.listed
    assert listed.change(SourceFiles(NoOtherFiles())) is None
    write(spark, data_format, place, [*levels(DAYS[0], 5), *levels(DAYS[1])])
    change = listed.change(SourceFiles(NoOtherFiles()))
    assert (change.expected.removeprefix("version "), change.is_of_read) == (
        before.removeprefix(f"{data_format}:"),
        False,
    )
    assert len(rows_at(source, first)) == 3
    assert source.read(first).fingerprint == before
    later = reader(spark, declared)
    assert (len(snapshot_times(later)), len(rows_at(later, first))) == (2, 6)
    assert later.read(first).fingerprint != before


@FORMATS
def test_table_read_by_time_of_reading_is_one_snapshot(spark, tmp_path, data_format) -> None:
    write(spark, data_format, tmp_path / "levels", levels(DAYS[0]))
    now = parse_instant(NOW)
    declared = files(data_format, f"file://{tmp_path}/levels", snapshot=READ_TIME)
    source = reader(spark, declared, now=now)
    assert source.listing().at_read_time
    assert without_spark(declared) == (source.listing() if data_format == "iceberg" else None)
    assert len(rows_at(source, now)) == 3


def in_catalog(catalog: str, name: str = "") -> dict[str, Any]:
    """The table `levels` of a catalog, in a namespace of its own, as a source declares it."""
    table = {"catalog": catalog, "name": name or f"shop_{secrets.token_hex(4)}.levels"}
    return {"format": "iceberg", "table": table, "snapshot": by_field("day", "ISO8601_DATE")}


def made_in_catalog(spark: SparkSession, declared: dict[str, Any], place: Path) -> str:
    """Make the table, with the rows of the first day; its name for Spark."""
    catalog, name = declared["table"].values()
    spark.sql(f"CREATE NAMESPACE {catalog}.{name.partition('.')[0]}")
    writer = spark.createDataFrame(levels(DAYS[0])).writeTo(f"{catalog}.{name}").using("iceberg")
    # The one of Hadoop's kind has its own place for tables.
    (writer if catalog == "lake" else writer.tableProperty("location", f"file://{place}")).create()
    return f"{catalog}.{name}"


@pytest.mark.parametrize("catalog", ["rest", "jdbc", "hive", "glue", "lake"])
def test_table_of_a_catalog_is_read_at_one_version(spark, tmp_path, catalog) -> None:
    declared = in_catalog(catalog)
    name = made_in_catalog(spark, declared, tmp_path / "levels")
    source, day = reader(spark, {"hdfsLike": declared}), parse_instant(f"{DAYS[0]}T00:00:00Z")
    assert (snapshot_times(source), without_spark({"hdfsLike": declared})) == ([day], None)
    read = source.read(day)
    newest = spark.table(f"{name}.refs").where("name = 'main'").first().snapshot_id
    assert read.fingerprint == f"iceberg:{newest}"
    assert read.listed.change(SourceFiles(NoOtherFiles())) is None
    spark.createDataFrame(levels(DAYS[0], 5)).writeTo(name).append()
    change = read.listed.change(SourceFiles(NoOtherFiles()))
    assert (change.expected, change.is_of_read) == (f"version {newest}", False)
    assert (len(read.frame.collect()), len(rows_at(source, day))) == (3, 3)
    assert len(rows_at(reader(spark, {"hdfsLike": declared}), day)) == 6


@pytest.mark.parametrize("catalog", ["rest", "jdbc", "hive", "glue"])
def test_restated_snapshot_has_the_rows_that_the_table_has_by_then(spark, tmp_path, catalog):
    shop = Shop(tmp_path).with_data()
    source = in_catalog(catalog)
    name = made_in_catalog(spark, source, tmp_path / "levels")
    shop.documents = [
        shop.raw("orders"),
        {**shop.raw("customers"), "metadata": {"name": "levels"}, "spec": {"hdfsLike": source}},
        same_key("customer-id", "customer_id", "orders", "levels"),
        wide(tmp_path, "levels"),
    ]

    def published() -> tuple[list[int | None], str]:
        found = read(spark, str(shop.published)).collect()
        listed = snaploom("snapshots", shop.published, "-o", "json").document["snapshots"]
        pinned = {one["fieldName"]: one["fingerprint"] for one in listed[0]["sources"]}
        return sorted(row.levels.data.level for row in found if row.levels), pinned["levels"]

    done(shop.run())
    before, version = published()
    spark.sql(f"UPDATE {name} SET level = 7 WHERE customer_id = 10")
    when = ("--time", f"{DAYS[0]}T00:00:00Z", "--now", NOW, "--acknowledge-readers")
    done(snaploom("restate", "wide", "-f", shop.write(), *when, "--reason", "corrected"))
    after, later = published()
    assert (before, after) == ([10, 11], [7, 11])
    newest = spark.table(f"{name}.refs").where("name = 'main'").first().snapshot_id
    assert version != later == f"iceberg:{newest}"


def test_catalog_or_table_that_is_not_there_is_named_at_the_field_of_the_table(spark) -> None:
    for catalog, found in (
        ("pond", "no catalog of Iceberg"),
        ("rest", "has no table of this name"),
    ):
        source = reader(spark, {"hdfsLike": in_catalog(catalog, "shop.none")})
        with pytest.raises(SourceNotReadable, match=found) as raised:
            source.listing()
        assert raised.value.path == "spec.hdfsLike.table"
        assert raised.value.resource == "DataSource/orders"


def test_password_of_a_catalog_comes_from_the_environment_and_is_shown_nowhere(
    spark, postgres, monkeypatch
) -> None:
    settings = catalog_settings("pond", **jdbc_catalog(postgres.port, "env:POND_PASSWORD"))
    source = reader(spark, {"hdfsLike": in_catalog("pond", "shop.none")})
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        monkeypatch.setenv("POND_PASSWORD", f"not {PASSWORD}")
        with pytest.raises(SourceNotReadable, match="does not serve the table") as refused:
            source.listing()
        assert PASSWORD not in str(refused.value)
    finally:
        for key in settings:
            spark.conf.unset(key)


@FORMATS
def test_table_that_is_not_there_is_named(spark, tmp_path, data_format) -> None:
    source = reader(spark, files(data_format, f"file://{tmp_path}/nowhere"))
    with pytest.raises(SourceNotReadable) as raised:
        source.listing()
    assert raised.value.resource == "DataSource/orders"


def test_empty_iceberg_table_has_no_snapshot(spark, tmp_path) -> None:
    make(spark.createDataFrame(levels(DAYS[0])), tmp_path / "levels")
    for snapshot in (READ_TIME, by_field("day", "ISO8601_DATE")):
        declared = files("iceberg", f"file://{tmp_path}/levels", snapshot=snapshot)
        assert reader(spark, declared).listing() == SourceSnapshots()
        assert without_spark(declared) == (SourceSnapshots() if snapshot is READ_TIME else None)
