"""Remedies of object stores, file systems and the manifest log."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy

STORAGE = {
    "StorageFailed": Remedy(
        "The store answered with a failure that has no name of its own.",
        "Check endpoint and region, the state of the store, and the rights of the job; "
        "`snaploom check NAME -f FOLDER --files-only` shows when the folder can be read again. The "
        "run is tried again while attempts are left.",
    ),
    "ObjectNotFound": Remedy(
        "A file of the folder was removed by something other than Snaploom, such as a rule of "
        "the bucket that deletes old files.",
        "Restore it from a backup, and take the folder out of such rules. "
        "`snaploom check NAME -f FOLDER --files-only` lists the missing files.",
    ),
    "ObjectAlreadyExists": Remedy(
        "Another writer was first.",
        "Nothing while attempts are left: the run is tried again, and sees what the other one "
        "wrote.",
    ),
    "ObjectTooLarge": Remedy(
        "A file of the folder is longer than any that Snaploom writes in its place: somebody else "
        "wrote it, or it is damaged.",
        "Nothing was read of it. Restore the file from a backup; do not open folders of people "
        "whom you do not trust with the files that readers can open.",
        see="operating/may-i-run-this.md",
    ),
    "NotAPlainFile": Remedy(
        "A link, pipe, socket or device lies below the root of a folder, where Snaploom writes "
        "plain files and folders only. It was not followed.",
        "Remove it, or open the folder that it leads to by its own name. The root of a folder "
        "may be a link.",
        see="operating/may-i-run-this.md",
    ),
    "EndpointRefused": Remedy(
        "A declaration names a server that this process does not connect to: a metadata service, "
        "the pod itself, another scheme than http and https, or one that is on no list; or the "
        "server redirected elsewhere.",
        "Correct the address, or have the server added to the list `endpoints` (chart value "
        "`allow.endpoints`, or `--allow endpoints=HOST`).",
        see="operating/security.md",
    ),
    "AnswerTooLong": Remedy(
        "A server of an index, of keys or of lineage answers with more, or for longer, than any "
        "that Snaploom knows.",
        "See which server the address leads to. Nothing was kept of the answer.",
    ),
    "StoreNotSafe": Remedy(
        "The server ignores `If-None-Match`: two runs could both believe that they published.",
        "Publish to another store. No setting turns this off.",
        see="concepts/stores.md",
    ),
    "UnsupportedStore": Remedy(
        "`folderUri` has a scheme that neither the client of the manifest nor Hadoop knows.",
        "Correct it, or put the jar of that file system into the image of jobs.",
    ),
    "CloudUriInvalid": Remedy(
        "The URI names no bucket, or the account is not known.",
        "Write `s3://bucket/folder/`; for Azure name the account in the URI.",
    ),
    "FileTooLong": Remedy(
        "Spark wrote a file that S3 does not copy in one request, as publishing does.",
        "Write more and shorter files: raise `spark.sql.shuffle.partitions`, or set "
        "`spark.sql.files.maxRecordsPerFile`, in `run.spark.sparkConf`.",
    ),
    "BucketNotFound": Remedy(
        "There is no such bucket, or the endpoint is another server's.",
        "Create the bucket, or correct `folderUri` or the endpoint in the environment of the job. "
        "Then ask for a run: `snaploom trigger NAME`.",
    ),
    "AccessDenied": Remedy(
        "The job has no credentials, they ran out or were revoked, or the policy does not cover "
        "the folder.",
        "Correct the Secret or the role that `run.spark.podTemplate` or the service account "
        "gives to the pods. The run is tried again while attempts are left; then ask for one: "
        "`snaploom trigger NAME`.",
        see="how-to/publish-to-s3.md",
    ),
    "StoreUnreachable": Remedy(
        "The endpoint is wrong, its name is not known in the cluster, or a NetworkPolicy or proxy "
        "keeps the job from it.",
        "Correct the endpoint, and let the pods of jobs reach it. The run is tried again while "
        "attempts are left.",
        see="operating/network.md",
    ),
    "WritersMet": Remedy(
        "Two runs wrote the same entry at the same moment.",
        "Nothing while attempts are left: the run is tried again.",
    ),
    "CommitOutcomeUnknown": Remedy(
        "The store stopped answering while an entry was being written.",
        "Nothing: the next attempt finds out whether it was published, and does not publish twice.",
    ),
    "CommitContended": Remedy(
        "Very many runs publish into one folder at once.",
        "Let only one resource publish into a folder. The run is tried again while attempts are "
        "left.",
    ),
    "ManifestCorrupt": Remedy(
        "A file below `metadata/` was changed, cut off or removed: by a power failure, by hand, "
        "or by a copy that was not complete.",
        "Restore `metadata/` from a backup. Where there is none, move the rest away and rebuild "
        "it with `snaploom repair`.",
        see="operating/backup.md",
    ),
    "FormatTooNew": Remedy(
        "A newer Snaploom wrote to this folder or index, and an older one reads it: the images "
        "differ, or a downgrade.",
        "Upgrade operator and image of jobs.",
        see="operating/upgrade.md",
    ),
}
"""By reason."""
