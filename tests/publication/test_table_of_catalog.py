"""An output that is a table of a catalog, beside others that write to the table, or fail."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from support.storage.faultystore import DyingStore, Killed
from support.storage.folders import (
    IDENTITY,
    MODEL,
    a_run,
    a_target,
    agrees,
    at,
    bury,
    keys,
    now,
)
from support.storage.tablefolders import (
    OF_CATALOG,
    PlainCatalogTable,
    PlainLibrary,
    catalog_key,
    is_whole,
    published_in_table,
    table_folder,
    woven,
)

from snaploom.errors import ImmutableSettingChanged, ManifestCorrupt, PublicationError, RunRevoked
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import documents, layout, outputtables
from snaploom.output.documents import COMMIT_ATTEMPTS
from snaploom.output.entries import Configure
from snaploom.output.folder import CrashPoint, Folder, FolderOwner, open_folder, prepare_folder
from snaploom.output.foldercheck import check_table
from snaploom.output.gc import Swept, collect_garbage, find_garbage, refuse_held, sweep
from snaploom.output.icebergtable import OWNER, CatalogFailed, IcebergTable, TableVersion
from snaploom.output.manifest import CommitContended, CommitOutcomeUnknown
from snaploom.output.publication import AlreadyPublished, Published
from snaploom.output.removal import remove_folder
from snaploom.output.repair import find_snapshots, restore
from snaploom.output.replacement import restate
from snaploom.output.state import FolderState, apply
from snaploom.output.tablehistory import SnapshotsHeld
from snaploom.output.tablemove import move_table

HOUR = 3600 * 1_000_000_000


@pytest.fixture
def folder(store: ObjectStore) -> Folder:
    return begun(store)


def begun(store: ObjectStore, before: Callable[[], None] = lambda: None) -> Folder:
    return table_folder(store, before, settings=OF_CATALOG)


def table(store: ObjectStore) -> TableVersion:
    version = PlainCatalogTable(store, "").read()
    assert version is not None
    return version


def others_change(store: ObjectStore, **changes: Any) -> None:
    number = len(PlainCatalogTable(store, "")._numbers())
    document = {**table(store).document, **changes}
    store.put_if_absent(catalog_key(number + 1), json.dumps(document).encode())


def compacted(store: ObjectStore, number: int) -> None:
    listed: Any = table(store).document.get("snapshots", [])
    made = {"snapshot-id": number, "parent-snapshot-id": table(store).newest, "summary": {}}
    others_change(store, snapshots=[*listed, made], **{"current-snapshot-id": number})


def test_compaction_by_others_is_kept_and_delays_nothing(store: ObjectStore) -> None:
    once = iter([7])
    folder = begun(store, lambda: [compacted(store, n) for n in once] and None)
    assert isinstance(published_in_table(folder, 0), Published)
    assert [one["snapshot-id"] for one in table(store).lineage()][1:] == [7]
    assert is_whole(store)


def test_writer_that_always_loses_gives_up_and_leaves_no_file(store, monkeypatch):
    monkeypatch.setattr(documents, "FIRST_PAUSE", 0)
    numbers = iter(range(1, 10 * COMMIT_ATTEMPTS))
    with pytest.raises(CommitContended):
        published_in_table(begun(store, lambda: compacted(store, next(numbers))), 0)
    assert keys(store) == set()


def test_history_is_whole_after_others_expired_all_but_their_own_snapshot(folder: Folder) -> None:
    store, library = folder.store, folder.library
    for number in (0, 1):
        published_in_table(folder, number)
    restate(folder, a_run(), a_target(1), woven(folder), agrees)
    compacted(store, 7)
    others_change(store, snapshots=[{"snapshot-id": 7, "summary": {}}])
    before = folder.log.read()
    store.delete([*keys(store, "metadata/"), "snaploom.json"])
    found = find_snapshots(store, OF_CATALOG, library)
    after = restore(store, OF_CATALOG, IDENTITY, MODEL, found, a_run(), library)
    assert after.live_files == before.live_files
    assert after.tombstoned_files.keys() == before.tombstoned_files.keys()


def test_revoked_run_cannot_commit_late_to_a_catalog_that_compares_the_branch(store):
    def revoked() -> None:
        rival = open_folder(store, PlainLibrary(store))
        found = find_garbage(store, rival.log.read(), EpochNanos(now() + 24 * HOUR), 0)
        collect_garbage(rival, found, a_run(start=now()))

    late = begun(store, revoked)
    with pytest.raises(RunRevoked):
        published_in_table(late, 0)
    assert table(store).newest is not None
    assert (is_whole(store), keys(store)) == (True, set())


def test_ended_snapshots_leave_the_table_before_their_files_go(folder, monkeypatch):
    monkeypatch.setattr(outputtables, "OTHERS_LISTS_MARGIN", -HOUR)
    store = folder.store
    for number in (0, 1):
        published_in_table(folder, number)
    compacted(store, 7)
    bury(folder, 0)
    done = sweep(folder, a_run(start=now()), EpochNanos(now() + 2 * HOUR))
    assert (done.snapshots, len(list(table(store).lineage()))) == (1, 1)
    assert sum(key.endswith(".avro") for key in keys(store, "iceberg/")) == 1
    assert (is_whole(store), keys(store)) == (True, set(folder.log.read().live_files))


def test_tag_of_others_holds_the_files_that_it_shows(folder: Folder) -> None:
    store = folder.store
    published_in_table(folder, 0)
    others_change(store, refs={"audit": {"snapshot-id": table(store).newest, "type": "tag"}})
    published_in_table(folder, 1)
    bury(folder, 0)
    before = keys(store)
    with pytest.raises(SnapshotsHeld, match="tags or branches"):
        sweep(folder, a_run(start=now()), EpochNanos(now() + 2 * HOUR))
    assert keys(store) == before


def test_files_that_others_rolled_the_table_back_to_stay_until_a_restatement(folder):
    store, later = folder.store, EpochNanos(now() + 48 * HOUR)
    published_in_table(folder, 0)
    first: Any = table(store).document["snapshots"]
    restate(folder, a_run(), a_target(0), woven(folder), agrees, reason="wrong")
    rolled = {"current-snapshot-id": first[0]["snapshot-id"]}
    others_change(store, files=first[0]["files"], **rolled)
    before = keys(store)
    garbage = find_garbage(store, folder.log.read(), later, 0)
    for remove in (
        lambda: refuse_held(folder, garbage, folder.log.read()),
        lambda: collect_garbage(folder, garbage, a_run(start=now())),
        lambda: sweep(folder, a_run(start=now()), later),
    ):
        with pytest.raises(SnapshotsHeld, match="shows files that are to be removed"):
            remove()
    assert keys(store) == before
    restate(folder, a_run(), a_target(0), woven(folder), agrees, reason="rolled back")
    assert sweep(folder, a_run(start=now()), later).snapshots == 2
    assert (is_whole(store), keys(store)) == (True, set(folder.log.read().live_files))


def test_look_at_garbage_finds_what_its_removal_does_and_changes_nothing(folder: Folder) -> None:
    store = folder.store
    for number in (0, 1):
        published_in_table(folder, number)
    bury(folder, 0)
    for key in (*(layout.manifest_key(seq) for seq in (2, 3, 4)), layout.LATEST):
        store.delete([key])  # as if runs had died before their entries
    before = keys(store), keys(store, "metadata/"), keys(store, "iceberg/")
    later = EpochNanos(now() + 48 * HOUR)
    looking = open_folder(store, folder.library)
    state = looking.read(writes=False)
    garbage = find_garbage(store, state, later, 0)
    refuse_held(looking, garbage, state)
    assert before == (keys(store), keys(store, "metadata/"), keys(store, "iceberg/"))
    folder = open_folder(store, folder.library)
    assert folder.read() == state
    removed = collect_garbage(folder, garbage, a_run(start=now()))
    assert [one.key for one in removed] == [one.key for one in garbage] != []
    assert (is_whole(store), keys(store)) == (True, set(state.live_files))


def test_check_with_the_catalog_finds_what_others_changed_in_the_table(folder: Folder) -> None:
    store, library = folder.store, folder.library
    for number in (0, 1):
        published_in_table(folder, number)
    state = folder.log.read()
    assert list(check_table(store, state, library)) == []
    files: Any = table(store).document["files"]
    others_change(store, files={"1": files["1"], "7": ["of others"]})
    found = [(one.snapshot, one.message) for one in check_table(store, state, library)]
    assert found == [
        (a_target(0).time, "lake.shop.wide shows 0 rows of it, and 20 were published: another "
         "writer changed the table"),
        (None, "lake.shop.wide shows 10 rows of a snapshot that is not published"),
    ]  # fmt: skip
    assert list(check_table(store, state)) == []
    PlainCatalogTable(store, "").drop()
    gone = [one.message for one in check_table(store, state, library)]
    assert gone == ["the table does not have it"] * 2


def test_table_of_another_folder_is_left_as_it_is(store: ObjectStore) -> None:
    other = {OWNER: "s3a://lake/other/"}
    store.put_if_absent(catalog_key(1), json.dumps({"properties": other}).encode())
    with pytest.raises(PublicationError, match="was not made for this output") as refused:
        prepare_folder(store, OF_CATALOG, IDENTITY, a_run(), is_repair=True,
                       library=PlainLibrary(store))  # fmt: skip
    assert refused.value.found == "s3a://lake/other/"
    assert table(store).properties == other


def test_folder_begun_without_the_catalog_keeps_its_kind_of_table(store: ObjectStore) -> None:
    table_folder(store)
    with pytest.raises(ImmutableSettingChanged) as refused:
        begun(store)
    assert "table: lake.shop.wide" in str(refused.value.found)


def test_command_without_the_catalog_reads_the_log_and_removes_nothing(folder: Folder) -> None:
    published_in_table(folder, 0)
    bury(folder, 0)
    store, reader = folder.store, open_folder(folder.store)
    assert reader.read() == folder.log.read()
    garbage = find_garbage(store, reader.log.read(), EpochNanos(now() + 24 * HOUR), 0)
    before = keys(store)
    for remove in (
        lambda: refuse_held(reader, garbage, reader.log.read()),
        lambda: collect_garbage(reader, garbage, a_run(start=now())),
    ):
        with pytest.raises(PublicationError, match="does not write to"):
            remove()
    assert keys(store) == before
    assert sweep(folder, a_run(start=now()), now()) == Swept(waiting=1)


@pytest.mark.parametrize("is_there", [True, False])
def test_commit_without_an_answer_is_looked_for(folder, monkeypatch, is_there):
    commit = PlainCatalogTable.commit

    def unanswered(self: PlainCatalogTable, *arguments: Any) -> bool:
        if is_there:
            commit(self, *arguments)
        raise CommitOutcomeUnknown("no answer")

    monkeypatch.setattr(PlainCatalogTable, "commit", unanswered)
    if is_there:
        assert isinstance(published_in_table(folder, 0), Published)
    else:
        with pytest.raises(CommitOutcomeUnknown):
            published_in_table(folder, 0)
        monkeypatch.setattr(PlainCatalogTable, "commit", commit)
        assert isinstance(published_in_table(folder, 0), Published)
    assert is_whole(folder.store)


def test_run_whose_catalog_falls_silent_after_the_commit_keeps_the_files(folder, monkeypatch):
    read, commit = PlainCatalogTable.read, PlainCatalogTable.commit

    def silent(self: PlainCatalogTable) -> TableVersion | None:
        raise CatalogFailed("no answer", found="503", expected="an answer")

    def last(self: PlainCatalogTable, *arguments: Any) -> bool:
        commit(self, *arguments)
        monkeypatch.setattr(PlainCatalogTable, "read", silent)
        return False

    monkeypatch.setattr(PlainCatalogTable, "commit", last)
    with pytest.raises(CommitOutcomeUnknown):
        published_in_table(folder, 0)
    monkeypatch.setattr(PlainCatalogTable, "read", read)
    assert isinstance(published_in_table(folder, 0), AlreadyPublished)
    assert is_whole(folder.store)


# The move of a table from the folder to the catalog.


def in_folder(store: ObjectStore, before: Callable[[], None] = lambda: None) -> Folder:
    """Three days in the folder's table: one ended, one restated; with a tag."""
    folder = table_folder(store)
    for number in (0, 1, 2):
        published_in_table(folder, number)
    bury(folder, 0)
    restate(folder, a_run(), a_target(1), woven(folder), agrees)
    versions = IcebergTable(store)
    found = versions.read()
    assert found is not None
    tagged = {**found.document, "refs": {"audit": {"snapshot-id": found.newest, "type": "tag"}}}
    versions.append(found.number + 1, json.dumps(tagged).encode())
    return table_folder(store, before)


def moved(store: ObjectStore, before: Callable[[], None] = lambda: None) -> FolderState:
    library = PlainLibrary(store, before)
    return move_table(store, OF_CATALOG, IDENTITY, a_run(), library)


def test_moved_table_is_the_same_and_later_runs_commit_to_the_catalog(store: ObjectStore) -> None:
    folder = in_folder(store)
    before, files = IcebergTable(store).read(), keys(store)
    state = folder.read()
    after = moved(store)
    assert before is not None
    kept = ("snapshots", "current-snapshot-id", "refs", "files", "uuid")
    assert [table(store).document[key] for key in kept] == [before.document[key] for key in kept]
    assert (keys(store), after.live_files) == (files, state.live_files)
    assert isinstance(published_in_table(begun(store), 3), Published)
    assert (is_whole(store), len(table(store).snapshots())) == (True, len(before.snapshots()) + 1)
    assert moved(store).seq == open_folder(store).read().seq
    PlainCatalogTable(store, "").drop()
    assert remove_folder(store, FolderOwner(IDENTITY.output), a_run()).left == ()
    assert keys(store, "") == set()


@pytest.mark.parametrize("is_done", [True, False], ids=["written", "not-written"])
def test_move_that_dies_at_any_write_is_ended_by_the_next(is_done: bool) -> None:
    for writes_left in count(1):
        store = open_store("memory:", create=True)
        live = in_folder(store).read().live_files
        try:
            moved(DyingStore(store, writes_left, is_done))
        except Killed:
            pass
        else:
            break
        assert open_folder(store).log.read().live_files == live
        assert moved(store).live_files == live
        assert isinstance(published_in_table(begun(store), 3), Published)
        assert is_whole(store)
    assert writes_left > 4


@pytest.mark.parametrize("is_done", [True, False], ids=["written", "not-written"])
def test_run_by_the_old_declaration_after_a_move_that_died_publishes_whole_or_not_at_all(
    is_done: bool,
) -> None:
    outcomes = set()
    for writes_left in count(1):
        store = open_store("memory:", create=True)
        late = in_folder(store)
        try:
            moved(DyingStore(store, writes_left, is_done))
        except Killed:
            pass
        else:
            break
        try:
            is_published = isinstance(published_in_table(late, 3), Published)
        except PublicationError:
            is_published = False
        try:
            is_moved = len(moved(store).versions) == 2 + is_published
        except PublicationError:
            PlainCatalogTable(store, "").drop()
            is_moved = False
        assert is_whole(store)
        outcomes.add((is_published, is_moved))
    assert outcomes == {(True, True), (True, False), (False, True)}


def test_run_by_the_old_declaration_that_commits_after_the_move_publishes_nothing(
    store: ObjectStore,
) -> None:
    late = in_folder(store, lambda: moved(store) and None)
    files = keys(store)
    with pytest.raises(PublicationError, match="has moved to a catalog") as refused:
        published_in_table(late, 3)
    assert "lake.shop.wide" in str(refused.value.expected)
    assert (is_whole(store), keys(store)) == (True, files)
    for write in (
        lambda: late.revoke([a_run().run_id], a_run()),
        lambda: restate(late, a_run(), a_target(1), woven(late), agrees),
        lambda: sweep(late, a_run(start=now()), EpochNanos(now() + 2 * HOUR)),
    ):
        with pytest.raises(PublicationError, match="has moved to a catalog"):
            write()
    with pytest.raises(ImmutableSettingChanged):
        table_folder(store)
    assert (is_whole(store), keys(store)) == (True, files)


def test_run_that_commits_while_the_catalog_takes_the_table_keeps_it_in_the_folder(
    store: ObjectStore,
) -> None:
    folder = in_folder(store)
    rival = iter([folder])
    with pytest.raises(PublicationError, match="is not as the one in") as refused:
        moved(store, lambda: [published_in_table(each, 3) for each in rival] and None)
    assert "DROP TABLE" in str(refused.value.hint)
    with pytest.raises(PublicationError, match="is not as the one in"):
        moved(store)
    PlainCatalogTable(store, "").drop()
    assert isinstance(published_in_table(folder, 4), Published)
    assert len(moved(store).versions) == 4
    assert is_whole(store)


def test_run_whose_commit_the_move_takes_along_is_published(store: ObjectStore) -> None:
    folder = in_folder(store)
    run = a_run(at(CrashPoint.AFTER_TABLE_COMMIT, lambda: moved(store)))
    assert isinstance(published_in_table(folder, 3, run), Published)
    assert (is_whole(store), len(open_folder(store).log.read().versions)) == (True, 3)


@pytest.mark.parametrize("days", [(), (4,)], ids=["same-version", "later-version"])
def test_two_moves_at_once_are_one(store: ObjectStore, days: tuple[int, ...]) -> None:
    folder, rivals = in_folder(store), iter([None])

    def overtaken() -> None:
        for _ in rivals:
            assert all(isinstance(published_in_table(folder, day), Published) for day in days)
            moved(store)

    after = moved(store, overtaken)
    assert after == open_folder(store).log.read()
    assert isinstance(published_in_table(begun(store), 3), Published)
    assert is_whole(store)


def test_table_that_the_catalog_has_already_is_refused_and_the_output_stays_as_it_is(
    store: ObjectStore,
) -> None:
    folder = in_folder(store)
    other = {OWNER: "s3a://lake/other/"}
    store.put_if_absent(catalog_key(1), json.dumps({"properties": other}).encode())
    with pytest.raises(PublicationError, match="was not made for this output") as refused:
        moved(store)
    assert (refused.value.found, store.uri in str(refused.value.expected)) == (other[OWNER], True)
    PlainCatalogTable(store, "").drop()
    assert isinstance(published_in_table(folder, 3), Published)


def test_move_that_was_begun_to_another_table_is_to_be_ended_first(store: ObjectStore) -> None:
    in_folder(store)
    with pytest.raises(Killed):
        moved(DyingStore(store, 5, is_done=True))
    other = OF_CATALOG.model_copy(update={"table": "lake.shop.other"})
    with pytest.raises(PublicationError, match="has begun, and not ended") as refused:
        move_table(store, other, IDENTITY, a_run(), PlainLibrary(store))
    assert (refused.value.found, refused.value.expected) == ("lake.shop.other", "lake.shop.wide")


def test_lost_manifest_is_written_again_from_before_and_after_the_move(store: ObjectStore) -> None:
    in_folder(store)
    moved(store)
    folder = begun(store)
    published_in_table(folder, 3)
    bury(folder, 2)
    before, library = folder.log.read(), folder.library
    store.delete([*keys(store, "metadata/"), "snaploom.json"])
    found = find_snapshots(store, OF_CATALOG, library)
    after = restore(store, OF_CATALOG, IDENTITY, MODEL, found, a_run(), library)
    assert after.live_files == before.live_files
    assert after.tombstoned_files.keys() == before.tombstoned_files.keys()


def test_snapshots_from_before_the_move_leave_the_table_of_the_catalog(
    store: ObjectStore,
) -> None:
    in_folder(store)
    moved(store)
    others_change(store, refs={})
    folder = begun(store)
    assert sweep(folder, a_run(start=now()), EpochNanos(now() + 2 * HOUR)).snapshots == 2
    assert (is_whole(store), keys(store)) == (True, set(folder.log.read().live_files))


def test_table_in_a_catalog_does_not_move_on_or_back(store: ObjectStore) -> None:
    in_folder(store)
    state = moved(store)
    other = OF_CATALOG.model_copy(update={"table": "lake.shop.other"})
    with pytest.raises(ImmutableSettingChanged):
        move_table(store, other, IDENTITY, a_run(), PlainLibrary(store))
    assert state.settings is not None
    back = state.settings.model_copy(update={"table": None})
    entry = Configure(**a_run().head(state), settings=back, identity=IDENTITY)
    with pytest.raises(ManifestCorrupt, match="is damaged"):
        apply(state, entry)
