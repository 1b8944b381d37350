"""A snapshot has rows of one moment of its sources, whenever these are replaced during the run."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.declared.declarations import Raw, document
from support.weaving.loom import NOW, Loom, Woven, day, ids
from support.weaving.remoteuse import PAIRS, Stages, versions_after

import snaploom
from snaploom.errors import SourceChanged
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.models.common import parse_instant
from snaploom.models.report import RunPhase
from snaploom.plan.times import Selection
from snaploom.run.published.rowdiff import dry_woven
from snaploom.run.runevents import SnapshotPublished
from snaploom.run.weaving.requests import RunOptions
from snaploom.run.weaving.snapshot import MOST_WEAVINGS
from snaploom.sources.readers import Sources

pytestmark = pytest.mark.spark


def rows(version: str) -> list[dict[str, Any]]:
    return [{**row, "version": version, "date": "2024-01-01"} for row in ids(1, 2)]


def replace(loom: Loom, source: str, day: int = 1, version: str = "new") -> None:
    """Put a file of the same length and time in the place of one."""
    path = file_of(loom, source, day)
    before = path.stat()
    other = path.with_name(".other")
    pq.write_table(pq.read_table(loom.write("elsewhere", day, rows(version))), other)
    assert other.stat().st_size == before.st_size
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def file_of(loom: Loom, source: str, day: int = 1) -> Path:
    return loom.place / "sources" / source / f"2024-01-{day:02d}" / "part.parquet"


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    """Orders and customers of one day, of which every row names its version."""
    loom = Loom(tmp_path)
    for source in ("order", "customer"):
        loom.write(source, 1, rows("old"))
    loom.join("customer")
    return loom


def versions(spark: SparkSession, loom: Loom, child: str = "customer") -> set[tuple[str, ...]]:
    found = snaploom.read(spark, loom.uri).selectExpr(
        "snapshot_epoch", "data.version", f"{child}.data.version AS other"
    )
    return {(row[1], row[2]) for row in found.collect()}


def weave(stages: Stages, spark: SparkSession, loom: Loom, **settings: Any) -> Woven:
    with stages.in_runs():
        return loom.weave(spark, **settings)


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_sources_replaced_at_any_stage_are_published_of_one_moment(spark, loom, first, then):
    stages = Stages()
    stages.at(first, partial(replace, loom, "customer"))
    stages.at(then, partial(replace, loom, "order"))
    woven = weave(stages, spark, loom)
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert not stages.acts
    customer, order = versions_after(first, then)
    assert versions(spark, loom) == {(order, customer)}
    assert loom.is_clean()


def through_a_query(loom: Loom) -> str:
    query = {"dataSource": "customer", "alias": "c", "dataQuery": "SELECT * FROM c"}
    loom.more.append(document("DataSource", "client", {"simpleVirtual": query}))
    return "client"


def through_queries_over_queries(loom: Loom) -> str:
    query = {
        "dataSources": [{"dataSource": through_a_query(loom), "alias": "c"}],
        "snapshotQuery": "SELECT 0L AS interval_start, 4102444800000L AS interval_end FROM c",
        "dataQuery": "SELECT * FROM c",
    }
    loom.more.append(document("DataSource", "person", {"complexVirtual": query}))
    return "person"


def by_path(loom: Loom) -> str:
    return "customer"


def by_column(loom: Loom) -> str:
    return declared(loom, {"fieldName": "date", "timeFormat": "ISO8601_DATE"})


def by_read_time(loom: Loom) -> str:
    return declared(loom, None)


def declared(loom: Loom, field: Raw | None) -> str:
    """Customers whose snapshot stands in a field, or is what is there."""
    source = loom._source("customer")
    del source["spec"]["hdfsLike"]["sourceUriPrefix"]
    taken = {"fromReadTime": {}} if field is None else {"fromFieldValue": field}
    source["spec"]["hdfsLike"]["snapshot"] = taken
    loom.more.append(source)
    return "customer"


KINDS = [by_path, by_read_time, by_column, through_a_query, through_queries_over_queries]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_is_looked_at_again(spark, loom, kind) -> None:
    loom.others.clear()
    child = kind(loom)
    loom.join(child, snapshot={"timeAfter": {"day": 30}})
    stages = Stages()
    stages.at("writing", partial(replace, loom, "customer"))
    stages.at("written", partial(replace, loom, "order"))
    woven = weave(stages, spark, loom)
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert versions(spark, loom, child) == {("new", "new")}
    (published,) = woven.events_of(SnapshotPublished)
    assert any("woven again: DataSource/" in text for text in published.report.warnings)


@pytest.mark.parametrize("kept", ["one by one", "together", "beside each other", "checkpoints"])
def test_no_snapshot_of_a_run_takes_rows_of_before_the_change(spark, tmp_path, kept) -> None:
    loom, days = Loom(tmp_path), range(1, 5)
    loom.spec["run.snapshotsPerJob"] = 12 if kept == "together" else 1
    if kept == "checkpoints":
        loom.spec["run.checkpointUri"] = f"file://{tmp_path}/checkpoints/"
    for source in ("customer", "item"):
        loom.write(source, 1, rows("old"))
        loom.join(source, snapshot={"timeBefore": {"day": 30}})
    for number in days:
        loom.write("order", number, rows("old"))
    stages = Stages()
    stages.at("writing", partial(replace, loom, "customer"))
    for number in days:
        stages.at("written", partial(replace, loom, "order", number))
    beside = RunOptions(parallel_snapshots=3 if kept == "beside each other" else 1)
    woven = weave(stages, spark, loom, options=beside)
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert loom.live_days() == [*days]
    assert versions(spark, loom) == {("new", "new")}
    assert loom.is_clean()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


def test_restated_snapshot_is_of_one_moment(spark, loom) -> None:
    loom.weave(spark)
    stages = Stages()
    stages.at("writing", partial(replace, loom, "customer"))
    stages.at("written", partial(replace, loom, "order"))
    woven = weave(stages, spark, loom, options=RunOptions(selection=Selection(restated=day(1))))
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert versions(spark, loom) == {("new", "new")}


def test_source_that_changes_each_time_is_refused_by_name(spark, loom) -> None:
    stages, written = Stages(is_repeated=True), []

    def write() -> None:
        written.append(loom.write("customer", 1, [*rows("new"), *ids(*range(3, 4 + len(written)))]))

    stages.at("written", write)
    report = weave(stages, spark, loom).report
    assert (report.reason, report.retryable, len(written)) == ("SourceChanged", True, MOST_WEAVINGS)
    message = report.message
    assert "DataSource/customer spec.hdfsLike.sourceUriGlobs" in message
    assert (
        f"{file_of(loom, 'customer')}: {file_of(loom, 'customer').stat().st_size} bytes" in message
    )
    assert "fix:" in message
    assert not loom.state().timeline
    assert loom.is_clean()


@pytest.mark.parametrize(("stage", "kind"), [("planned", by_read_time), ("writing", by_path)])
def test_file_that_is_cut_short_while_it_is_read_is_read_again(spark, loom, stage, kind) -> None:
    loom.others.clear()
    loom.join(kind(loom), snapshot={"timeAfter": {"day": 30}})
    stages, file = Stages(), file_of(loom, "customer")
    whole = file.read_bytes()
    stages.at(stage, lambda: file.write_bytes(whole[:50]))
    stages.at("again", lambda: file.write_bytes(whole))
    report = weave(stages, spark, loom).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert versions(spark, loom) == {("old", "old")}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_folder_that_grows_all_the_time_is_read_as_it_was_at_one_moment(spark, loom, kind) -> None:
    loom.others.clear()
    loom.join(kind(loom), snapshot={"timeAfter": {"day": 30}})
    stages, more = Stages(is_repeated=True), []

    def grow() -> None:
        more.append(file_of(loom, "customer").with_name(f"more-{len(more)}.parquet"))
        table = pq.read_table(loom.write("elsewhere", 1, [{**rows("new")[0], "id": len(more) + 5}]))
        pq.write_table(table, more[-1])

    stages.at("written", grow)
    report = weave(stages, spark, loom).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert len(more) == 2
    assert versions(spark, loom, loom.others[0]["fieldName"]) == {("old", "old")}


def test_new_folder_of_a_snapshot_is_seen(spark, loom) -> None:
    source = loom._source("customer")
    files = source["spec"]["hdfsLike"]
    files["sourceUriGlobs"] = [files["sourceUriGlobs"][0].replace("*/*", "*/*/*")]
    loom.more.append(source)
    hours = [file_of(loom, "customer").parent / f"h{hour}" / "part.parquet" for hour in (0, 1)]
    for hour in hours:
        hour.parent.mkdir()
    file_of(loom, "customer").rename(hours[0])
    table = pq.read_table(loom.write("elsewhere", 1, [{**rows("new")[0], "id": 3}]))
    loom.write("order", 1, [*rows("old"), {**rows("old")[0], "id": 3}])
    stages = Stages()
    stages.at("written", lambda: pq.write_table(table, hours[1]))
    report = weave(stages, spark, loom).report
    assert report.phase is RunPhase.SUCCEEDED, report.message
    assert versions(spark, loom) == {("old", "old"), ("old", "new")}


def test_rows_that_a_session_keeps_of_an_older_file_are_not_taken(spark, loom) -> None:
    customers = Sources(spark, loom.bundle(), parse_instant(NOW)).reader("customer")
    kept = customers.read(customers.listing().times[0]).frame.persist()
    assert kept.count() == 2
    replace(loom, "customer")
    assert loom.weave(spark).report.phase is RunPhase.SUCCEEDED
    kept.unpersist()
    assert versions(spark, loom) == {("old", "new")}


def test_dry_run_over_sources_that_changed_is_refused(spark, loom) -> None:
    def look() -> None:
        moment = parse_instant(NOW)
        with dry_woven(spark, loom.bundle(), day(1), moment, NO_ALLOWANCES, lambda: None) as frame:
            assert frame.count() == 2
            replace(loom, "customer")

    with pytest.raises(SourceChanged, match="written to while it was read"):
        look()
