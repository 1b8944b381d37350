"""Restatement, ranges of history, runs that continue after failures, and samples, by commands."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from support.declared.shop import (
    FIRST_DAY,
    NOW,
    ORDERS,
    SECOND_DAY,
    CommandResult,
    Shop,
    assert_one_error,
    snaploom,
)

from snaploom.errors import ObjectNotFound
from snaploom.models.common import format_instant, now
from snaploom.reader import read, schema

pytestmark = pytest.mark.spark

THIRD_DAY = "2024-05-03"


@pytest.fixture
def shop(spark, tmp_path: Path) -> Shop:
    return Shop(tmp_path).with_data()


def restated(shop: Shop, *options: object, day: str = FIRST_DAY) -> CommandResult:
    when = ("--time", f"{day}T00:00:00Z", "--now", NOW)
    return snaploom("restate", "wide", "-f", shop.write(), *when, *options)


def backfilled(shop: Shop, first: str, end: str, *options: object) -> CommandResult:
    span = ("--from", f"{first}T00:00:00Z", "--to", f"{end}T00:00:00Z", "--now", NOW)
    return snaploom("backfill", "wide", "-f", shop.write(), *span, *options)


def now_text() -> str:
    return format_instant(now())


def amounts(spark, shop: Shop, manifest: int | None = None, **past: str) -> Sequence[float]:
    frame = read(spark, str(shop.published), manifest=manifest, **past)
    return sorted(row.amount for row in frame.select("data.amount").collect())


def test_restated_snapshot_is_read_instead_of_the_old_one_which_stays(spark, shop) -> None:
    assert shop.run().code == 0
    old = snaploom("snapshots", shop.published, "-o", "json").document["sequence"]
    shop.day("orders", [{**row, "amount": 1.0, "tax": 2} for row in ORDERS[:2]])
    result = restated(shop, "--acknowledge-readers", "--reason", "wrong prices", "-o", "json")
    assert result.code == 0, result.err
    (published,) = result.document["snapshots"]
    assert (published["rows"], published["replaces"]) == (2, old)
    assert amounts(spark, shop) == [1.0, 1.0]
    assert amounts(spark, shop, old) == [5.0, 7.5, 9.0]
    listed = snaploom("snapshots", shop.published, "-o", "json").document
    assert [one["reason"] for one in listed["snapshots"]] == ["wrong prices"]
    assert [one["rule"] for one in listed["tombstones"]] == ["RESTATED"]
    assert "wrong prices" in snaploom("snapshots", shop.published).out
    assert shop.run("-o", "json").document["snapshots"] == []


def test_what_was_known_is_read_by_its_time_until_it_is_removed(spark, shop) -> None:
    shop.set("wide", "outputFolder.readerGrace", {"nano": 1})
    assert shop.run().code == 0
    before = now()
    shop.day("orders", [{**row, "amount": 1.0, "tax": 2} for row in ORDERS[:2]])
    assert restated(shop, "--acknowledge-readers").code == 0
    (ended,) = snaploom("snapshots", shop.published, "-o", "json").document["tombstones"]
    folder, then = str(shop.published), format_instant(before)
    assert len(amounts(spark, shop, known_at=then, at=FIRST_DAY)) == 3
    assert amounts(spark, shop, known_at=ended["deletedAt"], at=FIRST_DAY) == [1.0, 1.0]
    assert "tax" not in schema(folder, known_at=then)["data"].dataType.names
    listed = snaploom("snapshots", shop.published, "--known-at", then, "-o", "json").document
    assert [(one["rows"], one.get("replaces")) for one in listed["snapshots"]] == [(3, None)]
    old = snaploom("files", shop.published, "--known-at", then).out.splitlines()
    assert old
    assert set(old).isdisjoint(snaploom("files", shop.published).out.splitlines())
    assert snaploom("gc", shop.published).code == 0
    for gone in (
        lambda: read(spark, folder, known_at=then),
        lambda: amounts(spark, shop, at=THIRD_DAY, known_at=then),
    ):
        with pytest.raises(ObjectNotFound, match=f"a time from {ended['deletedAt']} on"):
            gone()
    result = snaploom("files", shop.published, "--known-at", then)
    assert_one_error(result, f"a time from {ended['deletedAt']} on", "readerGrace")
    assert amounts(spark, shop, known_at=ended["deletedAt"]) == [1.0, 1.0]


def test_two_pasts_that_differ_in_one_snapshot_in_the_middle_are_not_taken_for_one(spark, shop):
    for day in (SECOND_DAY, THIRD_DAY):
        shop.day("orders", ORDERS, day)
        shop.day("customers", ORDERS[:1], day)
    assert shop.run().code == 0
    before = now_text()
    shop.day("orders", ORDERS[:1], SECOND_DAY)
    assert restated(shop, "--acknowledge-readers", day=SECOND_DAY).code == 0
    old = read(spark, str(shop.published), known_at=before).cache()
    assert old.count() == 3 * len(ORDERS)
    assert read(spark, str(shop.published), known_at=now_text()).count() == 2 * len(ORDERS) + 1


def test_past_before_the_first_publication_and_asked_for_twice_are_clear_errors(shop) -> None:
    shop.run()
    for command in ("snapshots", "files", "schema"):
        result = snaploom(command, shop.published, "--known-at", "2020-01-01T00:00:00Z")
        assert_one_error(result, "had no snapshot at 2020-01-01T00:00:00Z", "the first was")
        twice = snaploom(command, shop.published, "--known-at", "2020-01-01", "--manifest", 2)
        assert (twice.code, "the past is asked for twice" in twice.err) == (2, True)
    result = snaploom("snapshots", shop.published, "--known-at", "2020-01-01T00:00:00")
    assert (result.code, "write 2020-01-01T00:00:00Z" in result.err) == (2, True)


def test_files_are_listed_of_one_version_and_of_the_snapshots_that_are_asked_for(shop) -> None:
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", ORDERS[:1], SECOND_DAY)
    shop.run()
    before = snaploom("files", shop.published).out.splitlines()
    assert restated(shop, "--acknowledge-readers").code == 0
    after = snaploom("files", shop.published, "-o", "json").document
    listed = [file["uri"].removeprefix("file://") for file in after["files"]]
    assert snaploom("files", shop.published).out.splitlines() == listed
    assert len(set(listed) & set(before)) == len(before) - 1
    assert all(Path(file).is_file() for file in (*before, *listed))
    first = snaploom("files", shop.published, "--at", f"{FIRST_DAY}T00:00:00Z", "-o", "json")
    assert {file["snapshot"] for file in first.document["files"]} == {f"{FIRST_DAY}T00:00:00Z"}
    old = ("--manifest", after["sequence"] - 1)
    assert snaploom("files", "wide", "-f", shop.model, *old).out.splitlines() == before


def test_files_of_what_is_not_published_are_one_clear_error(shop) -> None:
    result = snaploom("files", "wide", "-f", shop.write())
    assert (result.code, result.out, "has no published snapshot" in result.err) == (1, "", True)
    shop.run()
    result = snaploom("files", shop.published, "--from", "2030-01-01T00:00:00Z")
    assert (result.code, result.out, "no snapshot in this range" in result.err) == (1, "", True)
    result = snaploom("files", shop.published, "--at", "x", "--to", "y")
    assert (result.code, "SL191 --at" in result.err) == (2, True)
    reversed_range = ("--from", "2024-02-01T00:00:00Z", "--to", "2024-01-01T00:00:00Z")
    result = snaploom("files", shop.published, *reversed_range)
    assert (result.code, "this range ends before it begins" in result.err) == (2, True)


def test_restatement_that_fails_leaves_the_published_version(spark, shop) -> None:
    shop.run()
    before = snaploom("snapshots", shop.published, "-o", "json").document
    shop.set("wide", "checks", [{"name": "c", "expression": "count(*) > 9"}])
    result = restated(shop, "--acknowledge-readers")
    assert (result.code, "CHECK_FAILED" in result.out) == (1, True)
    assert snaploom("snapshots", shop.published, "-o", "json").document == before


def test_what_is_not_published_cannot_be_restated(spark, shop) -> None:
    shop.run()
    assert restated(shop).code == 2
    result = restated(shop, "--acknowledge-readers", day=SECOND_DAY)
    assert (result.code, "no snapshot 2024-05-02T00:00:00Z is live" in result.out) == (1, True)
    shop.other(snapshot={"snapshotMissingMode": "SKIP_IGNORE"})
    (shop.folder / "customers" / f"{FIRST_DAY}.parquet").unlink()
    result = restated(shop, "--acknowledge-readers")
    assert (result.code, "DataSource/customers has no snapshot" in result.out) == (1, True)


def test_restatement_that_retention_would_delete_at_once_is_refused_before_weaving(shop) -> None:
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", ORDERS[:1], SECOND_DAY)
    shop.run()
    before = snaploom("files", shop.published).out
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 0})
    result = restated(shop, "--acknowledge-readers")
    assert (result.code, "snapshotAutoDelete.maxOldSnapshots would delete" in result.out) == (
        1,
        True,
    )
    assert "published 2024-05-01" not in result.err
    assert snaploom("files", shop.published).out == before
    assert restated(shop, "--acknowledge-readers", day=SECOND_DAY).code == 0


def test_backfill_publishes_its_span_a_few_at_a_time(spark, shop) -> None:
    for day in (SECOND_DAY, THIRD_DAY):
        shop.day("orders", ORDERS, day)
        shop.day("customers", ORDERS[:1], day)
    first = backfilled(shop, FIRST_DAY, THIRD_DAY, "--limit", 1)
    assert (first.code, shop.published_times()) == (0, ["2024-05-01T00:00:00Z"])
    assert "1 snapshot due; nothing published yet" in first.err
    estimate = backfilled(shop, FIRST_DAY, THIRD_DAY, "--estimate", "-o", "json").document
    assert (estimate["snapshots"], estimate["rows"]) == (1, 3)
    assert "1 snapshot due; about 3 rows" in backfilled(shop, FIRST_DAY, THIRD_DAY).err
    assert shop.published_times() == ["2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"]


def test_keep_going_leaves_later_snapshots_their_turn(spark, shop) -> None:
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", [{"customer_id": 10}, {"customer_id": 10}], SECOND_DAY)
    shop.day("orders", ORDERS, THIRD_DAY)
    shop.day("customers", [{"customer_id": 10}], THIRD_DAY)
    result = shop.run("--keep-going")
    assert (result.code, "ROWS_MULTIPLIED" in result.out) == (1, True)
    assert shop.published_times() == ["2024-05-01T00:00:00Z", "2024-05-03T00:00:00Z"]


def test_sample_is_the_same_share_of_keys_in_every_snapshot(spark, shop, tmp_path) -> None:
    shop.set("wide", "dataModel.rootDataSource.rootKey", ["order_id"])
    for day in (FIRST_DAY, SECOND_DAY):
        shop.day("orders", [{"order_id": n, "customer_id": 10} for n in range(400)], day)
        shop.day("customers", [{"customer_id": 10}], day)
    assert shop.run("--sample", 0.25, "--to", tmp_path / "few").code == 0
    assert not shop.published.exists()
    files = f"{tmp_path}/few/data/*/*.parquet"
    by_day = duckdb.sql(
        f"SELECT list_sort(list(data.order_id)) FROM read_parquet('{files}', filename=true) "
        "GROUP BY regexp_extract(filename, 'epoch=[0-9]+')"
    ).fetchall()
    assert len(by_day) == 2
    assert by_day[0] == by_day[1]
    assert 60 < len(by_day[0][0]) < 140


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--sample", "0.5"), "--to"),
        (("--sample", "0.5", "--to", "{out}/elsewhere"), "rootKey"),
        (("--sample", "0.5", "--to", "{out}/wide/below"), "lies in the folder of"),
        (("--sample", "0.5", "--to", "{out}"), "the folder of OutputDataset/wide lies in this"),
        (("--sample", "0.5", "--to", "{out}/wide"), "publishes to the same folder"),
        (("--sample", "0.5", "--to", "file:{out}//wide/"), "publishes to the same folder"),
    ],
)
def test_sample_that_would_not_be_one_is_refused(shop, tmp_path, options, text) -> None:
    if text.startswith(("lies", "the folder", "publishes")):
        shop.set("wide", "dataModel.rootDataSource.rootKey", ["order_id"])
    outcome = shop.run(*(option.format(out=tmp_path) for option in options))
    assert (outcome.code, text in outcome.err) == (2, True)
    assert not shop.published.exists()


def test_sample_is_never_published_beside_anything_else(spark, shop, tmp_path) -> None:
    shop.set("wide", "dataModel.rootDataSource.rootKey", ["order_id"])
    assert shop.run().code == 0
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(shop.published)
    assert shop.run("--sample", 0.5, "--to", tmp_path.parent / f"{tmp_path.name}-few").code == 0
    shop.day("orders", [{"order_id": 1, "customer_id": 10}], SECOND_DAY)
    shop.day("customers", [{"customer_id": 10}], SECOND_DAY)
    for share, folder in ((0.5, link), (0.25, tmp_path.parent / f"{tmp_path.name}-few")):
        refused = shop.run("--sample", share, "--to", folder)
        assert (refused.code, f"wide-sample-{share}" in refused.err) == (1, True)
    assert shop.published_times() == [f"{FIRST_DAY}T00:00:00Z"]
