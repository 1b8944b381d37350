"""Works beside each other: what follows a turn happens in order, and nobody is left behind."""

from __future__ import annotations

import threading
from collections.abc import Set as AbstractSet

import pytest

from snaploom.run.weaving import parallel
from snaploom.run.weaving.parallel import OrderedWork, Turn

PATIENCE = 30
"""Seconds after which a thread that does not come is a failure."""


def always(_number: int, _others: AbstractSet[int]) -> bool:
    return True


def nothing() -> None:
    return None


@pytest.mark.parametrize("most", [1, 2, 4, 9])
def test_what_follows_a_turn_is_in_order(most: int) -> None:
    ended: list[int] = []

    def work(number: int, turn: Turn) -> int:
        turn()
        ended.append(number)
        return number * number

    works = OrderedWork(work, 6, most, always, nothing)
    assert [works.outcome(number) for number in range(6)] == [0, 1, 4, 9, 16, 25]
    assert ended == list(range(6))


def test_as_many_are_under_way_as_asked_for() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE)
    works = OrderedWork(lambda number, turn: meeting.wait() and None, 6, 3, always, nothing)
    for number in range(6):
        works.outcome(number)


def test_one_at_a_time_is_done_by_who_asks() -> None:
    works = OrderedWork(lambda number, turn: threading.get_ident(), 2, 1, always, nothing)
    assert [works.outcome(0), works.outcome(1)] == [threading.get_ident()] * 2


def test_one_that_may_not_begin_waits_until_another_has_come_to_its_turn() -> None:
    under_way: list[set[int]] = []
    first_has_written = threading.Event()

    def may_begin(number: int, others: AbstractSet[int]) -> bool:
        return first_has_written.is_set()

    def work(number: int, turn: Turn) -> None:
        under_way.append({number})
        if number == 0:
            assert under_way == [{0}]
            first_has_written.set()
        turn()

    works = OrderedWork(work, 2, 2, may_begin, nothing)
    works.outcome(0)
    works.outcome(1)
    assert under_way == [{0}, {1}]


def test_failure_is_raised_at_its_turn_and_not_before() -> None:
    def work(number: int, turn: Turn) -> int:
        if number == 1:
            raise KeyError(number)
        turn()
        return number

    works = OrderedWork(work, 3, 3, always, nothing)
    assert works.outcome(0) == 0
    with pytest.raises(KeyError, match="1"):
        works.outcome(1)
    assert works.outcome(2) == 2


def test_what_waits_for_its_turn_is_ended_by_closing() -> None:
    published: list[int] = []
    waits = threading.Event()
    cancelled = threading.Event()

    def work(number: int, turn: Turn) -> None:
        if number == 2:
            waits.set()
            assert cancelled.wait(PATIENCE)
        turn()
        published.append(number)

    works = OrderedWork(work, 3, 3, always, cancelled.set)
    works.outcome(0)
    assert waits.wait(PATIENCE)
    works.close()
    assert published == [0]
    assert not [one for one in threading.enumerate() if one.name.startswith("snaploom-work-")]


def test_work_that_is_left_out_never_has_its_turn() -> None:
    waits = threading.Event()
    ended: list[int] = []

    def work(number: int, turn: Turn) -> None:
        if number == 1:
            waits.set()
        turn()
        ended.append(number)

    works = OrderedWork(work, 4, 2, always, nothing)
    works.outcome(0)
    assert waits.wait(PATIENCE)
    works.outcome(3)
    works.close()
    assert ended == [0, 3]


def test_turn_sums_up_the_time_that_it_was_awaited(monkeypatch) -> None:
    instants = iter([1.0, 4.0, 10.0, 11.0])
    monkeypatch.setattr(parallel, "monotonic", lambda: next(instants))
    turn = Turn()
    turn()
    turn()
    assert turn.seconds == 4.0
