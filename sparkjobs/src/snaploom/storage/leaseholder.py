"""Acquires a lease for a run, renews it in a thread, and releases it.

Use `LeaseKeeper.keeping`. A lease held by another keeps a run from working before it begins and
before each further snapshot. The snapshot at hand is finished, since publishing it twice is
impossible (rule P17); if the service does not answer, the run goes on with a warning.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from snaploom.errors import LeaseNotObtained, SnaploomError
from snaploom.storage.folder import Folder
from snaploom.storage.leases import Contender, Lease, carry_out
from snaploom.storage.objectstore import STORE_FAILURES
from snaploom.storage.writeridentity import Run

_log = logging.getLogger(__name__)

OpenLease = Callable[[Folder, Run], Lease]
"""Gives the lease of a folder, for a run."""


@dataclass(frozen=True)
class LeaseTerms:
    """Durations of a lease, in seconds."""

    duration: int = 30
    """Without a renewal, after which others may take a lease: twice what Kubernetes' controllers
    use, since nothing but time is lost by waiting, and a driver of Spark may be short of CPU."""
    every: float = 10.0
    """Between renewals: a third, so that two may be lost."""
    patience: float = 60.0
    """Before a run gives up that finds another one at work: long enough to see that a holder is
    gone, and for one that is replaced to end, which a pod has 30 s for."""
    poll_every: float = 1.0
    """Between two looks of those who wait."""


TERMS = LeaseTerms()


class LeaseKeeper:
    """A run's participation in the election for a lease.

    Args:
        lease: of the folder.
        holder: id of the run.
        terms: how long everything takes.
        clock: seconds that never go back, by which everything is decided.
        wait: waits for seconds, and raises when the run is to stop.
    """

    def __init__(
        self,
        lease: Lease,
        holder: str,
        terms: LeaseTerms = TERMS,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._lease = lease
        # It trusts its lease for as long as it promised: two at work at once only waste time.
        self._contender = Contender(holder, terms.duration, terms.duration, clock)
        self._terms = terms
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()
        self._is_warned = False
        self._is_over = False

    @contextmanager
    def keeping(self, on_wait: Callable[[str], None]) -> Iterator[None]:
        """Hold the lease for the block; `on_wait` is called once with another holder.

        Raises:
            LeaseNotObtained: another run is at work.
            Exception: any error of `wait`.
        """
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(self._terms.every):
                self.keep()

        try:
            self.acquire(on_wait)
            threading.Thread(target=renew, name="snaploom-lease", daemon=True).start()
            yield
        finally:
            ended.set()
            self.release()

    def acquire(self, on_wait: Callable[[str], None]) -> None:
        """Acquire the lease as soon as it is free; see `keeping`."""
        deadline = self._clock() + self._terms.patience
        is_reported = False
        while rival := self._try():
            if self._clock() >= deadline:
                raise _not_obtained(rival, f"it was waited for {self._terms.patience:.0f} s")
            if not is_reported:
                on_wait(rival)
                is_reported = True
            self._wait(self._terms.poll_every)

    def keep(self) -> None:
        """Renew the lease once, or try to acquire it again; raises nothing."""
        with self._lock:
            if self._is_over:
                return
            try:
                self._hold()
            except SnaploomError as error:
                self._warn(error)

    def check(self) -> None:
        """Raise `LeaseNotObtained` if another run holds the lease, so that no work may begin."""
        if not self._contender.left:
            # This process slept, or nobody answered: others may have taken it meanwhile.
            self.keep()
        if self._contender.rival:
            raise _not_obtained(
                self._contender.rival, "it took the lease while this run was silent"
            )

    def release(self) -> None:
        """Release it if it is ours; when that fails, others wait until it has expired."""
        with self._lock:
            self._is_over = True
            try:
                carry_out(self._contender.release(), self._lease)
            except SnaploomError as error:
                _log.info("cannot release the lease: %s", error.message)

    def _try(self) -> str:
        """Take the lease if it is free; returns the other holder, empty when that is unknown."""
        with self._lock:
            try:
                self._hold()
            except STORE_FAILURES as error:
                self._warn(error)
                return ""
            return self._contender.rival

    def _hold(self) -> None:
        if carry_out(self._contender.hold(), self._lease):
            self._is_warned = False

    def _warn(self, error: SnaploomError) -> None:
        if not self._is_warned:
            self._is_warned = True
            _log.warning(
                "the run goes on without its lease, so that another one may do the same work: %s",
                error.message,
            )


def _not_obtained(rival: str, found: str) -> LeaseNotObtained:
    return LeaseNotObtained(
        f"run {rival} is at work on this output",
        found=found,
        hint="run again when it has ended; what it publishes is not woven twice",
    )
