"""What only a file system does: refusals, links, directories."""

import multiprocessing
import os
import resource
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import obstore
import pytest
from obstore.store import LocalStore, MemoryStore
from support.servers.s3servers import BUCKET, S3Server, environment_of
from support.storage.objectstoresuite import *  # noqa: F403
from support.storage.objectstoresuite import keys, wins

from snaploom.errors import FolderNotWritable, ObjectNotFound, StoreNotSafe
from snaploom.files.cloud import AccessDenied, ObstoreObjectStore
from snaploom.files.local import LocalObjectStore
from snaploom.files.objectstore import TEMPORARY_PREFIX, ObjectStore, self_test
from snaploom.files.stores import UnsupportedStore, open_store
from snaploom.output.folder import is_unused

NOBODY = 65534


def in_child(work: Callable[[], None]) -> int:
    """Exit code of a forked process: it keeps modules that an unprivileged one cannot import."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:  # noqa: BLE001  (the parent sees the exit code only)
            print(error)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def expect_refusal(store: LocalObjectStore, action: Callable[[], None]) -> None:
    with pytest.raises(FolderNotWritable, match="refuses writes"):
        action()


@pytest.fixture
def open_tmp_path() -> Iterator[Path]:
    """A directory that another user can reach, which those below `tmp_path` are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to change the user")
def test_read_only_folder_refuses_every_write(open_tmp_path: Path) -> None:
    store = LocalObjectStore(open_tmp_path / "out", create=True)
    store.put("data/a", b"1")

    def work() -> None:
        os.setuid(NOBODY)
        assert store.get("data/a") == b"1"
        expect_refusal(store, lambda: store.put_if_absent("b", b""))
        expect_refusal(store, lambda: store.put("data/a", b""))
        expect_refusal(store, lambda: store.delete(["data/a"]))
        expect_refusal(store, lambda: store.move_if_absent("data/a", "data/b"))
        expect_refusal(store, lambda: self_test(store))
        expect_refusal(store, lambda: LocalObjectStore(open_tmp_path / "new", create=True) and None)

    assert in_child(work) == 0
    assert {info.key for info in store.list("")} == {"data/a"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to change the user")
@pytest.mark.parametrize("closed", ["data/a", "data", ".", ".."])
def test_file_that_this_user_may_not_read_raises_its_own_error(open_tmp_path, closed):
    folder = open_tmp_path / "above" / "out"
    LocalObjectStore(folder, create=True).put("data/a", b"1")
    (folder / closed).resolve().chmod(0)

    def work() -> None:
        os.setuid(NOBODY)
        with pytest.raises(AccessDenied, match="may not be read by this user") as caught:
            LocalObjectStore(folder, create=False).get("data/a")
        assert caught.value.found == f"Permission denied, for the user with the number {NOBODY}"

    assert in_child(work) == 0
    (folder / closed).resolve().chmod(0o700)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_full_disk_refuses_and_leaves_nothing_half_written(small_disk: Path) -> None:
    store = LocalObjectStore(small_disk, create=True)
    store.put_if_absent("a", b"x" * 10_000)
    with pytest.raises(FolderNotWritable) as caught:
        store.put_if_absent("b", b"x" * 100_000)
    assert "No space left on device" in str(caught.value)
    assert {info.key for info in store.list("")} == {"a"}


def test_write_beyond_a_size_limit_refuses_and_leaves_nothing(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        expect_refusal(store, lambda: store.put("b", b"x" * 2000))

    assert in_child(work) == 0
    assert list(store.list("")) == []


def test_file_in_the_way_of_a_folder_refuses(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)
    store.put("a", b"")
    expect_refusal(store, lambda: store.put_if_absent("a/b", b""))


def test_move_leaves_no_empty_folders_but_places_of_work(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)
    store.put("data/.staging/run/1/f", b"")
    store.move_if_absent("data/.staging/run/1/f", "data/p/f")
    assert sorted(os.listdir(tmp_path / "data")) == [".staging", "p"]
    assert os.listdir(tmp_path / "data/.staging") == []


def test_prune_removes_empty_folders_and_nothing_else(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/d").mkdir()
    store.put("a/d/file", b"")
    store.prune("a/")
    assert os.listdir(tmp_path / "a") == ["d"]
    store.prune("absent/folder/")


def test_symbolic_links_are_listed_and_never_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("")
    store = LocalObjectStore(tmp_path / "out", create=True)
    (tmp_path / "out/link").symlink_to(elsewhere)
    (tmp_path / "out/dangling").symlink_to("nowhere")
    assert {info.key for info in store.list("")} == {"link", "dangling"}
    store.delete(["link"])
    assert (elsewhere / "precious").exists()


def test_name_that_obstore_hides_is_listed(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)
    store.put("left-by-a-killed-put#1", b"")
    assert [page for page in obstore.list(LocalStore(tmp_path)) if page] == []
    assert [info.key for info in store.list("")] == ["left-by-a-killed-put#1"]


def test_link_refused_by_the_file_system_raises_an_unsafe_store(tmp_path, monkeypatch):
    def no_links(*args: object, **kwargs: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StoreNotSafe, match="hard links"):
        self_test(LocalObjectStore(tmp_path, create=True))


def test_object_is_never_seen_half_written(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)
    whole = b"x" * 5_000_000
    child = os.fork()
    if child == 0:
        for number in range(20):
            store.put("a", whole)
            store.put_if_absent(f"b/{number}", whole)
        os._exit(0)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        try:
            assert len(store.get("a")) == len(whole)
        except ObjectNotFound:
            continue
        assert all(info.size == len(whole) for info in store.list("b/"))


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}", "FILE://{}/"])
def test_local_folder_opens_by_path_and_by_uri(tmp_path: Path, form: str) -> None:
    store = open_store(form.format(tmp_path / "new"), create=True)
    store.put("a", b"")
    assert (tmp_path / "new/a").exists()
    assert store.uri == f"file://{tmp_path}/new/"


def test_uri_is_taken_literally_as_hadoop_does(tmp_path: Path) -> None:
    open_store(f"file://{tmp_path}/a%20b c", create=True)
    assert os.listdir(tmp_path) == ["a%20b c"]


def test_absent_folder_reads_as_empty_and_is_not_made(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "absent"), create=False)
    assert list(store.list("")) == []
    assert store.head("a") is None
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        pytest.param("ftp://host/x", "the scheme ftp:", id="ftp"),
        pytest.param("hdfs:///x", "the scheme hdfs:", id="hdfs"),
        pytest.param("file://host/x", "the host 'host'", id="host"),
        pytest.param("out/x", "a relative path", id="relative"),
        pytest.param("file:out", "a relative path", id="relative-uri"),
        pytest.param("", "a relative path", id="empty"),
    ],
)
def test_other_folders_are_refused_by_name(uri: str, found: str) -> None:
    with pytest.raises(UnsupportedStore) as caught:
        open_store(uri, create=True)
    assert caught.value.found == found
    assert "file:///absolute/path" in str(caught.value)


# The contract of object stores, over those that need no Spark.


@pytest.fixture(params=["local", "memory", "versitygw", "moto"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    with opened(request, tmp_path) as store:
        yield store


# Not moto: it looks first and writes then, so that two of its threads may both write on a machine
# with much to do.
@pytest.fixture(params=["local", "memory", "versitygw"])
def racing_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    with opened(request, tmp_path) as store:
        yield store


@contextmanager
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    if request.param == "local":
        yield LocalObjectStore(tmp_path, create=True)
    elif request.param == "memory":
        yield open_store("memory:", create=True)
    else:
        server: S3Server = request.getfixturevalue(request.param)
        with environment_of(server):
            # A folder of its own, with what URIs are taken literally for.
            yield open_store(f"s3://{BUCKET}/{secrets.token_hex(8)} %3A/", create=True)


class Overwriting(ObstoreObjectStore):
    """A store that ignores the condition, as some S3-speaking servers do."""

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.put(key, data)


def test_self_test_refuses_a_store_where_the_second_writer_wins() -> None:
    unsafe = Overwriting(MemoryStore(), "memory:///")
    with pytest.raises(StoreNotSafe, match="second writer"):
        self_test(unsafe)
    assert keys(unsafe) == set()


def race(root: Path, me: int, start: Callable[[], int]) -> list[int]:
    store = LocalObjectStore(root, create=False)
    start()
    return [n for n in range(50) if wins(store, f"race/{n}/x", b"%d" % me * 10_000)]


def _race(root: Path, me: int, barrier: object, answers: object) -> None:
    answers.put((me, race(root, me, barrier.wait)))  # type: ignore[attr-defined]


@pytest.mark.slow
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


@pytest.mark.parametrize("name", ["versitygw", "moto"])
def test_objects_that_mark_folders_are_no_objects(name, request, monkeypatch):
    server: S3Server = request.getfixturevalue(name)
    for variable, value in server.environment.items():
        monkeypatch.setenv(variable, value)
    base = secrets.token_hex(8)
    for key in (f"{base}/data/", f"{base}/data/.staging/r/a/"):
        server.put(key)
    store = open_store(f"s3://{BUCKET}/{base}/", create=True)
    store.put("data/empty", b"")
    assert keys(store) == keys(store, "data/") == {"data/empty"}
    assert is_unused(open_store(f"s3://{BUCKET}/{base}/data/.staging/", create=True))


def test_folders_that_others_empty_do_not_disturb_writers(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path, create=True)

    def write_and_delete(i: int) -> None:
        for n in range(30):
            store.put_if_absent(f"deep/er/{i}-{n}", b"")
            store.delete([f"deep/er/{i}-{n}"])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_and_delete, range(8)))
    assert keys(store) == set()
