"""A bound on the work of a piece of code: processor time, whatever else the machine does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class WorkExceeded(AssertionError):
    """More processor time was taken than allowed."""


@contextmanager
def within_work(seconds: float) -> Iterator[None]:
    """Raise `WorkExceeded` in the code that runs longer; Python's `re` can be ended so, too."""

    def exceeded(number: int, frame: FrameType | None) -> None:
        raise WorkExceeded(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, exceeded)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
