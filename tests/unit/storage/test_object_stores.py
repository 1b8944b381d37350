"""The contract of object stores, over those that need no Spark."""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from support.servers.s3servers import BUCKET, S3Server, environment_of
from support.storage.objectstoresuite import *  # noqa: F403
from support.storage.objectstoresuite import keys, wins

from snaploom.errors import StoreNotSafe
from snaploom.files.cloud import ObstoreObjectStore
from snaploom.files.local import LocalObjectStore
from snaploom.files.objectstore import TEMPORARY_PREFIX, ObjectStore, self_test
from snaploom.files.stores import open_store
from snaploom.output.folder import is_unused


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
def test_objects_that_mark_folders_are_no_objects(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
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
