"""Events that say that a condition changed: once, when it does."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.common import Condition
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.decision import EventType, Note


def stalled_notes(before: Iterable[Condition], after: Iterable[Condition]) -> tuple[Note, ...]:
    """A warning when a resource stalls, or stalls for another reason."""
    old, new = _of(before, ConditionType.STALLED), _of(after, ConditionType.STALLED)
    if new is None or (old is not None and old.reason == new.reason):
        return ()
    return (Note(EventType.WARNING, new.reason, new.message or new.reason),)


def stale_notes(before: Iterable[Condition], after: Iterable[Condition]) -> tuple[Note, ...]:
    """A warning when something becomes too old, where stalling does not say so already."""
    old, new = _of(before, ConditionType.READY), _of(after, ConditionType.READY)
    is_stale = new is not None and new.reason == Reason.STALE
    was_stale = old is not None and old.reason == Reason.STALE
    if new is None or not is_stale or was_stale or _of(after, ConditionType.STALLED) is not None:
        return ()
    return (Note(EventType.WARNING, Reason.STALE, new.message),)


def _of(conditions: Iterable[Condition], type_: ConditionType) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)
