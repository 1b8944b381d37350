"""What the operator knows of objects in the cluster: keys, and frozen views of what it reads.

Raw objects are parsed here and in the submitters, once; everything after works on these views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from snaploom.models.report import Report
from snaploom.models.run import RunAction, Submitter, Trigger
from snaploom.models.times import EpochNanos

JsonObject = Mapping[str, JsonValue]
"""An object as the API server writes it; read only."""

LABEL_KIND = "snaploom.io/kind"
"""Label of child objects: kind of the resource that owns them."""
LABEL_NAME = "snaploom.io/name"
"""Label of child objects: name of that resource, cut to the 63 characters of a label."""
LABEL_OWNER = "snaploom.io/owner-uid"
"""Label of child objects: UID of that resource. Names come again after a deletion, UIDs do not."""
LABEL_RUN = "snaploom.io/run"
"""Label of child objects: name of the run; label selectors of watches ask for it."""
LABEL_ROLE = "snaploom.io/role"
"""Label of child ConfigMaps: `bundle`, `report`, `plan`, or `application` of a local run."""
ANNOTATION_TRIGGER = "snaploom.io/trigger"
"""Annotation of applications: attempt, action, start and Trigger of the run, as JSON."""
ANNOTATION_RUN = "snaploom.io/run"
"""Annotation of our resources: another value asks for a run."""
ANNOTATION_PAUSED = "snaploom.io/paused"
"""Annotation of our resources: "true" stops everything but status."""
FINALIZER = "snaploom.io/finalizer"
"""Held only with `deletionPolicy: Delete` (`operator.md` section 5, trap 10)."""


@dataclass(frozen=True, order=True)
class Ref:
    """Names one object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


class ApplicationState(StrEnum):
    """State of an application, in the words of spark-operator's v1beta2."""

    NEW = ""
    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SUBMISSION_FAILED = "SUBMISSION_FAILED"
    PENDING_RERUN = "PENDING_RERUN"
    INVALIDATING = "INVALIDATING"
    SUCCEEDING = "SUCCEEDING"
    FAILING = "FAILING"
    SUSPENDING = "SUSPENDING"
    SUSPENDED = "SUSPENDED"
    RESUMING = "RESUMING"
    UNKNOWN = "UNKNOWN"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing follows: true of two states only (`operator.md` section 4)."""
        return self in (ApplicationState.COMPLETED, ApplicationState.FAILED)

    @property
    def has_started(self) -> bool:
        """Whether the driver runs or ran; the start timeout is about states before."""
        return self not in (
            ApplicationState.NEW,
            ApplicationState.SUBMITTED,
            ApplicationState.SUBMISSION_FAILED,
            ApplicationState.PENDING_RERUN,
            ApplicationState.INVALIDATING,
        )


@dataclass(frozen=True)
class Application:
    """One run in the cluster, whoever executes it."""

    submitter: Submitter
    name: str
    """Name of the object, which is the run's."""
    uid: str
    owner_uid: str
    """UID of our resource."""
    state: ApplicationState
    message: str
    """What its controller says, for people; empty when it says nothing."""
    driver_pod: str
    """Name of the driver's pod; empty before there is one."""
    action: RunAction
    attempt: int
    trigger: Trigger
    started_at: EpochNanos
    """When the operator decided on it."""
    is_deleting: bool
    """Whether it is being deleted."""


@dataclass(frozen=True)
class DriverPod:
    """What the driver's pod is doing."""

    name: str
    run: str
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    trouble: str
    """Why it does not start, or how it ended: the messages of its conditions and containers."""


@dataclass(frozen=True)
class FoundReport:
    """The report ConfigMap of a run."""

    run: str
    report: Report | None
    """None where it cannot be read."""
    trouble: str = ""
    """Why it cannot be read; empty when it can."""
