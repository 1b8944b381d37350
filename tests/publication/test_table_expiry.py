"""An Iceberg table expires snapshots with removed files, and keeps its history."""

import json
from itertools import count

import pytest
from support.storage import tablefolders
from support.storage.faultystore import DyingStore, Killed
from support.storage.folders import IDENTITY, MODEL, a_run, a_target, agrees, bury, keys, now

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import outputtables
from snaploom.output.folder import Folder, open_folder
from snaploom.output.gc import Swept, collect_garbage, find_garbage, sweep
from snaploom.output.icebergtable import VERSIONS, IcebergTable, TableVersion, version_key
from snaploom.output.repair import find_snapshots, restore
from snaploom.output.replacement import restate
from snaploom.output.state import FolderState
from snaploom.output.tablehistory import (
    SnapshotsHeld,
    commits_of,
    forgetful_document,
    table_history,
)

HOUR = 3600 * 1_000_000_000


@pytest.fixture
def store() -> ObjectStore:
    return open_store("memory:", create=True)


def lived(store: ObjectStore) -> Folder:
    """Four days published: the first is deleted, the second restated, and one more follows."""
    folder = tablefolders.table_folder(store)
    for number in (0, 1, 2):
        tablefolders.published_in_table(folder, number)
    bury(folder, 0)
    restate(folder, a_run(), a_target(1), tablefolders.woven(folder), agrees)
    tablefolders.published_in_table(folder, 3)
    return folder


def swept(folder: Folder) -> Swept:
    return sweep(folder, a_run(start=now()), EpochNanos(now() + 2 * HOUR))


def newest(store: ObjectStore) -> TableVersion:
    version = IcebergTable(store).read()
    assert version is not None
    return version


def avro(store: ObjectStore) -> int:
    return sum(key.endswith(".avro") for key in keys(store, VERSIONS))


def test_table_expires_snapshots_with_removed_files_and_keeps_its_history(store, monkeypatch):
    monkeypatch.setattr(outputtables, "LISTS_MARGIN", -HOUR)
    folder = lived(store)
    before = list(commits_of(store, newest(store)))
    history = table_history(store, newest(store))
    assert (len(list(newest(store).lineage())), avro(store)) == (6, 6)
    done = swept(folder)
    assert (done.snapshots, done.files) == (2, 4)
    assert (len(list(newest(store).lineage())), avro(store)) == (2, 2)
    assert list(commits_of(store, newest(store))) == before
    assert table_history(store, newest(store)) == history
    assert (tablefolders.is_whole(store), keys(store)) == (True, set(folder.log.read().live_files))


def test_pages_of_forgotten_commits_follow_each_other(store: ObjectStore) -> None:
    folder = lived(store)
    swept(folder)
    bury(folder, 1)
    tablefolders.published_in_table(folder, 4)
    before = list(commits_of(store, newest(store)))
    swept(folder)
    assert (len(list(newest(store).lineage())), len(before)) == (2, 8)
    assert list(commits_of(store, newest(store))) == before
    assert tablefolders.is_whole(store)


def test_lists_that_a_slow_writer_may_need_stay(store: ObjectStore) -> None:
    folder = lived(store)
    swept(folder)
    assert avro(store) == 6


def test_only_the_log_is_asked_where_nothing_of_the_table_is_over(store: ObjectStore) -> None:
    folder = lived(store)
    number = newest(store).number
    assert sweep(folder, a_run(start=now()), now()) == Swept(waiting=2)
    assert newest(store).number == number


@pytest.mark.parametrize("is_done", [True, False], ids=["written", "not-written"])
def test_process_that_dies_at_any_write_leaves_no_snapshot_without_its_files(is_done):
    for writes_left in count(1):
        store = open_store("memory:", create=True)
        lived(store)
        dying = DyingStore(store, writes_left, is_done)
        try:
            swept(open_folder(dying, tablefolders.PlainLibrary(dying)))
        except Killed:
            pass
        else:
            break
        assert tablefolders.is_whole(store)
        gone = open_folder(store).read().tombstoned_files.keys() - keys(store)
        assert not gone or len(list(newest(store).lineage())) == 2
        swept(open_folder(store, tablefolders.PlainLibrary(store)))
        assert keys(store) == set(open_folder(store).read().live_files)
    assert writes_left > 5


def test_gc_without_iceberg_lets_the_table_forget_as_well(store: ObjectStore) -> None:
    lived(store)
    folder = open_folder(store)
    found = find_garbage(store, folder.log.read(), EpochNanos(now() + 2 * HOUR), HOUR)
    collect_garbage(folder, found, a_run(start=now()))
    assert len(list(newest(store).lineage())) == 2
    assert (tablefolders.is_whole(store), keys(store)) == (True, set(folder.read().live_files))


def test_tag_on_an_ended_snapshot_keeps_files_and_snapshots_and_is_an_error(store):
    folder = lived(store)
    version = newest(store)
    old = list(version.lineage())[-1]["snapshot-id"]
    refs = {"main": {"snapshot-id": version.document["current-snapshot-id"]}}
    tagged = {**version.document, "refs": {**refs, "audit": {"snapshot-id": old}}}
    store.put_if_absent(version_key(version.number + 1), json.dumps(tagged).encode())
    before = keys(store)
    with pytest.raises(SnapshotsHeld) as caught:
        swept(folder)
    assert (caught.value.found, keys(store)) == ("audit", before)


def test_lost_log_is_written_again_from_what_the_table_forgot(store: ObjectStore) -> None:
    folder = lived(store)
    swept(folder)
    before = folder.log.read()
    store.delete([*keys(store, "metadata/"), "snaploom.json"])
    found = find_snapshots(store, tablefolders.TABLE)
    after = restore(store, tablefolders.TABLE, IDENTITY, MODEL, found, a_run())
    assert [times_of(after), [one.rule for one in after.ended]] == [
        times_of(before), [one.rule for one in before.ended],
    ]  # fmt: skip
    assert tablefolders.is_whole(store)


def times_of(state: FolderState) -> list[tuple[int, tuple[object, ...]]]:
    return [(record.time, record.files) for record in state.snapshots]


def test_log_of_snapshots_begins_after_the_last_that_is_gone() -> None:
    ids = [1, 2, 3, 1, 4]
    version = TableVersion(
        7,
        {
            "snapshots": [{"snapshot-id": one} for one in (1, 2, 3, 4)],
            "snapshot-log": [{"snapshot-id": one} for one in ids],
            "statistics": [{"snapshot-id": 2}, {"snapshot-id": 4}],
            "properties": {"a": "b"},
            "last-updated-ms": 5,
        },
    )
    document = forgetful_document(version, "memory:///", [{"snapshot-id": 2}], "page", 3)
    assert document["snapshots"] == [{"snapshot-id": one} for one in (1, 3, 4)]
    assert document["snapshot-log"] == [{"snapshot-id": one} for one in (3, 1, 4)]
    assert document["statistics"] == [{"snapshot-id": 4}]
    assert document["properties"] == {"a": "b", "snaploom.earlier-commits": "page"}
    assert document["last-updated-ms"] == 5
