"""Events that say that a condition changed: once, when it does."""

from __future__ import annotations

from collections.abc import Iterable

from snaploom.models.common import Condition, ConditionStatus
from snaploom_operator.conditions import ConditionType
from snaploom_operator.decision import EventType, Note


def stalled_notes(before: Iterable[Condition], after: Iterable[Condition]) -> tuple[Note, ...]:
    """A warning when a resource stalls, or stalls for another reason."""
    old, new = _of(before, ConditionType.STALLED), _of(after, ConditionType.STALLED)
    if new is None or (old is not None and old.reason == new.reason):
        return ()
    return (Note(EventType.WARNING, new.reason, new.message),)


def ready_notes(before: Iterable[Condition], after: Iterable[Condition]) -> tuple[Note, ...]:
    """An event when a resource becomes Ready."""
    old, new = _of(before, ConditionType.READY), _of(after, ConditionType.READY)
    was = old is not None and old.status is ConditionStatus.TRUE
    if new is None or was or new.status is not ConditionStatus.TRUE:
        return ()
    return (Note(EventType.NORMAL, new.reason, new.message),)


def _of(conditions: Iterable[Condition], type_: ConditionType) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)
