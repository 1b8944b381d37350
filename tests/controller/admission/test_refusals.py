"""A namespace that is refused again and again waits; a few mistakes and other namespaces do not."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.declared.declarations import files, spoilt
from support.operator.reviews import VerdictsInProcess, a_review

from snaploom_operator.admission.judge import (
    FREE_REFUSALS,
    HALF_LIFE_SECONDS,
    LONGEST_WAIT_SECONDS,
    MOST_REMEMBERED,
    MOST_WAITING,
    Judge,
    RefusalThrottle,
)
from snaploom_operator.settings import AdmissionSettings
from snaploom_operator.store.store import Store

FREE = int(FREE_REFUSALS)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def refused(times: int, clock: Clock | None = None) -> RefusalThrottle:
    refusals = RefusalThrottle(clock or Clock())
    for _ in range(times):
        refusals.note("bad")
    return refusals


def test_a_few_mistakes_cost_no_wait() -> None:
    assert refused(FREE).wait("bad") == 0


def test_each_further_refusal_makes_the_wait_longer() -> None:
    waits = [refused(FREE + more).wait("bad") for more in (1, 2, 3)]
    assert 0 < waits[0] < waits[1] < waits[2]


def test_a_wait_has_an_end() -> None:
    assert refused(100_000).wait("bad") == LONGEST_WAIT_SECONDS


def test_other_namespaces_do_not_wait() -> None:
    assert refused(1_000).wait("good") == 0


def test_refusals_are_forgotten() -> None:
    clock = Clock()
    refusals = refused(100, clock)
    clock.now = 4 * HALF_LIFE_SECONDS
    assert refusals.wait("bad") == 0


def test_invented_names_do_not_make_the_worst_one_forgotten() -> None:
    refusals = refused(100)
    for number in range(2 * MOST_REMEMBERED):
        refusals.note(f"invented-{number}")
    assert refusals.wait("bad") > 0


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def judge(waits: list[float]) -> Iterator[Judge]:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with ThreadPoolExecutor(2) as threads:
        yield Judge(Store(), AdmissionSettings(), threads, VerdictsInProcess(), sleep=sleep)


def wrong(namespace: str) -> bytes:
    raw = spoilt(files("a"), "spec.hdfsLike.format", "none")
    return json.dumps(a_review(raw, namespace=namespace)).encode()


RIGHT = json.dumps(a_review(files("a"))).encode()


async def test_a_namespace_that_is_refused_again_and_again_waits(judge, waits):
    for _ in range(FREE + 5):
        assert not (await judge.judge(wrong("bad"))).answer.is_allowed
    assert 0 < len(waits) < 5
    assert waits == sorted(waits)


async def test_an_allowed_review_is_not_delayed(judge: Judge, waits: list[float]) -> None:
    for _ in range(FREE + 5):
        assert (await judge.judge(RIGHT)).answer.is_allowed
    assert not waits


async def test_delayed_reviews_leave_slots_for_others() -> None:
    ended = asyncio.Event()
    waiting: list[float] = []

    async def sleep(seconds: float) -> None:
        waiting.append(seconds)
        await ended.wait()

    with ThreadPoolExecutor(2) as threads:
        judge = Judge(Store(), AdmissionSettings(), threads, VerdictsInProcess(), sleep=sleep)
        for namespace in ("one", "two"):
            for _ in range(FREE + 2):
                judge.throttle.note(namespace)
        held = [asyncio.create_task(judge.judge(wrong("one"))) for _ in range(MOST_WAITING)]
        while len(waiting) < MOST_WAITING:
            await asyncio.sleep(0)
        assert not (await judge.judge(wrong("two"))).answer.is_allowed
        assert len(waiting) == MOST_WAITING
        ended.set()
        await asyncio.gather(*held)
