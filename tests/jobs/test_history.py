"""What a folder's past forbids, allows and deletes."""

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from support.storage.folders import a_run
from support.weaving.loom import Loom, day, ids

import snaploom
from snaploom.cli.main import run_command
from snaploom.errors import HistoryIncompatible, StorageError
from snaploom.models.common import now
from snaploom.models.report import CollectedFiles, RunPhase
from snaploom.output.gc import collect_garbage, find_garbage
from snaploom.run.runevents import FilesCollected
from snaploom.run.weaving import outputrun

pytestmark = pytest.mark.spark

MONTH = "2024-01-31T00:00:00Z"
"""After every snapshot."""


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    loom.write("order", 1, ids(1))
    return loom


def test_field_that_moved_is_refused_before_anything_is_written(spark, loom) -> None:
    loom.join("customer")
    loom.write("customer", 1, ids(1))
    loom.weave(spark)
    loom.others[0]["transformations"] = {"groupBy": {"fieldNames": ["id"]}}
    loom.write("order", 2, ids(1))
    loom.write("customer", 2, ids(1))
    report = loom.weave(spark).report
    assert report.phase is RunPhase.FAILED
    assert "the join tree contradicts what is published" in report.message
    assert "customer" in report.message
    assert loom.live_days() == [1]


def test_types_with_nothing_in_common_are_refused_naming_both_snapshots(spark, loom) -> None:
    loom.write("order", 1, [{"id": 1, "price": 1}])
    loom.write("order", 2, [{"id": 1, "price": "one"}])
    loom.write("order", 3, [{"id": 1, "price": 3}])
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "PUBLISHED", 2: "history_incompatible", 3: "EARLIER_FAILURE"}
    assert (
        "data.price is long in snapshot 2024-01-01T00:00:00Z and string in snapshot "
        "2024-01-02T00:00:00Z" in woven.report.message
    )
    assert loom.is_clean()


def test_types_are_compared_by_snapshot_time_whatever_the_order_of_work(spark, loom) -> None:
    loom.folder["snapshotCatchupMode"] = "NEWEST_FIRST"
    loom.write("order", 1, [{"id": 1, "price": "one"}])
    loom.write("order", 2, [{"id": 1, "price": 2}])
    woven = loom.weave(spark)
    assert woven.outcomes == {2: "PUBLISHED", 1: "history_incompatible"}
    assert "string in snapshot 2024-01-01T00:00:00Z and long in" in woven.report.message


def test_widened_types_and_changed_fields_are_read_together(spark, loom) -> None:
    narrow = {"id": pa.array([1]), "n": pa.array([7], pa.int32()), "old": pa.array(["x"])}
    wide = {"id": pa.array([2]), "n": pa.array([2**40], pa.int64()), "new": pa.array([0.5])}
    loom.write("order", 1, pa.table(narrow))
    loom.write("order", 2, pa.table(wide))
    assert loom.weave(spark).report.phase is RunPhase.SUCCEEDED
    rows = snaploom.read(spark, loom.uri).orderBy("snapshot_epoch").select("data.*").collect()
    assert [row.asDict() for row in rows] == [
        {"id": 1, "n": 7, "old": "x", "new": None},
        {"id": 2, "n": 2**40, "old": None, "new": 0.5},
    ]


def test_break_that_is_allowed_is_published_and_read_apart(spark, loom, capfd) -> None:
    loom.folder["incompatibleSchema"] = "WARN"
    loom.join("customer")
    for number in (1, 2, 3):
        loom.write("order", number, [{"id": 1, "price": 1 if number < 2 else "one"}])
        loom.write("customer", number, ids(1))
    assert loom.weave(spark, limit=2).report.phase is RunPhase.SUCCEEDED
    loom.others[0]["transformations"] = {"groupBy": {"fieldNames": ["id"]}}
    woven = loom.weave(spark).report
    assert [snapshot.time[:10] for snapshot in woven.snapshots] == ["2024-01-03"]
    assert "customer: groupBy is [id], but was []" in woven.snapshots[0].warnings[0]
    with pytest.raises(HistoryIncompatible) as refused:
        snaploom.read(spark, loom.uri)
    for text in (
        "customer: groupBy is [] in snapshot 2024-01-01T00:00:00Z and [id] in snapshot "
        "2024-01-03T00:00:00Z",
        "data.price is long in snapshot 2024-01-01T00:00:00Z and string in snapshot "
        "2024-01-02T00:00:00Z",
    ):
        assert text in refused.value.found
    assert snaploom.read(spark, loom.uri, at=MONTH).count() == 1
    assert snaploom.schema(loom.uri, at=MONTH) == snaploom.read(spark, loom.uri, at=MONTH).schema
    merged = json.loads((loom.out / "metadata/schema/merged.json").read_text("utf-8"))
    assert (merged["from"], merged["to"]) == ("2024-01-03T00:00:00Z", "2024-01-03T00:00:00Z")
    assert run_command(["schema", str(loom.out), "--from", "2024-01-02T00:00:00Z"]) == 1
    assert "2024-01-03T00:00:00Z" in capfd.readouterr().err
    assert run_command(["schema", str(loom.out), "--from", MONTH]) == 1
    assert "no snapshot in this range" in capfd.readouterr().err
    assert run_command(["schema", str(loom.out), "--at", "2024-01-02T00:00:00Z"]) == 0
    printed = capfd.readouterr().out.split("\n")
    assert printed[:3] == ["data: struct", "  id: long", "  price: string"]


def test_reader_learns_why_fields_are_null_and_of_swaps(spark, loom) -> None:
    missing = {"snapshot": {"snapshotMissingMode": "CONTINUE_IGNORE"}}
    loom.weave(spark)
    loom.write("order", 2, ids(1))
    loom.write("order", 3, ids(1))
    loom.write("buyer", 3, ids(1))
    loom.write("customer", 9, ids(1))
    loom.join("customer", **missing)
    loom.weave(spark, limit=1)
    loom.others[0]["dataSource"] = "buyer"
    woven = loom.weave(spark).report
    assert [(a.time[:10], a.field_name, a.reason) for a in snaploom.absences(loom.uri)] == [
        ("2024-01-01", "customer", "NOT_IN_MODEL"),
        ("2024-01-02", "customer", "SNAPSHOT_MISSING"),
    ]
    assert snaploom.absences(loom.uri, at=MONTH) == ()
    assert woven.snapshots[0].warnings == (
        "`customer` comes by DataSource/buyer from here on, not customer",
    )


def test_compression_that_is_not_declared_stays_as_the_folder_has_it(spark, loom) -> None:
    loom.folder["dataCompression"] = "SNAPPY"
    loom.weave(spark)
    loom.write("order", 2, ids(2))
    del loom.folder["dataCompression"]
    assert loom.weave(spark).outcomes == {2: "PUBLISHED"}
    files = [file.path for record in loom.state().snapshots for file in record.files]
    assert len(files) >= 2
    assert all(path.endswith(".snappy.parquet") for path in files)


def test_another_root_must_be_accepted(spark, loom) -> None:
    loom.weave(spark)
    loom.root = "invoice"
    loom.write("invoice", 2, ids(2))
    refused = loom.weave(spark).report
    assert refused.phase is RunPhase.FAILED
    assert "run.acceptRootChange" in refused.message
    loom.spec["run.acceptRootChange"] = True
    assert loom.weave(spark).outcomes == {2: "PUBLISHED"}
    assert loom.state().identity.root == "invoice"


def test_deleted_snapshots_are_neither_woven_again_nor_lost_before_grace(spark, loom) -> None:
    for number in (2, 3, 4):
        loom.write("order", number, ids(number))
    loom.folder["snapshotAutoDelete"] = {"maxSnapshotAge": {"day": 2}}
    loom.weave(spark, at="2024-01-02T12:00:00Z")
    assert loom.live_days() == [1, 2]
    loom.weave(spark, at="2024-01-04T12:00:00Z")
    assert loom.live_days() == [3, 4]
    assert loom.state().tombstoned_times == {day(1), day(2)}
    seq = loom.state().seq
    again = loom.weave(spark, at="2024-01-04T13:00:00Z").report
    assert (again.snapshots, loom.state().seq) == ((), seq)
    dead = loom.data_files() - loom.state().live_files
    assert dead == set(loom.state().tombstoned_files)
    assert collected(loom, now()) == set()
    hours = int(timedelta(hours=2) / timedelta(microseconds=1)) * 1000
    assert collected(loom, now() + hours) == dead
    assert loom.is_clean()


def test_run_removes_and_reports_files_that_an_earlier_one_deleted(spark, loom, monkeypatch):
    loom.folder |= {"snapshotAutoDelete": {"maxOldSnapshots": 0}, "readerGrace": {"nano": 1}}
    for number in (2, 3, 4):
        loom.write("order", number, ids(number))
    reported = []
    for number in (1, 2, 3, 4):
        if number == 3:
            monkeypatch.setattr(outputrun, "sweep", refuse)
        woven = loom.weave(spark, at=f"2024-01-{number:02d}T12:00:00Z")
        monkeypatch.undo()
        assert (woven.report.phase, loom.live_days()) == (RunPhase.SUCCEEDED, [number])
        reported.append((woven.report.collected, len(woven.events_of(FilesCollected))))
    dead = loom.state().tombstones
    first = sum(file.bytes for one in dead[:2] for file in one.files)
    assert reported == [
        (None, 0),
        (CollectedFiles(waiting=1), 0),
        (None, 0),
        (CollectedFiles(snapshots=2, files=2, bytes=first, waiting=1), 1),
    ]
    assert loom.data_files() - loom.state().live_files == {file.path for file in dead[2].files}


def refuse(*arguments: object) -> None:
    raise StorageError("the store is out of order")


def test_newest_first_never_writes_what_retention_would_delete_next(spark, loom) -> None:
    for number in (2, 3, 4):
        loom.write("order", number, ids(number))
    loom.folder["snapshotAutoDelete"] = {"maxOldSnapshots": 1}
    loom.folder["snapshotCatchupMode"] = "NEWEST_FIRST"
    outcomes = loom.weave(spark).outcomes
    assert outcomes == {4: "PUBLISHED", 3: "PUBLISHED", 2: "RETENTION", 1: "RETENTION"}
    assert loom.state().tombstones == ()


def collected(loom: Loom, moment: int) -> set[str]:
    folder = loom.opened()
    grace = 3600 * 10**9
    found = find_garbage(folder.store, folder.log.read(), moment, grace)
    return {item.key for item in collect_garbage(folder, found, a_run())}


def test_output_is_a_source_of_another_through_its_manifest(spark, loom, tmp_path) -> None:
    loom.write("order", 2, ids(1, 2))
    loom.weave(spark)
    partition = next((loom.out / "data").glob("snapshot_epoch=*"))
    file = next(partition.glob("*.parquet"))
    (partition / "20200101T000000000Z-0123456789ab-01234567-00000.parquet").write_bytes(
        file.read_bytes()
    )
    second = Loom(tmp_path / "second", root="woven", sources=["woven"])
    second.place.mkdir()
    data = f"{loom.uri}data/"
    snapshot = {"fieldName": "epoch", "timeFormat": "UNIX_MILLISECONDS"}
    source = second._source("woven")
    source["spec"]["hdfsLike"] |= {
        "sourceUriGlobs": [f"{data}*/*.parquet"],
        "sourceUriPrefix": f"{data}snapshot_epoch={{epoch:LONG}}/",
        "snapshot": {"fromFieldValue": snapshot},
    }
    second.more.append(source)
    assert [s.rows for s in second.weave(spark).report.snapshots] == [1, 2]
