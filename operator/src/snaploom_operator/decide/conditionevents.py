"""Events about changed conditions, posted once per change."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.common import Condition, ConditionStatus
from snaploom.models.run import LastRun
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.decision import EventType, Note

FINAL = (Reason.RETRIES_EXHAUSTED, Reason.RUN_REFUSED)
"""Reasons of failed runs that are not retried."""


def condition_notes(
    before: Iterable[Condition], after: Iterable[Condition], ended: LastRun | None = None
) -> tuple[Note, ...]:
    """Warnings about a resource that stalls or becomes stale, or whose run failed finally."""
    old, new = ({each.type: each for each in conditions} for conditions in (before, after))
    notes = []
    stalled, was_stalled = new.get(ConditionType.STALLED), old.get(ConditionType.STALLED)
    if stalled and not (was_stalled and was_stalled.reason == stalled.reason):
        notes.append(Note(EventType.WARNING, stalled.reason, stalled.message or stalled.reason))
    ready, was_ready = new[ConditionType.READY], old.get(ConditionType.READY)
    became_stale = ready.reason == Reason.STALE and not (
        was_ready and was_ready.reason == Reason.STALE
    )
    has_failed = ended and ready.reason in FINAL and ready.status is ConditionStatus.TRUE
    if (became_stale and not stalled) or has_failed:
        notes.append(Note(EventType.WARNING, ready.reason, ready.message))
    return tuple(notes)
