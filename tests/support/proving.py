"""How much of a proof is shown: all of it, or a sample that is the same in every run.

`make prove-operator` sets the variable; it takes most of an hour.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

IS_WHOLE = os.environ.get("SNAPLOOM_PROOF_FAULTS") == "all"
_SEED = 20260101

Point = TypeVar("Point")


def sampled(points: Sequence[Point], most: int) -> Sequence[Point]:
    """All points, or so many of them, in their order."""
    if IS_WHOLE or len(points) <= most:
        return points
    chosen = random.Random(_SEED).sample(range(len(points)), most)
    return [points[number] for number in sorted(chosen)]
