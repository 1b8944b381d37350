"""Cluster objects: keys, labels, frozen views, and lenient access to raw fields and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from snaploom.models.common import GROUP, NANOS_PER_SECOND, EpochNanos, Resource, parse_instant
from snaploom.models.report import Report
from snaploom.models.run import RunAction, Submitter, Trigger

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
    is_suspended: bool = False
    """True if it may not start yet, or not go on (`spec.suspend`)."""
    queue: str = ""
    """The queue of the cluster's scheduler into which it was put; empty for none."""


GATED = "SchedulingGated"
"""Reason of a pod that its queue has not admitted."""


@dataclass(frozen=True)
class DriverPod:
    """The state of the driver's pod."""

    name: str
    run: str
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    trouble: str
    """The messages of its conditions and containers while it does not start, or since its end."""
    unscheduled: str = ""
    """The reason why no node was chosen for it; empty if one was, or before anybody tried."""


@dataclass(frozen=True)
class QuotaRequest:
    """A Workload of Kueue: what a run asks of its queue."""

    run: str
    message: str
    """The answer of the queue while it has not admitted the run; empty once it has."""


@dataclass(frozen=True)
class FoundReport:
    """The report ConfigMap of a run."""

    run: str
    report: Report | None
    """None if it cannot be parsed."""
    trouble: str = ""
    """The cause if it cannot be parsed; empty if it can."""


_DIGITS = 20
"""Digits that no number of 64 bits has; Python refuses to read thousands."""


@dataclass(frozen=True)
class Metadata:
    """The metadata of an object; missing fields are empty."""

    name: str
    namespace: str
    """Empty for what has none."""
    uid: str
    resource_version: str
    generation: int
    """0 for kinds that have none."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    is_deleting: bool

    @classmethod
    def of(cls, stored: JsonObject) -> Metadata:
        metadata = metadata_of(stored)
        generation = metadata.get("generation")
        return cls(
            name=text_in(metadata, "name"),
            namespace=text_in(metadata, "namespace"),
            uid=text_in(metadata, "uid"),
            resource_version=text_in(metadata, "resourceVersion"),
            generation=generation if isinstance(generation, int) else 0,
            labels=_texts(mapping_in(metadata, "labels")),
            annotations=_texts(mapping_in(metadata, "annotations")),
            finalizers=tuple(str(name) for name in _list_in(metadata, "finalizers")),
            is_deleting=bool(metadata.get("deletionTimestamp")),
        )


def metadata_of(stored: JsonObject) -> JsonObject:
    """The metadata of an object; empty where it has none."""
    return mapping_in(stored, "metadata")


def labels_of(stored: JsonObject) -> JsonObject:
    """The labels of an object; empty where it has none."""
    return mapping_in(metadata_of(stored), "labels")


def managers_of(stored: JsonObject, path: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the field managers of a field."""
    found = []
    *above, last = (f"f:{name}" for name in path)
    for entry in objects_in(metadata_of(stored), "managedFields"):
        owned = mapping_in(entry, "fieldsV1")
        for name in above:
            owned = mapping_in(owned, name)
        if last in owned:
            found.append(text_in(entry, "manager"))
    return tuple(found)


def mapping_in(stored: JsonObject, key: str) -> JsonObject:
    """The mapping under a key; empty when there is none."""
    value = stored.get(key)
    return value if isinstance(value, Mapping) else {}


def objects_in(stored: JsonObject, key: str) -> list[JsonObject]:
    """The mappings in the list under a key; empty when there is none."""
    return [item for item in _list_in(stored, key) if isinstance(item, Mapping)]


def text_in(stored: JsonObject, key: str) -> str:
    """The text under a key; empty when there is none."""
    value = stored.get(key)
    return value if isinstance(value, str) else ""


def number_of(text: str) -> int:
    """The whole number of 64 bits that a text is; -1 for any other text."""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else -1


def _list_in(stored: JsonObject, key: str) -> Iterable[JsonValue]:
    value = stored.get(key)
    return value if isinstance(value, list) else ()


def _texts(values: JsonObject) -> Mapping[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}


def known_instant(text: str | None) -> EpochNanos | None:
    """The parsed instant of a status field; None when it is missing or invalid."""
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError:
        return None


def later(instant: EpochNanos, seconds: float) -> EpochNanos:
    """An instant some seconds after another."""
    return EpochNanos(instant + round(seconds * NANOS_PER_SECOND))


def is_past(start: str | None, seconds: float, now: EpochNanos) -> bool:
    """Return whether some seconds have passed since a time.

    An invalid time, or one in the future because a clock was set back, counts as past: waiting for
    it could last for ever.
    """
    since = known_instant(start)
    return since is None or since > now or now >= later(since, seconds)


def seconds_until(instants: Iterable[EpochNanos | None], now: EpochNanos) -> float | None:
    """Seconds until the first of some instants that are not past; None when there is none."""
    ahead = [instant for instant in instants if instant is not None and instant > now]
    return (min(ahead) - now) / NANOS_PER_SECOND if ahead else None


def about(resource: Ref, *, reason: str = "") -> Mapping[str, str]:
    """The `extra` of a log line about a resource, with a stable CamelCase reason."""
    return {"resource": str(resource), **({"reason": reason} if reason else {})}


def version_of(stored: JsonObject) -> int:
    """Its resourceVersion, an increasing number of etcd; -1 without one."""
    return number_of(text_in(metadata_of(stored), "resourceVersion"))


def group_of(stored: JsonObject) -> str:
    """Its API group; empty for the core group."""
    return text_in(stored, "apiVersion").rpartition("/")[0]


def ref_of(stored: JsonObject) -> Ref:
    """The key of an object; kinds of other groups include the group, since kind names repeat."""
    metadata = metadata_of(stored)
    return Ref(
        kind_key(group_of(stored), text_in(stored, "kind")),
        text_in(metadata, "namespace"),
        text_in(metadata, "name"),
    )


def kind_key(group: str, kind: str) -> str:
    """A kind in keys: `DataSource`, `Pod`, `SparkApplication.sparkoperator.k8s.io`."""
    return kind if group in ("", GROUP) else f"{kind}.{group}"
