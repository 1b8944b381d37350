"""A work queue of keys, as in client-go: each key once, never two passes for one key at a time.

A key that is added while it is processed is processed again afterwards, so that no change is lost.
Keys are returned in the order in which they became due. Failures are counted per key and delay it
exponentially, with jitter, so that keys that failed for one reason are not retried at the same
moment.
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
"""Seconds: a recovered cluster is noticed within minutes, and a failing one gets few requests."""
JITTER = 0.2
"""Share of a delay by which it is lengthened at random."""


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with jitter."""

    first: float = FIRST_BACKOFF
    longest: float = LONGEST_BACKOFF
    jitter: float = JITTER

    def after(self, failures: int, chance: float) -> float:
        """Seconds to wait after consecutive failures; `chance` is between 0 and 1."""
        exponent = min(failures - 1, 30)  # the limit is reached before floats overflow
        return min(self.longest, self.first * 2.0**exponent) * (1 + self.jitter * chance)


class WorkQueue(Generic[Key]):
    """A queue of due and delayed keys, by monotonic seconds; `chance` is for the jitter."""

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
        """Due keys, in order, and since when."""
        self._busy: set[Key] = set()
        self._again: dict[Key, float] = {}
        """Keys that were added while they were processed, and when."""
        self._later: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        """When a delayed key is due; other entries of it in `_later` are outdated."""
        self._numbers = itertools.count()
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def add(self, key: Key) -> None:
        """Make a key due now."""
        now = self._clock()
        if key in self._busy:
            self._again.setdefault(key, now)
        elif key not in self._ready:
            self._ready[key] = now
            self._changed.set()

    def add_all(self, keys: Iterable[Key]) -> None:
        """Make keys due now."""
        for key in keys:
            self.add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Make a key due after a delay; the earliest of several delays counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock() + seconds
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._later, (due, next(self._numbers), key))
            self._changed.set()

    def fail(self, key: Key, at_least: float = 0.0) -> float:
        """Requeue a key with backoff, of at least some seconds, after a failure; the delay."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._backoff.after(failures, self._chance()))
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Reset the failure count of a key."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """Wait for the next due key; call `done` after processing it."""
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
        """Mark a taken key as processed."""
        self._busy.discard(key)
        if key in self._again:
            self._ready[key] = self._again.pop(key)
            self._changed.set()

    @property
    def ready(self) -> tuple[Key, ...]:
        """Due keys, in order."""
        self._promote()
        return tuple(self._ready)

    @property
    def depth(self) -> int:
        """Number of due keys; thread-safe."""
        now, due = self._clock(), self._due.copy()
        return len({*self._ready, *(key for key in due if due[key] <= now)}) + len(self._again)

    @property
    def age(self) -> float:
        """Seconds that the longest waiting key has been due; 0 without one. Thread-safe."""
        since = min((*self._ready.copy().values(), *self._again.copy().values()), default=None)
        return 0.0 if since is None else max(0.0, self._clock() - since)

    @property
    def is_idle(self) -> bool:
        """True if no key is due or being processed."""
        return not self._busy and self.depth == 0

    @property
    def next_due(self) -> float | None:
        """Seconds until the next delayed key is due; None without one."""
        return min(self._due.values()) - self._clock() if self._due else None

    def _promote(self) -> None:
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
