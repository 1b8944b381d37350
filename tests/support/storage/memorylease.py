"""A lease in memory, which several parties share; it does not answer on demand."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.output.leases import FREE, LeaseState, LeaseUnavailable, Swap


@dataclass
class MemoryLease:
    """See `snaploom.output.leases.Lease`; nothing of it belongs to one party."""

    seen: LeaseState = FREE
    is_down: bool = False
    changes: int = 0

    def read(self) -> LeaseState:
        if self.is_down:
            raise LeaseUnavailable("the lease is unavailable: no answer")
        return self.seen

    def swap(self, swap: Swap) -> LeaseState | None:
        if self.read() != swap.expected:
            return None
        self.changes += 1
        self.seen = LeaseState(swap.holder, swap.seconds, str(self.changes))
        return self.seen
