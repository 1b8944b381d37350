"""No operation on a local folder follows a link below its root, not even one made meanwhile."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.hostile.folderoperations import command
from support.runner.proofscope import IS_WHOLE
from support.storage.folders import a_folder, a_run, a_target, agrees, now, published

from snaploom.errors import NotAPlainFile, ObjectTooLarge, SnaploomError
from snaploom.files.local import DEEPEST, LocalObjectStore
from snaploom.files.objectstore import refuse_links
from snaploom.files.stores import open_store
from snaploom.output.caches import SubtreeStore
from snaploom.output.foldercheck import check_files
from snaploom.output.gc import sweep
from snaploom.output.publication import publish

ROUNDS = 10_000 if IS_WHOLE else 300
"""Times that each operation meets a folder that is swapped under it."""
LONG_AGO = (1_000_000_000, 1_000_000_000)

OPERATIONS: Mapping[str, Callable[[LocalObjectStore], object]] = {
    "list": lambda store: list(store.list("a/")),
    "get": lambda store: store.get("a/b/precious"),
    "get_range": lambda store: store.get_range("a/b/precious", 0, 4),
    "head": lambda store: store.head("a/b/precious"),
    "put": lambda store: store.put("a/b/new", b"ours"),
    "put_if_absent": lambda store: store.put_if_absent("a/b/new", b"ours"),
    "delete": lambda store: store.delete(["a/b/precious"]),
    "move from": lambda store: store.move_if_absent("a/b/precious", "c"),
    "move to": lambda store: store.move_if_absent("own", "a/b/new"),
    "prune": lambda store: store.prune("a/"),
}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody, with what each operation would touch."""
    folder = tmp_path / "elsewhere"
    (folder / "b" / "empty").mkdir(parents=True)
    for name in ("precious", "b/precious"):
        (folder / name).write_text("theirs")
        os.utime(folder / name, LONG_AGO)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    return LocalObjectStore(tmp_path / "out", create=True)


def contents(folder: Path) -> dict[str, tuple[float, bytes]]:
    """Everything in a folder, with times."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_below_a_link_is_refused_and_touches_nothing(name, store, elsewhere, tmp_path):
    before = contents(elsewhere)
    store.put("own", b"ours")
    (tmp_path / "out/a").symlink_to(elsewhere)
    with pytest.raises(NotAPlainFile, match="out/a is a link"):
        OPERATIONS[name](store)
    assert contents(elsewhere) == before


@pytest.mark.parametrize("name", ["get", "get_range", "head", "move from"])
def test_link_in_place_of_a_file_is_refused(name, store, elsewhere, tmp_path):
    (tmp_path / "out/a/b").mkdir(parents=True)
    (tmp_path / "out/a/b/precious").symlink_to(elsewhere / "precious")
    with pytest.raises(NotAPlainFile, match="out/a/b/precious is a link"):
        OPERATIONS[name](store)


def test_write_over_a_link_replaces_the_link_itself(store, elsewhere, tmp_path):
    (tmp_path / "out/a").symlink_to(elsewhere / "precious")
    store.put("a", b"ours")
    assert store.get("a") == b"ours"
    assert (elsewhere / "precious").read_text() == "theirs"


@contextmanager
def swapping(root: Path, elsewhere: Path) -> Iterator[None]:
    """A process that makes `a`, and `a/b`, a folder and a link to somebody's in turn."""
    child = os.fork()
    while child == 0:
        for place, target in (("a", elsewhere), ("a/b", elsewhere / "b")):
            with suppress(OSError):
                os.makedirs(root / "a/b", exist_ok=True)
                os.rename(root / place, root.parent / "away")
                os.symlink(target, root / place)
            shutil.rmtree(root.parent / "away", ignore_errors=True)
            with suppress(OSError):
                os.unlink(root / place)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("name", OPERATIONS)
def test_folder_swapped_for_a_link_under_an_operation_touches_nothing(
    name: str, store: LocalObjectStore, elsewhere: Path, tmp_path: Path
) -> None:
    before = contents(elsewhere)
    read: set[object] = set()
    with swapping(tmp_path / "out", elsewhere):
        for _ in range(ROUNDS):
            with suppress(SnaploomError):
                store.put("a/b/precious", b"ours")
                store.put("own", b"ours")
            with suppress(SnaploomError):
                found = OPERATIONS[name](store)
                read.add(found if isinstance(found, bytes) else None)
    assert contents(elsewhere) == before
    assert read <= {b"ours", None}


def test_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to(tmp_path / "real")
    store = open_store(str(tmp_path / "named"), create=True)
    published(a_folder(store))
    assert open_store(str(tmp_path / "real"), create=False).head("snaploom.json") is not None


@pytest.mark.parametrize("place", ["data", "data/.staging", ".snaploom-tmp", "metadata"])
def test_gc_removes_nothing_behind_a_link(place, store, elsewhere, tmp_path):
    published(a_folder(store))
    run_id = a_run().run_id
    (elsewhere / f"{run_id}/0123abcd").mkdir(parents=True)
    (elsewhere / f"{run_id}/0123abcd/part-0").write_text("theirs")
    before = contents(elsewhere)
    path = tmp_path / "out" / place
    if path.exists():
        path.rename(tmp_path / "was")
    path.symlink_to(elsewhere)
    command("gc", str(tmp_path / "out"), "--grace", "0s", "--below-reader-grace")
    assert contents(elsewhere) == before


def test_gc_names_the_link_in_place_of_unfinished_writes(store, elsewhere, tmp_path):
    published(a_folder(store))
    (tmp_path / "out/.snaploom-tmp").rmdir()
    (tmp_path / "out/.snaploom-tmp").symlink_to(elsewhere)
    with pytest.raises(NotAPlainFile, match=r"\.snaploom-tmp is a link"):
        list(store.list(".snaploom-tmp/"))


def test_end_of_a_run_removes_nothing_behind_a_link(store, elsewhere, tmp_path):
    folder = a_folder(store)
    published(folder)
    staging = tmp_path / "out/data/.staging"
    staging.rename(tmp_path / "was")
    staging.symlink_to(elsewhere)
    before = contents(elsewhere)
    with pytest.raises(NotAPlainFile, match="staging is a link"):
        sweep(folder, a_run(start=now()), now(), silence=0)
    assert contents(elsewhere) == before


def test_run_lets_nobody_write_where_staging_is_a_link(store, elsewhere, tmp_path):
    folder = a_folder(store)
    (tmp_path / "out/data").mkdir(exist_ok=True)
    (tmp_path / "out/data/.staging").symlink_to(elsewhere)

    def write(uri: str) -> object:
        raise AssertionError(f"asked to write to {uri}")

    with pytest.raises(NotAPlainFile, match="staging is a link"):
        publish(folder, a_run(), a_target(), write, agrees)  # type: ignore[arg-type]


def test_check_reports_a_link_in_place_of_a_published_file(store, elsewhere, tmp_path):
    folder = a_folder(store)
    published(folder)
    state = folder.read()
    path = tmp_path / "out" / state.snapshots[0].files[0].path
    path.rename(path.with_name("was"))
    path.symlink_to(elsewhere / "precious")
    (fault,) = check_files(store, state)
    assert "link" in fault.message


def test_spark_is_given_no_file_that_is_a_link(store, elsewhere, tmp_path):
    store.put("data/x", b"")
    (tmp_path / "out/data/y").symlink_to(elsewhere / "precious")
    refuse_links(store, ["data/x", "data/absent"])
    with pytest.raises(NotAPlainFile, match="data/y is a link"):
        refuse_links(store, ["data/x", "data/y"])


def test_subtree_is_not_written_where_its_folder_is_a_link(store, elsewhere, tmp_path):
    signature = "a" * 64
    (tmp_path / "out" / signature).symlink_to(elsewhere)
    with pytest.raises(NotAPlainFile):
        SubtreeStore(store, ("1", "4")).folder(signature, a_run().run_id)


@pytest.mark.parametrize("make", [os.mkfifo, lambda p: os.mknod(p, 0o20600, os.makedev(1, 5))])
def test_pipe_or_device_is_refused_without_waiting(make, store, tmp_path):
    try:
        make(tmp_path / "out/x")
    except PermissionError:
        pytest.skip("may make no devices")
    for operation in (lambda: store.get("x"), lambda: store.head("x")):
        with pytest.raises(NotAPlainFile, match="out/x is a"):
            operation()
    with pytest.raises(NotAPlainFile):
        store.move_if_absent("x", "y")
    assert not next(info for info in store.list("") if info.key == "x").is_plain


def test_file_that_is_longer_than_it_may_be_is_not_read(store, tmp_path):
    store.put("own", b"")
    os.truncate(tmp_path / "out/own", 1 << 40)
    with pytest.raises(ObjectTooLarge, match="longer"):
        store.get("own", 1000)


def test_folders_nested_too_deep_are_refused(store: LocalObjectStore, tmp_path: Path) -> None:
    (tmp_path / "out" / "/".join("d" * (DEEPEST + 1))).mkdir(parents=True)
    with pytest.raises(SnaploomError, match="too deep"):
        list(store.list(""))


def test_listing_leaves_no_folder_open(store: LocalObjectStore) -> None:
    for number in range(20):
        store.put(f"a/{number}/x", b"")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        next(store.list(""))
        list(store.list("a/"))
    assert len(os.listdir("/proc/self/fd")) <= before
