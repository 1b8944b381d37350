"""Remedies of the reasons that conditions have, in the order of the enum."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy
from snaploom_operator.conditions import Reason

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
        "A kind that is installed later is found within `operator.resyncSeconds`.",
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
        see="operating/limits.md",
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
