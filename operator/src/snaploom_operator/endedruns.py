"""The run that ended between two statuses, for metrics."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.common import ResourceStatus
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import LastPhase, LastRun
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom.models.times import NANOS_PER_SECOND, parse_instant


@dataclass(frozen=True)
class EndedRun:
    """A run that ended."""

    phase: LastPhase
    reason: str
    """Of a failure; empty for none."""
    seconds: float | None
    """Its duration; None if its end was not observed."""
    published: int = 0
    """Snapshots."""
    rows: int = 0
    """Their rows."""
    bytes: int = 0
    """Their size."""


def ended_run(before: ResourceStatus | None, after: ResourceStatus) -> EndedRun | None:
    """The run that ended between two statuses of one resource."""
    was, now = _last(before), _last(after)
    if now is None or (was is not None and (was.id, was.attempt) == (now.id, now.attempt)):
        return None
    reason = now.reason if now.phase is not LastPhase.SUCCEEDED else ""
    seconds = None
    if now.finished_at is not None:
        nanos = parse_instant(now.finished_at) - parse_instant(now.started_at)
        seconds = max(0.0, nanos / NANOS_PER_SECOND)
    return EndedRun(now.phase, reason, seconds, now.published, now.rows, now.bytes)


def _last(status: ResourceStatus | None) -> LastRun | None:
    if isinstance(status, OutputDatasetStatus | SkippingIndexStatus):
        return status.last_run
    return None
