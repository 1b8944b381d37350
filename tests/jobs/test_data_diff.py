"""`snaploom diff --data`: two snapshots, two versions of one, and a dry run."""

from pathlib import Path

import pytest
from support.declared.shop import (
    CUSTOMERS,
    FIRST_DAY,
    NOW,
    ORDERS,
    SECOND_DAY,
    CommandResult,
    Shop,
    snaploom,
)

import snaploom as sl

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def shop(spark, tmp_path: Path) -> Shop:
    """Two published days; the second has other orders and another column."""
    shop = Shop(tmp_path).with_data()
    shop.set("wide", "dataModel.rootDataSource.rootKey", ["order_id"])
    later = [{**ORDERS[0], "amount": 6.0}, ORDERS[1], {**ORDERS[2], "order_id": 4}]
    shop.day("orders", [{**order, "tax": 1} for order in later], SECOND_DAY)
    shop.day("customers", CUSTOMERS, SECOND_DAY)
    assert shop.run().code == 0
    return shop


def diff(shop: Shop, before: str, after: str, *options: object) -> CommandResult:
    return snaploom("diff", "wide", "-f", shop.write(), "--data", before, after, *options)


def test_two_snapshots_differ_in_rows_values_and_columns(shop) -> None:
    result = diff(shop, FIRST_DAY, SECOND_DAY, "-o", "json")
    document = result.document
    assert (result.code, document["same"], document["key"]) == (1, False, ["order_id"])
    assert document["rows"] == {"added": 1, "removed": 1, "changed": 1, "unchanged": 1}
    assert document["columns"] == [{"column": "data.amount", "rows": 1}]
    assert document["schema"]["added"] == [{"column": "data.tax", "type": "long"}]
    changed = next(one for one in document["samples"] if one["change"] == "CHANGED")
    assert changed["columns"] == [{"column": "data.amount", "before": "5.0", "after": "6.0"}]
    hidden = diff(shop, FIRST_DAY, SECOND_DAY, "--samples", "0")
    assert "order_id =" not in hidden.out
    assert "5.0" not in hidden.out


def test_version_is_compared_with_its_restatement_and_with_a_dry_run(shop) -> None:
    number = snaploom("snapshots", shop.published, "-o", "json").document["sequence"]
    shop.day("orders", [{**order, "amount": 1.0} for order in ORDERS])
    dry = diff(shop, FIRST_DAY, f"{FIRST_DAY}@dry-run", "-o", "json").document
    assert (dry["rows"]["changed"], dry["after"]["sequence"]) == (3, None)
    before = shop.data_files()
    restated = snaploom(
        "restate", "wide", "-f", shop.model, "--time", f"{FIRST_DAY}T00:00:00Z", "--now", NOW,
        "--acknowledge-readers",
    )  # fmt: skip
    assert restated.code == 0, restated.err
    versions = diff(shop, f"{FIRST_DAY}@{number}", FIRST_DAY, "-o", "json").document
    assert {**versions, "after": None} == {**dry, "after": None}
    same = diff(shop, FIRST_DAY, f"{FIRST_DAY}@dry-run")
    assert (same.code, "3 unchanged" in same.out) == (0, True)
    assert set(before) < set(shop.data_files())


def test_snapshot_that_is_due_is_compared_before_it_is_published(shop) -> None:
    shop.day("orders", ORDERS, "2024-05-03")
    shop.day("customers", CUSTOMERS, "2024-05-03")
    files = shop.data_files()
    result = diff(shop, FIRST_DAY, "2024-05-03@dry-run", "--now", NOW)
    assert (result.code, shop.data_files()) == (0, files)
    absent = diff(shop, FIRST_DAY, "2024-05-04@dry-run", "--now", NOW)
    assert (absent.code, "no candidate" in absent.err) == (2, True)


def test_rows_without_a_unique_key_are_refused_with_the_keys(shop) -> None:
    shop.set("wide", "dataModel.rootDataSource.rootKey", ["amount"])
    shop.day("orders", [{**order, "amount": 1.0} for order in ORDERS])
    repeated = diff(shop, SECOND_DAY, f"{FIRST_DAY}@dry-run")
    assert (repeated.code, "(1.0) in 3 rows" in repeated.err) == (2, True)
    shop.set("wide", "dataModel.rootDataSource.rootKey", [])
    missing = diff(shop, FIRST_DAY, SECOND_DAY)
    assert (missing.code, "declares no key" in missing.err, missing.out) == (2, True, "")


def test_published_rows_that_share_a_key_are_paired(shop) -> None:
    shop.set("wide", "dataModel.rootDataSource.rootKey", ["customer_id"])
    same = diff(shop, FIRST_DAY, FIRST_DAY, "-o", "json")
    assert (same.code, same.document["rows"]["unchanged"]) == (0, len(ORDERS))
    found = diff(shop, FIRST_DAY, SECOND_DAY, "-o", "json").document
    assert found["before"]["rows"] == found["after"]["rows"] == len(ORDERS)


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ((FIRST_DAY, "2024-05-09"), "no live snapshot has this time"),
        ((f"{FIRST_DAY}@1", FIRST_DAY), "at manifest 1"),
        ((f"{FIRST_DAY}@99", FIRST_DAY), "no manifest entry 99"),
        ((FIRST_DAY, SECOND_DAY, "--offline"), "--data with --offline"),
        ((FIRST_DAY, SECOND_DAY, "--samples", "-1"), "--samples"),
    ],
)
def test_what_is_not_there_is_one_error(shop, versions, found) -> None:
    result = diff(shop, *versions)
    assert result.code == 2
    assert (result.out, found in result.err, "internal error" in result.err) == ("", True, False)


def test_removed_files_of_an_old_version_are_one_error(shop) -> None:
    number = snaploom("snapshots", shop.published, "-o", "json").document["sequence"]
    old = snaploom("files", shop.published, "--at", f"{FIRST_DAY}T00:00:00Z").out.split()
    project = sl.load(shop.model)
    project.restate("wide", FIRST_DAY, acknowledge_readers=True, now=NOW, progress=False)
    Path(old[0]).unlink()
    with pytest.raises(sl.SnaploomError, match="files of this version"):
        project.diff_data("wide", f"{FIRST_DAY}@{number}", FIRST_DAY)


def test_python_returns_the_document_and_draws_itself(shop) -> None:
    found = sl.load(shop.model).diff_data("wide", FIRST_DAY, SECOND_DAY, samples=1)
    assert (
        found.document == diff(shop, FIRST_DAY, SECOND_DAY, "-o", "json", "--samples", "1").document
    )
    assert (found.is_same, found.rows.changed) == (False, 1)
    assert "<td" in found._repr_html_()
    assert "rows by order_id" in str(found)
