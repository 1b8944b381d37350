"""The retry rule, shared by the operator, its metrics and `snaploom status`."""

from __future__ import annotations

from snaploom.models.run import LastPhase, LastRun, Retry


def has_attempts(last: LastRun, retry: Retry) -> bool:
    """Return whether a run failed and has retries left."""
    failed = last.phase is not LastPhase.SUCCEEDED and last.retryable
    return failed and last.attempt < retry.limit
