"""The queue of keys: once each, in order, one pass at a time, later after failures."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operator.operatorharness import drained

from snaploom_operator.queues import Backoff, WorkQueue


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def queue(clock: Clock | None = None, **backoff: float) -> WorkQueue[str]:
    return WorkQueue(clock or Clock(), Backoff(**backoff), chance=lambda: 0.0)


async def test_keys_come_once_and_in_order() -> None:
    work = queue()
    work.add_all(["b", "a", "b", "c", "a"])
    assert await drained(work) == ["b", "a", "c"]


async def test_a_busy_key_is_not_given_out_again_before_it_is_done() -> None:
    work = queue()
    work.add("a")
    key = await work.take()
    work.add("a")
    work.add("b")
    assert await work.take() == "b"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(work.take(), 0.01)
    work.done(key)
    assert await work.take() == "a"


async def test_a_key_that_was_not_added_meanwhile_is_not_given_out_again() -> None:
    work = queue()
    work.add("a")
    work.done(await work.take())
    assert work.is_idle


async def test_a_waiting_worker_gets_a_new_key() -> None:
    work = queue()
    taking = asyncio.ensure_future(work.take())
    await asyncio.sleep(0)
    work.add("a")
    assert await asyncio.wait_for(taking, 5) == "a"


async def test_of_several_delays_the_earliest_counts_and_only_once() -> None:
    clock = Clock()
    work = queue(clock)
    for seconds in (30, 10, 20):
        work.add_after("a", seconds)
    assert (work.next_due, await drained(work)) == (10.0, [])
    clock.now = 30.0
    assert await drained(work) == ["a"]
    assert work.next_due is None


async def test_a_delay_ends_during_a_wait() -> None:
    work: WorkQueue[str] = WorkQueue(asyncio.get_running_loop().time)
    work.add_after("a", 0.01)
    assert await asyncio.wait_for(work.take(), 5) == "a"


def test_failures_delay_further_and_further_up_to_a_limit() -> None:
    work = queue(first=1.0, longest=5.0)
    assert [work.fail("a") for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
    assert work.fail("b") == 1.0
    work.forget("a")
    assert work.fail("a") == 1.0


def test_a_failure_waits_at_least_as_long_as_the_server_asks() -> None:
    assert queue().fail("a", at_least=30.0) == 30.0


def test_depth_and_age_count_the_keys_that_are_due() -> None:
    clock = Clock()
    work = queue(clock)
    work.add("a")
    work.add_after("b", 100)
    clock.now = 7.0
    work.add("c")
    assert (work.depth, work.age) == (2, 7.0)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_stays_within_its_bounds(failures: int, chance: float) -> None:
    backoff = Backoff()
    assert backoff.first <= backoff.after(failures, chance) <= backoff.longest * 1.2


@given(
    st.lists(st.tuples(st.sampled_from(["add", "take", "done", "fail"]), st.sampled_from("abc")))
)
async def test_no_key_is_lost_and_none_is_given_out_twice(steps):
    clock = Clock()
    work = queue(clock)
    busy: set[str] = set()
    wanted: set[str] = set()
    for step, key in steps:
        if step == "add":
            work.add(key)
            wanted.add(key)
        elif step == "fail":
            work.fail(key)
            wanted.add(key)
        elif step == "take" and work.depth > 0 and wanted - busy:
            clock.now += 1_000.0
            taken = await work.take()
            assert taken not in busy
            busy.add(taken)
            wanted.discard(taken)
        elif step == "done" and key in busy:
            busy.discard(key)
            work.done(key)
    clock.now += 1_000.0
    for key in busy:
        work.done(key)
    assert set(await drained(work)) == wanted
