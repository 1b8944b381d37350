"""A bound on the work of a piece of code: processor time, whatever else the machine does."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class WorkExceeded(AssertionError):
    """More processor time was taken than allowed."""


@contextmanager
def within_work(seconds: float) -> Iterator[None]:
    """Raise `WorkExceeded` in the code that runs longer; Python's `re` can be ended so, too.

    No garbage is collected meanwhile: a collection costs what the whole process holds, and an
    error that is raised in one is reported and lost.
    """

    def exceeded(number: int, frame: FrameType | None) -> None:
        raise WorkExceeded(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, exceeded)
    collecting = gc.isenabled()
    gc.disable()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        if collecting:
            gc.enable()
