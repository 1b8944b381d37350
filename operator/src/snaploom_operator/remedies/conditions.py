"""Remedies of the reasons that conditions have, in the order of the enum."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy
from snaploom_operator.conditions import Reason

_NOTHING = "Nothing to do."

CONDITIONS = {
    Reason.VALID: Remedy("The declaration and all it refers to were checked.", _NOTHING),
    Reason.PUBLISHED: Remedy(
        "The last run over today's declarations ended well, or an earlier one did.", _NOTHING
    ),
    Reason.NOTHING_DUE: Remedy(
        "The sources are empty so far, or `snapshotFilter` and the missing modes leave out all "
        "that they offer.",
        "If there should be snapshots, `snaploom plan NAME -f FOLDER` shows why each one is left "
        "out.",
        see="how-to/missing-data.md",
    ),
    Reason.INDEX_ACTIVE: Remedy("The last build or refresh ended well.", _NOTHING),
    Reason.DISABLED: Remedy(
        "`enabled` is false in the SkippingIndex.", "Set it to true to have queries use the index."
    ),
    Reason.LAST_RUN_FAILED: Remedy(
        "A run failed beside a snapshot that is young enough. `status.lastRun.reason` says how.",
        "Look up that reason on this page. The next tick, or the next attempt, tries again; "
        "`snaploom trigger NAME` does so now.",
        see="concepts/operator.md",
    ),
    Reason.INVALID: Remedy(
        "A field is wrong, or two fields contradict each other. With admission the API server "
        "refuses most of it; without, it is found here.",
        "Do what each line of the message says. `snaploom validate FOLDER` gives the same "
        "findings, with codes.",
        see="reference/findings.md",
    ),
    Reason.REFERENCE_MISSING: Remedy(
        "Something was deleted, is spelt otherwise, lies in another namespace, or is not applied "
        "yet.",
        "Apply what the message names, in the same namespace, or correct the name. The resource "
        "goes on by itself.",
        codes=("SL130",),
    ),
    Reason.REFERENCE_NOT_READY: Remedy(
        "What this one refers to is `Invalid`, or refers to something wrong or missing itself.",
        "Mend the resources that the message names: `snaploom status NAME` shows them as a tree, "
        "with the reason of each.",
    ),
    Reason.TREE_AMBIGUOUS: Remedy(
        "Two ways of the same length and cost lead from the root to a source.",
        "The message has the ways, and priorities that decide. `snaploom graph NAME -f FOLDER` "
        "draws them.",
        see="how-to/ambiguous-tree.md",
        codes=("SL301",),
    ),
    Reason.SOURCE_UNREACHABLE: Remedy(
        "A relationship is not listed under `dataRelationships`, does not name the source, or is "
        "ruled out by `exclusions`.",
        "Add what the message proposes, or let the source be left out by `pathMissingMode`.",
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
        "The run ended with an error that the next attempt would meet again: the declarations, "
        "the data or the folder are at fault. `status.lastRun.reason` says which.",
        "Look up that reason on this page and mend the cause. A change of the declarations starts "
        "a run by itself; after a change of anything else ask for one: `snaploom trigger NAME`.",
    ),
    Reason.RETRIES_EXHAUSTED: Remedy(
        "Every attempt failed with an error that might have gone away: a store, a quota, a node, "
        "credentials. `status.lastRun.reason` says which.",
        "Look up that reason on this page and mend the cause, then ask for a run: "
        "`snaploom trigger NAME`. Raise `run.retry.limit` or its waits if outages last longer.",
    ),
    Reason.STALE: Remedy(
        "Runs fail, take too long, or are suspended; or the sources have had nothing new; or "
        "files of an index's target changed without a refresh.",
        "The message tells how old it is, and how the last run failed. Look up that reason; for "
        "an index, ask for a run or choose another `refresh.trigger`.",
    ),
    Reason.BUNDLE_TOO_LARGE: Remedy(
        "The output refers to so many or so long declarations that they do not fit into one "
        "ConfigMap together.",
        "Shorten queries and lists, or divide the output into two.",
        see="operating/limits.md",
    ),
    Reason.NAME_TAKEN: Remedy(
        "Somebody made a ConfigMap or an application of the name that the run has.",
        "Delete the object that the message names. The run goes on by itself.",
    ),
    Reason.INTERNAL_ERROR: Remedy(
        "A mistake in Snaploom.",
        "Keep the operator's log (`kubectl logs`) with its traceback and report it. The resource "
        "is looked at again every five minutes.",
        see="how-to/watch-the-operator.md",
    ),
    Reason.WAITING: Remedy(
        "The resource was just applied, a run was just stopped, or what it reads has not "
        "published yet: the message names it.",
        "Nothing; if it stays so, look at what the message names, and whether the operator runs.",
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
        "The message has what the pod says. Without one, look at the Spark operator and whether "
        "it looks after this namespace. `run.startTimeoutSeconds` ends the wait.",
    ),
    Reason.RUN_RUNNING: Remedy(
        "The driver runs.", "Nothing; `snaploom logs NAME --follow` shows it."
    ),
    Reason.RUN_WILL_BE_RETRIED: Remedy(
        "The last attempt failed in a way that may go away. `status.lastRun.reason` says how.",
        "Nothing at first: the message tells when the next attempt is. To have it now, "
        "`snaploom trigger NAME`.",
    ),
    Reason.DELETING: Remedy(
        "The resource was deleted, and a job removes what it published (`deletionPolicy: Delete`).",
        "Nothing. To keep the data, set `run.deletionPolicy` to Retain: the resource goes at once.",
        see="how-to/delete-an-output.md",
    ),
    Reason.SUSPENDED: Remedy("`run.suspend` is true.", "`snaploom resume NAME`."),
    Reason.PAUSED: Remedy(
        "Somebody set the annotation `snaploom.io/paused`, such as Argo CD's action `pause`.",
        "Remove it: `kubectl annotate outputdataset NAME snaploom.io/paused-`.",
    ),
    Reason.PLANNED: Remedy("The relationships decide every join.", _NOTHING),
    Reason.FRESH: Remedy("The last run is younger than `run.freshness.maxAge`.", _NOTHING),
    Reason.NEVER_PUBLISHED: Remedy(
        "No run ended well yet, or none found anything to publish; or the status was lost.",
        "Look at `Ready`. Where the folder has snapshots, `snaploom status NAME --rebuild`.",
        see="operating/backup.md",
    ),
    Reason.NEVER_BUILT: Remedy("No run of the index ended well yet.", "Look at `Ready`."),
}
"""By reason; `Ready`, `Reconciling` and `Stalled` share one."""
