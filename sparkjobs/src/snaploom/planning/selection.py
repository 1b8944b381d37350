"""Which of the snapshots that are due one run is to publish: all, a span of time, or one again."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.times import EpochNanos


@dataclass(frozen=True, slots=True)
class Selection:
    """The snapshots requested; all others are treated as not due."""

    first: EpochNanos | None = None
    """Earliest snapshot time; None for no limit."""
    end: EpochNanos | None = None
    """Snapshot times are before it; None for no limit."""
    restated: EpochNanos | None = None
    """The one published snapshot that is woven again; None to publish those that are due."""

    def holds(self, time: EpochNanos) -> bool:
        """Whether a snapshot time lies in the span."""
        after = self.first is None or self.first <= time
        return after and (self.end is None or time < self.end)


EVERYTHING = Selection()
"""All that is due."""
