"""One contract for every store behind the port."""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from support.s3servers import BUCKET, S3Server, environment_of

from snaploom.errors import ObjectAlreadyExists, ObjectNotFound, StoreNotSafe
from snaploom.storage.local import LocalObjectStore
from snaploom.storage.objectstore import TEMPORARY_PREFIX, ObjectStore, self_test
from snaploom.storage.obstore_adapter import ObstoreObjectStore
from snaploom.storage.stores import open_store

AWKWARD_KEYS = [
    "t=2020-01-01T00%3A00%3A00Z/f.parquet",
    "t=2020-01-01T11:00:00+11:00/f",
    "with space/a%20b",
    "größe=ü/日本",
    "a/b/c/d/e/f",
    "brackets[1]/{x}",
    "half.dot/.hidden",
    "name#1",
]


@pytest.fixture(params=["local", "memory", "versitygw", "moto"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    if request.param == "local":
        yield LocalObjectStore(tmp_path, create=True)
    elif request.param == "memory":
        yield open_store("memory:", create=True)
    else:
        server: S3Server = request.getfixturevalue(request.param)
        with environment_of(server):
            # A folder of its own, with what URIs are taken literally for.
            yield open_store(f"s3://{BUCKET}/{secrets.token_hex(8)} %3A/", create=True)


def keys(store: ObjectStore, prefix: str = "") -> set[str]:
    return {info.key for info in store.list(prefix)}


def test_object_is_read_back_as_written(store: ObjectStore) -> None:
    store.put_if_absent("a/b", b"\0content")
    assert store.get("a/b") == b"\0content"


def test_second_put_if_absent_is_refused_and_changes_nothing(store: ObjectStore) -> None:
    store.put_if_absent("a", b"1")
    with pytest.raises(ObjectAlreadyExists):
        store.put_if_absent("a", b"2")
    assert store.get("a") == b"1"


def test_put_replaces(store: ObjectStore) -> None:
    store.put("a", b"1")
    store.put("a", b"22")
    assert store.get("a") == b"22"


@pytest.mark.parametrize("key", ["absent", "file/below", "folder"])
def test_what_is_no_object_is_not_found(store: ObjectStore, key: str) -> None:
    store.put("file", b"")
    store.put("folder/member", b"")
    assert store.head(key) is None
    with pytest.raises(ObjectNotFound):
        store.get(key)


def test_head_tells_size_and_a_plausible_time(store: ObjectStore) -> None:
    store.put("a", b"123")
    info = store.head("a")
    assert info is not None
    assert (info.key, info.size) == ("a", 3)
    assert info.modified > 1_700_000_000_000_000_000
    assert [info] == list(store.list(""))


def test_list_returns_what_lies_below_the_folder_only(store: ObjectStore) -> None:
    for key in ("a/1", "a/b/2", "ab/3", "4"):
        store.put(key, b"")
    assert keys(store, "a/") == {"a/1", "a/b/2"}
    assert keys(store) == {"a/1", "a/b/2", "ab/3", "4"}
    assert keys(store, "absent/") == set()


def test_delete_removes_and_does_not_mind_absent_keys(store: ObjectStore) -> None:
    store.put("a/1", b"")
    store.put("a/2", b"")
    store.delete(["a/0", "a/1", "b/c/d"])
    assert keys(store) == {"a/2"}


def test_key_can_be_written_again_where_its_folder_was_emptied(store: ObjectStore) -> None:
    store.put_if_absent("a/b/c", b"1")
    store.delete(["a/b/c"])
    store.prune("a/")
    store.put_if_absent("a/b/c", b"2")
    assert store.get("a/b/c") == b"2"


def test_move_gives_another_key(store: ObjectStore) -> None:
    store.put("a/1", b"x")
    store.move_if_absent("a/1", "b/c/2")
    assert keys(store) == {"b/c/2"}
    assert store.get("b/c/2") == b"x"


def test_move_onto_an_object_is_refused_and_changes_nothing(store: ObjectStore) -> None:
    store.put("a", b"a")
    store.put("b", b"b")
    with pytest.raises(ObjectAlreadyExists):
        store.move_if_absent("a", "b")
    assert (store.get("a"), store.get("b")) == (b"a", b"b")


def test_move_of_an_absent_object_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFound):
        store.move_if_absent("absent", "b")


@pytest.mark.parametrize("key", AWKWARD_KEYS)
def test_awkward_key_is_taken_literally(store: ObjectStore, key: str, tmp_path: Path) -> None:
    store.put_if_absent(key, b"1")
    assert store.get(key) == b"1"
    assert keys(store) == {key}
    if store.uri.startswith("file:"):
        assert (tmp_path / key).is_file()


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b"])
def test_what_could_leave_the_folder_is_no_key(store: ObjectStore, key: str) -> None:
    for operation in (store.get, store.head, lambda k: store.put(k, b"")):
        with pytest.raises(ValueError, match="not an object key"):
            operation(key)


def test_self_test_passes_and_leaves_nothing(store: ObjectStore) -> None:
    self_test(store)
    assert keys(store) == set()


class Overwriting(ObstoreObjectStore):
    """A store that ignores the condition, as some S3-speaking servers do."""

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.put(key, data)


def test_self_test_refuses_a_store_where_the_second_writer_wins() -> None:
    unsafe = Overwriting(MemoryStore(), "memory:///")
    with pytest.raises(StoreNotSafe, match="second writer"):
        self_test(unsafe)
    assert keys(unsafe) == set()


def wins(store: ObjectStore, key: str, data: bytes) -> bool:
    try:
        store.put_if_absent(key, data)
    except ObjectAlreadyExists:
        return False
    return True


def test_one_of_twenty_threads_wins_in_every_round(store: ObjectStore) -> None:
    with ThreadPoolExecutor(20) as pool:
        for number in range(25):
            key = f"race/{number}"
            outcomes = list(pool.map(lambda i, k=key: wins(store, k, b"%d" % i), range(20)))
            assert outcomes.count(True) == 1
            assert store.get(key) == b"%d" % outcomes.index(True)


def test_one_of_twenty_threads_wins_a_move(store: ObjectStore) -> None:
    for i in range(20):
        store.put(f"from/{i}", b"%d" % i)

    def moves(i: int) -> bool:
        try:
            store.move_if_absent(f"from/{i}", "to/one")
        except ObjectAlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(moves, range(20)))
    assert outcomes.count(True) == 1
    assert store.get("to/one") == b"%d" % outcomes.index(True)


def race(root: Path, me: int, start: Callable[[], int]) -> list[int]:
    store = LocalObjectStore(root, create=False)
    start()
    return [n for n in range(50) if wins(store, f"race/{n}/x", b"%d" % me * 10_000)]


def _race(root: Path, me: int, barrier: object, answers: object) -> None:
    answers.put((me, race(root, me, barrier.wait)))  # type: ignore[attr-defined]


def test_one_of_four_processes_wins_in_every_round(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(4), context.Queue()
    workers = [
        context.Process(target=_race, args=(tmp_path, me, barrier, answers)) for me in range(4)
    ]
    for worker in workers:
        worker.start()
    won = dict(answers.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join(60)
    store = LocalObjectStore(tmp_path, create=False)
    assert sorted(n for numbers in won.values() for n in numbers) == list(range(50))
    for me, numbers in won.items():
        assert all(store.get(f"race/{n}/x") == b"%d" % me * 10_000 for n in numbers)
    assert keys(store, TEMPORARY_PREFIX) == set()


def test_folders_that_others_empty_do_not_disturb_writers(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)

    def write_and_delete(i: int) -> None:
        for n in range(30):
            store.put_if_absent(f"deep/er/{i}-{n}", b"")
            store.delete([f"deep/er/{i}-{n}"])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_and_delete, range(8)))
    assert keys(store) == set()
