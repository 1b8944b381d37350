"""Leases of a run: acquired, renewed in a thread, released; in the log if nowhere better."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from snaploom import errors
from snaploom.files.objectstore import STORE_FAILURES
from snaploom.models.base import ApiModel
from snaploom.output import layout
from snaploom.output.documents import read_hint
from snaploom.output.entries import Claim
from snaploom.output.folder import Folder, Run
from snaploom.output.layout import Count
from snaploom.output.leases import FREE, Contender, Lease, LeaseState, Swap, carry_out
from snaploom.output.state import FolderState

_log = logging.getLogger(__name__)


# Leases by claim entries of the manifest log, where nothing better keeps them (rule P17).

SCOPE = "publish"
"""Scope of the claims of runs that publish."""

MOST_RENEWALS = 10**15
"""Of one claim; then it is counted from zero again: only a change of the count counts."""


class _Renewals(ApiModel):
    claim: Count
    renewals: Annotated[int, Ge(0), Le(MOST_RENEWALS)]


class ClaimLease:
    """The lease of a folder, kept in its own log; see `snaploom.output.leases.Lease`."""

    def __init__(self, folder: Folder, run: Run) -> None:
        self._folder = folder
        self._run = run

    def read(self) -> LeaseState:
        """The newest claim, and how often it was renewed."""
        return self._state_in(self._folder.log.read())

    def swap(self, swap: Swap) -> LeaseState | None:
        """Write a claim on top of the expected one, of no seconds to release it; or renew it."""
        expected = swap.expected
        if swap.holder and swap.holder == expected.holder:
            return self._renewed(expected)
        holder, seconds = (swap.holder, swap.seconds) if swap.holder else (expected.holder, 0)

        def entry(state: FolderState) -> Claim | None:
            is_expected = self._state_in(state) == expected
            if not is_expected:
                return None
            head = self._run.head(state)
            head["run_id"] = holder
            return Claim(**head, scope=SCOPE, seconds=seconds)

        claim = self._folder.log.commit(entry).claims.get(SCOPE)
        if claim is None or claim.seq == _number(expected):
            return None
        return _state_of(claim, 0) if (claim.run_id, claim.seconds) == (holder, seconds) else None

    def _renewed(self, held: LeaseState) -> LeaseState | None:
        state = self._folder.log.read()
        claim = state.claims.get(SCOPE)
        if claim is None or claim.seq != _number(held) or not _counts(claim, state):
            return None
        beats = (int(held.version.rpartition(".")[2]) + 1) % MOST_RENEWALS
        renewals = _Renewals(claim=claim.seq, renewals=beats)
        self._folder.store.put(layout.CLAIM, renewals.dump_json().encode() + b"\n")
        return _state_of(claim, beats)

    def _state_in(self, state: FolderState) -> LeaseState:
        claim = state.claims.get(SCOPE)
        if claim is None:
            return FREE
        if not _counts(claim, state):
            return _released(claim)
        return _state_of(claim, self._beats(claim.seq))

    def _beats(self, seq: int) -> int:
        renewals = read_hint(self._folder.store, layout.CLAIM, _Renewals)
        return renewals.renewals if renewals is not None and renewals.claim == seq else 0


def _counts(claim: Claim, state: FolderState) -> bool:
    """Whether a claim is held: not given back, by a run that may still publish."""
    return claim.seconds > 0 and claim.run_id not in state.revoked


def _state_of(claim: Claim, beats: int) -> LeaseState:
    if not claim.seconds:
        return _released(claim)
    return LeaseState(claim.run_id, claim.seconds, f"{claim.seq}.{beats}")


def _released(claim: Claim) -> LeaseState:
    return LeaseState("", 0, str(claim.seq))


def _number(state: LeaseState) -> int:
    return int(state.version.partition(".")[0] or -1)


# Acquires a lease for a run, renews it in a thread, and releases it.

OpenLease = Callable[[Folder, Run], Lease]


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
    """A run's participation in the election for its folder's lease.

    `clock` never goes back and decides everything; `wait` raises when the run is to stop.
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
            except errors.SnaploomError as error:
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
            except errors.SnaploomError as error:
                _log.info("cannot release the lease: %s", error.message)

    def _try(self) -> str:
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

    def _warn(self, error: errors.SnaploomError) -> None:
        if not self._is_warned:
            self._is_warned = True
            _log.warning(
                "the run goes on without its lease, so that another one may do the same work: %s",
                error.message,
            )


def _not_obtained(rival: str, found: str) -> errors.LeaseNotObtained:
    return errors.LeaseNotObtained(f"run {rival} is at work on this output", found=found)
