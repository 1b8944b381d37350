"""How much of a proof is shown: all of it, or a sample that is the same in every run.

`make prove` and `make prove-operator` set SNAPLOOM_PROVE.
"""

import gc
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar


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


IS_WHOLE = "SNAPLOOM_PROVE" in os.environ
_SEED = 20260101

Point = TypeVar("Point")


def sampled(points: Sequence[Point], most: int) -> Sequence[Point]:
    """All points, or so many of them, in their order."""
    if IS_WHOLE or len(points) <= most:
        return points
    chosen = random.Random(_SEED).sample(range(len(points)), most)
    return [points[number] for number in sorted(chosen)]


def show_progress(text: str) -> None:
    """Print how far a proof is, where all of it is shown."""
    if IS_WHOLE:
        print(text.rstrip(), file=sys.stderr, flush=True)
