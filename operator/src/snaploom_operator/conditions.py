"""Status conditions: their types, the documented reasons, and how a new set follows an old one.

`Reconciling` and `Stalled` are there only while they are true (the rules of kstatus), and never
together. `Ready` is always there. A condition keeps the time of its last transition while its
status stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from snaploom.models.common import Condition, ConditionStatus
from snaploom.models.times import EpochNanos, format_instant
from snaploom_operator.sizes import fit_text

LONGEST_MESSAGE = 1_200
"""Bytes of a condition's message, as JSON: six of them leave a status below 32 KB."""


class ConditionType(StrEnum):
    """Aspects of a resource's state, in the order in which a status lists them."""

    READY = "Ready"
    """It can be used: declarations are valid; an output has a snapshot that is fresh enough and
    made from today's declarations; an index is active."""
    RECONCILING = "Reconciling"
    """It is not Ready yet, and work is under way or will be tried again by itself."""
    STALLED = "Stalled"
    """It will not become Ready before something is changed."""
    VALIDATED = "Validated"
    """Declarations are right, together with all they refer to."""
    PLANNED = "Planned"
    """There is exactly one join tree."""
    SNAPSHOT_FRESH = "SnapshotFresh"
    """The newest snapshot is younger than `run.freshness.maxAge`."""
    INDEX_FRESH = "IndexFresh"
    """The index covers its target as it was last seen."""
    SUSPENDED = "Suspended"
    """No further run is started."""


class Reason(StrEnum):
    """Why a condition has its status, and what an event is about; stable, one documented word."""

    # Ready
    VALID = "Valid"
    """Nothing is wrong with the declarations."""
    PUBLISHED = "Published"
    """The newest snapshot is what the declarations ask for."""
    NOTHING_DUE = "NothingDue"
    """A run ended well, and the sources offer no snapshot to publish yet."""
    INDEX_ACTIVE = "IndexActive"
    """Queries use the index."""
    DISABLED = "Disabled"
    """The index is declared with `enabled: false`: it is kept, and queries do not use it."""
    LAST_RUN_FAILED = "LastRunFailed"
    """The last run failed; what was published before is still fresh enough."""
    # Ready is False, and Stalled
    INVALID = "Invalid"
    """The declarations are wrong by themselves."""
    REFERENCE_MISSING = "ReferenceMissing"
    """Something that is referred to does not exist; it may still arrive, and for the first ten
    seconds the resource is Reconciling rather than Stalled."""
    REFERENCE_NOT_READY = "ReferenceNotReady"
    """Something that is referred to is wrong itself; Stalled like the reason before."""
    TREE_AMBIGUOUS = "TreeAmbiguous"
    """Several join trees are equally good."""
    SOURCE_UNREACHABLE = "SourceUnreachable"
    """No relationship leads from the root to a source."""
    SUBMITTER_NOT_AVAILABLE = "SubmitterNotAvailable"
    """Whoever is to start the job is not there: no such kind in the cluster, or `Local` without
    `--local` (ruling D45)."""
    RUN_REFUSED = "RunRefused"
    """The run ended with an error that repeats until something is changed."""
    RETRIES_EXHAUSTED = "RetriesExhausted"
    """The run failed as often as `run.retry.limit` allows; the next tick or change tries again."""
    STALE = "Stale"
    """What was published or built last is older than `run.freshness.maxAge`, or there is none; of
    `IndexFresh`: files changed or came since the last refresh."""
    BUNDLE_TOO_LARGE = "BundleTooLarge"
    """The declarations do not fit into one ConfigMap."""
    NAME_TAKEN = "NameTaken"
    """An object of the run's name belongs to somebody else."""
    INTERNAL_ERROR = "InternalError"
    """A fault of Snaploom itself; the operator's log has the details. Please report it."""
    # Ready is False, and Reconciling
    WAITING = "Waiting"
    """No run was decided yet."""
    RUN_QUEUED = "RunQueued"
    """A run waits for others to end."""
    RUN_SUBMITTED = "RunSubmitted"
    """A run is submitted and has not started; the message says what it waits for."""
    RUN_RUNNING = "RunRunning"
    """A run is at work."""
    RUN_WILL_BE_RETRIED = "RunWillBeRetried"
    """A run failed, and is tried again after a wait."""
    DELETING = "Deleting"
    """What was published is being deleted, or is about to be left."""
    # Ready is False, and nothing is done about it; also of the condition Suspended
    SUSPENDED = "Suspended"
    """`run.suspend` is set."""
    PAUSED = "Paused"
    """The annotation `snaploom.io/paused` is set."""
    # Other conditions
    PLANNED = "Planned"
    """There is exactly one join tree."""
    FRESH = "Fresh"
    """Young enough."""
    NEVER_PUBLISHED = "NeverPublished"
    """There is no snapshot yet."""
    NEVER_BUILT = "NeverBuilt"
    """There is no index yet."""
    # Events
    RUN_STARTED = "RunStarted"
    """A run was decided."""
    RUN_SUCCEEDED = "RunSucceeded"
    """A run ended well."""
    RUN_FAILED = "RunFailed"
    """A run failed."""
    RUN_LOST = "RunLost"
    """The application went away before it was seen to end."""
    RUN_RECREATED = "RunRecreated"
    """The application of a run was replaced by another of the same name; that one is followed."""
    RUN_STOPPED = "RunStopped"
    """A run was stopped: replaced, past a deadline, or by a person."""
    START_TIMEOUT = "StartTimeout"
    """A run did not start within `run.startTimeoutSeconds`."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """A run took longer than `run.activeDeadlineSeconds`."""
    DATA_DELETED = "DataDeleted"
    """What was published is deleted."""
    DATA_LEFT = "DataLeft"
    """The resource goes, and what it published stays."""


@dataclass(frozen=True)
class Told:
    """One condition without its times."""

    type: ConditionType
    is_true: bool
    reason: Reason
    message: str = ""


def follow(
    before: Iterable[Condition], told: Iterable[Told], generation: int | None, now: EpochNanos
) -> tuple[Condition, ...]:
    """The conditions of a status, in the order of their types.

    Args:
        before: the conditions of the status observed; those not told any more are dropped.
        told: what holds now; each type at most once.
        generation: generation of the spec that this was computed from.
        now: time of a transition.
    """
    known = {condition.type: condition for condition in before}
    by_type = {each.type: each for each in told}
    return tuple(
        _condition(known.get(type_), by_type[type_], generation, now)
        for type_ in ConditionType
        if type_ in by_type
    )


def _condition(
    before: Condition | None, told: Told, generation: int | None, now: EpochNanos
) -> Condition:
    status = ConditionStatus.TRUE if told.is_true else ConditionStatus.FALSE
    same = before is not None and before.status is status
    since = before.last_transition_time if before is not None and same else format_instant(now)
    return Condition(
        type=told.type,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=told.reason,
        message=fit_text(told.message, LONGEST_MESSAGE),
    )
