"""Other engines read by the page's own scripts what `snaploom.read` reads, whatever happened."""

import datetime as dt
import math
import runpy
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame
from support.declared.shop import NOW, Rows, Shop, day_source, same_key, snaploom, wide
from support.documentation.pages import DOCS, blocks_of

import snaploom as library

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = [f"2024-05-{day:02}" for day in range(1, 6)]
AT = dt.datetime(2024, 5, 1, 7, 30, tzinfo=dt.UTC)
NARROW = pa.table(
    {
        "order_id": pa.array([1, 2, 3], pa.int32()),
        "customer_id": [10, 11, 99],
        "amount": pa.array([Decimal("5.00"), Decimal("7.50"), None], pa.decimal128(10, 2)),
        "weight": pa.array([0.1, None, 2.5], pa.float32()),
    }
)
GROWN = pa.table(
    {
        "order_id": [1, 2, 2**40, 4],
        "customer_id": [10, 11, 10, 98],
        "amount": pa.array(
            [Decimal("5.00"), Decimal("7.50"), Decimal("123456789012.25"), None],
            pa.decimal128(14, 2),
        ),
        "weight": [0.1, None, 2.5, 1e300],
        "note": ["a", None, "c", "d"],
        "at": pa.array([AT, None, AT, AT], pa.timestamp("us", "UTC")),
        "tags": [["x"], [], None, ["y", None]],
    }
)
CUSTOMERS = pa.table({"customer_id": [10, 11], "name": ["Ada", "Grace"]})
WITH_CITY = CUSTOMERS.append_column("city", pa.array(["Paris", None]))
CUSTOMER = {"dataSource": "customers", "fieldName": "customer"}
RETURNS: Rows = ({"customer_id": 10, "n": 1}, {"customer_id": 98, "n": 2})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Path:
    """What the page calls `my-model`: the output has grown, was restated, and lost a snapshot."""
    root = tmp_path_factory.mktemp("engines") / "my-model"
    shop = Shop(root)
    shop.documents[-1] = wide(root, CUSTOMER)
    for day in DAYS[:2]:
        shop.day("orders", NARROW, day)
        shop.day("customers", CUSTOMERS, day)
    assert shop.run().code == 0
    for day in DAYS[2:]:
        shop.day("orders", GROWN, day)
        shop.day("customers", WITH_CITY, day)
        shop.day("returns", RETURNS, day)
    names = ("orders", "customers", "returns")
    shop.documents = [
        *(day_source(root, name) for name in names),
        same_key("customer-id", "customer_id", *names),
        wide(root, CUSTOMER, "returns"),
    ]
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 3})
    assert shop.run().code == 0
    shop.day("orders", GROWN.slice(0, 2), DAYS[3])
    when = ("--time", f"{DAYS[3]}T00:00:00Z", "--now", NOW)
    restated = snaploom("restate", "wide", "-f", shop.write(), *when, "--acknowledge-readers")
    assert restated.code == 0, restated.err
    for command in ("files", "schema"):
        form = ("-o", "json") if command == "schema" else ()
        listed = snaploom(command, shop.published, *form).out
        name = "published.txt" if command == "files" else "schema.json"
        (root.parent / name).write_text(listed)
    return root.parent


def from_duckdb(found: duckdb.DuckDBPyRelation) -> pa.Table:
    return found.to_arrow_table()


def from_pyarrow(found: ds.Dataset) -> pa.Table:
    return found.to_table()


def from_polars(found: pl.LazyFrame) -> pa.Table:
    return found.collect().to_arrow()


def from_spark(found: DataFrame) -> pa.Table:
    return found.toArrow()


def plain(value: object) -> object:
    """A value without what engines write in their own way: zones, and kinds of numbers."""
    match value:
        case dict():
            return {key: plain(each) for key, each in sorted(value.items())}
        case list():
            return [plain(each) for each in value]
        case dt.datetime():
            return value.replace(tzinfo=None)
        case float() if math.isnan(value):
            return "NaN"
    return value


def rows_of(table: pa.Table) -> list[Any]:
    rows: list[Any] = [plain(row) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row["snapshot_epoch"], row["data"]["order_id"]))


def script(title: str) -> str:
    page = DOCS / "how-to" / "read-without-snaploom.md"
    (found,) = [block.text for block in blocks_of(page) if block.title == title]
    return found


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("with_duckdb.py", from_duckdb),
        ("with_pyarrow.py", from_pyarrow),
        ("with_polars.py", from_polars),
        ("with_spark.py", from_spark),
    ],
)
def test_a_recipe_reads_every_value_that_is_published_and_no_other(
    name: str,
    taken: Callable[[Any], pa.Table],
    spark: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    Path(name).write_text(script(name))
    found = rows_of(taken(runpy.run_path(name)["wide"]))
    expected = rows_of(library.read(spark, str(folder / "my-model" / "wide")).toArrow())
    assert len(expected) == 3 + 4 + 2 + 4
    assert found == expected


def test_the_folder_itself_shows_what_is_not_published(spark: Any, folder: Path) -> None:
    files = list((folder / "my-model" / "wide" / "data").glob("*/*.parquet"))
    assert len(files) > len((folder / "published.txt").read_text().splitlines())
