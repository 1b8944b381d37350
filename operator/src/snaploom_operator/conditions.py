"""Status conditions: types, reasons with their remedies, transitions, and limits of sizes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from snaploom.models.base import ApiModel
from snaploom.models.common import Condition, ConditionStatus, EpochNanos, format_instant
from snaploom.models.remedies import REMEDY_BY_REASON, Remedy
from snaploom_operator.errors import CLUSTER

MOST_BYTES = 32 * 1024
"""Most bytes of a whole status, as JSON."""
_MORE = "…"

_Item = TypeVar("_Item")
_Model = TypeVar("_Model", bound=ApiModel)


def fit_text(text: str, most: int) -> str:
    """A text, truncated to some bytes of JSON; truncated texts end in an ellipsis."""
    if len(text) * 6 <= most or _bytes(text) <= most:  # "\\u0000" is the longest form
        return text
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        if _bytes(text[:middle] + _MORE) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low] + _MORE


def fit_items(items: Iterable[_Model], most: int) -> tuple[_Model, ...]:
    """The first models that fit into some bytes of JSON."""
    return _fitting(items, most, lambda item: len(item.dump_json().encode()))


def fit_texts(texts: Iterable[str], most: int, most_each: int) -> tuple[str, ...]:
    """The first texts, each truncated, that fit into some bytes of JSON."""
    return _fitting((fit_text(text, most_each) for text in texts), most, _bytes)


def _fitting(items: Iterable[_Item], most: int, size: Callable[[_Item], int]) -> tuple[_Item, ...]:
    kept: list[_Item] = []
    for item in items:
        most -= size(item) + 1
        if most < 0:
            break
        kept.append(item)
    return tuple(kept)


def joined(*parts: str) -> str:
    """The parts that are not empty, separated by colons."""
    return ": ".join(part for part in parts if part)


def _bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


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


_NOTHING = "Nothing to do."

CONDITIONS = {
    Reason.VALID: Remedy("The declaration and all it refers to were checked.", _NOTHING),
    Reason.PUBLISHED: Remedy("A run of the current declarations succeeded.", _NOTHING),
    Reason.NOTHING_DUE: Remedy(
        "The sources are empty so far, or `snapshotFilter` and the missing modes leave out all "
        "that they offer.",
        "If there should be snapshots, `snaploom plan NAME -f FOLDER` shows why each one is left "
        "out.",
        see="how-to/missing-data.md",
    ),
    Reason.INDEX_ACTIVE: Remedy("The last build or refresh succeeded.", _NOTHING),
    Reason.DISABLED: Remedy(
        "`enabled` is false in the SkippingIndex.", "Set it to true to have queries use the index."
    ),
    Reason.LAST_RUN_FAILED: Remedy(
        "A run failed while an earlier snapshot is still fresh. `status.lastRun.reason` has the "
        "cause.",
        "Look up that reason on this page. The message has the time of the next attempt; "
        "`snaploom trigger NAME` starts one now.",
        see="concepts/operator.md",
    ),
    Reason.INVALID: Remedy(
        "A field is wrong, or two fields contradict each other. With admission the API server "
        "refuses most of it; without, it is found here.",
        "Change each field that the message names as its line proposes. `snaploom validate FOLDER` "
        "gives the same findings, with codes.",
        see="reference/findings.md",
    ),
    Reason.REFERENCE_MISSING: Remedy(
        "A referenced resource was deleted, is misspelt, is in another namespace, or is not "
        "applied yet.",
        "Apply what the message names, in the same namespace, or correct the name. The resource "
        "continues automatically.",
        codes=("SL130",),
    ),
    Reason.REFERENCE_NOT_READY: Remedy(
        "A referenced resource is `Invalid`, or has an invalid or missing reference itself.",
        "Fix the resources that the message names: `snaploom status NAME` shows them as a tree, "
        "with the reason of each.",
    ),
    Reason.CRD_OUTDATED: Remedy(
        "The operator was upgraded and the CustomResourceDefinitions were not: `crds.enabled` of "
        "the chart is false, or something else installs them.",
        "Update them: `snaploom crds | kubectl apply --server-side --force-conflicts -f -`, by the "
        "`snaploom` of the operator's version. The resources continue within half a minute. Fields "
        "that were dropped meanwhile are lost: apply again what has those that the message names.",
        see="operating/upgrade.md",
    ),
    Reason.TREE_AMBIGUOUS: Remedy(
        "Two paths of the same length and cost lead from the root to a source.",
        "The message has the paths, and priorities that decide. `snaploom graph NAME -f FOLDER` "
        "draws them.",
        see="how-to/ambiguous-tree.md",
        codes=("SL301",),
    ),
    Reason.SOURCE_UNREACHABLE: Remedy(
        "A relationship is not listed under `dataRelationships`, does not name the source, or is "
        "ruled out by `exclusions`.",
        "Add what the message proposes, or set `pathMissingMode` to leave the source out.",
        see="how-to/ambiguous-tree.md",
        codes=("SL302",),
    ),
    Reason.SUBMITTER_NOT_AVAILABLE: Remedy(
        "The Spark operator is not installed, or `operator.submitters` of the chart does not list "
        "it, or `run.submitter` is `Local` in a cluster.",
        "Install the Spark operator, list it in `operator.submitters`, or change `run.submitter`. "
        "A kind that is installed later is found within seconds.",
        see="how-to/install.md",
    ),
    Reason.RUN_REFUSED: Remedy(
        "The run failed with an error that a retry does not fix: the cause is in the declarations, "
        "the data or the folder. `status.lastRun.reason` has it. `Ready` stays True while an "
        "earlier snapshot is fresh.",
        "Look up that reason on this page and fix the cause. A change of the declarations starts a "
        "run automatically; after any other change start one: `snaploom trigger NAME`.",
    ),
    Reason.RETRIES_EXHAUSTED: Remedy(
        "Every attempt failed with an error that may be temporary: a store, a quota, a node, "
        "credentials. `status.lastRun.reason` has the cause. `Ready` stays True while an earlier "
        "snapshot is fresh.",
        "Look up that reason on this page and fix the cause, then start a run: "
        "`snaploom trigger NAME`. Raise `run.retry.limit` or its waits if outages last longer.",
    ),
    Reason.STALE: Remedy(
        "Runs fail, take too long, or are suspended; or the sources had no new data; or files of "
        "an index's target changed without a refresh.",
        "The message has its age, and how the last run failed. Look up that reason; for an index, "
        "start a run or choose another `refresh.trigger`.",
    ),
    Reason.BUNDLE_TOO_LARGE: Remedy(
        "The declarations that the output refers to are together too large for one ConfigMap.",
        "Shorten queries and lists, or divide the output into two.",
    ),
    Reason.NAME_TAKEN: Remedy(
        "A ConfigMap or an application of the run's name was created by someone else.",
        "Delete the object that the message names. The run continues automatically.",
    ),
    Reason.INTERNAL_ERROR: Remedy(
        "A bug in Snaploom.",
        "Keep the operator's log (`kubectl logs`) with its traceback and report it. The resource "
        "is reconciled again every five minutes.",
        see="how-to/watch-the-operator.md",
    ),
    Reason.WAITING: Remedy(
        "The resource was just applied, a run was just stopped, or an output that it reads has not "
        "published yet: the message names it.",
        "Nothing; if it persists, check what the message names, and whether the operator runs.",
    ),
    Reason.RUN_QUEUED: Remedy(
        "As many runs are in flight as the chart's `operator.limits` allow, in all or in the "
        "namespace.",
        "Nothing; the message has the place in the queue. Raise `operator.limits.runs` or "
        "`operator.limits.runsPerNamespace` if the cluster has room.",
        see="operating/sizing.md",
    ),
    Reason.RUN_SUBMITTED: Remedy(
        "The driver's pod has not started: its image is being pulled, no node has room, a quota "
        "is used up, a Secret or a claim is missing; or the Spark operator does not work.",
        "The message has the pod's conditions. Without one, check whether the Spark operator runs "
        "and watches this namespace. `run.startTimeoutSeconds` ends the wait.",
    ),
    Reason.RUN_RUNNING: Remedy(
        "The driver runs.", "Nothing; `snaploom logs NAME --follow` shows it."
    ),
    Reason.RUN_WILL_BE_RETRIED: Remedy(
        "The last attempt failed with an error that may be temporary. `status.lastRun.reason` "
        "has it.",
        "Nothing at first: the message has the time of the next attempt. To start it now, "
        "`snaploom trigger NAME`.",
    ),
    Reason.DELETING: Remedy(
        "The resource was deleted, and a job removes what it published (`deletionPolicy: Delete`).",
        "Nothing. To keep the data, set `run.deletionPolicy` to Retain: the resource is deleted "
        "at once.",
        see="how-to/delete-an-output.md",
    ),
    Reason.SUSPENDED: Remedy("`run.suspend` is true.", "`snaploom resume NAME`."),
    Reason.PAUSED: Remedy(
        "The annotation `snaploom.io/paused` is set, for example by Argo CD's action `pause`.",
        "Remove it: `kubectl annotate outputdataset NAME snaploom.io/paused-`.",
    ),
    Reason.PLANNED: Remedy("The relationships determine every join.", _NOTHING),
    Reason.FRESH: Remedy("The last run is younger than `run.freshness.maxAge`.", _NOTHING),
    Reason.NEVER_PUBLISHED: Remedy(
        "No run succeeded yet, or none found data to publish; or the status was lost.",
        "See `Ready`. If the folder has snapshots, run `snaploom status NAME --rebuild`.",
        see="operating/backup.md",
    ),
    Reason.NEVER_BUILT: Remedy("No run of the index succeeded yet.", "See `Ready`."),
}
"""By reason; `Ready`, `Reconciling` and `Stalled` share one."""


EVENTS = {
    Reason.RUN_STARTED: Remedy("The message has the reason why a run was due.", "Nothing to do."),
    Reason.RUN_SUCCEEDED: Remedy("The message counts what was published.", "Nothing to do."),
    Reason.RUN_FAILED: Remedy(
        "As an event: any failure; the message has its reason. As `status.lastRun.reason`: the "
        "driver ended without a report, by an exit code or the kubelet (out of memory, an image "
        "that cannot be pulled, a refused pod).",
        "The message has the messages of application and pod; `snaploom logs NAME` has the "
        "driver's log as long as its pod exists. Out of memory: raise `memory` of "
        "`run.spark.driver` or `run.spark.executor`.",
        see="operating/sizing.md",
    ),
    Reason.RUN_LOST: Remedy(
        "The application was deleted by a user or by a cleanup tool.",
        "Nothing while attempts are left: the run is retried, and published snapshots are "
        "recognised. Leave finished applications to `run.historyLimit`.",
    ),
    Reason.RUN_RECREATED: Remedy(
        "A copy of the application was applied, for example from a backup.",
        "Nothing. Leave applications out of backups.",
        see="operating/backup.md",
    ),
    Reason.RUN_STOPPED: Remedy(
        "A newer run took its place (`concurrencyPolicy: Replace`).", "Nothing to do."
    ),
    Reason.START_TIMEOUT: Remedy(
        "The driver's pod did not start in time; the message has what it waited for.",
        "Fix that: image, quota, Secret, claim, room on nodes. Raise `run.startTimeoutSeconds` "
        "where nodes are started on demand.",
    ),
    Reason.DEADLINE_EXCEEDED: Remedy(
        "There is more to do than the time allows, or Spark hangs.",
        "Published snapshots stay, and the next run continues from there. Raise "
        "`run.activeDeadlineSeconds`, or the number of executors.",
        see="how-to/backlog.md",
    ),
    Reason.DATA_DELETED: Remedy(
        "`deletionPolicy` is Delete. The message has what was removed, and which foreign files "
        "stay.",
        "Nothing to do; `snaploom logs NAME` shows it for an hour after the deletion.",
        see="how-to/delete-an-output.md",
    ),
    Reason.DATA_LEFT: Remedy(
        "`deletionPolicy` is Retain; or it is Delete and no job could be started: the namespace "
        "is being deleted, the submitter is not available, or nothing was ever published.",
        "To delete the data, remove the folder with the tools of its store.",
        see="how-to/delete-an-output.md",
    ),
}
"""By reason."""


REMEDIES: Mapping[Reason, Remedy] = {**CONDITIONS, **EVENTS}
"""Remedy of every `Reason`."""

EVERY_REMEDY: Mapping[str, Remedy] = {
    **REMEDY_BY_REASON,
    **CLUSTER,
    **{reason.value: remedy for reason, remedy in REMEDIES.items()},
}
"""Remedy of every reason of conditions, events, runs and log lines."""
