"""Remedies of runs as such: declarations, Spark, leases, reports."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy

RUNS = {
    "Invalid": Remedy(
        "A field is wrong, or two fields contradict each other; or a password or a Spark setting "
        "that is not allowed stands in the declaration.",
        "Change each field that the message names as its line proposes; the finding with its code "
        "is in the output of `snaploom validate FOLDER`. The resource goes on by itself when it is "
        "changed.",
    ),
    "NoUniqueJoinTree": Remedy(
        "Several relationships lead equally well to a source, or none does.",
        "`snaploom graph NAME -f FOLDER` draws every way. Give one relationship a lower "
        "`antiPriority`, exclude a source from it, or add the relationship that is missing.",
        see="how-to/ambiguous-tree.md",
        codes=("SL301", "SL302"),
    ),
    "TooManyCandidates": Remedy(
        "The root offers data at any time, and `snapshotFilter` cuts that into very short "
        "intervals.",
        "Choose longer intervals, or bound the past by `maxSnapshotAge` or `intervalStartDate`.",
    ),
    "SparkNotStarted": Remedy(
        "The image has no Java of a version that Spark accepts, or Spark refuses its settings.",
        "Read the driver's log (`snaploom logs NAME`), then correct `run.spark.sparkConf` or the "
        "image of `run.spark.image`.",
    ),
    "SettingNotAllowed": Remedy(
        "A resource makes a setting of Spark that is on no list.",
        "Leave it out of `run.spark`. An administrator adds others by `allow.sparkConf` of the "
        "chart; on a laptop `--allow` does.",
        see="operating/may-i-run-this.md",
        codes=("SL182",),
    ),
    "SparkStopped": Remedy(
        "The driver's pod was evicted or deleted, its node went away, or the kernel killed its JVM "
        "because the memory of the container was used up, which the message states.",
        "Where memory was used up, raise `run.spark.driver.memory`. Otherwise nothing while "
        "attempts are left: the run is tried again, and nothing is half published. If it repeats, "
        "read the events of the node.",
    ),
    "Interrupted": Remedy(
        "The process was asked to end: its pod was evicted, its node drained, or somebody pressed "
        "Ctrl-C.",
        "Nothing: the next attempt publishes the missing snapshots.",
    ),
    "Failed": Remedy(
        "Spark or a library failed in a way that Snaploom has no name for.",
        "Correct the innermost cause in the message, such as memory or a disk; the "
        "driver's log has the rest (`snaploom logs NAME`).",
    ),
    "UnexpectedFault": Remedy(
        "A mistake in Snaploom.",
        "Keep the driver's log (`snaploom logs NAME`) and report it. The run is tried again while "
        "attempts are left.",
    ),
    "BundleUnreadable": Remedy(
        "The image of jobs has another version than the operator, or the ConfigMap of the run was "
        "edited or replaced.",
        "Use images of one version (`spark.image` and `image` of the chart), then ask for a run: "
        "`snaploom trigger NAME`.",
    ),
    "LeaseNotObtained": Remedy(
        "Another run publishes into the same folder: of a resource that was renamed, of another "
        "cluster, or by hand.",
        "Wait until it ends; the run is tried again. If none is expected, `kubectl get leases` in "
        "the namespace shows the holder. A holder that died is passed over after half a minute.",
    ),
    "LeaseUnavailable": Remedy(
        "The API server does not answer the job, or the job's account may not have Leases.",
        "Give the account of `run.spark.serviceAccountName` get, create and update on "
        "`leases.coordination.k8s.io`; the role of the chart has it.",
    ),
    "NoCluster": Remedy(
        "The job runs in a pod without the token of its account, or outside a cluster.",
        "Let the operator create the job; its template mounts the token. By hand, set KUBECONFIG.",
    ),
    "ReportNotWritten": Remedy(
        "The API server did not answer the driver, or its account may not write ConfigMaps, or a "
        "quota for them is used up.",
        "Nothing is lost: `snaploom status NAME --rebuild` shows what was published. Give the "
        "account get, create and update on `configmaps`.",
    ),
    "ReportNotOurs": Remedy(
        "A ConfigMap of the report's name was made by hand, or is left of another run.",
        "Delete it, then ask for a run: `snaploom trigger NAME`.",
    ),
    "FolderNotUsable": Remedy(
        "`snaploom init` was given a folder with something in it, or with signs of a glob in its "
        "name.",
        "Name a new or empty folder.",
    ),
}
"""By reason."""
