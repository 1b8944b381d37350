"""Leases by claim entries of the manifest log, where nothing better keeps them (rule P17).

Who takes a folder and who gives it back are entries, so that put-if-absent decides between two;
the number of a claim is its token. Renewals are not: a run would write hundreds of entries a day
without meaning. They are a count in `metadata/_claim`, an object that is overwritten, which is
believed only when it names the newest claim.
"""

from __future__ import annotations

import logging
from typing import Annotated

from annotated_types import Ge, Le

from snaploom.errors import ManifestCorrupt, ObjectNotFound, ObjectTooLarge
from snaploom.models.base import ApiModel
from snaploom.storage import layout
from snaploom.storage.documentparser import HINT, get_bounded, parse_hint
from snaploom.storage.entries import Claim
from snaploom.storage.folder import Folder
from snaploom.storage.leases import FREE, LeaseState, Swap
from snaploom.storage.pathnames import Count
from snaploom.storage.state import FolderState
from snaploom.storage.writeridentity import Run

SCOPE = "publish"
"""Scope of the claims of runs that publish."""

MOST_RENEWALS = 10**15
"""Of one claim; then it is counted from zero again: only a change of the count counts."""

_log = logging.getLogger(__name__)


class _Renewals(ApiModel):
    claim: Count
    renewals: Annotated[int, Ge(0), Le(MOST_RENEWALS)]


class ClaimLease:
    """The lease of a folder, kept in its own log; see `snaploom.storage.leases.Lease`."""

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
            return self._entry(state, holder, seconds) if is_expected else None

        claim = _claim_in(self._folder.log.commit(entry))
        if claim is None or claim.seq == _number(expected):
            return None
        return _state_of(claim, 0) if (claim.run_id, claim.seconds) == (holder, seconds) else None

    def _renewed(self, held: LeaseState) -> LeaseState | None:
        state = self._folder.log.read()
        claim = _claim_in(state)
        if claim is None or claim.seq != _number(held) or not _counts(claim, state):
            return None
        beats = (int(held.version.rpartition(".")[2]) + 1) % MOST_RENEWALS
        renewals = _Renewals(claim=claim.seq, renewals=beats)
        self._folder.store.put(layout.CLAIM, renewals.dump_json().encode() + b"\n")
        return _state_of(claim, beats)

    def _entry(self, state: FolderState, holder: str, seconds: int) -> Claim:
        return Claim(
            seq=state.next_seq,
            run_id=holder,
            written_at=self._run.clock(),
            tool_version=self._run.tool_version,
            scope=SCOPE,
            seconds=seconds,
        )

    def _state_in(self, state: FolderState) -> LeaseState:
        claim = _claim_in(state)
        if claim is None:
            return FREE
        if not _counts(claim, state):
            return _released(claim)
        return _state_of(claim, self._beats(claim.seq))

    def _beats(self, seq: int) -> int:
        try:
            document = get_bounded(self._folder.store, layout.CLAIM, HINT)
            renewals = parse_hint(document, layout.CLAIM, _Renewals)
        except ObjectNotFound:
            return 0
        except (ManifestCorrupt, ObjectTooLarge) as error:
            _log.warning("ignoring %s: %s", layout.CLAIM, error.found)
            return 0
        return renewals.renewals if renewals.claim == seq else 0


def _claim_in(state: FolderState) -> Claim | None:
    return state.claims.get(SCOPE)


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
