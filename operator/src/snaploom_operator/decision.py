"""What reconciling one resource comes to."""

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
    """What is to be done, said and looked at again.

    Actions are performed first, in order; the first that fails ends the pass, which is tried again
    with backoff. Then the status, which describes what was observed before the actions, is written
    where it differs from the one observed. After actions, or a new status, the resource is looked
    at again at once, so that each pass makes one step.
    """

    status: ResourceStatus
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    requeue_after: float | None = None
    """Seconds until the resource is to be looked at again, if nothing happens before."""
