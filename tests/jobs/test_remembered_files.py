"""Values that one run read from files of a source are known to the next by the output's folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.declared.shop import CUSTOMERS, FIRST_DAY, ORDERS, SECOND_DAY, Shop
from support.declared.sources import by_field

from snaploom.files.listed import ListedFile
from snaploom.output import caches, layout
from snaploom.sources.files import reader
from snaploom.sources.files.footers import read_footers

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
    spark: SparkSession, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
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
