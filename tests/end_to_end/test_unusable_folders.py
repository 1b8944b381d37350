"""Output folders that cannot be published into: one clear error each, and they stay clean."""

import os
from pathlib import Path

import pytest
from support.declared.shop import (
    ORDERS,
    SECOND_DAY,
    Shop,
    assert_one_error,
    snaploom,
)
from support.storage.disks import read_only, small_disk

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def noise_orders(shop: Shop, day: str, rows: int = 40_000) -> None:
    """Orders that no codec makes smaller."""
    shop.day(
        "orders", [{"customer_id": 10, "text": os.urandom(16).hex()} for _ in range(rows)], day
    )


def test_a_foreign_folder_is_refused_and_unchanged(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    (shop.published).mkdir()
    (shop.published / "thesis.txt").write_text("mine")
    for result in (shop.plan(), shop.run()):
        assert_one_error(result, "is not empty, and Snaploom did not make it", "thesis.txt")
    assert shop.data_files() == ["thesis.txt"]


def test_a_file_in_place_of_the_folder_is_refused_and_unchanged(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.published.write_text("mine")
    for result in (shop.plan(), shop.run()):
        assert_one_error(result, "a file is where the folder should be")
    assert shop.published.read_text() == "mine"


def test_a_folder_of_a_newer_version_is_refused_and_unchanged(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.published.mkdir()
    (shop.published / "snaploom.json").write_text('{"format": 99, "madeBy": "snaploom"}\n')
    for result in (shop.plan(), shop.run(), snaploom("snapshots", "wide", "-f", shop.model)):
        assert_one_error(result, "format 99", "Upgrade Snaploom")
    assert shop.data_files() == ["snaploom.json"]


def test_a_changed_format_is_refused(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    assert shop.run().code == 0
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.set("wide", "outputFolder.dataFormat", "JSONL")
    shop.set("wide", "outputFolder.dataCompression", "NONE")
    for result in (shop.plan(), shop.run()):
        assert_one_error(result, "fixed for ever", "dataFormat: JSONL", "dataFormat: PARQUET")
    assert shop.published_times() == ["2024-05-01T00:00:00Z"]


def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    with read_only(shop.published):
        assert_one_error(shop.run(), "refuses writes", "Read-only file system")
        assert list(shop.published.iterdir()) == []


@pytest.mark.parametrize("size", ["64k", "600k"])
def test_a_disk_that_fills_up_is_an_error_and_left_clean(tmp_path: Path, size: str) -> None:
    shop = Shop(tmp_path).with_data()
    noise_orders(shop, "2024-05-01")
    with small_disk(shop.published, size):
        assert_one_error(shop.run(), "No space left on device")
        assert shop.published_times() == []
        assert [file for file in shop.data_files() if file != "snaploom.json"] == []


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    with small_disk(shop.published, "4k"):
        assert_one_error(shop.run(), "refuses writes", "No space left on device")
        assert [file for file in shop.data_files() if file != "snaploom.json"] == []


def test_a_disk_that_fills_up_later_keeps_what_was_published(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    noise_orders(shop, SECOND_DAY)
    shop.other(snapshot={"timeBefore": {"day": 7}})
    with small_disk(shop.published, "600k"):
        assert_one_error(shop.run(), "No space left on device", "published 2024-05-01T00:00:00Z")
        assert shop.published_times() == ["2024-05-01T00:00:00Z"]
        published = [file for file in shop.data_files() if file != "snaploom.json"]
        assert len(published) == 1
        assert published[0].startswith("data/snapshot_epoch=1714521600000/")
