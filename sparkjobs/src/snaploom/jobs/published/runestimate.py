"""Estimates of publishing more snapshots, from those that are published."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from pydantic import JsonValue

from snaploom.storage.state import FolderState

_LOOKED_AT = 50
"""Snapshots, the newest ones, that an estimate is made from: older ones predict less."""


@dataclass(frozen=True)
class Estimate:
    """About what some snapshots will take; None where nothing published shows it."""

    snapshots: int
    """Snapshots that are due."""
    rows: int | None = None
    """Rows in all of them."""
    bytes: int | None = None
    """Bytes of their files."""
    seconds: float | None = None
    """Wall time of weaving and publishing them."""

    @property
    def document(self) -> JsonValue:
        """For programs."""
        return {
            "snapshots": self.snapshots,
            "rows": self.rows,
            "bytes": self.bytes,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        count = f"{self.snapshots} snapshot{'' if self.snapshots == 1 else 's'} due"
        if self.rows is None or self.bytes is None:
            return f"{count}; nothing published yet allows an estimate"
        size = f"{count}; about {self.rows:,} rows, {self.bytes / 2**20:,.1f} MiB"
        return size if self.seconds is None else f"{size}, {self.seconds:,.0f} s"


def estimate_of(state: FolderState, due: int) -> Estimate:
    """Estimate the publication of so many snapshots more.

    Rows and bytes are the mean of what is published. The time of a snapshot is the median of that
    between two publications of one run, which wove one right after the other.

    Args:
        state: what is published.
        due: snapshots to publish.
    """
    known = sorted(state.snapshots, key=lambda record: record.created_at)[-_LOOKED_AT:]
    if not known:
        return Estimate(due)
    pauses = [
        (later.created_at - earlier.created_at) / 1e9
        for earlier, later in pairwise(known)
        if earlier.run_id == later.run_id
    ]
    return Estimate(
        due,
        round(due * fmean(record.rows for record in known)),
        round(due * fmean(sum(file.bytes for file in record.files) for record in known)),
        round(due * median(pauses), 1) if pauses else None,
    )
