"""Keys, labels and frozen views of cluster objects.

Raw objects are parsed once, into these views, by `store` and the submitters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from snaploom.models.report import Report
from snaploom.models.resource import Resource
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
"""Annotation of our resources: a new value requests a run."""
ANNOTATION_PAUSED = "snaploom.io/paused"
"""Annotation of our resources: it stops everything except status updates (`is_pause`)."""
_NOT_PAUSED = frozenset({
    "", "0", "false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF",
})  # fmt: skip
"""Values of that annotation that pause nothing: what YAML reads as false. Argo CD's Lua has the
same list. Any other value pauses: `yes` and `True` are meant as a pause."""
FINALIZER = "snaploom.io/finalizer"
"""Held only with `deletionPolicy: Delete` (rule R12)."""


def is_pause(annotations: Mapping[str, str]) -> bool:
    """Return whether the annotations pause a resource."""
    return annotations.get(ANNOTATION_PAUSED, "") not in _NOT_PAUSED


class Ref(NamedTuple):
    """The key of one object.

    A tuple, since a pass looks up dozens of keys, and a process holds tens of thousands.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """`Kind/name`, as messages name a resource."""
        return f"{self.kind}/{self.name}"

    @classmethod
    def to(cls, resource: Resource) -> Ref:
        """The key of a resource."""
        return cls(resource.kind, resource.metadata.namespace or "", resource.name)


class ApplicationState(StrEnum):
    """State of an application, as spark-operator's v1beta2 names it."""

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
        """True if the state is final: COMPLETED and FAILED only (rule R6)."""
        return self in (ApplicationState.COMPLETED, ApplicationState.FAILED)


@dataclass(frozen=True)
class Application:
    """The object of one run, of any submitter."""

    submitter: Submitter
    name: str
    """Name of the object, which is the run's."""
    uid: str
    owner_uid: str
    """UID of our resource."""
    state: ApplicationState
    message: str
    """Message of its controller; empty for none."""
    action: RunAction
    attempt: int
    trigger: Trigger
    started_at: EpochNanos
    """Time at which the operator started the run."""
    is_deleting: bool


@dataclass(frozen=True)
class DriverPod:
    """The state of the driver's pod."""

    name: str
    run: str
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    trouble: str
    """The messages of its conditions and containers while it does not start, or since its end."""


@dataclass(frozen=True)
class FoundReport:
    """The report ConfigMap of a run."""

    run: str
    report: Report | None
    """None if it cannot be parsed."""
    trouble: str = ""
    """The cause if it cannot be parsed; empty if it can."""
