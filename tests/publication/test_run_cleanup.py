"""Files that a run removes at its end: those that ended long enough ago, and old staging."""

from collections.abc import Iterator
from itertools import count

import pytest
from support.servers.s3servers import BUCKET, S3Server, environment_of
from support.storage.faultystore import DyingStore, Fault, FaultyStore, Killed, times
from support.storage.folders import (
    IDENTITY,
    a_folder,
    a_run,
    bury,
    day,
    keys,
    now,
    published,
    replaced,
)

from snaploom.errors import RunRevoked, StorageError
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import layout
from snaploom.output.folder import CrashPoint, Folder, FolderOwner, Run, open_folder
from snaploom.output.gc import Swept, store_present, sweep, waiting
from snaploom.output.removal import remove_folder
from snaploom.spark.hadoopstore import HadoopObjectStore
from snaploom.spark.jvm import client_of

HOUR = 3600 * 1_000_000_000
DAY = 24 * HOUR


def swept(folder: Folder, after: int = 2 * HOUR, versions: int = 100, files: int = 100) -> Swept:
    """What a run removes when so much time has passed."""
    present = EpochNanos(now() + after)
    return sweep(folder, a_run(), present, versions=versions, files=files)


def left(folder: Folder) -> int:
    return waiting(folder.store, folder.log.read())


def test_files_of_what_was_deleted_or_replaced_go_when_grace_has_passed(folder: Folder) -> None:
    for number in (0, 1, 2):
        published(folder, number)
    bury(folder, 0)
    replaced(folder, 1)
    assert swept(folder, after=0) == Swept(waiting=2)
    done = swept(folder)
    assert (done.snapshots, done.files, done.waiting, left(folder)) == (2, 4, 0, 0)
    assert done.bytes > 0
    assert keys(folder.store) == folder.log.read().live_files
    assert swept(folder) == Swept()


def test_what_ended_later_stays_until_its_own_grace_has_passed(folder: Folder) -> None:
    for number in (0, 1):
        published(folder, number)
        bury(folder, number)
    moments = [folder.store.head(layout.manifest_key(seq)) for seq in (3, 5)]
    assert all(moments)
    second = max(info.modified for info in moments if info)
    run = a_run()
    done = sweep(folder, run, EpochNanos(second + HOUR))
    assert (done.snapshots, done.waiting) == (1, 1)
    assert {layout.partition_of(key) for key in keys(folder.store)} == {"day=1"}


@pytest.mark.parametrize(("versions", "files"), [(2, 100), (100, 5), (100, 4)])
def test_one_run_removes_a_bounded_number_and_the_next_goes_on(folder, versions, files):
    for number in range(5):
        published(folder, number)
    bury(folder, *range(5))
    results = [swept(folder, versions=versions, files=files) for _ in range(4)]
    assert [(one.snapshots, one.waiting) for one in results] == [(2, 3), (2, 1), (1, 0), (0, 0)]
    assert keys(folder.store) == set()


def test_version_with_more_files_than_a_run_removes_goes_whole(folder: Folder) -> None:
    published(folder, 0, files=4)
    bury(folder, 0)
    assert swept(folder, files=3).files == 4


@pytest.mark.parametrize("hint", [b"{", b"[]", b'{"versions":1,"seq":2,"deletedAt":3}', None])
def test_hint_that_is_lost_or_of_another_log_costs_only_time(folder, hint):
    for number in (0, 1):
        published(folder, number)
        bury(folder, number)
    swept(folder, versions=1)
    if hint is None:
        folder.store.delete([layout.SWEPT])
    else:
        folder.store.put(layout.SWEPT, hint)
    assert (left(folder), swept(folder).snapshots, left(folder)) == (2, 2, 0)
    assert keys(folder.store) == set()


@pytest.mark.parametrize("is_done", [True, False], ids=["written", "not-written"])
def test_process_that_dies_at_any_write_removes_nothing_alive_and_the_next_all(is_done):
    for writes_left in count(1):
        store = open_store("memory:", create=True)
        folder = a_folder(store)
        for number in (0, 1):
            published(folder, number)
        bury(folder, 0)
        try:
            swept(open_folder(DyingStore(store, writes_left, is_done)))
        except Killed:
            pass
        else:
            break
        assert open_folder(store).log.read().live_files <= keys(store)
        swept(open_folder(store))
        assert keys(store) == open_folder(store).log.read().live_files
    assert writes_left > 3


def test_refused_deletion_is_reported_and_retried() -> None:
    store = FaultyStore(open_store("memory:", create=True))
    folder = a_folder(store)
    published(folder)
    bury(folder, 0)
    store.faults = times(1, Fault.REQUEST_LOST, "delete", "data/")
    with pytest.raises(StorageError):
        swept(folder)
    assert (left(folder), swept(folder).snapshots) == (1, 1)


def test_staging_of_a_run_that_died_goes_after_a_day_and_the_run_is_revoked(folder):
    def die(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_STAGING:
            dying.is_dead = True
            raise Killed

    dying = FaultyStore(folder.store)
    run = a_run(die)
    with pytest.raises(Killed):
        published(open_folder(dying), run=run)
    assert swept(folder, after=DAY - HOUR) == Swept()
    assert swept(folder, after=DAY + HOUR, files=3).files == 3
    assert swept(folder, after=DAY + HOUR).files == 1
    assert (folder.log.read().revoked, keys(folder.store)) == ({run.run_id}, set())
    with pytest.raises(RunRevoked):
        published(folder, run=Run(run.run_id, "0.0.0", now))


@pytest.fixture(params=["versitygw", pytest.param("hdfs", marks=pytest.mark.spark)])
def served(request: pytest.FixtureRequest) -> Iterator[Folder]:
    """A folder that other processes keep."""
    server = request.getfixturevalue(request.param)
    if isinstance(server, S3Server):
        with environment_of(server):
            yield a_folder(open_store(f"s3://{BUCKET}/swept/", create=True))
    else:
        spark = request.getfixturevalue("spark")
        yield a_folder(HadoopObjectStore(client_of(spark), f"{server}/swept", create=True))


def test_folders_in_buckets_and_on_hdfs_are_swept_alike(served: Folder) -> None:
    for number in (0, 1):
        published(served, number)
    bury(served, 0)
    served.store.put(f"data/.staging/{a_run().run_id}/0/part-0", b"of a run that died")
    assert swept(served, after=0) == Swept(waiting=1)
    assert swept(served, after=DAY + HOUR).files == 3
    assert (keys(served.store), left(served)) == (served.log.read().live_files, 0)


def test_folder_that_was_swept_is_removed_whole(folder: Folder) -> None:
    published(folder)
    bury(folder, 0)
    swept(folder)
    assert folder.store.head(layout.SWEPT) is not None
    assert remove_folder(folder.store, FolderOwner(IDENTITY.output), a_run()).left == ()
    assert keys(folder.store, "") == set()


def test_present_is_never_later_than_the_stores(folder: Folder) -> None:
    published(folder)
    state = folder.log.read()
    entry = folder.store.head(layout.manifest_key(state.seq))
    assert store_present(folder.store, state, EpochNanos(now() + DAY)) == entry.modified
    assert store_present(folder.store, state, day(0)) == day(0)
