"""A table's commit is the publication, and the log follows it, whatever dies between."""

import io
import json
from collections.abc import Callable
from itertools import count, islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.storage import tablefolders
from support.storage.faultystore import DyingStore, Fault, FaultyStore, Killed, times
from support.storage.folders import (
    DAY,
    IDENTITY,
    MODEL,
    a_run,
    a_target,
    agrees,
    at,
    day,
    keys,
    now,
    raising,
)
from support.storage.tablefolders import (
    DELTA,
    OF_CATALOG,
    PlainCatalogTable,
    PlainLibrary,
    data_files,
    delta_actions,
    files_of_table,
    is_whole,
    opened,
    published_in_table,
    table_folder,
    versions,
    woven,
)

from snaploom.errors import (
    HistoryIncompatible,
    ManifestCorrupt,
    PublicationError,
    RunRevoked,
    SnapshotChanged,
)
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.output import icebergtable
from snaploom.output.deltatable import delta_key
from snaploom.output.entries import FolderSettings, Tombstone
from snaploom.output.folder import CrashPoint, Folder, FolderOwner, Run, open_folder
from snaploom.output.foldercheck import FaultKind, check_table
from snaploom.output.gc import collect_garbage, find_garbage
from snaploom.output.icebergtable import version_key
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.publication import AlreadyPublished, Published
from snaploom.output.removal import remove_folder
from snaploom.output.repair import find_snapshots, restore
from snaploom.output.replacement import restate
from snaploom.output.state import FolderState, tombstone_of
from snaploom.output.tablehistory import SnapshotsHeld
from snaploom.types.schemas import parse_schema, schema_text


@pytest.fixture(
    params=[tablefolders.TABLE, OF_CATALOG, DELTA], ids=["folder", "catalog", "delta"], autouse=True
)
def settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FolderSettings:
    monkeypatch.setattr(tablefolders, "TABLE", request.param)
    chosen: FolderSettings = request.param
    return chosen


@pytest.fixture
def folder(store: ObjectStore, settings: FolderSettings) -> Folder:
    return table_folder(store)


def ended(folder: Folder, number: int, run: Run | None = None) -> FolderState:
    run = run or a_run()

    def tombstone(state: FolderState) -> Tombstone | None:
        if day(number) not in state.live:
            return None
        seq, now = state.next_seq, run.clock()
        record = state.live[day(number)]
        return Tombstone(
            seq=seq, run_id=run.run_id, written_at=now, tool_version="0.0.0",
            snapshots=(tombstone_of(record, seq=seq, rule="maxOldSnapshots", deleted_at=now),),
        )  # fmt: skip

    return folder.commit(tombstone, run)


def test_table_and_log_agree_and_the_table_was_first(folder: Folder) -> None:
    for number in (0, 1, 2):
        assert isinstance(published_in_table(folder, number), Published)
    assert is_whole(folder.store)
    assert [r.time for r in folder.log.read().snapshots] == [day(0), day(1), day(2)]


def restated(folder: Folder, number: int, run: Run | None = None) -> Published:
    run = run or a_run()
    return restate(folder, run, a_target(number), woven(folder), agrees, reason="wrong")


CHANGES: dict[str, Callable[[Folder], object]] = {
    "publish": lambda folder: published_in_table(folder, 1),
    "restate": lambda folder: restated(folder, 0),
    "end": lambda folder: ended(folder, 0),
}


@pytest.mark.parametrize("is_done", [True, False], ids=["written", "not-written"])
@pytest.mark.parametrize("change", CHANGES)
def test_process_that_dies_at_any_write_leaves_all_or_nothing(change: str, is_done: bool) -> None:
    for writes_left in count(1):
        store = open_store("memory:", create=True)
        published_in_table(table_folder(store), 0)
        dying = DyingStore(store, writes_left, is_done)
        try:
            CHANGES[change](opened(dying))
        except Killed:
            pass
        else:
            break
        is_in_table = len(versions(store)) > 2
        state = opened(store).read()
        assert is_whole(store)
        assert (state.seq > 2) == is_in_table
        if not is_in_table:
            CHANGES[change](opened(store))
        elif change == "publish":
            again = published_in_table(opened(store), 1)
            assert isinstance(again, AlreadyPublished)
        assert len(versions(store)) == 3
        assert is_whole(store)
    assert writes_left > 2


def test_lost_answer_to_the_commit_of_the_table_publishes_once() -> None:
    store = FaultyStore(open_store("memory:", create=True))
    folder = table_folder(store)
    second = delta_key(2) if tablefolders.TABLE is DELTA else version_key(2)
    store.faults = times(1, Fault.ANSWER_LOST, "put_if_absent", second)
    assert isinstance(published_in_table(folder, 0), Published)
    assert (len(versions(store)), is_whole(store)) == (2, True)


def test_run_that_hears_nothing_after_the_table_has_its_commit_keeps_the_files() -> None:
    store = FaultyStore(open_store("memory:", create=True))
    folder = table_folder(store)
    entry = f"manifest/{folder.log.read().next_seq:020d}"
    store.faults = times(99, Fault.REQUEST_LOST, "put_if_absent", entry)
    with pytest.raises(CommitOutcomeUnknown):
        published_in_table(folder, 0)
    store.faults = lambda operation, key: None
    assert isinstance(published_in_table(folder, 0), AlreadyPublished)
    assert is_whole(store)


def test_of_two_writers_of_one_time_one_publishes_and_the_other_takes_its_files_away(store):
    rival = table_folder(store)
    outcomes: list[object] = []
    late = opened(store, lambda: outcomes.append(published_in_table(rival, 0)))
    assert isinstance(published_in_table(late, 0), AlreadyPublished)
    assert isinstance(outcomes[0], Published)
    assert is_whole(store)
    assert data_files(store) == {f.path for f in rival.log.read().live[day(0)].files}


def test_writers_of_other_times_both_publish(store: ObjectStore) -> None:
    rival = table_folder(store)
    others = iter((1, 2, 3))
    late = opened(store, lambda: [published_in_table(rival, n) for n in islice(others, 1)] and None)
    assert isinstance(published_in_table(late, 0), Published)
    assert is_whole(store)
    assert len(rival.read().versions) == 4


def test_restatement_of_what_another_run_ended_changes_nothing(store: ObjectStore) -> None:
    rival = table_folder(store)
    published_in_table(rival, 0)
    late = opened(store, lambda: ended(rival, 0) and None)
    with pytest.raises(SnapshotChanged):
        restated(late, 0)
    assert (is_whole(store), data_files(store)) == (True, set(rival.read().tombstoned_files))


def test_paused_run_that_is_revoked_publishes_nothing_though_its_files_are_gone(store):
    def collect() -> None:
        rival = opened(store)
        found = find_garbage(store, rival.log.read(), now() + DAY, 0)
        collect_garbage(rival, found, a_run(start=now()))

    late = table_folder(store, collect)
    with pytest.raises(RunRevoked):
        published_in_table(late, 0)
    assert (is_whole(store), data_files(store)) == (True, set())


def test_collector_keeps_files_that_the_table_has_and_the_log_lacks(store: ObjectStore) -> None:
    run = a_run(at(CrashPoint.AFTER_TABLE_COMMIT, raising(Killed())))
    with pytest.raises(Killed):
        published_in_table(table_folder(DyingStore(store, 10**6, is_done=True)), 0, run)
    folder = opened(store)
    found = find_garbage(store, folder.log.read(), now() + DAY, 0)
    collect_garbage(folder, found, a_run(start=now()))
    assert is_whole(store)
    assert folder.log.read().live


def test_whole_log_that_is_lost_is_written_again_from_the_table(folder, settings):
    for number in (0, 1, 2):
        published_in_table(folder, number)
    restated(folder, 1)
    ended(folder, 0)
    before = folder.log.read()
    store = folder.store
    store.put(f"data/day=9/{a_run().run_id}-00000000-00000.parquet", b"of a run that died")
    store.delete([*keys(store, "metadata/"), "snaploom.json"])
    library = PlainLibrary(store)
    found = find_snapshots(store, settings, library)
    assert [one.time for one in found.snapshots] == [day(1), day(2)]
    assert [one.place[:11] for one in found.left] == ["data/day=9/"]
    after = restore(store, settings, IDENTITY, MODEL, found, a_run(), library)
    assert is_whole(store)
    fields = ("time", "rows", "files", "schema_hash", "model_hash", "reason")
    assert [[getattr(r, n) for n in fields] for r in after.snapshots] == [
        [getattr(r, n) for n in fields] for r in before.snapshots
    ]
    assert [one.rule for one in after.ended] == [one.rule for one in before.ended]
    assert after.tombstoned_files.keys() == before.tombstoned_files.keys()
    assert isinstance(published_in_table(opened(store), 3), Published)


def test_writer_that_slept_through_many_versions_publishes_on_top_of_the_newest(
    store: ObjectStore, settings: FolderSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(icebergtable, "KEPT_VERSIONS", 2)
    rival = table_folder(store)
    others = iter([(1, 2, 3, 4)])

    def sleep() -> None:
        for number in next(others, ()):
            published_in_table(rival, number)

    late = opened(store, sleep)
    assert isinstance(published_in_table(late, 0), Published)
    assert (is_whole(store), len(late.read().versions)) == (True, 5)
    # A catalog removes its old versions itself, and Delta's log stays whole.
    assert settings.table or settings is DELTA or len(versions(store)) <= 4


@pytest.mark.parametrize("settings", [tablefolders.TABLE, DELTA], indirect=True)
def test_check_reports_what_the_table_has_and_the_log_lacks(folder: Folder) -> None:
    for number in (0, 1):
        published_in_table(folder, number)
    store, whole = folder.store, folder.log.read()
    assert list(check_table(store, whole)) == []
    (fault,) = check_table(store, folder.log.read(whole.seq - 1))
    assert (fault.kind, fault.snapshot, "the log does not" in fault.message) == (
        FaultKind.TABLE,
        day(1),
        True,
    )
    store.delete(keys(store, "commits/"))
    (fault,) = check_table(store, whole)
    assert "commits/" in fault.message


@pytest.mark.parametrize("settings", [tablefolders.TABLE, OF_CATALOG], indirect=True)
def test_nothing_is_published_where_nobody_can_write_to_the_table(store: ObjectStore) -> None:
    table_folder(store)
    with pytest.raises(PublicationError, match="Iceberg table"):
        published_in_table(open_folder(store), 0)
    assert data_files(store) == set()


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "older"])
def test_table_that_lost_what_is_published_is_left(folder: Folder, is_gone: bool) -> None:
    before = [] if is_gone else versions(folder.store)
    published_in_table(folder, 0)
    folder.store.delete({*versions(folder.store)}.difference(before))
    with pytest.raises(PublicationError, match="has lost what was published in it") as refused:
        table_folder(folder.store)
    assert "snapshot 2020-01-01T00:00:00Z" in refused.value.found


def test_folder_is_removed_with_its_table(folder: Folder) -> None:
    published_in_table(folder, 0)
    PlainCatalogTable(folder.store, "").drop()
    assert remove_folder(folder.store, FolderOwner(IDENTITY.output), a_run()).left == ()
    assert keys(folder.store, "") == set()


OF_DELTA = pytest.mark.parametrize("settings", [DELTA], ids=["delta"], indirect=True)


def put_by_another(store: ObjectStore, *actions: dict[str, Any]) -> None:
    lines = [{"commitInfo": {"operation": "OPTIMIZE", "userMetadata": "ours"}}, *actions]
    document = "\n".join(map(json.dumps, lines))
    store.put_if_absent(delta_key(len(versions(store)) + 1), document.encode())


@OF_DELTA
def test_commits_of_others_stay_and_a_restatement_puts_our_rows_back(folder: Folder) -> None:
    for number in (0, 1):
        published_in_table(folder, number)
    (first, *_), partition = files_of_table(folder.store)["0"], {"day": "0"}
    path = first.removeprefix("data/")
    added = {"path": "day=0/part-1.parquet", "partitionValues": partition, "size": 1,
             "modificationTime": 1, "dataChange": False}  # fmt: skip
    put_by_another(folder.store, {"remove": {"path": path, "dataChange": False}}, {"add": added})
    published_in_table(folder, 2)
    assert f"data/{added['path']}" in files_of_table(folder.store)["0"]
    restated(folder, 0)
    assert is_whole(folder.store)


@OF_DELTA
def test_check_finds_what_others_changed_in_a_table_of_delta(folder: Folder) -> None:
    for number in (0, 1):
        published_in_table(folder, number)
    state, ours = folder.log.read(), files_of_table(folder.store)["0"]
    assert list(check_table(folder.store, state)) == []
    compacted = io.BytesIO()
    pq.write_table(pa.table({"a": range(5)}), compacted)
    folder.store.put("data/day=0/a.parquet", compacted.getvalue())
    removed = [{"remove": {"path": path.removeprefix("data/")}} for path in ours]
    put_by_another(
        folder.store, *removed,
        {"add": {"path": "day=0/a.parquet", "partitionValues": {"day": "0"}}},
        {"add": {"path": "day=7/a.parquet", "partitionValues": {"day": "7"},
                 "stats": '{"numRecords": 3}'}},
    )  # fmt: skip
    found = [(one.snapshot, one.message) for one in check_table(folder.store, state)]
    place = f"{folder.store.uri}data/"
    assert found == [
        (day(0), f"{place} shows 5 rows of it, and 20 were published: another writer changed "
         "the table"),
        (None, f"{place} shows 3 rows of a snapshot that is not published"),
    ]  # fmt: skip


METADATA = {"schemaString": '{"type":"struct","fields":[]}', "partitionColumns": ["day"]}


@OF_DELTA
@pytest.mark.parametrize(
    ("action", "found"),
    [
        ({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}, "minReaderVersion"),
        ({"metaData": {**METADATA, "partitionColumns": ["a"]}}, "partition columns"),
        ({"metaData": {**METADATA, "configuration": {"delta.appendOnly": "true"}}}, "appendOnly"),
        ({"metaData": {**METADATA, "schemaString": "delta.invariants"}}, "delta.invariants"),
    ],
)
def test_table_that_others_made_what_we_do_not_write_is_left_as_it_is(folder, action, found):
    published_in_table(folder, 0)
    put_by_another(folder.store, action)
    before = keys(folder.store, "")
    with pytest.raises(PublicationError, match="do not write") as caught:
        ended(folder, 0)
    assert found in caught.value.found
    assert keys(folder.store, "") - before <= set(keys(folder.store, "commits/"))


@OF_DELTA
@pytest.mark.parametrize("number", [1, 2], ids=["first", "middle"])
def test_log_of_a_table_with_a_gap_is_refused(folder: Folder, number: int) -> None:
    for day_number in (0, 1):
        published_in_table(folder, day_number)
    folder.store.delete([delta_key(number)])
    with pytest.raises(ManifestCorrupt, match="later ones are"):
        published_in_table(opened(folder.store), 2)


def columns(**types: Any) -> str:
    fields = [
        {"name": k, "type": v, "nullable": False, "metadata": {"a": 1}} for k, v in types.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": False}


@OF_DELTA
def test_columns_of_a_table_grow_in_depth_and_may_be_null(folder: Folder) -> None:
    inner = {"type": "map", "keyType": "string", "valueContainsNull": False}
    for number, schema in enumerate([
        columns(a="long"),
        columns(b=array(json.loads(columns(c="long")))),
        columns(b=array(json.loads(columns(d={**inner, "valueType": "decimal(3,1)"}))), a="long"),
    ]):  # fmt: skip
        published_in_table(folder, number, schema=schema)
    *_, last = (one["metaData"] for one in delta_actions(folder.store) if "metaData" in one)
    assert schema_text(parse_schema(last["schemaString"], "")).splitlines() == [
        "a: long",
        "b: array<struct>",
        "  c: long",
        "  d: map<string,decimal(3,1)>",
        "day: long",
    ]
    assert "false" not in last["schemaString"]


@OF_DELTA
@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (columns(A="long"), "other letters"),
        (columns(a="integer"), "a is integer"),
        (columns(a=array("long")), "a is array<long>"),
    ],
)
def test_snapshot_that_a_table_of_delta_cannot_take_is_refused(folder, schema, found):
    published_in_table(folder, 0)
    before = versions(folder.store)
    with pytest.raises(HistoryIncompatible) as caught:
        published_in_table(folder, 1, schema=schema)
    assert (found in caught.value.found, versions(folder.store)) == (True, before)


@OF_DELTA
def test_collector_keeps_files_that_another_writer_made_live_again(folder: Folder) -> None:
    published_in_table(folder, 0)
    adds = [one for one in delta_actions(folder.store) if "add" in one]
    ended(folder, 0)
    put_by_another(folder.store, *adds)
    before = data_files(folder.store)
    found = find_garbage(folder.store, folder.log.read(), now() + DAY, 0)
    with pytest.raises(SnapshotsHeld):
        collect_garbage(folder, found, a_run(start=now()))
    assert data_files(folder.store) == before


@OF_DELTA
@pytest.mark.parametrize("line", [b"add", b"[1]", b'{"add": 7}', b'{"add": ' * 10**5])
def test_version_of_a_table_that_is_none_is_refused(folder: Folder, line: bytes) -> None:
    folder.store.put_if_absent(delta_key(2), line)
    for _ in range(2):
        with pytest.raises(ManifestCorrupt) as refused:
            published_in_table(folder, 0)
        assert "metadata/" not in refused.value.hint


@OF_DELTA
def test_run_stays_revoked_when_others_restore_an_older_version(folder: Folder) -> None:
    late = a_run()
    folder.revoke([late.run_id], a_run())
    put_by_another(folder.store, delta_actions(folder.store)[2])
    with pytest.raises(RunRevoked):
        published_in_table(opened(folder.store), 0, late)
