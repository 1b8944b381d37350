"""How much of a proof is shown: all of it, or a sample that is the same in every run.

`make prove` and `make prove-operator` set SNAPLOOM_PROVE.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from typing import TypeVar

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
