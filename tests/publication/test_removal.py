"""Removal of whole folders: complete, resumable, and safe from concurrent runs."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.storage.faultystore import DyingStore, FaultyStore, Killed
from support.storage.folders import (
    DAY,
    IDENTITY,
    SETTINGS,
    a_folder,
    a_run,
    at,
    files_on_disk,
    now,
    published,
    replaced,
)

from snaploom import errors
from snaploom.files.objectstore import TEMPORARY_PREFIX, ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import layout
from snaploom.output.checkpoints import CHECKPOINT_EVERY
from snaploom.output.entries import Claim
from snaploom.output.folder import CrashPoint, FolderOwner, inspect_folder, open_folder
from snaploom.output.gc import collect_garbage, find_garbage
from snaploom.output.publication import Published
from snaploom.output.removal import Removal, remove_folder

OUTPUT = FolderOwner(IDENTITY.output)
FOREIGN = {"data/day=0/notes.txt": b"mine", "README": b"mine too"}
BEFORE_COMMIT = [
    CrashPoint.BEFORE_STAGING,
    CrashPoint.AFTER_STAGING,
    CrashPoint.DURING_PROMOTION,
    CrashPoint.AFTER_PROMOTION,
]

points = st.sampled_from(BEFORE_COMMIT)

RUN_ID = a_run().run_id


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return open_store("memory:" if request.param == "memory" else str(tmp_path), create=True)


def everything(store: ObjectStore) -> set[str]:
    return {info.key for info in store.list("")}


def remove(store: ObjectStore, owner: FolderOwner = OUTPUT) -> Removal:
    return remove_folder(store, owner, a_run())


def dying_at(point: CrashPoint) -> Callable[[CrashPoint], None]:
    def reached(here: CrashPoint) -> None:
        if here is point:
            raise Killed

    return reached


def leave_files(store: ObjectStore, point: CrashPoint, number: int = 2) -> None:
    """A run that is killed while it publishes."""
    faulty = FaultyStore(store)

    def die(here: CrashPoint) -> None:
        if here is point:
            faulty.is_dead = True
            raise Killed

    with pytest.raises(Killed):
        published(open_folder(faulty), number, a_run(die))


def rich_folder(store: ObjectStore) -> None:
    """Live, replaced and deleted snapshots, and what killed runs left."""
    folder = a_folder(store)
    for number in range(2):
        published(folder, number)
    replaced(folder, 1)
    for point in BEFORE_COMMIT:
        leave_files(store, point)
    store.put(f"{TEMPORARY_PREFIX}0123", b"half")


def many_entries(store: ObjectStore) -> None:
    log = a_folder(store).log
    for _ in range(2 * CHECKPOINT_EVERY):
        log.commit(
            lambda state: Claim(
                seq=state.next_seq, run_id=RUN_ID, written_at=EpochNanos(0), tool_version="0",
                scope="s", seconds=1,
            )
        )  # fmt: skip


def test_everything_of_ours_goes_and_nothing_else(store: ObjectStore) -> None:
    rich_folder(store)
    for key, content in FOREIGN.items():
        store.put(key, content)
    ours = everything(store) - set(FOREIGN)
    removal = remove(store)
    assert everything(store) == set(FOREIGN)
    assert set(removal.left) == set(FOREIGN)
    # The entries that end everything and the notice are removed as well.
    assert removal.files >= len(ours)
    assert removal.bytes > 0


def test_local_folder_is_left_without_directories(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), create=True)
    rich_folder(store)
    remove(store)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("times", [1, 2])
def test_folder_that_is_empty_or_gone_is_removed_already(store: ObjectStore, times: int) -> None:
    for _ in range(times):
        assert remove(store) == Removal()
    assert everything(store) == set()


def test_folder_of_somebody_else_is_left_as_it_is(store: ObjectStore) -> None:
    store.put("data/day=0/part.parquet", b"mine")
    assert remove(store) == Removal(left=("data/day=0/part.parquet",))
    assert everything(store) == {"data/day=0/part.parquet"}


def test_folder_that_lost_its_marker_is_refused_and_untouched(store: ObjectStore) -> None:
    published(a_folder(store))
    store.delete([layout.MARKER])
    before = everything(store)
    with pytest.raises(errors.FolderNotOurs):
        remove(store)
    assert everything(store) == before


def test_folder_of_another_output_is_refused_and_untouched(store: ObjectStore) -> None:
    published(a_folder(store))
    before = everything(store)
    with pytest.raises(errors.FolderNotOurs, match="another output"):
        remove(store, FolderOwner("somebody-else"))
    assert everything(store) == before


def test_removal_that_was_begun_for_another_output_is_refused(store: ObjectStore) -> None:
    published(a_folder(store))
    with pytest.raises(Killed):
        remove_folder(store, OUTPUT, a_run(dying_at(CrashPoint.REMOVAL_BEGUN)))
    with pytest.raises(errors.FolderNotOurs, match="another output"):
        remove(store, FolderOwner("somebody-else"))


def test_folder_with_a_damaged_log_is_refused_and_untouched(store: ObjectStore) -> None:
    published(a_folder(store))
    store.put(layout.manifest_key(1), b"{}")
    before = everything(store)
    with pytest.raises(errors.ManifestCorrupt):
        remove(store)
    assert everything(store) == before


def test_folder_that_was_only_marked_is_removed(store: ObjectStore) -> None:
    with pytest.raises(Killed):
        a_folder(store, a_run(dying_at(CrashPoint.AFTER_MARKER)))
    remove(store)
    assert everything(store) == set()


@pytest.mark.parametrize("build", [rich_folder, many_entries], ids=["rich", "checkpoints"])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_removal_that_dies_at_any_write_is_finished_by_the_next(is_done, build):
    writes_left = 0
    is_dead = True
    while is_dead:
        writes_left += 1 if build is rich_folder else 7
        store = open_store("memory:", create=True)
        build(store)
        store.put("README", b"mine")
        dying = DyingStore(store, writes_left, is_done)
        try:
            remove_folder(dying, OUTPUT, a_run())
        except Killed:
            assert remove(store).left == ("README",)
        is_dead = dying.is_dead
        assert everything(store) == {"README"}
    assert writes_left > 20


@settings(deadline=None, max_examples=60)
@given(
    point=points,
    late=st.sampled_from(["same", "new"]),
    deaths=st.lists(st.integers(1, 25), max_size=2),
    is_begun_anew=st.booleans(),
    number=st.integers(0, 2),
)
def test_run_that_wakes_up_after_the_removal_publishes_nothing(
    point: CrashPoint, late: str, deaths: list[int], is_begun_anew: bool, number: int
) -> None:
    """`late`: whether the run's snapshot was live before, so that it replaces it, or not."""
    store = open_store("memory:", create=True)
    published(a_folder(store), number if late == "same" else 3)
    waiting = [point]

    def sleep(reached: CrashPoint) -> None:
        if waiting != [reached]:
            return
        waiting.clear()
        for writes in deaths:
            try:
                remove_folder(DyingStore(store, writes, True), OUTPUT, a_run())
            except Killed:
                continue
        remove(store)
        if is_begun_anew:
            published(a_folder(store), 3)

    folder = open_folder(store)
    act = replaced if late == "same" else published
    with pytest.raises((errors.RunRevoked, errors.FolderRemoved, errors.ObjectNotFound)):
        act(folder, number, a_run(sleep))
    if is_begun_anew:
        state = open_folder(store).log.read()
        assert len(state.live) == 1
        assert state.live_files <= everything(store)
        assert all(not key.startswith(layout.STAGING) for key in everything(store))
    else:
        documents = (layout.SCHEMAS, layout.DATA_MODELS)
        assert all(key.startswith(documents) for key in everything(store))


@pytest.mark.parametrize("point", [CrashPoint.REMOVAL_BEGUN, CrashPoint.AFTER_REVOCATION])
def test_no_run_begins_in_a_folder_that_is_being_removed(store, point):
    published(a_folder(store))
    with pytest.raises(Killed):
        remove_folder(store, OUTPUT, a_run(dying_at(point)))
    with pytest.raises(errors.FolderRemoved, match="is being removed"):
        inspect_folder(store, SETTINGS, IDENTITY)
    with pytest.raises(errors.FolderRemoved):
        a_folder(store)
    remove(store)
    assert isinstance(published(a_folder(store)), Published)


def test_run_that_was_about_to_begin_the_folder_begins_nothing(store: ObjectStore) -> None:
    with pytest.raises(errors.FolderRemoved):
        a_folder(store, a_run(at(CrashPoint.AFTER_MARKER, lambda: remove(store))))
    assert everything(store) == set()


def test_collector_that_wakes_up_late_revokes_nothing(store: ObjectStore) -> None:
    folder = a_folder(store)
    leave_files(store, CrashPoint.AFTER_PROMOTION)
    garbage = find_garbage(store, folder.log.read(), EpochNanos(now() + DAY), 0)
    remove(store)
    with pytest.raises(errors.FolderRemoved):
        collect_garbage(folder, garbage, a_run())
    assert everything(store) == set()


def test_files_that_a_run_puts_while_the_log_goes_are_removed_too(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), create=True)
    published(a_folder(store))
    late = f"data/day=1/{a_run().run_id}-0123abcd-00000.parquet"

    def put_late(reached: CrashPoint) -> None:
        is_log_going = (tmp_path / layout.manifest_key(1)).exists() is False
        if reached is CrashPoint.DURING_DELETION and is_log_going and not waiting:
            waiting.append(late)
            store.put(late, b"late")

    waiting: list[str] = []
    remove_folder(store, OUTPUT, a_run(put_late))
    assert waiting == [late]
    assert files_on_disk(tmp_path) == set()


@settings(deadline=None, max_examples=60)
@given(number=st.integers(0, 40), files=st.integers(0, 3))
def test_removal_that_resumes_late_does_not_change_the_next_folder(number: int, files: int) -> None:
    store = open_store("memory:", create=True)
    folder = a_folder(store)
    published(folder, 0)
    published(folder, 1)
    steps = [number]

    def sleep(_reached: CrashPoint) -> None:
        steps[0] -= 1
        if steps[0] != 0:
            return
        remove(store)
        for snapshot in range(4):
            published(a_folder(store), snapshot, files=files)

    with suppress(errors.FolderRemoved):
        remove_folder(store, OUTPUT, a_run(sleep))
    if steps[0] <= 0 < number:
        state = inspect_folder(store, SETTINGS, IDENTITY)
        assert len(state.live) == 4
        assert state.live_files <= everything(store)
    else:
        assert everything(store) == set()


def test_removal_with_a_late_notice_does_not_change_the_next_folder() -> None:
    store = open_store("memory:", create=True)
    published(a_folder(store))
    faulty = FaultyStore(store)
    waiting = [layout.REMOVAL]

    def sleep(operation: str, key: str) -> None:
        if operation == "put_if_absent" and [key] == waiting:
            waiting.clear()
            remove(store)
            published(a_folder(store), 1)

    faulty.faults = sleep
    with pytest.raises(errors.FolderRemoved, match="by another run"):
        remove_folder(faulty, OUTPUT, a_run())
    state = inspect_folder(store, SETTINGS, IDENTITY)
    assert len(state.live) == 1
    assert state.live_files <= everything(store)
