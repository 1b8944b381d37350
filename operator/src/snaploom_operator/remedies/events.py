"""Remedies of the reasons that only events and `status.lastRun` have."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy
from snaploom_operator.conditions import Reason

EVENTS = {
    Reason.RUN_STARTED: Remedy("The message says why a run was due.", "Nothing to do."),
    Reason.RUN_SUCCEEDED: Remedy("The message counts what was published.", "Nothing to do."),
    Reason.RUN_FAILED: Remedy(
        "As an event: any failure; the message has its reason. As `status.lastRun.reason`: the "
        "driver ended without a report, by an exit code or the kubelet (out of memory, an image "
        "that cannot be pulled, a refused pod).",
        "The message has what application and pod said; `snaploom logs NAME` has the driver's "
        "lines as long as its pod exists. Out of memory: raise `memory` of `run.spark.driver` or "
        "`run.spark.executor`.",
        see="operating/sizing.md",
    ),
    Reason.RUN_LOST: Remedy(
        "Somebody deleted the application, or something did that cleans up what is finished.",
        "Nothing: the run is tried again, and what was published is recognised. Leave finished "
        "applications to `run.historyLimit`.",
    ),
    Reason.RUN_RECREATED: Remedy(
        "Somebody or something applied a copy of the application, such as a backup that was "
        "restored.",
        "Nothing. Leave applications out of backups.",
        see="operating/backup.md",
    ),
    Reason.RUN_STOPPED: Remedy(
        "A newer run took its place (`concurrencyPolicy: Replace`).", "Nothing to do."
    ),
    Reason.START_TIMEOUT: Remedy(
        "The driver's pod did not start in time; the message has what it waited for.",
        "Mend that: image, quota, Secret, claim, room on nodes. Raise `run.startTimeoutSeconds` "
        "where nodes are started on demand.",
    ),
    Reason.DEADLINE_EXCEEDED: Remedy(
        "There is more to do than the time allows, or Spark hangs.",
        "What was published stays, and the next run goes on from there. Raise "
        "`run.activeDeadlineSeconds`, or the number of executors.",
        see="how-to/backlog.md",
    ),
    Reason.DATA_DELETED: Remedy("`deletionPolicy` is Delete.", "Nothing to do."),
    Reason.DATA_LEFT: Remedy(
        "`deletionPolicy` is Retain; or it is Delete and no job could be started: the namespace "
        "is going, the submitter is not there, or nothing was ever published.",
        "If the data should go, remove the folder by the means of its store.",
        see="how-to/delete-an-output.md",
    ),
}
"""By reason."""
