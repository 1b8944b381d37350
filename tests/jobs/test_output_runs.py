"""Runs over real sources into a real folder: order of snapshots, modes, failures, re-runs."""

from pathlib import Path

import pyarrow as pa
import pytest
from support.weaving.loom import Loom, Woven, ids

import snaploom
from snaploom.models.common import format_instant
from snaploom.models.report import RunPhase, SnapshotReason
from snaploom.run import runevents

pytestmark = pytest.mark.spark


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    for day in (1, 2, 3):
        loom.write("order", day, ids(*range(day)))
    return loom


def published_days(woven: Woven) -> list[str]:
    return [event.report.time[:10] for event in woven.events_of(runevents.SnapshotPublished)]


def everything(folder: Path) -> dict[str, int]:
    """Every path with its time of modification."""
    return {str(path): path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


@pytest.mark.parametrize(
    ("mode", "order"), [("OLDEST_FIRST", [1, 2, 3]), ("NEWEST_FIRST", [3, 2, 1])]
)
def test_backlog_is_processed_in_the_order_asked_for(spark, loom, mode, order) -> None:
    loom.folder["snapshotCatchupMode"] = mode
    woven = loom.weave(spark)
    assert published_days(woven) == [f"2024-01-{day:02d}" for day in order]
    assert [event.number for event in woven.events_of(runevents.SnapshotStarted)] == [1, 2, 3]
    assert woven.report.phase is RunPhase.SUCCEEDED
    assert woven.report.manifest.sequence == loom.state().changed_at


def test_each_snapshot_is_reported_as_it_is_published(spark, loom) -> None:
    woven = loom.weave(spark)
    read = woven.events_of(runevents.ManifestRead)
    assert [each.count for each in read] == [1, 2, 3]
    assert [each.newest.time[:10] for each in read] == published_days(woven)
    assert read[-1].manifest.sequence == woven.report.manifest.sequence


def test_report_and_manifest_agree(spark, loom) -> None:
    loom.join("customer")
    for day in (1, 2, 3):
        loom.write("customer", day, ids(0))
    report = loom.weave(spark).report
    for reported, record in zip(report.snapshots, loom.state().snapshots, strict=True):
        assert reported.time == format_instant(record.time)
        assert (reported.rows, reported.joins) == (record.rows, record.joins)
        assert reported.sources == record.sources
        assert reported.files == len(record.files)
        assert reported.bytes == sum((loom.out / file.path).stat().st_size for file in record.files)
    assert [s.joins[0].matched for s in report.snapshots] == [1, 1, 1]
    assert report.session["spark.sql.caseSensitive"] == "false"


def test_null_keys_beyond_the_ratio_are_reported_and_counted(spark, loom) -> None:
    loom.join("customer", warnNullKeyRatio=0.5)
    for day, keys in ((1, [None, 1]), (2, [None, 1, 2]), (3, [1])):
        loom.write("order", day, pa.table({"id": pa.array(keys, pa.int64())}))
        loom.write("customer", day, ids(1))
    woven = loom.weave(spark)
    warning = "`customer`: 1 of 2 rows have a NULL join key (50.0%; warnNullKeyRatio is 0.5)"
    assert [snapshot.warnings for snapshot in woven.report.snapshots] == [(warning,), (), ()]
    assert [event.message for event in woven.events_of(runevents.Warned)] == [
        f"2024-01-01T00:00:00Z: {warning}"
    ]
    assert [record.joins[0].null_keys for record in loom.state().snapshots] == [1, 1, 0]
    assert [record.warnings for record in loom.state().snapshots] == [(warning,), (), ()]


def test_second_run_finds_nothing_to_do_and_touches_nothing(spark, loom) -> None:
    loom.weave(spark)
    before = everything(loom.out)
    report = loom.weave(spark).report
    assert report.phase is RunPhase.SUCCEEDED
    assert (report.snapshots, report.skipped, report.failed) == ((), (), ())
    assert everything(loom.out) == before


def test_run_without_candidates_does_not_even_make_the_folder(spark, loom) -> None:
    report = loom.weave(spark, at="2023-12-31T00:00:00Z").report
    assert report.phase is RunPhase.SUCCEEDED
    assert not loom.out.exists()


def test_limit_leaves_the_rest_for_the_next_run(spark, loom) -> None:
    assert loom.weave(spark, limit=2).outcomes == {1: "PUBLISHED", 2: "PUBLISHED", 3: "LIMIT"}
    assert loom.weave(spark, limit=2).outcomes == {3: "PUBLISHED"}
    assert loom.live_days() == [1, 2, 3]


@pytest.mark.parametrize("lines", ["", "id\n1\n"])
def test_file_without_a_byte_is_a_file_without_rows_and_is_reported(spark, loom, lines) -> None:
    source = loom._source("order")
    files = source["spec"]["hdfsLike"]
    files |= {"format": "csv", "formatOptions": {"header": "true"}}
    files["schemaFields"] = [{"name": "id", "dataType": {"long": {}}}]
    files["sourceUriGlobs"] = [files["sourceUriGlobs"][0].replace("parquet", "csv")]
    loom.more.append(source)
    folder = loom.write("order", 1, ids(1)).parent
    (folder / "a.csv").write_text("")
    (folder / "b.csv").write_text(lines)
    (published,) = loom.weave(spark).report.snapshots
    count = "1 of 2" if lines else "2 of 2"
    assert published.rows == len(lines.split()) // 2
    assert f"DataSource/order: {count} files have zero bytes, and no rows" in str(
        published.warnings
    )
    assert f"file:{folder}/a.csv" in str(published.warnings)


def test_failure_known_when_planning_fails_before_any_write(spark, loom) -> None:
    loom.join("customer")
    loom.write("customer", 1, ids(0))
    loom.write("customer", 3, ids(0))
    woven = loom.weave(spark)
    assert woven.report.phase is RunPhase.FAILED
    assert woven.outcomes == {
        1: "EARLIER_FAILURE",
        2: "snapshot_missing",
        3: "EARLIER_FAILURE",
    }
    assert "customer" in woven.report.message
    assert not loom.out.exists()


def test_failure_in_the_middle_keeps_what_is_committed_and_the_next_run_does_the_rest(spark, loom):
    loom.join("customer")
    for day in (1, 2, 3):
        loom.write("customer", day, ids(0))
    loom.write("customer", 2, ids(0, 0))
    woven = loom.weave(spark)
    assert woven.report.phase is RunPhase.FAILED
    assert woven.outcomes == {1: "PUBLISHED", 2: "rows_multiplied", 3: "EARLIER_FAILURE"}
    assert "one-to-many: the number of rows increased from 2 to 3" in woven.report.message
    assert loom.live_days() == [1]
    assert loom.is_clean()
    loom.write("customer", 2, ids(0))
    assert loom.weave(spark).outcomes == {2: "PUBLISHED", 3: "PUBLISHED"}


def test_unreadable_file_is_one_error_of_its_source(spark, loom) -> None:
    path = loom.write("order", 2, ids(*range(1000)))
    path.write_bytes(path.read_bytes()[:-100])
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "PUBLISHED", 2: "source_failed", 3: "EARLIER_FAILURE"}
    assert woven.report.message.startswith("DataSource/order")
    assert "part.parquet" in woven.report.message
    assert loom.is_clean()


def modes_loom(loom: Loom, family: str, mode: str) -> None:
    """Day 2 lacks what the mode is about; `address` hangs on nothing else."""
    setting = {"joinFieldMissingMode": mode}
    if family == "SNAPSHOT_MISSING":
        setting = {"snapshot": {"snapshotMissingMode": mode}}
    elif family == "GROUP_BY_FIELD_MISSING":
        group = {"fieldNames": ["id"], "groupByFieldMissingMode": mode}
        setting = {"transformations": {"groupBy": group}}
    loom.join("customer", **setting)
    loom.write("customer", 1, ids(0))
    if family != "SNAPSHOT_MISSING":
        loom.write("customer", 2, [{"other": 1}])


SECOND_DAY = "2024-01-02T12:00:00Z"
FAMILIES = ("SNAPSHOT_MISSING", "JOIN_FIELD_MISSING", "GROUP_BY_FIELD_MISSING")


@pytest.mark.parametrize("family", FAMILIES)
def test_mode_error_publishes_nothing_for_the_snapshot(spark, loom, family) -> None:
    modes_loom(loom, family, "ERROR")
    woven = loom.weave(spark, at=SECOND_DAY)
    assert woven.report.phase is RunPhase.FAILED
    assert woven.outcomes[2] == family.lower()
    assert 2 not in (loom.live_days() if loom.out.exists() else [])
    failures = [e for e in woven.events_of(runevents.SnapshotLeftOut) if e.is_failure]
    assert [e.outcome.reason.value for e in failures] == [family]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["CONTINUE_IGNORE", "CONTINUE_WARN"])
def test_mode_continue_leaves_the_source_out(spark, loom, family, mode) -> None:
    modes_loom(loom, family, mode)
    woven = loom.weave(spark, at=SECOND_DAY)
    assert woven.report.phase is RunPhase.SUCCEEDED
    assert loom.live_days() == [1, 2]
    excluded = [
        [(e.field_name, e.reason.value) for e in s.excluded] for s in woven.report.snapshots
    ]
    assert excluded == [[], [("customer", family)]]
    assert [r.excluded for r in loom.state().snapshots] == [
        s.excluded for s in woven.report.snapshots
    ]
    warnings = [event.message for event in woven.events_of(runevents.Warned)]
    assert bool(warnings) == (mode == "CONTINUE_WARN")
    assert all("customer" in warning for warning in warnings)
    frame = snaploom.read(spark, loom.uri, at="2024-01-02T00:00:00Z")
    assert frame.columns == ["data", "snapshot_epoch"]
    assert "customer" in snaploom.read(spark, loom.uri).columns


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["SKIP_IGNORE", "SKIP_WARN"])
def test_mode_skip_leaves_the_snapshot_out(spark, loom, family, mode) -> None:
    modes_loom(loom, family, mode)
    woven = loom.weave(spark, at=SECOND_DAY)
    assert woven.report.phase is RunPhase.SUCCEEDED
    assert woven.outcomes == {1: "PUBLISHED", 2: family}
    assert loom.live_days() == [1]
    assert [e.outcome.reason for e in woven.events_of(runevents.SnapshotLeftOut)] == [
        SnapshotReason(family)
    ]
    assert bool(woven.events_of(runevents.Warned)) == (mode == "SKIP_WARN")
    assert loom.is_clean()
