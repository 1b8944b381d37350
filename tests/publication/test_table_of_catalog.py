"""An output that is a table of a catalog, beside others that write to the table, or fail."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.storage.folders import (
    IDENTITY,
    MODEL,
    a_run,
    a_target,
    agrees,
    bury,
    keys,
    now,
)
from support.storage.tablefolders import (
    OF_CATALOG,
    PlainCatalogTable,
    PlainLibrary,
    is_whole,
    published_in_table,
    table_folder,
    woven,
)

from snaploom.errors import ImmutableSettingChanged, PublicationError, RunRevoked
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.output import documents, layout, outputtables
from snaploom.output.documents import COMMIT_ATTEMPTS
from snaploom.output.folder import Folder, open_folder, prepare_folder
from snaploom.output.foldercheck import check_table
from snaploom.output.gc import Swept, collect_garbage, find_garbage, refuse_held, sweep
from snaploom.output.icebergtable import OWNER, CatalogFailed, TableVersion, version_key
from snaploom.output.manifest import CommitContended, CommitOutcomeUnknown
from snaploom.output.publication import AlreadyPublished, Published
from snaploom.output.repair import find_snapshots, restore
from snaploom.output.replacement import restate
from snaploom.output.tablehistory import SnapshotsHeld

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
    store.put_if_absent(version_key(number + 1), json.dumps(document).encode())


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


def test_writer_that_always_loses_gives_up_and_leaves_no_file(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_revoked_run_cannot_commit_late_to_a_catalog_that_compares_the_branch(
    store: ObjectStore,
) -> None:
    def revoked() -> None:
        rival = open_folder(store, PlainLibrary(store))
        found = find_garbage(store, rival.log.read(), EpochNanos(now() + 24 * HOUR), 0)
        collect_garbage(rival, found, a_run(start=now()))

    late = begun(store, revoked)
    with pytest.raises(RunRevoked):
        published_in_table(late, 0)
    assert table(store).newest is not None
    assert (is_whole(store), keys(store)) == (True, set())


def test_ended_snapshots_leave_the_table_before_their_files_go(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_files_that_others_rolled_the_table_back_to_stay_until_a_restatement(
    folder: Folder,
) -> None:
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
    store.put_if_absent(version_key(1), json.dumps({"properties": other}).encode())
    with pytest.raises(PublicationError, match="was not made for this output") as refused:
        prepare_folder(store, OF_CATALOG, IDENTITY, a_run(), is_repair=True,
                       library=PlainLibrary(store))  # fmt: skip
    assert refused.value.found == "s3a://lake/other/"
    assert table(store).properties == other


def test_table_that_is_gone_is_not_made_anew_without_its_snapshots(folder: Folder) -> None:
    published_in_table(folder, 0)
    PlainCatalogTable(folder.store, "").drop()
    with pytest.raises(PublicationError, match="gone from its catalog"):
        begun(folder.store)


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
def test_commit_without_an_answer_is_looked_for(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
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


def test_run_whose_catalog_falls_silent_after_the_commit_keeps_the_files(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
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
