"""Values that one run read from files of a source are known to the next by the output's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.shop import CUSTOMERS, FIRST_DAY, ORDERS, Shop
from support.sources import by_field

from snaploom.storage import layout

pytestmark = pytest.mark.spark

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


def test_file_with_known_days_is_not_opened_by_later_runs_and_plans(
    spark: SparkSession, shop: Shop
) -> None:
    assert shop.run().code == 0
    document = shop.published / layout.listing_key("orders")
    assert FIRST_DAY in document.read_text("utf-8")
    path = shop.folder / "orders" / f"{FIRST_DAY}.parquet"
    path.write_bytes(b"x" * path.stat().st_size)  # reading it fails
    os.utime(path, LONG_AGO)
    assert (shop.run().code, shop.plan().code) == (0, 0)
    document.unlink()
    result = shop.run()
    assert result.code != 0
    assert "DataSource/orders" in result.out + result.err
