"""Observations and decisions: the frozen inputs of a pass, and its results as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from snaploom.models.common import EpochNanos, Resource, ResourceStatus
from snaploom.models.datasource import LastSeen, UsedBy
from snaploom.models.findings import Finding
from snaploom.models.kinds import AnyResource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import Submitter
from snaploom.models.skippingindex import SkippingIndex
from snaploom.plan.bundle import Bundle
from snaploom.plan.plan import RunPlan
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.errors import NamespaceTerminating
from snaploom_operator.objects import Application, DriverPod, FoundReport, JsonObject, Ref

NOT_USED = UsedBy(count=0)


@dataclass(frozen=True)
class Refusal:
    """The failure of the last attempt to perform an action for this resource.

    It is set from the failure until an action succeeds or a decision has no actions. The status of
    the decision is written immediately; its actions wait for the controller's backoff.
    """

    reason: str
    """`reason` of the error, such as `NameTaken` or `ObjectRefused`."""
    message: str
    """Message of the API server."""

    @property
    def is_namespace_terminating(self) -> bool:
        """True if nothing can be created any more, since the namespace is being deleted."""
        return self.reason == NamespaceTerminating.reason


@dataclass(frozen=True)
class Queue:
    """The position of a run in the queue."""

    has_slot: bool
    """True if it may be submitted now."""
    position: int
    """Its position, from 1; 0 if it is not queued."""
    waiting: int
    limit: int
    """The limit that holds this one back."""


@dataclass(frozen=True)
class OwnedConfigMap:
    """A ConfigMap of ours."""

    name: str
    uid: str
    run: str
    """Empty for the plan's."""
    role: str
    """`bundle`, `report` or `plan`."""


@dataclass(frozen=True)
class Unparsable:
    """A resource that our models cannot parse: written before its CRD, or by a newer Snaploom.

    Its findings are errors; only its status is updated.
    """

    now: EpochNanos
    """Time of the observation; 0 as long as it is only parsed."""
    ref: Ref
    uid: str
    generation: int
    findings: tuple[Finding, ...]
    status: ResourceStatus | None
    outdated: str = ""
    """Reason why the CustomResourceDefinition of its kind is outdated; empty if it is not."""
    is_deleting: bool = False
    has_finalizer: bool = False


@dataclass(frozen=True)
class ObservedResource:
    """The observation of a resource of any kind."""

    now: EpochNanos
    resource: Resource
    """As it is stored, status included."""
    findings: tuple[Finding, ...]
    """Findings about this resource itself; a missing reference is an ERROR here."""
    faulty: tuple[str, ...] = ()
    """`Kind/name` of invalid resources that it refers to, directly or not."""
    used_by: UsedBy = NOT_USED
    """The resources that refer to it."""
    last_seen: LastSeen | None = None
    """The latest run's observation of it; for a DataSource."""
    refusal: Refusal | None = None
    """The failure of the last action; None if it succeeded."""
    outdated: str = ""
    """Reason why the CustomResourceDefinition of its kind is outdated; empty if it is not."""

    @property
    def uid(self) -> str:
        return self.resource.metadata.uid or ""

    @property
    def status(self) -> ResourceStatus | None:
        assert isinstance(self.resource, AnyResource)  # there are no other kinds
        return self.resource.status


@dataclass(frozen=True)
class ObservedRuns:
    """The runs of one OutputDataset or SkippingIndex, and what blocks them."""

    applications: tuple[Application, ...] = ()
    """Applications that carry its UID, newest first."""
    reports: Mapping[str, FoundReport] = field(default_factory=dict)
    """By name of the run."""
    config_maps: tuple[OwnedConfigMap, ...] = ()
    """Bundles, reports and plan."""
    driver_pods: Mapping[str, DriverPod] = field(default_factory=dict)
    """By name of the run."""
    quota: Mapping[str, str] = field(default_factory=dict)
    """Answers of queues of Kueue that have not admitted a run, by its name."""
    queue: Queue = Queue(has_slot=True, position=0, waiting=0, limit=1)
    """Its position in the queue."""
    available: frozenset[Submitter] = frozenset({Submitter.SPARK_OPERATOR})
    """Submitters that are allowed here and whose kind the cluster has."""
    is_namespace_terminating: bool = False


@dataclass(frozen=True)
class ObservedRunnable(ObservedResource):
    """The observation of a resource of a kind with runs."""

    resource: OutputDataset | SkippingIndex
    runs: ObservedRuns = ObservedRuns()
    bundle: Bundle | None = None
    """The resource and everything it refers to; None while something is missing or invalid."""
    declarations: str = ""
    """Hash of the declarations of a run; empty without a bundle."""
    upstream: str = ""
    """Hash over names and sequences of the outputs that it reads or indexes; empty for none."""
    unpublished: tuple[str, ...] = ()
    """Names of outputs that it reads and that have published nothing yet; its first run waits."""


@dataclass(frozen=True)
class ObservedOutput(ObservedRunnable):
    """The observation of an OutputDataset."""

    resource: OutputDataset
    plan: RunPlan | None = None
    """The plan without data; None like the bundle."""


@dataclass(frozen=True)
class ObservedIndex(ObservedRunnable):
    """The observation of a SkippingIndex."""

    resource: SkippingIndex
    is_overdue: bool = False
    """True if the output that is indexed published since the last refresh."""


@dataclass(frozen=True)
class Create:
    """Create a child object.

    An object of the same name with the same owner UID and run label is adopted: an earlier process
    created it and crashed before it recorded that. Any other object of that name is an error.
    """

    resource: ApiResource
    manifest: JsonObject = field(hash=False)


@dataclass(frozen=True)
class Ensure:
    """Create a ConfigMap of ours, or replace its data where they differ."""

    manifest: JsonObject = field(hash=False)


@dataclass(frozen=True)
class Delete:
    """Delete an object of ours; a missing object, or one with another UID, is ignored."""

    resource: ApiResource
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class AddFinalizer:
    """Keep the resource until what it published is deleted."""


@dataclass(frozen=True)
class RemoveFinalizer:
    """Remove our finalizer, so that Kubernetes deletes the resource."""


Action = Create | Ensure | Delete | AddFinalizer | RemoveFinalizer


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
