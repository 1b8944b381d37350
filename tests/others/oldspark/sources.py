"""Tables of Iceberg and Delta as sources, joined with Parquet, row for row against plain Python."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.declared.shop import CUSTOMERS, NOW, ORDERS, SECOND_DAY, Shop, same_key, snaploom, wide
from support.declared.sources import (
    READ_TIME,
    by_field,
    files,
    reader,
    rows_at,
    snapshot_times,
    without_spark,
)

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
    """Add rows to a table, which is made when it is not there."""
    frame = spark.createDataFrame(rows)
    if data_format == "iceberg" and not place.exists():
        make(frame, place)
    frame.coalesce(1).write.format(data_format).mode("append").save(f"file://{place}")


def levels(day: str, start: int = 0) -> list[dict[str, Any]]:
    """Rows of a table about customers on a day."""
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
    assert listed is not None
    assert listed.change(SourceFiles(NoOtherFiles())) is None
    write(spark, data_format, place, [*levels(DAYS[0], 5), *levels(DAYS[1])])
    change = listed.change(SourceFiles(NoOtherFiles()))
    assert change is not None
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


def test_iceberg_table_is_read_by_its_name_in_a_catalog(spark) -> None:
    spark.createDataFrame(levels(DAYS[0])).writeTo("lake.db.levels").create()
    now = parse_instant(NOW)
    source = reader(spark, files("iceberg", "lake.db.levels"), now=now)
    assert len(rows_at(source, now)) == 3


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
