"""The contract of index stores, over folders of several object stores."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore
from support.skipping.indexstores import (
    NOW,
    URI,
    committed,
    contents,
    definition,
    full_definition,
    remove,
    table,
    write,
)

from snaploom.errors import IndexNotFound
from snaploom.files.cloud import ObstoreObjectStore
from snaploom.files.local import LocalObjectStore
from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.stores.folder import FolderIndexStore
from snaploom.skipping.stores.port import NOTHING, IndexStore, Segment, StoredState, target_key

Opener = Callable[[], IndexStore]
Fresh = Callable[[], Opener]

FAR_FUTURE = EpochNanos(2**62)


@pytest.fixture
def index_store(fresh: Fresh) -> IndexStore:
    return fresh()()


def test_place_without_index_reads_as_nothing(index_store: IndexStore) -> None:
    assert index_store.read() == NOTHING
    assert not index_store.read().exists


@pytest.mark.parametrize("declared", [definition(), full_definition()])
def test_state_is_read_back_as_committed(fresh: Fresh, declared: SkippingDefinition) -> None:
    opener = fresh()
    state = StoredState(
        version=0,
        phase=IndexState.FAILED,
        definition=declared,
        segments=(Segment("s1", 3, 5, removed=True), Segment("s2", 1, 2, False, ("i1",), True)),
        committed_at=EpochNanos(NOW + 1),
        refreshed_at=EpochNanos(NOW + 2),
        checked_at=EpochNanos(NOW + 3),
        next_index=9,
        operation="op",
        heartbeat_at=NOW,
        message="why: \U0001f600",
        trusted=False,
    )
    opener().commit(lambda before: state)
    assert opener().read() == replace(state, version=1)


def test_commit_that_builds_nothing_changes_nothing(index_store: IndexStore) -> None:
    before = committed(index_store)
    assert index_store.commit(lambda state: None) == before == index_store.read()


def test_commit_whose_build_raises_changes_nothing(index_store: IndexStore) -> None:
    before = committed(index_store)

    def build(state: StoredState) -> StoredState:
        raise IndexNotFound("no")

    with pytest.raises(IndexNotFound):
        index_store.commit(build)
    assert index_store.read() == before


def test_commit_is_rebased_on_what_another_one_did(fresh: Fresh) -> None:
    opener = fresh()
    first, second = opener(), opener()
    committed(first, *write(first, {"a": (1, 1)}))
    second.read()
    committed(first, *write(first, {"b": (1, 2)}))
    state = committed(second, *write(second, {"c": (1, 3)}))
    assert contents(first.open(state)) == {"a": (1, 1), "b": (1, 2), "c": (1, 3)}


def test_eight_threads_commit_and_no_update_is_lost(fresh: Fresh) -> None:
    opener = fresh()

    def work(number: int) -> None:
        store = opener()
        for turn in range(4):
            store.commit(lambda s: replace(s, definition=definition(), message=f"{s.message}x"))
            committed(store, *write(store, {f"f{number}-{turn}": (1, number)}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    state = opener().read()
    assert state.message == "x" * 32
    assert len(contents(opener().open(state))) == 32


def test_rows_are_read_back_as_written(fresh: Fresh) -> None:
    opener = fresh()
    rows = {"b": (2, 20), "a": (1, 10), "ü/x y%20": (3, None)}
    store = opener()
    state = committed(store, *write(store, rows))
    files = opener().open(state)
    assert contents(files) == rows
    assert sorted(files.column("i1.values").to_pylist()) == [0, 10, 10]
    assert files.column("etag").null_count == 3


def test_state_without_rows_opens_empty(index_store: IndexStore) -> None:
    assert contents(index_store.open(committed(index_store))) == {}


def test_no_rows_make_no_segment(index_store: IndexStore) -> None:
    assert index_store.write_rows([], definition()) == []


def test_rows_that_are_not_committed_are_not_seen(index_store: IndexStore) -> None:
    state = committed(index_store, *write(index_store, {"a": (1, 1)}))
    write(index_store, {"a": (2, 2), "b": (2, 2)})
    assert contents(index_store.open(state)) == {"a": (1, 1)}
    assert index_store.read() == state


def test_later_row_hides_the_earlier_one(index_store: IndexStore) -> None:
    committed(index_store, *write(index_store, {"a": (1, 1), "b": (1, 2)}))
    state = committed(index_store, *write(index_store, {"a": (2, 3)}))
    assert contents(index_store.open(state)) == {"a": (2, 3), "b": (1, 2)}


def test_removed_file_has_no_row_until_it_is_written_again(index_store: IndexStore) -> None:
    committed(index_store, *write(index_store, {"a": (1, 1), "b": (1, 2)}))
    state = committed(index_store, remove(index_store, "a", "unheard-of"))
    assert contents(index_store.open(state)) == {"b": (1, 2)}
    state = committed(index_store, *write(index_store, {"a": (5, 5)}))
    assert contents(index_store.open(state)) == {"a": (5, 5), "b": (1, 2)}


def merged(store: IndexStore, rows: dict[str, tuple[int, int | None]]) -> StoredState:
    segments = [replace(segment, merges=True) for segment in write(store, rows, "i2")]
    return committed(store, *segments, index_ids=("i1", "i2"))


def test_added_index_completes_rows_of_the_same_identity(index_store: IndexStore) -> None:
    committed(index_store, *write(index_store, {"a": (1, 1), "b": (1, 2), "c": (1, 3)}))
    state = merged(index_store, {"a": (1, 7), "b": (2, 8), "new": (1, 9)})
    found = contents(index_store.open(state), "i1", "i2")
    assert found == {"a": (1, 1, 7), "b": (1, 2, None), "c": (1, 3, None)}


def test_row_after_a_completion_knows_nothing_of_it(index_store: IndexStore) -> None:
    committed(index_store, *write(index_store, {"a": (1, 1), "b": (1, 2)}))
    merged(index_store, {"a": (1, 7), "b": (1, 8)})
    state = committed(index_store, *write(index_store, {"a": (1, 5)}))
    found = contents(index_store.open(state), "i1", "i2")
    assert found == {"a": (1, 5, None), "b": (1, 2, 8)}


def test_index_that_was_declared_and_never_built_is_unknown(index_store: IndexStore) -> None:
    state = committed(index_store, *write(index_store, {"a": (1, 1)}), index_ids=("i1", "i9"))
    files = index_store.open(state)
    assert files.column("i9.values").to_pylist() == [None]
    assert contents(files, "i1", "i9") == {"a": (1, 1, None)}


def test_dropped_index_leaves_the_others(index_store: IndexStore) -> None:
    committed(index_store, *write(index_store, {"a": (1, 1)}))
    merged(index_store, {"a": (1, 7)})
    state = committed(index_store, index_ids=("i2",))
    assert contents(index_store.open(state), "i2") == {"a": (1, 7)}


def test_compaction_changes_no_row(index_store: IndexStore) -> None:
    for turn in range(6):
        committed(index_store, *write(index_store, {"a": (turn, turn), f"f{turn}": (1, turn)}))
    committed(index_store, remove(index_store, "f2"))
    state = merged(index_store, {"a": (5, 50), "f3": (1, 30)})
    before = contents(index_store.open(state), "i1", "i2")
    after = replace(state, segments=index_store.compact(state))
    assert len(after.segments) <= len(state.segments)
    assert contents(index_store.open(after), "i1", "i2") == before
    assert index_store.read() == state


def test_sweep_removes_only_what_no_state_needs(fresh: Fresh) -> None:
    opener = fresh()
    store = opener()
    old = committed(store, *write(store, {"a": (1, 1)}))
    write(store, {"lost": (1, 1)})
    new = store.commit(lambda state: replace(state, segments=tuple(write(store, {"b": (1, 2)}))))
    assert store.sweep(old, EpochNanos(0)) == (0, 0)
    assert contents(opener().open(old)) == {"a": (1, 1)}
    store.sweep(new, FAR_FUTURE)
    assert contents(opener().open(opener().read())) == {"b": (1, 2)}


def test_destroyed_index_keeps_its_number(fresh: Fresh) -> None:
    opener = fresh()
    store = opener()
    for turn in range(8):
        state = committed(store, *write(store, {"a": (turn, 1)}))
    store.destroy()
    assert opener().read() == state
    gone = store.commit(lambda before: StoredState(version=before.version))
    assert opener().read() == gone
    assert gone.version == state.version + 1


@dataclass
class Model:
    """The rows as a dictionary: for each file, modification time and value of each index."""

    rows: dict[str, tuple[int, dict[str, int | None]]] = field(default_factory=dict)

    def write(self, rows: dict[str, tuple[int, int | None]]) -> None:
        self.rows |= {name: (modified, {"i1": value}) for name, (modified, value) in rows.items()}

    def merge(self, rows: dict[str, tuple[int, int | None]]) -> None:
        for name, (modified, value) in rows.items():
            if name in self.rows and self.rows[name][0] == modified:
                self.rows[name][1]["i2"] = value

    def remove(self, names: list[str]) -> None:
        for name in names:
            self.rows.pop(name, None)

    def contents(self) -> dict[str, tuple[object, ...]]:
        return {
            name: (modified, values.get("i1"), values.get("i2"))
            for name, (modified, values) in self.rows.items()
        }


NAMES = st.sampled_from([f"f{number}" for number in range(8)])
ROWS = st.dictionaries(
    NAMES, st.tuples(st.integers(1, 2), st.none() | st.integers(0, 99)), min_size=1
)
STEPS = st.one_of(
    st.tuples(st.just("write"), ROWS),
    st.tuples(st.just("merge"), ROWS),
    st.tuples(st.just("remove"), st.lists(NAMES, min_size=1, unique=True)),
    st.tuples(st.sampled_from(["compact", "sweep", "reopen"]), st.none()),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, max_size=10))
def test_any_history_gives_the_rows_of_the_model(fresh, steps):
    opener = fresh()
    store, model = opener(), Model()
    committed(store, index_ids=("i1", "i2"))
    for step in steps:
        store = follow(step, store, opener, model)
    assert contents(opener().open(opener().read()), "i1", "i2") == model.contents()


def follow(step: tuple[str, object], store: IndexStore, opener: Opener, model: Model) -> IndexStore:
    match step:
        case ("write", dict(rows)):
            committed(store, *store.write_rows([table(rows)], definition("i1", "i2")))
            model.write(rows)
        case ("merge", dict(rows)):
            merged(store, rows)
            model.merge(rows)
        case ("remove", list(names)):
            committed(store, remove(store, *names))
            model.remove(names)
        case ("compact", _):
            segments = store.compact(store.read())
            store.commit(lambda state: replace(state, segments=segments))
        case ("sweep", _):
            store.sweep(store.read(), FAR_FUTURE)
        case _:
            return opener()
    return store


@pytest.fixture(params=["local", "memory"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    numbers = itertools.count()

    def make() -> Opener:
        folder = f"{target_key(URI)}/"
        if request.param == "local":
            root = tmp_path / str(next(numbers))
            return lambda: FolderIndexStore(LocalObjectStore(root, create=True), folder)
        memory = MemoryStore()
        return lambda: FolderIndexStore(ObstoreObjectStore(memory, "memory:///"), folder)

    return make
