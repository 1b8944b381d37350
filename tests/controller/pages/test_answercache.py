"""Answers of the API server are remembered for seconds, in bounded number, and never failures."""

from __future__ import annotations

import asyncio

import pytest

from snaploom_operator.errors import ApiUnavailable
from snaploom_operator.serve.health import AnswerCache


class Asked:
    """Counts how often it was asked; answers when it may."""

    def __init__(self) -> None:
        self.count = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self) -> int:
        self.count += 1
        await self.may_answer.wait()
        return self.count


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_an_answer_counts_for_its_seconds_only() -> None:
    clock, asked = Clock(), Asked()
    cache = AnswerCache[int](10, 8, clock)
    answers = []
    for clock.now in (0, 9.9, 10, 19.9, 20):
        answers.append(await cache.get(("a",), asked))
    assert answers == [1, 1, 2, 2, 3]


async def test_the_oldest_answer_goes_when_there_are_too_many() -> None:
    asked = Asked()
    cache = AnswerCache[int](10, 2, Clock())
    for key in "abc":
        await cache.get((key,), asked)
    assert len(cache) == 2
    assert await cache.get(("c",), asked) == 3
    assert await cache.get(("a",), asked) == 4


async def test_those_who_ask_at_once_share_one_request() -> None:
    asked = Asked()
    asked.may_answer.clear()
    cache = AnswerCache[int](10, 8, Clock())
    first, second = (asyncio.create_task(cache.get(("a",), asked)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()  # who goes away ends nothing for others
    await asyncio.sleep(0)
    asked.may_answer.set()
    assert await second == 1
    assert first.cancelled()


async def test_a_failure_is_not_remembered() -> None:
    async def fails() -> int:
        raise ApiUnavailable("no answer")

    cache = AnswerCache[int](10, 8, Clock())
    with pytest.raises(ApiUnavailable):
        await cache.get(("a",), fails)
    assert await cache.get(("a",), Asked()) == 1
