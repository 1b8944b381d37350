"""A lease in memory, which several parties share; it does not answer on demand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from snaploom.storage.leases import LeaseState, LeaseUnavailable


@dataclass
class MemoryLease:
    """See `snaploom.storage.leases.Lease`; nothing of it belongs to one party."""

    seen: LeaseState = field(default_factory=lambda: LeaseState("", 0, "0"))
    is_down: bool = False
    changes: int = 0

    def read(self) -> LeaseState:
        if self.is_down:
            raise LeaseUnavailable("the lease is not to be had: no answer")
        return self.seen

    def take(self, seen: LeaseState, holder: str, seconds: int) -> LeaseState | None:
        return self._changed(LeaseState(holder, seconds, "")) if self.read() == seen else None

    def renew(self, held: LeaseState) -> LeaseState | None:
        return self._changed(held) if self.read() == held else None

    def release(self, holder: str) -> None:
        if self.read().holder == holder:
            self._changed(LeaseState("", 0, ""))

    def _changed(self, wanted: LeaseState) -> LeaseState:
        self.changes += 1
        self.seen = replace(wanted, mark=str(self.changes))
        return self.seen
