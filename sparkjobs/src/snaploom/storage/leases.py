"""Leases: who works on an output folder, so that no other run does the same work meanwhile.

They only save work (rule P17). What is published rests only on the manifest log: a holder that
slept through its lease, or two that both believe to hold it, publish every snapshot once all the
same. So a lease that cannot be had for want of an answer stops nothing.

Clocks of machines differ, so that no time written by another is believed: a holder counts as gone
when its lease was seen not to change, by our own clock, for as long as it promised to renew it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from snaploom.errors import StorageError


class LeaseUnavailable(StorageError):
    """The service that keeps the leases does not answer, or refuses."""

    reason = "LeaseUnavailable"


@dataclass(frozen=True)
class LeaseState:
    """The state of a lease at one time."""

    holder: str
    """Run that holds it; empty when it is free."""
    seconds: int
    """For how long its holder promised not to be silent."""
    mark: str
    """Another one after every change, a renewal included; has no other meaning."""


class Lease(Protocol):
    """The lease of one folder. Of any number that take what they saw at once, one gets it.

    All methods raise `StorageError` or `FolderNotWritable` when they do not know, after which a
    change may or may not have happened.
    """

    def read(self) -> LeaseState:
        """The lease as it is now."""
        ...

    def take(self, seen: LeaseState, holder: str, seconds: int) -> LeaseState | None:
        """Become its holder; None when it is not any more what was seen.

        Args:
            seen: what was seen last; its holder counts as gone.
            holder: id of the run.
            seconds: for how long it will be silent at most.
        """
        ...

    def renew(self, held: LeaseState) -> LeaseState | None:
        """Show that its holder lives; None when it is not any more what was held."""
        ...

    def release(self, holder: str) -> None:
        """Let others have it at once; does nothing when it is not, or no longer, the holder's."""
        ...
