"""Replacement: one entry ends the old version and begins the new one, or nothing happens."""

import pytest
from support.storage.faultystore import Fault, times
from support.storage.folders import (
    BEFORE_THE_COMMIT,
    START,
    a_folder,
    a_run,
    at,
    bury,
    day,
    failing,
    keys,
    now,
    published,
    raising,
    replaced,
    revoke,
    rewrites,
)

from snaploom import errors
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.output.entries import Replace, parse_entry
from snaploom.output.folder import CrashPoint, Folder, open_folder
from snaploom.output.gc import GarbageKind, Verdict, collect_garbage, find_garbage
from snaploom.output.layout import LATEST, MERGED_DATA_MODEL, manifest_key
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.replacement import REPLACED, Rewrite, replace_version

HOUR = 3600 * 1_000_000_000


@pytest.fixture
def folder(store: ObjectStore) -> Folder:
    made = a_folder(store)
    published(made)
    return made


def referenced(store: ObjectStore) -> set[str]:
    """Files that some version has, live or ended."""
    state = open_folder(store).log.read()
    return set(state.live_files) | set(state.tombstoned_files)


def test_new_version_is_the_old_one_in_other_files(folder: Folder) -> None:
    old = folder.log.read().live[day(0)]
    run = a_run(start=START + HOUR)
    outcome = replaced(folder, run=run)
    state = open_folder(folder.store).log.read()
    assert state.snapshots == (outcome.record,)
    assert (outcome.record.run_id, outcome.record.seq) == (run.run_id, 3)
    assert outcome.record.created_at > old.created_at
    new = {"seq", "run_id", "created_at", "files", "tool_version", "spark_version"}
    kept = set(type(old).model_fields) - new
    assert {n: getattr(outcome.record, n) for n in kept} == {n: getattr(old, n) for n in kept}
    assert {file.path for file in old.files}.isdisjoint(state.live_files)


def test_old_version_ends_in_the_same_entry(folder: Folder) -> None:
    old = folder.log.read().live[day(0)]
    outcome = replaced(folder)
    entry = parse_entry(folder.store.get(manifest_key(3)), "3")
    assert isinstance(entry, Replace)
    assert (entry.snapshot, entry.replaced) == (outcome.record, outcome.ended)
    assert (entry.replaced.files, entry.replaced.published_seq) == (old.files, old.seq)
    assert (entry.replaced.rule, entry.message) == (REPLACED, "sorted")
    state = open_folder(folder.store).log.read()
    assert (state.tombstones, state.tombstoned_times) == ((outcome.ended,), frozenset())


def test_history_of_models_and_schemas_stays_as_it_was(folder: Folder) -> None:
    before = folder.log.read()
    document = folder.store.get(MERGED_DATA_MODEL)
    replaced(folder)
    after = open_folder(folder.store).log.read()
    assert after.models == before.models
    kept = [
        [(v.time, v.schema_hash, v.model_hash) for v in state.timeline] for state in (before, after)
    ]
    assert kept[0] == kept[1]
    assert folder.store.get(MERGED_DATA_MODEL) == document


def test_pinned_readers_find_the_old_files_until_they_are_collected(folder: Folder) -> None:
    pinned = folder.log.read()
    replaced(folder)
    assert open_folder(folder.store).log.read(pinned.seq) == pinned
    assert pinned.live_files <= keys(folder.store)


def test_collection_after_grace_removes_exactly_the_old_files(folder: Folder) -> None:
    old = folder.log.read().live_files
    new = {file.path for file in replaced(folder).record.files}
    state = folder.log.read()
    early = find_garbage(folder.store, state, now(), HOUR)
    assert {item.verdict for item in early} == {Verdict.KEEP_YOUNG}
    late = find_garbage(folder.store, state, EpochNanos(now() + 2 * HOUR), HOUR)
    assert {(item.key, item.kind) for item in late} == {(k, GarbageKind.TOMBSTONED) for k in old}
    collect_garbage(folder, late, a_run())
    assert keys(folder.store) == new


def test_version_that_is_not_live_any_more_is_not_rewritten(folder: Folder) -> None:
    old = folder.log.read().live[day(0)]
    replaced(folder)

    def write(uri: str) -> Rewrite:
        raise AssertionError("not called")

    with pytest.raises(errors.SnapshotChanged, match="changed while"):
        replace_version(folder, a_run(), old, write)


@pytest.mark.parametrize("rival", [replaced, bury])
@pytest.mark.parametrize("point", BEFORE_THE_COMMIT)
def test_version_that_ends_meanwhile_is_left_and_our_files_go(folder, rival, point):
    def overtaken(reached: CrashPoint) -> None:
        if reached is point and not seen:
            seen.append(reached)
            rival(open_folder(folder.store))  # type: ignore[operator]

    seen: list[CrashPoint] = []
    run = a_run(overtaken)
    with pytest.raises(errors.SnapshotChanged) as raised:
        replaced(folder, run=run)
    assert ("deleted" in (raised.value.found or "")) == (rival is bury)
    assert keys(folder.store) == referenced(folder.store)
    assert not [key for key in keys(folder.store) if run.run_id in key]


def test_other_number_of_rows_is_refused_before_anything_is_promoted(folder: Folder) -> None:
    old = folder.log.read()
    version = old.live[day(0)]
    with pytest.raises(errors.PublicationError, match="not published") as raised:
        replace_version(folder, a_run(), version, rewrites(folder.store, version.rows - 1))
    assert raised.value.found == "19 rows in them"
    assert (folder.log.read(), keys(folder.store)) == (old, old.live_files)


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt(), errors.Interrupted("")])
@pytest.mark.parametrize("point", BEFORE_THE_COMMIT)
def test_interruption_before_the_commit_keeps_the_old_version(folder, error, point):
    old = folder.log.read()
    with pytest.raises(type(error)):
        replaced(folder, run=a_run(at(point, raising(error))))
    assert (folder.log.read(), keys(folder.store)) == (old, old.live_files)


def test_interruption_after_the_commit_keeps_both_versions_files(folder: Folder) -> None:
    run = a_run(at(CrashPoint.AFTER_COMMIT, raising(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        replaced(folder, run=run)
    assert folder.log.read().live[day(0)].run_id == run.run_id
    assert keys(folder.store) == referenced(folder.store)


@pytest.mark.parametrize("next_step", [replaced, bury])
def test_version_that_ended_before_we_knew_that_it_was_live_keeps_its_files(folder, next_step):
    """Readers may have pinned it in between."""

    def ended() -> None:
        next_step(open_folder(folder.store))  # type: ignore[operator]
        raise KeyboardInterrupt

    run = a_run(at(CrashPoint.AFTER_COMMIT, ended))
    with pytest.raises(KeyboardInterrupt):
        replaced(folder, run=run)
    assert [key for key in keys(folder.store) if run.run_id in key]
    assert keys(folder.store) == referenced(folder.store)
    assert run.run_id not in folder.log.read().revoked


def test_commit_of_unknown_outcome_never_loses_files(folder: Folder) -> None:
    lost = times(1, Fault.ANSWER_LOST, "put_if_absent", "manifest/")

    def unreachable_once_written(operation: str, key: str) -> Fault | None:
        is_written = folder.store.head(manifest_key(3)) is not None
        return Fault.REQUEST_LOST if is_written else lost(operation, key)

    with pytest.raises(CommitOutcomeUnknown):
        replaced(failing(folder.store, unreachable_once_written))
    state = open_folder(folder.store).log.read()
    assert state.live[day(0)].seq == 3
    assert referenced(folder.store) <= keys(folder.store)


def test_refused_commit_keeps_the_old_version(folder: Folder) -> None:
    opened = failing(folder.store, times(1, Fault.REFUSED, "put_if_absent", "manifest/"))
    old = folder.log.read()
    with pytest.raises(errors.FolderNotWritable):
        replaced(opened)
    assert (folder.log.read(), keys(folder.store)) == (old, old.live_files)


@pytest.mark.parametrize("point", BEFORE_THE_COMMIT)
def test_revoked_run_replaces_nothing(folder: Folder, point: CrashPoint) -> None:
    old = folder.log.read().live
    run = a_run(at(point, lambda: revoke(open_folder(folder.store), run)))
    with pytest.raises(errors.RunRevoked):
        replaced(folder, run=run)
    assert folder.log.read().live == old
    assert keys(folder.store) == referenced(folder.store)


def test_one_run_replaces_several_snapshots(folder: Folder) -> None:
    published(folder, 1)
    run = a_run()
    for number in (0, 1):
        replaced(folder, number, run)
    state = folder.log.read()
    assert {record.run_id for record in state.snapshots} == {run.run_id}
    assert keys(folder.store) == referenced(folder.store)


def test_checkpoint_holds_replacements(folder: Folder) -> None:
    for _ in range(70):
        replaced(folder)
    known = folder.log.read()
    assert b'"checkpoint"' in folder.store.get(LATEST)
    assert open_folder(folder.store).log.read() == known
    assert len(known.tombstones) == 70
