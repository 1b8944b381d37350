"""Publication: exactly once, whole or not at all, and clean after itself."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.storage.faultystore import Fault, FaultyStore, times
from support.storage.folders import (
    BEFORE_THE_COMMIT,
    MODEL,
    a_folder,
    a_run,
    a_target,
    agrees,
    at,
    bury,
    day,
    failing,
    files_on_disk,
    keys,
    published,
    raising,
    revoke,
    writes,
)

from snaploom import errors
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.output import layout
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import CrashPoint, Folder, open_folder
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.publication import (
    AlreadyPublished,
    Published,
    SnapshotTarget,
    WriteResult,
    publish,
)
from snaploom.output.state import FolderState


def assert_clean(folder: Folder) -> None:
    """Nothing under `data/` that is not live."""
    assert keys(folder.store) == open_folder(folder.store).log.read().live_files


def test_published_snapshot_is_what_the_manifest_and_the_folder_show(folder: Folder) -> None:
    outcome = published(folder)
    assert isinstance(outcome, Published)
    state = open_folder(folder.store).log.read()
    assert state.snapshots == (outcome.record,)
    assert {file.path for file in outcome.record.files} == keys(folder.store)
    assert (outcome.record.rows, outcome.record.seq) == (20, 2)
    assert folder.store.get(layout.schema_key(outcome.record.schema_hash)).startswith(b"{")
    assert folder.store.head(layout.data_model_key(outcome.record.model_hash)) is not None


def test_published_names_carry_run_and_ending(folder: Folder) -> None:
    run = a_run()
    record = published(folder, run=run).record
    for file in record.files:
        assert file.path.startswith(f"data/day=0/{run.run_id}-")
        assert file.path.endswith(".snappy.parquet")
        assert layout.run_of(file.path) == run.run_id


def test_second_publication_names_the_first_and_does_not_write(folder: Folder) -> None:
    first = a_run()
    published(folder, run=first)

    def write(uri: str) -> WriteResult:
        raise AssertionError("not called")

    outcome = publish(folder, a_run(), a_target(), write, agrees)
    assert isinstance(outcome, AlreadyPublished)
    assert outcome.record.run_id == first.run_id


def test_snapshots_of_other_times_are_published_beside_each_other(folder: Folder) -> None:
    for number in (2, 0, 1):
        published(folder, number)
    state = folder.log.read()
    assert [record.time for record in state.snapshots] == [day(0), day(1), day(2)]
    assert [at.time for at in state.timeline] == [day(0), day(1), day(2)]
    assert len(state.models) == 1


def test_snapshot_without_files_is_published(folder: Folder) -> None:
    outcome = published(folder, files=0)
    assert (outcome.record.rows, outcome.record.files) == (0, ())
    assert isinstance(published(folder, files=0), AlreadyPublished)
    assert_clean(folder)


def test_files_in_subfolders_are_refused(folder: Folder) -> None:
    def write(uri: str) -> WriteResult:
        folder.store.put(f"{uri.removeprefix(folder.store.uri)}day=0/x.parquet", b"")
        return WriteResult(1, "{}")

    with pytest.raises(errors.PublicationError, match="subfolder"):
        publish(folder, a_run(), a_target(), write, agrees)
    assert_clean(folder)


@pytest.mark.parametrize(
    "error", [ValueError("bad row"), KeyboardInterrupt(), errors.Interrupted("")]
)
def test_failing_writer_leaves_nothing(folder: Folder, error: BaseException) -> None:
    def write(uri: str) -> WriteResult:
        writes(folder.store)(uri)
        raise error

    with pytest.raises(type(error)):
        publish(folder, a_run(), a_target(), write, agrees)
    assert keys(folder.store) == set()
    assert folder.log.read().seq == 1


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt(), errors.Interrupted("")])
@pytest.mark.parametrize("point", BEFORE_THE_COMMIT)
def test_interruption_before_the_commit_leaves_nothing(folder, error, point):
    with pytest.raises(type(error)):
        published(folder, run=a_run(at(point, raising(error))))
    assert keys(folder.store) == set()
    assert isinstance(published(folder), Published)


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt(), errors.Interrupted("")])
def test_interruption_after_the_commit_keeps_what_is_published(folder, error):
    with pytest.raises(type(error)):
        published(folder, run=a_run(at(CrashPoint.AFTER_COMMIT, raising(error))))
    assert len(folder.log.read().live_files) == 2
    assert_clean(folder)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), errors.Interrupted("")])
@pytest.mark.parametrize("is_done", [True, False])
def test_interruption_within_the_commit_asks_the_log_first(folder, error, is_done):
    class Interrupting(FaultyStore):
        def put_if_absent(self, key: str, data: bytes) -> None:
            if layout.MANIFEST not in key:
                super().put_if_absent(key, data)
                return
            self.puts += 1
            if self.puts > 1 or is_done:
                super().put_if_absent(key, data)
            if self.puts == 1:
                raise error

        puts = 0

    with pytest.raises(type(error)):
        published(open_folder(Interrupting(folder.store)))
    assert set(folder.log.read().live) == ({day(0)} if is_done else set())
    assert_clean(folder)


def test_lost_answer_to_the_commit_is_found_out(store: ObjectStore) -> None:
    folder = failing(store, times(1, Fault.ANSWER_LOST, "put_if_absent", "manifest/"))
    assert isinstance(published(folder), Published)
    assert_clean(folder)


def test_commit_of_unknown_outcome_never_loses_published_files(store: ObjectStore) -> None:
    lost = times(1, Fault.ANSWER_LOST, "put_if_absent", "manifest/")

    def unreachable_once_written(operation: str, key: str) -> Fault | None:
        is_written = store.head(layout.manifest_key(2)) is not None
        return Fault.REQUEST_LOST if is_written else lost(operation, key)

    with pytest.raises(CommitOutcomeUnknown):
        published(failing(store, unreachable_once_written))
    state = open_folder(store).log.read()
    assert set(state.live) == {day(0)}
    assert state.live_files <= keys(store)
    assert isinstance(published(a_folder(store)), AlreadyPublished)


def test_store_that_comes_back_settles_an_unknown_outcome(store: ObjectStore) -> None:
    with pytest.raises(CommitOutcomeUnknown):
        published(failing(store, times(5, Fault.REQUEST_LOST, "put_if_absent", "manifest/")))
    assert keys(store) == set()
    assert isinstance(published(a_folder(store)), Published)


def test_put_that_lands_late_cannot_publish_what_was_removed(folder: Folder) -> None:
    late: list[tuple[str, bytes]] = []

    class Slow(FaultyStore):
        def put_if_absent(self, key: str, data: bytes) -> None:
            if layout.MANIFEST in key and not late:
                late.append((key, data))
                raise KeyboardInterrupt
            super().put_if_absent(key, data)

    with pytest.raises(KeyboardInterrupt):
        published(open_folder(Slow(folder.store)))
    assert keys(folder.store) == set()
    with pytest.raises(errors.ObjectAlreadyExists):
        folder.store.put_if_absent(*late[0])
    assert folder.log.read().live == {}


def test_refused_commit_leaves_nothing(store: ObjectStore) -> None:
    with pytest.raises(errors.FolderNotWritable):
        published(failing(store, times(1, Fault.REFUSED, "put_if_absent", "manifest/")))
    assert keys(store) == set()


def refusing_deletions(operation: str, key: str) -> Fault | None:
    return Fault.REFUSED if operation == "delete" else None


def test_failing_clean_up_does_not_hide_the_error(store: ObjectStore) -> None:
    folder = failing(store, refusing_deletions)

    def write(uri: str) -> WriteResult:
        writes(folder.store)(uri)
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        publish(folder, a_run(), a_target(), write, agrees)


def test_failing_clean_up_does_not_undo_a_publication(store: ObjectStore) -> None:
    folder = failing(store, refusing_deletions)
    assert isinstance(published(folder), Published)


def test_revalidation_sees_what_landed_meanwhile_and_can_refuse(folder: Folder) -> None:
    def refuse_neighbours(state: FolderState, record: SnapshotRecord) -> None:
        seen.append(set(state.live))
        if state.live:
            raise errors.HistoryIncompatible("a neighbour")

    def write(uri: str) -> WriteResult:
        result = writes(folder.store)(uri)
        published(open_folder(folder.store), 1)
        return result

    seen: list[set[int]] = []
    with pytest.raises(errors.HistoryIncompatible):
        publish(folder, a_run(), a_target(), write, refuse_neighbours)
    assert seen[-1] == {day(1)}
    assert_clean(folder)


@pytest.mark.parametrize("point", [CrashPoint.BEFORE_STAGING, CrashPoint.AFTER_PROMOTION])
def test_loser_of_a_race_discards_its_files_and_names_the_winner(folder, point):
    winner = a_run()
    overtaken = at(point, lambda: published(open_folder(folder.store), run=winner))
    outcome = published(folder, run=a_run(overtaken))
    assert isinstance(outcome, AlreadyPublished)
    assert outcome.record.run_id == winner.run_id
    assert_clean(folder)


def test_revoked_run_does_not_begin(folder: Folder) -> None:
    run = a_run()
    revoke(folder, run)
    with pytest.raises(errors.RunRevoked):
        published(folder, run=run)


@pytest.mark.parametrize("point", [CrashPoint.BEFORE_STAGING, CrashPoint.AFTER_PROMOTION])
def test_run_that_is_revoked_meanwhile_aborts(folder: Folder, point: CrashPoint) -> None:
    run = a_run(at(point, lambda: revoke(open_folder(folder.store), run)))
    with pytest.raises(errors.RunRevoked):
        published(folder, run=run)
    assert folder.log.read().live == {}
    assert keys(folder.store) == set()


def test_run_whose_staging_was_collected_is_revoked(folder: Folder) -> None:
    def collected() -> None:
        revoke(open_folder(folder.store), run)
        folder.store.delete(keys(folder.store, layout.STAGING))

    run = a_run(at(CrashPoint.AFTER_STAGING, collected))
    with pytest.raises(errors.RunRevoked):
        published(folder, run=run)


def test_one_run_may_publish_several_snapshots_at_once(folder: Folder) -> None:
    run = a_run()
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda n: published(folder, n % 4, run=run), range(12)))
    assert sum(isinstance(outcome, Published) for outcome in outcomes) == 4
    assert_clean(folder)


def test_record_that_lost_its_number_is_not_taken_for_the_winners(folder: Folder) -> None:
    """Two threads of a process may share a log: what one thought of entry 2 is not what it is."""
    rivals = iter([0])

    def overtaken(state: FolderState, record: SnapshotRecord) -> None:
        for number in rivals:
            published(folder, number)

    publish(folder, a_run(), a_target(1), writes(folder.store), overtaken)
    state = folder.log.read()
    assert [(record.time, record.seq) for record in state.snapshots] == [(day(0), 2), (day(1), 3)]
    assert dict(state.live) == dict(open_folder(folder.store).log.read().live)


def test_snapshot_that_was_deleted_can_be_published_again_under_new_names(folder: Folder) -> None:
    first = published(folder).record
    bury(folder, 0)
    assert folder.log.read().tombstoned_times == {day(0)}
    again = published(folder).record
    assert not {f.path for f in again.files} & {f.path for f in first.files}
    assert folder.log.read().tombstoned_times == set()


def test_swapped_source_is_the_merged_models_latest_and_its_place_the_first(folder):
    published(folder)
    swapped = MODEL[1].model_copy(update={"source": "addresses_v2", "field_name": "ADDRESS"})
    target = SnapshotTarget(day(1), "day=1", "plan", (MODEL[0], swapped))
    publish(folder, a_run(), target, writes(folder.store), agrees)
    state = folder.log.read()
    assert state.merged_model["address"].source == "addresses_v2"
    assert state.merged_model["address"].field_name == "address"
    assert [version.first_seen for version in state.models] == [2, 3]
    assert b"addresses_v2" in folder.store.get(layout.MERGED_DATA_MODEL)


def test_local_folder_holds_nothing_else_afterwards(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    record = published(folder).record
    assert files_on_disk(tmp_path) == {file.path for file in record.files}
    assert list((tmp_path / "data/.staging").iterdir()) == []
    assert list((tmp_path / ".snaploom-tmp").iterdir()) == []


@pytest.mark.parametrize("partition", ["", "a/b", ".hidden", "_hidden"])
def test_name_that_is_no_partition_is_refused(folder: Folder, partition: str) -> None:
    target = SnapshotTarget(day(0), partition, "plan", MODEL)
    with pytest.raises(ValueError, match="not the name of a partition"):
        publish(folder, a_run(), target, writes(folder.store), agrees)
    assert_clean(folder)


@pytest.mark.parametrize("operation", ["put", "delete"])
def test_interruption_of_best_effort_work_is_not_swallowed(store, operation):
    faulty = FaultyStore(store)
    folder = a_folder(faulty)

    def interrupt(name: str, key: str) -> None:
        if name == operation:
            faulty.faults = lambda name, key: None
            raise errors.Interrupted("stopped by Ctrl-C")

    faulty.faults = interrupt  # type: ignore[assignment]
    with pytest.raises(errors.Interrupted):
        published(folder)
    assert set(folder.log.read().live) == {day(0)}
    assert folder.log.read().live_files <= keys(store)
