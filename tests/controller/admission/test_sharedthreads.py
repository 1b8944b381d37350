"""Threads are shared by name until their work has really ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from snaploom_operator.admission.shares import SharedThreads


class Work:
    """Work that goes on until it may end."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.begun = 0

    def __call__(self) -> str:
        self.begun += 1
        assert self.may_end.wait(60)
        return "done"


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.may_end.set()


@pytest.fixture
def threads() -> Iterator[SharedThreads]:
    with ThreadPoolExecutor(4) as pool:
        yield SharedThreads(pool, 2)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_name_has_its_share_and_others_have_theirs(
    threads: SharedThreads, work: Work
) -> None:
    waiting = [asyncio.create_task(threads.run("bad", work)) for _ in range(10)]
    await until(lambda: work.begun == 2)
    assert await threads.run("good", lambda: "answered") == "answered"
    assert work.begun == 2
    work.may_end.set()
    assert await asyncio.gather(*waiting) == ["done"] * 10


async def test_abandoned_work_keeps_its_share(threads: SharedThreads, work: Work) -> None:
    waiting = [asyncio.create_task(threads.run("bad", work)) for _ in range(3)]
    await until(lambda: work.begun == 2)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    late = asyncio.create_task(threads.run("bad", lambda: "late"))
    assert await threads.run("good", lambda: "answered") == "answered"
    assert not late.done()
    work.may_end.set()
    assert await late == "late"


async def test_what_work_raises_is_raised_and_ends_its_share(threads: SharedThreads) -> None:
    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            await threads.run("team", lambda: 1 // 0)
    await until(lambda: not threads._shares)
