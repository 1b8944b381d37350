"""One contract for every `ObjectStore`: a test module imports these tests, and gives `store`.

And `racing_store`: the same, where writers that really meet may be let loose on it.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snaploom.errors import ObjectAlreadyExists, ObjectNotFound, ObjectTooLarge, StorageError
from snaploom.files.objectstore import ObjectStore, self_test

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


def keys(store: ObjectStore, prefix: str = "") -> set[str]:
    return {info.key for info in store.list(prefix)}


def test_object_is_read_back_as_written(store: ObjectStore) -> None:
    store.put_if_absent("a/b", b"\0content")
    assert store.get("a/b") == b"\0content"


def test_object_is_read_up_to_a_limit_and_not_beyond(store: ObjectStore) -> None:
    store.put("a/b", b"0123456789")
    assert store.get("a/b", 10) == b"0123456789"
    with pytest.raises(ObjectTooLarge, match="was not read"):
        store.get("a/b", 9)


@pytest.mark.parametrize(("start", "length", "found"), [(0, 3, b"012"), (7, 3, b"789")])
def test_part_of_an_object_is_read(store, start, length, found):
    store.put("a/b", b"0123456789")
    assert store.get_range("a/b", start, length) == found
    with pytest.raises(ObjectNotFound):
        store.get_range("a/c", start, length)


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


def test_head_returns_size_and_a_plausible_time(store: ObjectStore) -> None:
    store.put("a", b"123")
    info = store.head("a")
    assert (info.key, info.size) == ("a", 3)
    assert info.modified > 1_700_000_000_000_000_000
    assert [info] == list(store.list(""))


def test_list_returns_only_what_is_below_the_folder(store: ObjectStore) -> None:
    for key in ("a/1", "a/b/2", "ab/3", "4"):
        store.put(key, b"")
    assert keys(store, "a/") == {"a/1", "a/b/2"}
    assert keys(store) == {"a/1", "a/b/2", "ab/3", "4"}
    assert keys(store, "absent/") == set()


def test_delete_removes_and_ignores_absent_keys(store: ObjectStore) -> None:
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
def test_awkward_key_is_taken_literally(store: ObjectStore, key: str) -> None:
    if ":" in key and store.uri.startswith("hdfs:"):
        with pytest.raises(StorageError, match="not a valid filename"):
            store.put_if_absent(key, b"1")
        return
    store.put_if_absent(key, b"1")
    assert store.get(key) == b"1"
    assert keys(store) == {key}
    if store.uri.startswith("file:"):
        assert Path(store.uri.removeprefix("file://"), key).is_file()


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b"])
def test_what_could_leave_the_folder_is_no_key(store: ObjectStore, key: str) -> None:
    for operation in (store.get, store.head, lambda k: store.put(k, b"")):
        with pytest.raises(ValueError, match="not an object key"):
            operation(key)


def test_self_test_passes_and_leaves_nothing(store: ObjectStore) -> None:
    self_test(store)
    assert keys(store) == set()


def wins(store: ObjectStore, key: str, data: bytes) -> bool:
    try:
        store.put_if_absent(key, data)
    except ObjectAlreadyExists:
        return False
    return True


def test_one_of_twenty_threads_wins_in_every_round(racing_store: ObjectStore) -> None:
    store = racing_store
    rounds = 3 if store.uri.startswith("hdfs:") else 25  # a second each, through one JVM
    with ThreadPoolExecutor(20) as pool:
        for number in range(rounds):
            key = f"race/{number}"
            outcomes = list(pool.map(lambda i, k=key: wins(store, k, b"%d" % i), range(20)))
            assert outcomes.count(True) == 1
            assert store.get(key) == b"%d" % outcomes.index(True)


def test_one_of_twenty_threads_wins_a_move(racing_store: ObjectStore) -> None:
    store = racing_store
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
