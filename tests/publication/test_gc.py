"""Garbage: everything left over is found, nothing else is touched."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.storage.faultystore import FaultyStore, Killed
from support.storage.folders import (
    a_folder,
    a_run,
    at,
    bury,
    files_on_disk,
    ignore,
    keys,
    now,
    published,
    raising,
)

from snaploom.files.objectstore import TEMPORARY_PREFIX
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import layout
from snaploom.output.folder import CrashPoint, Folder, Run, open_folder
from snaploom.output.gc import Garbage, GarbageKind, Verdict, collect_garbage, find_garbage
from snaploom.output.publication import Published

HOUR = 3600 * 1_000_000_000


def killed_at(folder: Folder, point: CrashPoint, number: int = 0) -> Run:
    """A run that dies at a point; nothing it would clean up is cleaned up."""
    dying = FaultyStore(folder.store)
    run = a_run(at(point, dying.die))
    with pytest.raises(Killed):
        published(open_folder(dying), number, run=run)
    return run


def found(folder: Folder, after: int = 2 * HOUR) -> tuple[Garbage, ...]:
    return find_garbage(folder.store, folder.log.read(), EpochNanos(now() + after), HOUR)


def test_folder_in_order_has_no_garbage(folder: Folder) -> None:
    published(folder)
    assert found(folder) == ()


@pytest.mark.parametrize(
    ("point", "kinds"),
    [
        (CrashPoint.BEFORE_STAGING, set()),
        (CrashPoint.AFTER_STAGING, {GarbageKind.STAGING}),
        (CrashPoint.DURING_PROMOTION, {GarbageKind.STAGING, GarbageKind.UNCOMMITTED}),
        (CrashPoint.AFTER_PROMOTION, {GarbageKind.STAGING, GarbageKind.UNCOMMITTED}),
        (CrashPoint.AFTER_COMMIT, {GarbageKind.STAGING}),
    ],
)
def test_everything_that_a_killed_run_leaves_is_found_and_removed(folder, point, kinds):
    published(folder, 1)
    run = killed_at(folder, point)
    garbage = found(folder)
    assert {item.kind for item in garbage} == kinds
    assert {item.run_id for item in garbage} <= {run.run_id}
    assert {i.key for i in garbage} == keys(folder.store) - folder.log.read().live_files
    assert collect_garbage(folder, garbage, a_run()) == garbage
    assert keys(folder.store) == folder.log.read().live_files
    assert found(folder) == ()


def test_finding_changes_nothing(folder: Folder) -> None:
    killed_at(folder, CrashPoint.AFTER_PROMOTION)
    before = set(folder.store.list(""))
    found(folder)
    assert set(folder.store.list("")) == before


def test_young_leftovers_are_kept_and_reported(folder: Folder) -> None:
    run = killed_at(folder, CrashPoint.AFTER_PROMOTION)
    garbage = found(folder, after=0)
    assert {item.verdict for item in garbage} == {Verdict.KEEP_YOUNG}
    assert garbage[0].why == f"run {run.run_id} did not commit it; kept, too young"
    assert collect_garbage(folder, garbage, a_run()) == ()
    assert folder.log.read().revoked == frozenset()


def test_old_file_of_a_run_that_wrote_lately_is_kept(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    killed_at(folder, CrashPoint.DURING_PROMOTION)
    for path in tmp_path.glob("data/day=0/*"):
        age(path)
    for prefix in ("", "data/day=0/"):
        garbage = find_garbage(folder.store, folder.log.read(), now(), HOUR, prefix)
        assert {item.verdict for item in garbage} == {Verdict.KEEP_YOUNG}


def test_what_was_committed_and_ended_since_it_was_found_is_left_to_its_grace(folder):
    garbage: list[Garbage] = []

    def look(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_PROMOTION:
            garbage.extend(found(folder))

    published(folder, run=a_run(look))
    bury(folder, 0)
    ended = set(folder.log.read().tombstoned_files)
    assert ended < {item.key for item in garbage}
    collect_garbage(folder, garbage, a_run())
    assert keys(folder.store) == ended


def test_what_a_run_left_at_its_first_try_goes_without_what_it_published_then(folder):
    run = replace(killed_at(folder, CrashPoint.AFTER_PROMOTION), reached=ignore)
    published(folder, run=run)
    live = folder.log.read().live_files
    garbage = found(folder)
    assert {item.run_id for item in garbage} == {run.run_id}
    collect_garbage(folder, garbage, a_run())
    assert keys(folder.store) == live


def age(path: Path) -> None:
    os.utime(path, (0, 0))


def test_run_is_revoked_before_its_files_are_touched(folder: Folder) -> None:
    run = killed_at(folder, CrashPoint.AFTER_PROMOTION)
    before = keys(folder.store)

    def look(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_REVOCATION:
            assert folder.log.read().revoked == {run.run_id}
            assert keys(folder.store) == before

    collect_garbage(folder, found(folder), a_run(look))
    assert keys(folder.store) == set()


def test_files_that_were_committed_after_the_search_stay(folder: Folder) -> None:
    def search(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_PROMOTION:
            listed.extend(found(open_folder(folder.store)))

    listed: list[Garbage] = []
    outcome = published(folder, run=a_run(search))
    assert isinstance(outcome, Published)
    removed = collect_garbage(folder, listed, a_run())
    assert {item.kind for item in removed} == {GarbageKind.STAGING}
    assert keys(folder.store) == folder.log.read().live_files == {
        file.path for file in outcome.record.files
    }  # fmt: skip


def test_what_is_not_provably_ours_is_reported_and_never_removed(folder: Folder) -> None:
    record = published(folder).record
    foreign = {
        "data/notes.txt",
        "data/day=0/part-00000.snappy.parquet",
        "data/.staging/readme",
        "data/day=0/deeper/" + record.files[0].path.rsplit("/", 1)[-1],
        "data/day=0/" + record.run_id,
    }
    for key in foreign:
        folder.store.put(key, b"")
    garbage = found(folder, after=1000 * HOUR)
    assert {item.key for item in garbage} == foreign
    assert {item.verdict for item in garbage} == {Verdict.KEEP_FOREIGN}
    assert collect_garbage(folder, garbage, a_run()) == ()
    assert foreign <= keys(folder.store)


def test_even_a_forged_verdict_removes_nothing_live_or_foreign(folder: Folder) -> None:
    key = published(folder).record.files[0].path
    for kind in GarbageKind:
        if kind is not GarbageKind.UNFINISHED:
            forged = Garbage(kind, Verdict.REMOVE, key, 1, layout.run_of(key), "")
            assert collect_garbage(folder, [forged], a_run()) == ()
    folder.store.put("data/notes.txt", b"")
    forged = Garbage(GarbageKind.FOREIGN, Verdict.REMOVE, "data/notes.txt", 1, None, "")
    assert collect_garbage(folder, [forged], a_run()) == ()


def test_files_of_a_tombstone_go_when_grace_has_passed_by_the_stores_clock(folder: Folder) -> None:
    record = published(folder).record
    published(folder, 1)
    bury(folder, 0)  # its `deletedAt` is years ago, as of a clock that is wrong
    assert {item.verdict for item in found(folder, after=0)} == {Verdict.KEEP_YOUNG}
    garbage = found(folder)
    assert {item.key for item in garbage} == {file.path for file in record.files}
    assert {(item.kind, item.why) for item in garbage} == {
        (GarbageKind.TOMBSTONED, "maxSnapshotAge")
    }
    assert collect_garbage(folder, garbage, a_run()) == garbage
    assert folder.log.read().revoked == frozenset()
    assert keys(folder.store) == folder.log.read().live_files


def test_deletion_that_comes_late_spares_the_snapshot_published_anew(folder: Folder) -> None:
    published(folder)
    bury(folder, 0)
    late = found(folder)
    again = published(folder).record
    collect_garbage(folder, late, a_run())
    assert keys(folder.store) == {file.path for file in again.files}


def test_writes_that_never_ended_are_removed_when_old(folder: Folder) -> None:
    key = f"{TEMPORARY_PREFIX}0123"
    folder.store.put(key, b"half")
    assert [item.verdict for item in found(folder, after=0)] == [Verdict.KEEP_YOUNG]
    assert [item.kind for item in found(folder)] == [GarbageKind.UNFINISHED]
    collect_garbage(folder, found(folder), a_run())
    assert folder.store.head(key) is None


@pytest.mark.parametrize("point", [CrashPoint.AFTER_REVOCATION, CrashPoint.DURING_DELETION])
def test_collection_that_dies_is_finished_by_the_next(folder: Folder, point: CrashPoint) -> None:
    published(folder, 1)
    killed_at(folder, CrashPoint.AFTER_PROMOTION)

    with pytest.raises(Killed):
        collect_garbage(folder, found(folder), a_run(at(point, raising(Killed()))))
    # A revoked run's files need no grace.
    collect_garbage(folder, found(folder, after=0), a_run())
    assert keys(folder.store) == folder.log.read().live_files


def test_publication_beside_a_killed_one_reports_its_young_files(folder: Folder) -> None:
    run = killed_at(folder, CrashPoint.AFTER_PROMOTION)
    outcome = published(folder)
    assert isinstance(outcome, Published)
    assert {item.run_id for item in outcome.leftovers} == {run.run_id}
    assert len(outcome.leftovers) == 2


def test_publication_removes_old_files_of_a_dead_run_from_its_partition(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    run = killed_at(folder, CrashPoint.AFTER_PROMOTION)
    for path in (*tmp_path.glob("data/day=0/*"), *tmp_path.glob("data/.staging/*/*/*")):
        age(path)
    outcome = published(folder, run=a_run(start=now()))
    assert isinstance(outcome, Published)
    assert outcome.leftovers == ()
    assert folder.log.read().revoked == {run.run_id}
    assert files_on_disk(tmp_path) == {file.path for file in outcome.record.files}


def test_collecting_leaves_no_empty_folders_of_dead_runs(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    run = killed_at(folder, CrashPoint.AFTER_STAGING)
    (tmp_path / f"data/.staging/{run.run_id}/attempt/_temporary/0").mkdir(parents=True)
    collect_garbage(folder, found(folder), a_run())
    assert list((tmp_path / "data").rglob("*")) == [tmp_path / "data/.staging"]
