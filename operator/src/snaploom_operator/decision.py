"""The decision of one reconcile pass: actions, status and events; data without effects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from snaploom.models.common import ResourceStatus
from snaploom_operator.actions import Action


class EventType(StrEnum):
    """Type of a Kubernetes event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True)
class Note:
    """An event about the resource, recorded when something changed."""

    type: EventType
    reason: str
    """Stable CamelCase reason, a member of `conditions.Reason`."""
    message: str


@dataclass(frozen=True)
class Decision:
    """The result of one reconcile pass.

    Actions are performed first, in order; the first failure ends the pass, which is retried with
    backoff. Then the status, which describes the observation before the actions, is written if it
    changed. After an action or a new status the resource is requeued immediately, so that each pass
    makes one step.
    """

    status: ResourceStatus
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    requeue_after: float | None = None
    """Seconds until the resource is reconciled again without an event."""
