"""Keys that wait to be worked on: each once, never two passes for one key at a time.

It follows the queue of controllers written in Go. A key that is added while it is being worked on
is worked on again afterwards, so that no change is lost. Keys come out in the order in which they
became due. Failures are counted per key and delay it further and further, with jitter, so that many
that failed for one reason do not come back at one moment.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")

FIRST_BACKOFF = 1.0
"""Seconds after the first failure; most conflicts are over by then."""
LONGEST_BACKOFF = 300.0
"""Seconds: a cluster that is mended is noticed within minutes, and one that is broken is asked
rarely."""
JITTER = 0.2
"""Share of a delay by which it is lengthened at random."""


@dataclass(frozen=True)
class Backoff:
    """How long to wait after failures."""

    first: float = FIRST_BACKOFF
    longest: float = LONGEST_BACKOFF
    jitter: float = JITTER

    def after(self, failures: int, chance: float) -> float:
        """Seconds after so many failures in a row; `chance` is between 0 and 1."""
        exponent = min(failures - 1, 30)  # beyond that the longest is reached, and floats are not
        return min(self.longest, self.first * 2.0**exponent) * (1 + self.jitter * chance)


class WorkQueue(Generic[Key]):
    """The queue.

    Args:
        clock: seconds that never go back.
        backoff: how long to wait after failures.
        chance: numbers between 0 and 1, for jitter.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        backoff: Backoff | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._chance = chance
        self._ready: dict[Key, float] = {}
        """Keys that may be taken, in order, and since when."""
        self._busy: set[Key] = set()
        self._again: dict[Key, float] = {}
        """Keys that were added while they are busy, and when."""
        self._later: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        """When a delayed key is due; entries of `_later` that say otherwise are outdated."""
        self._numbers = itertools.count()
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def add(self, key: Key) -> None:
        """Have a key worked on as soon as possible."""
        now = self._clock()
        if key in self._busy:
            self._again.setdefault(key, now)
        elif key not in self._ready:
            self._ready[key] = now
            self._changed.set()

    def add_all(self, keys: Iterable[Key]) -> None:
        """Have keys worked on as soon as possible."""
        for key in keys:
            self.add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Have a key worked on after a time; of several times the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock() + seconds
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._later, (due, next(self._numbers), key))
            self._changed.set()

    def fail(self, key: Key, at_least: float = 0.0) -> float:
        """Have a key worked on again after a failure.

        Args:
            key: the key.
            at_least: seconds that the API server asked for.

        Returns:
            Seconds until then.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._backoff.after(failures, self._chance()))
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Count the failures of a key from none: it went well."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """The next key, as soon as there is one; `done` must follow."""
        while True:
            self._promote()
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                self._busy.add(key)
                return key
            self._changed.clear()
            await self._wait()

    def done(self, key: Key) -> None:
        """A key that was taken is worked off."""
        self._busy.discard(key)
        if key in self._again:
            self._ready[key] = self._again.pop(key)
            self._changed.set()

    @property
    def ready(self) -> tuple[Key, ...]:
        """Keys that may be taken now, in order."""
        self._promote()
        return tuple(self._ready)

    @property
    def depth(self) -> int:
        """Keys that could be worked on now."""
        self._promote()
        return len(self._ready) + len(self._again)

    @property
    def age(self) -> float:
        """Seconds since the key that waits longest could be worked on; 0 without one."""
        self._promote()
        since = min(
            (*itertools.islice(self._ready.values(), 1), *self._again.values()), default=None
        )
        return 0.0 if since is None else max(0.0, self._clock() - since)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is worked on, or could be now."""
        return not self._busy and self.depth == 0

    @property
    def next_due(self) -> float | None:
        """Seconds until the next delayed key is due; None without one."""
        return min(self._due.values()) - self._clock() if self._due else None

    def _promote(self) -> None:
        """Move what has become due among the keys that are ready."""
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)

    async def _wait(self) -> None:
        pause = max(0.0, self._later[0][0] - self._clock()) if self._later else None
        try:
            await asyncio.wait_for(self._changed.wait(), pause)
        except TimeoutError:
            return

    def wake(self) -> None:
        """Look at the clock again: it was moved by hand."""
        self._changed.set()
