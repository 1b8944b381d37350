"""Works beside each other: what follows a turn happens in order, and nobody is left behind."""

import os
import signal
import threading
from collections.abc import Set as AbstractSet

import pytest
from support.declared.declarations import files, model, parsed

from snaploom.errors import Interrupted
from snaploom.models.common import EpochNanos
from snaploom.output.state import EMPTY, Ended, FolderState, Version
from snaploom.plan.bundles import bundle_for
from snaploom.run import runevents as module
from snaploom.run.runevents import Interruption, run_interruptibly, signal_handlers
from snaploom.run.weaving import parallel
from snaploom.run.weaving.parallel import OrderedWork, Turn, in_parallel
from snaploom.run.weaving.preflight import ClockBehind, check_clock, never_before, newest_moment

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


def test_result_of_the_work_is_returned() -> None:
    assert run_interruptibly(lambda: 42, Interruption(), nothing, nothing) == 42


def test_failure_of_the_work_is_raised() -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_interruptibly(fail, Interruption(), nothing, nothing)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signal_cancels_what_the_work_waits_for(sent) -> None:
    cancelled = threading.Event()
    before = signal.getsignal(sent)
    with signal_handlers() as interruption:

        def work() -> None:
            os.kill(os.getpid(), sent)
            cancelled.wait(60)
            interruption.check()

        with pytest.raises(Interrupted):
            run_interruptibly(work, interruption, cancelled.set, nothing)
    assert signal.getsignal(sent) is before


def test_repeated_signals_at_once_are_one_request() -> None:
    interruption = Interruption()
    interruption.request()
    interruption.request()
    assert interruption.is_requested
    assert not interruption.is_insisted_on


def test_second_request_leaves_the_work_behind(monkeypatch) -> None:
    monkeypatch.setattr(module, "SAME_REQUEST_SECONDS", 0.0)
    release = threading.Event()
    interruption = Interruption()

    def insist() -> None:
        interruption.request()

    try:
        with pytest.raises(Interrupted, match="twice"):
            run_interruptibly(lambda: release.wait(60), interruption, nothing, insist)
    finally:
        release.set()


def test_failure_to_show_progress_ends_the_work_first() -> None:
    ended = threading.Event()
    cancelled = threading.Event()

    def work() -> None:
        cancelled.wait(60)
        ended.set()

    def broken() -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_interruptibly(work, Interruption(), cancelled.set, broken)
    assert ended.is_set()


HOUR = 3600 * 10**9


def at(hours: float) -> EpochNanos:
    return EpochNanos(int(hours * HOUR))


PUBLISHED = FolderState(
    versions={at(n): Version(at(n), n, at(n + 1), "p", "s", "m") for n in (1, 3)},
    ended=(Ended(at(2), "p", 2, 4, "maxSnapshotAge", at(5)),),
)


def test_newest_moment_is_that_of_publications_and_deletions() -> None:
    assert newest_moment(PUBLISHED) == at(5)
    assert newest_moment(EMPTY) is None


def test_what_is_written_is_never_dated_before_the_log() -> None:
    assert never_before(lambda: at(4), at(5))() == at(5)
    assert never_before(lambda: at(6), at(5))() == at(6)
    assert never_before(lambda: at(4), None)() == at(4)


@pytest.mark.parametrize(("hours", "warnings"), [(4.0, 1), (4.99, 0), (5.0, 0), (9.0, 0)])
def test_clock_that_is_behind_is_reported(hours: float, warnings: int) -> None:
    bundle = bundle_for("OutputDataset", "wide", parsed(model()))
    assert len(check_clock(bundle, PUBLISHED, at(hours))) == warnings
    assert check_clock(bundle, EMPTY, at(hours)) == ()


def test_clock_that_is_behind_may_not_date_snapshots() -> None:
    changes = {"snapshot": {"fromReadTime": {}}}
    raws = [files("customer", **changes), *model()[1:]]
    bundle = bundle_for("OutputDataset", "wide", parsed(raws))
    assert check_clock(bundle, PUBLISHED, at(6)) == ()
    with pytest.raises(ClockBehind, match="customer"):
        check_clock(bundle, PUBLISHED, at(4))


# Several at a time, each after what it waits for; one failure begins nothing more.


def goes_on() -> bool:
    return True


@pytest.mark.parametrize("most", [1, 2, 5])
def test_what_is_waited_for_comes_first(most: int) -> None:
    done: list[str] = []
    after = {"a": {"c"}, "c": {"d", "elsewhere"}}
    result = in_parallel(list("abcd"), after, most, lambda n: done.append(n) or n, goes_on)
    assert list(result) == list("abcd")
    assert done.index("d") < done.index("c") < done.index("a")


def test_one_at_a_time_is_in_order() -> None:
    done: list[str] = []
    in_parallel(list("badc"), {}, 1, done.append, goes_on)
    assert done == list("badc")


def test_as_many_run_at_once_as_asked_for() -> None:
    meeting = threading.Barrier(3, timeout=30)
    assert len(in_parallel(list("abcdef"), {}, 3, lambda _: meeting.wait(), goes_on)) == 6


def test_nothing_is_begun_once_it_does_not_go_on() -> None:
    done: list[str] = []
    result = in_parallel(list("abc"), {}, 1, done.append, lambda: not done)
    assert (done, list(result)) == (["a"], ["a"])


def test_failure_is_raised_and_ends_it() -> None:
    done: list[str] = []

    def work(name: str) -> None:
        done.append(name)
        raise KeyError(name)

    with pytest.raises(KeyError, match="a"):
        in_parallel(list("abc"), {}, 1, work, goes_on)
    assert done == ["a"]


def test_circle_does_not_stop_everything() -> None:
    assert list(in_parallel(["a", "b"], {"a": {"b"}, "b": {"a"}}, 2, str.upper, goes_on)) == [
        "a",
        "b",
    ]
