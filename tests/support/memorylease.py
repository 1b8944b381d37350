"""A lease in memory, which several parties share; it does not answer when told to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from snaploom.storage.leases import LeaseUnavailable, Sighting


@dataclass
class MemoryLease:
    """See `snaploom.storage.leases.Lease`; nothing of it belongs to one party."""

    seen: Sighting = field(default_factory=lambda: Sighting("", 0, "0"))
    is_down: bool = False
    changes: int = 0

    def look(self) -> Sighting:
        if self.is_down:
            raise LeaseUnavailable("the lease is not to be had: no answer")
        return self.seen

    def take(self, seen: Sighting, holder: str, seconds: int) -> Sighting | None:
        return self._changed(Sighting(holder, seconds, "")) if self.look() == seen else None

    def renew(self, held: Sighting) -> Sighting | None:
        return self._changed(held) if self.look() == held else None

    def release(self, holder: str) -> None:
        if self.look().holder == holder:
            self._changed(Sighting("", 0, ""))

    def _changed(self, wanted: Sighting) -> Sighting:
        self.changes += 1
        self.seen = replace(wanted, mark=str(self.changes))
        return self.seen
