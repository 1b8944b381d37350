"""Remedies of the reasons that only events and `status.lastRun` have."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy
from snaploom_operator.conditions import Reason

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
