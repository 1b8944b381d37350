"""Throttles namespaces with many denied reviews.

A denied review costs as much as an allowed one, and an endless stream of them slows down all
others. So each denial delays the next reviews of its namespace a little. A few mistakes have no
effect, and the delay decays within a minute.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

HALF_LIFE_SECONDS = 10.0
"""Half-life of a denial's weight."""
FREE_REFUSALS = 10.0
"""Denials without a delay, such as a folder of invalid resources."""
SECONDS_A_REFUSAL = 0.05
"""Delay that each further denial adds. Four connections of denied reviews reach some three reviews
a second."""
LONGEST_WAIT_SECONDS = 1.5
"""Less than half of a review's deadline (`webhookserver.REVIEW_SECONDS`), so that it is still
answered."""
MOST_REMEMBERED = 1_000
"""Namespaces in memory; beyond it those with the fewest denials are dropped."""


@dataclass(frozen=True)
class _Count:
    count: float
    at: float


class RefusalThrottle:
    """Recent denials by namespace, with exponential decay; its clock is monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}

    def note(self, namespace: str) -> None:
        """Count a denied review of a namespace."""
        self._counts[namespace] = _Count(self._count(namespace) + 1, self._clock())
        if len(self._counts) > MOST_REMEMBERED:
            most = sorted(self._counts, key=self._count, reverse=True)[: MOST_REMEMBERED // 2]
            self._counts = {each: self._counts[each] for each in most}

    def wait(self, namespace: str) -> float:
        """Seconds of delay of the next review of a namespace."""
        beyond = self._count(namespace) - FREE_REFUSALS
        return min(max(beyond, 0.0) * SECONDS_A_REFUSAL, LONGEST_WAIT_SECONDS)

    def _count(self, namespace: str) -> float:
        refused = self._counts.get(namespace)
        if refused is None:
            return 0.0
        return refused.count * math.pow(0.5, (self._clock() - refused.at) / HALF_LIFE_SECONDS)
