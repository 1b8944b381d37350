"""Contest for a lease: its holder, its expiry, and when another may take it over.

All leases are contested by this rule: that of the operator's leader election, and those of output
folders, whether a Kubernetes `Lease` or claims of the manifest log keep them. An adapter only reads
a lease and compares and swaps it; it decides nothing.

Clocks of machines differ, so that no time written by another is believed: a holder counts as gone
when its lease was seen not to change, by our own clock, for as long as it promised to renew it. A
holder counts from before its request, and may trust its lease for less than it promised; then
two never trust theirs at once while their clocks run equally fast, up to the ratio of the two.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from snaploom.errors import StorageError

RELEASE_ATTEMPTS = 3
"""Only one cancelled renewal can be in flight, so the second meets no write of our own."""
TAKE_ATTEMPTS = 2
"""Of one attempt to hold a lease: where it changed since it was read, it is read once more."""

Result = TypeVar("Result")


class LeaseUnavailable(StorageError):
    """The service that keeps the leases does not answer, or refuses."""


@dataclass(frozen=True)
class LeaseState:
    """State of a lease at one time."""

    holder: str
    """The contender that holds it; empty when it is free."""
    seconds: int
    """For how long its holder promised not to be silent."""
    version: str
    """Another one after every change, a renewal included; has no other meaning. Empty for a lease
    that was never written."""


FREE = LeaseState("", 0, "")
"""A lease that was never written."""


@dataclass(frozen=True)
class Read:
    """Request for the current state of a lease."""


@dataclass(frozen=True)
class Swap:
    """Request to replace the state of a lease, if it is still the expected one."""

    expected: LeaseState
    holder: str
    """The contender that takes or renews the lease; empty to release it."""
    seconds: int
    """For how long the holder will be silent at most."""


Attempt = Generator[Read | Swap, LeaseState | None, Result]
"""Requests to a lease one after the other, each answered by the state after it: None where a swap
did not find what it expected."""


class Lease(Protocol):
    """Storage of one lease. Of any number of swaps that expect the same state, one succeeds.

    Both methods raise `StorageError` or `FolderNotWritable` when they do not know, after which a
    change may or may not have happened.
    """

    def read(self) -> LeaseState:
        """Return the current state of the lease."""

    def swap(self, swap: Swap) -> LeaseState | None:
        """Return the lease after a swap; None when its state was not the expected one."""


class Contender:
    """Knowledge that one participant has of a lease.

    Args:
        identity: unique among all that ever contend for the lease.
        seconds: for how long it promises not to be silent.
        trusted: seconds after the request of its last renewal for which it counts as the holder.
        clock: seconds that never go back, by which everything is decided.
    """

    def __init__(
        self, identity: str, seconds: int, trusted: float, clock: Callable[[], float]
    ) -> None:
        self._identity = identity
        self._seconds = seconds
        self._trusted = trusted
        self._clock = clock
        self._held: LeaseState | None = None
        self._renewed_at: float | None = None
        self._seen = ("", 0.0)
        self.rival = ""
        """Other holder at the last read; empty when there was none."""

    @property
    def left(self) -> float:
        """Seconds for which it counts as the holder without a renewal."""
        if self._renewed_at is None:
            return 0.0
        return max(self._renewed_at + self._trusted - self._clock(), 0.0)

    def hold(self) -> Attempt[bool]:
        """Renew the lease, or take it if it is free, its own or expired; whether it holds it."""
        if self._held is not None and (yield from self._swapped(self._held)):
            return True
        for _ in range(TAKE_ATTEMPTS):
            seen = (yield Read()) or FREE
            if self._is_taken(seen):
                self.rival = seen.holder
                self._renewed_at = None
                return False
            if (yield from self._swapped(seen)):
                return True
        return False

    def release(self) -> Attempt[None]:
        """Let others have the lease at once; does nothing when it is not, or no longer, its own."""
        self.give_up()
        for _ in range(RELEASE_ATTEMPTS):
            seen = (yield Read()) or FREE
            if seen.holder != self._identity:
                return
            if (yield Swap(seen, "", seen.seconds)) is not None:
                return

    def give_up(self) -> None:
        """Hold the lease no longer, without a request."""
        self._held = self._renewed_at = None

    def _swapped(self, expected: LeaseState) -> Attempt[bool]:
        started = self._clock()
        self._held = yield Swap(expected, self._identity, self._seconds)
        if self._held is None:
            return False
        self.rival = ""
        self._renewed_at = started
        return True

    def _is_taken(self, seen: LeaseState) -> bool:
        if seen.holder in ("", self._identity):
            return False
        version, since = self._seen
        if seen.version != version:
            self._seen = seen.version, self._clock()
            return True
        return self._clock() - since < seen.seconds


def carry_out(attempt: Attempt[Result], lease: Lease) -> Result:
    """Return the result of an attempt on a lease; an error of the lease ends the attempt."""
    try:
        request = next(attempt)
        while True:
            answer = lease.read() if isinstance(request, Read) else lease.swap(request)
            request = attempt.send(answer)
    except StopIteration as ended:
        result: Result = ended.value
        return result
