"""Events about changed conditions, posted once per change."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.common import Condition, ConditionStatus
from snaploom.models.run import LastRun
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.decision import EventType, Note

FINAL = (Reason.RETRIES_EXHAUSTED, Reason.RUN_REFUSED)
"""Reasons of failed runs that are not retried."""


def stalled_notes(before: Iterable[Condition], after: Iterable[Condition]) -> tuple[Note, ...]:
    """A warning when a resource stalls, or stalls for another reason."""
    old, new = _of(before, ConditionType.STALLED), _of(after, ConditionType.STALLED)
    if new is None or (old is not None and old.reason == new.reason):
        return ()
    return (Note(EventType.WARNING, new.reason, new.message or new.reason),)


def stale_notes(before: Iterable[Condition], after: Iterable[Condition]) -> tuple[Note, ...]:
    """A warning when a resource becomes stale, unless it stalls as well."""
    old, new = _of(before, ConditionType.READY), _of(after, ConditionType.READY)
    is_stale = new is not None and new.reason == Reason.STALE
    was_stale = old is not None and old.reason == Reason.STALE
    if new is None or not is_stale or was_stale or _of(after, ConditionType.STALLED) is not None:
        return ()
    return (Note(EventType.WARNING, Reason.STALE, new.message),)


def final_notes(ended: LastRun | None, after: Iterable[Condition]) -> tuple[Note, ...]:
    """A warning when a run failed finally while a snapshot is published.

    Without a snapshot the resource stalls, which `stalled_notes` reports.
    """
    ready = _of(after, ConditionType.READY)
    if ended is None or ready is None or ready.reason not in FINAL:
        return ()
    if ready.status is not ConditionStatus.TRUE:
        return ()
    return (Note(EventType.WARNING, ready.reason, ready.message),)


def _of(conditions: Iterable[Condition], type_: ConditionType) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)
