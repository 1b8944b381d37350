"""Signals are handled while work goes on elsewhere."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from snaploom.errors import Interrupted
from snaploom.run import runevents as module
from snaploom.run.runevents import Interruption, run_interruptibly, signal_handlers


def nothing() -> None:
    return None


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
