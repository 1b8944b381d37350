"""Status conditions: their types, their documented reasons, and their transitions.

`Reconciling` and `Stalled` are present only while they are true (the rules of kstatus), and never
together. `Ready` is always present. A condition keeps the time of its last transition while its
status stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from snaploom.models.common import Condition, ConditionStatus
from snaploom.models.times import EpochNanos, format_instant
from snaploom_operator.statuslimits import fit_text

LONGEST_MESSAGE = 1_200
"""Bytes of a condition's message, as JSON: six of them leave a status below 32 KB."""


class ConditionType(StrEnum):
    """Aspects of a resource's state, in the order in which a status lists them."""

    READY = "Ready"
    """The resource is usable: declarations are valid; an output has a fresh snapshot of the current
    declarations; an index is active."""
    RECONCILING = "Reconciling"
    """The resource is not Ready; work is in progress or will be retried automatically."""
    STALLED = "Stalled"
    """The resource does not become Ready until something is changed."""
    VALIDATED = "Validated"
    """The declarations are valid, together with everything they refer to."""
    PLANNED = "Planned"
    """There is exactly one join tree."""
    SNAPSHOT_FRESH = "SnapshotFresh"
    """The newest snapshot is younger than `run.freshness.maxAge`."""
    INDEX_FRESH = "IndexFresh"
    """The index covers its target as it was last seen."""
    SUSPENDED = "Suspended"
    """No further run is started."""


class Reason(StrEnum):
    """Reasons of conditions and events; stable, one documented word each."""

    # Ready
    VALID = "Valid"
    """Nothing is wrong with the declarations."""
    PUBLISHED = "Published"
    """The newest snapshot is what the declarations ask for."""
    NOTHING_DUE = "NothingDue"
    """A run succeeded, and the sources have no snapshot to publish yet."""
    INDEX_ACTIVE = "IndexActive"
    """Queries use the index."""
    DISABLED = "Disabled"
    """The index is declared with `enabled: false`: it is kept, and queries do not use it."""
    LAST_RUN_FAILED = "LastRunFailed"
    """The last run failed and will be retried; the published snapshot is still fresh."""
    # Ready is False, and Stalled
    INVALID = "Invalid"
    """The declarations are invalid by themselves."""
    REFERENCE_MISSING = "ReferenceMissing"
    """A referenced resource does not exist; for the first ten seconds the resource is Reconciling
    rather than Stalled, since it may still be applied."""
    REFERENCE_NOT_READY = "ReferenceNotReady"
    """A referenced resource is invalid; Stalled after the same ten seconds as
    `ReferenceMissing`."""
    CRD_OUTDATED = "CustomResourceDefinitionOutdated"
    """The CustomResourceDefinition of the kind is older than the operator: the API server drops
    fields that the operator knows, so that no run is started."""
    TREE_AMBIGUOUS = "TreeAmbiguous"
    """Several join trees have the same cost."""
    SOURCE_UNREACHABLE = "SourceUnreachable"
    """No relationship leads from the root to a source."""
    SUBMITTER_NOT_AVAILABLE = "SubmitterNotAvailable"
    """The submitter is not available: its kind is not installed, or `Local` without `--local` (rule
    R10)."""
    RUN_REFUSED = "RunRefused"
    """The run failed with an error that a retry does not fix. Ready stays True while an earlier
    snapshot is fresh."""
    RETRIES_EXHAUSTED = "RetriesExhausted"
    """The run failed as often as `run.retry.limit` allows; the next schedule tick or change starts
    another. Ready stays True while an earlier snapshot is fresh."""
    STALE = "Stale"
    """The newest snapshot or refresh is older than `run.freshness.maxAge`, or there is none; of
    `IndexFresh`: files were changed or added since the last refresh."""
    BUNDLE_TOO_LARGE = "BundleTooLarge"
    """The declarations do not fit into one ConfigMap."""
    NAME_TAKEN = "NameTaken"
    """An object of the run's name has another owner."""
    INTERNAL_ERROR = "InternalError"
    """A bug in Snaploom; the operator's log has the details. Please report it."""
    # Ready is False, and Reconciling
    WAITING = "Waiting"
    """No run was started yet."""
    RUN_QUEUED = "RunQueued"
    """A run waits for a slot in the queue."""
    RUN_SUBMITTED = "RunSubmitted"
    """A run is submitted and has not started; the message names what it waits for."""
    RUN_RUNNING = "RunRunning"
    """A run is running."""
    RUN_WILL_BE_RETRIED = "RunWillBeRetried"
    """A run failed and is retried after a backoff."""
    DELETING = "Deleting"
    """The resource is being deleted; its published data is removed or kept."""
    # Ready is False while the resource is suspended; also reasons of the condition Suspended
    SUSPENDED = "Suspended"
    """`run.suspend` is set."""
    PAUSED = "Paused"
    """The annotation `snaploom.io/paused` is set."""
    # Other conditions
    PLANNED = "Planned"
    """There is exactly one join tree."""
    FRESH = "Fresh"
    """The newest snapshot or refresh is within `run.freshness.maxAge`."""
    NEVER_PUBLISHED = "NeverPublished"
    """There is no snapshot yet."""
    NEVER_BUILT = "NeverBuilt"
    """There is no index yet."""
    # Events
    RUN_STARTED = "RunStarted"
    """A run was started."""
    RUN_SUCCEEDED = "RunSucceeded"
    """A run succeeded."""
    RUN_FAILED = "RunFailed"
    """A run failed."""
    RUN_LOST = "RunLost"
    """The application was deleted before its end was observed."""
    RUN_RECREATED = "RunRecreated"
    """The application of a run was replaced by another of the same name, which is now followed."""
    RUN_STOPPED = "RunStopped"
    """A run was stopped: replaced, past its deadline, or by a user."""
    START_TIMEOUT = "StartTimeout"
    """A run did not start within `run.startTimeoutSeconds`."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """A run took longer than `run.activeDeadlineSeconds`."""
    DATA_DELETED = "DataDeleted"
    """The published data is deleted."""
    DATA_LEFT = "DataLeft"
    """The resource is deleted, and its published data is kept."""


@dataclass(frozen=True)
class ConditionValue:
    """One condition without its times."""

    type: ConditionType
    is_true: bool
    reason: Reason
    message: str = ""


def next_conditions(
    before: Iterable[Condition],
    values: Iterable[ConditionValue],
    generation: int | None,
    now: EpochNanos,
) -> tuple[Condition, ...]:
    """The conditions of a status, in the order of their types.

    Observed conditions without a new value are dropped.
    """
    known = {condition.type: condition for condition in before}
    by_type = {each.type: each for each in values}
    return tuple(
        _condition(known.get(type_), by_type[type_], generation, now)
        for type_ in ConditionType
        if type_ in by_type
    )


def _condition(
    before: Condition | None, value: ConditionValue, generation: int | None, now: EpochNanos
) -> Condition:
    status = ConditionStatus.TRUE if value.is_true else ConditionStatus.FALSE
    same = before is not None and before.status is status
    since = before.last_transition_time if before is not None and same else format_instant(now)
    return Condition(
        type=value.type,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=value.reason,
        message=fit_text(value.message, LONGEST_MESSAGE),
    )
