"""What goes wrong in folders: answers that are lost, damage, newer versions, late writers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore
from support.runner.quick import examples
from support.skipping.indexstores import (
    DEADLINE,
    SPAWN,
    commit_many,
    committed,
    contents,
    definition,
    write,
)
from support.storage.faultystore import Fault, FaultyStore, times

from snaploom.errors import FolderNotWritable, IndexUnreadable, StorageError
from snaploom.files.cloud import ObstoreObjectStore
from snaploom.files.local import LocalObjectStore
from snaploom.skipping.stores.folder import FolderIndexStore
from snaploom.skipping.stores.port import PRUNED, IndexCommitUnknown, StoredState


@pytest.fixture
def objects() -> FaultyStore:
    return FaultyStore(ObstoreObjectStore(MemoryStore(), "memory:///"))


def state_key(number: int) -> str:
    return f"manifest/{number:020d}.json"


def count_up(store: FolderIndexStore) -> StoredState:
    return store.commit(lambda state: replace(state, message=f"{state.message}x"))


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST])
@pytest.mark.parametrize("count", [1, 3])
def test_commit_whose_answer_is_lost_happens_once(objects, fault, count):
    store = FolderIndexStore(objects)
    count_up(store)
    objects.faults = times(count, fault, "put_if_absent", "manifest/")
    count_up(store)
    assert FolderIndexStore(objects).read().message == "xx"


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST])
def test_segment_whose_answer_is_lost_is_written(objects: FaultyStore, fault: Fault) -> None:
    store = FolderIndexStore(objects)
    objects.faults = times(2, fault, "put_if_absent", "segments/")
    state = committed(store, *write(store, {"a": (1, 1)}))
    assert contents(store.open(state)) == {"a": (1, 1)}


def test_commit_without_any_answer_raises_its_own_error(objects: FaultyStore) -> None:
    objects.faults = times(99, Fault.REQUEST_LOST, "put_if_absent", "manifest/")
    with pytest.raises(IndexCommitUnknown):
        count_up(FolderIndexStore(objects))


def test_commit_that_is_refused_is_not_tried_again(objects: FaultyStore) -> None:
    objects.faults = times(99, Fault.REFUSED, "put_if_absent", "manifest/")
    with pytest.raises(FolderNotWritable):
        count_up(FolderIndexStore(objects))
    objects.faults = lambda operation, key: None
    assert FolderIndexStore(objects).read().version == 0


def test_read_without_hint_finds_the_newest_state(objects: FaultyStore) -> None:
    objects.faults = times(99, Fault.REFUSED, "put", "_latest")
    store = FolderIndexStore(objects)
    for _ in range(9):
        newest = count_up(store)
    assert FolderIndexStore(objects).read() == newest


@pytest.mark.parametrize("hint", [b"", b"{}", b'{"version":"x"}', b'{"version":2}', b"\xff"])
def test_hint_is_always_verified(objects: FaultyStore, hint: bytes) -> None:
    store = FolderIndexStore(objects)
    for _ in range(4):
        newest = count_up(store)
    objects.put("_latest", hint)
    assert FolderIndexStore(objects).read() == newest


def test_state_that_the_hint_knows_and_is_lost_is_damage(objects: FaultyStore) -> None:
    store = FolderIndexStore(objects)
    for _ in range(3):
        count_up(store)
    objects.delete([state_key(3)])
    with pytest.raises(IndexUnreadable, match="damaged"):
        FolderIndexStore(objects).read()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", "damaged"),
        (b'{"format":1,"commit":"x","sta', "damaged"),
        (b'{"format":1,"commit":"x","state":{"version":1}}', "damaged"),
        (b'{"format":3,"commit":"x","state":{"version":2,"novelty":1}}', "newer Snaploom"),
        (b"[]", "damaged"),
        (PRUNED, "damaged"),
    ],
)
def test_newest_state_that_is_damaged_or_newer_is_refused(objects, document, message):
    store = FolderIndexStore(objects)
    count_up(store)
    objects.put(state_key(2), document)
    with pytest.raises(IndexUnreadable, match=message):
        store.read()
    with pytest.raises(IndexUnreadable, match=message):
        FolderIndexStore(objects).read()


def test_state_under_a_wrong_number_is_damage(objects: FaultyStore) -> None:
    count_up(FolderIndexStore(objects))
    objects.put(state_key(2), objects.get(state_key(1)))
    with pytest.raises(IndexUnreadable, match="damaged"):
        FolderIndexStore(objects).read()


def test_writer_that_slept_over_pruned_states_does_not_win_an_old_number(objects):
    sleeper, awake = FolderIndexStore(objects), FolderIndexStore(objects)
    count_up(sleeper)
    for _ in range(20):
        count_up(awake)
    awake.sweep(awake.read(), awake.read().committed_at)
    assert objects.get(state_key(2)) == PRUNED
    count_up(sleeper)
    assert FolderIndexStore(objects).read().message == "x" * 22


def a_segment(objects: FaultyStore) -> tuple[FolderIndexStore, StoredState, str]:
    store = FolderIndexStore(objects)
    state = committed(store, *write(store, {"a": (1, 1), "b": (2, 2)}))
    return store, state, f"segments/{state.segments[0].name}"


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_half_written_segment_is_refused(objects: FaultyStore, kept: int) -> None:
    store, state, key = a_segment(objects)
    objects.put(key, objects.get(key)[:kept])
    with pytest.raises(IndexUnreadable, match="damaged"):
        store.open(state)


def test_segment_that_is_missing_is_refused(objects: FaultyStore) -> None:
    store, state, key = a_segment(objects)
    objects.delete([key])
    with pytest.raises(IndexUnreadable, match="missing"):
        store.open(state)


def test_segment_with_other_rows_is_refused(objects: FaultyStore) -> None:
    store, state, key = a_segment(objects)
    (other,) = write(store, {"a": (1, 1)})
    objects.put(key, objects.get(f"segments/{other.name}"))
    with pytest.raises(IndexUnreadable, match="damaged"):
        store.open(state)


def test_store_that_does_not_answer_is_no_damage(objects: FaultyStore) -> None:
    objects.faults = times(9, Fault.REQUEST_LOST, "get", "")
    with pytest.raises(StorageError):
        FolderIndexStore(objects).read()


FAULTS = st.lists(st.sampled_from([None, None, *Fault]), max_size=40)


@settings(max_examples=examples(60), deadline=None)
@given(faults=FAULTS, writers=st.lists(st.integers(0, 2), max_size=10))
def test_commits_that_were_answered_are_there_exactly_once(faults, writers):
    objects = FaultyStore(ObstoreObjectStore(MemoryStore(), "memory:///"))
    waiting = list(faults)
    objects.faults = lambda operation, key: waiting.pop() if waiting else None
    stores = [FolderIndexStore(objects) for _ in range(3)]
    certain, doubtful = [], []
    for number, writer in enumerate(writers):
        try:
            stores[writer].commit(
                lambda state, n=number: replace(  # type: ignore[misc]
                    state, definition=definition(), message=f"{state.message}{n},"
                )
            )
            certain.append(number)
        except IndexCommitUnknown:
            doubtful.append(number)
        except (StorageError, FolderNotWritable):
            pass
    waiting.clear()
    found = [int(n) for n in FolderIndexStore(objects).read().message.split(",") if n]
    assert [number for number in found if number not in doubtful] == certain


@pytest.mark.slow
def test_four_processes_commit_and_no_update_is_lost(tmp_path: Path) -> None:
    processes = [SPAWN.Process(target=commit_many, args=(tmp_path, n, 6)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(DEADLINE)
    assert [process.exitcode for process in processes] == [0] * 4
    store = FolderIndexStore(LocalObjectStore(tmp_path, create=False))
    state = store.read()
    assert state.version == 24
    assert contents(store.open(state)) == {
        f"{number}-{turn}": (number, turn) for number in range(4) for turn in range(6)
    }


def test_state_document_is_canonical_json(objects: FaultyStore) -> None:
    count_up(FolderIndexStore(objects))
    document = objects.get(state_key(1))
    raw = json.loads(document)
    assert raw["format"] == 2
    assert document == json.dumps(raw, sort_keys=True, separators=(",", ":")).encode() + b"\n"
