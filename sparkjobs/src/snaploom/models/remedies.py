"""Remedies by reason, for every error that Snaploom raises on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Usual causes of a reason, and fixes.


@dataclass(frozen=True)
class Remedy:
    """The documentation's addition to the meaning of one reason.

    The meaning stands where the reason is defined; the message of a condition shows the case.
    """

    cause: str
    """Its usual causes, as sentences."""
    fix: str
    """The fix, as sentences; commands and field paths in backticks."""
    see: str = ""
    """The page below `docs/` with details; empty for none."""
    codes: tuple[str, ...] = ()
    """Codes of the findings that are reported with this reason."""


# Remedies of skipping indexes.

INDEXES = {
    "SkippingFailed": Remedy(
        "An index could not be used or changed. Queries go on and read every file.",
        "Read one of the files that are named with Spark, to see what is wrong with it; restore or "
        "remove it, and refresh the index.",
        see="how-to/why-not-skipped.md",
    ),
    "IndexNotPossible": Remedy(
        "The index type does not exist, or cannot be kept about the type of this column.",
        "Choose another type or column.",
        see="reference/skipping.md",
        codes=("SL185", "SL186"),
    ),
    "IndexNotFound": Remedy(
        "There is no index at this place: it was dropped, or `store` names another one.",
        "Create it, or correct the location; `snaploom index list` shows what is there.",
    ),
    "IndexAlreadyExists": Remedy(
        "Another resource, or somebody by hand, made an index about the same target in the same "
        "store.",
        "Delete one of the two, or give them different stores.",
    ),
    "IndexBusy": Remedy(
        "Another process builds or refreshes the index, or died while it did.",
        "Nothing while attempts are left: the run is tried again. The remains of a dead process "
        "are cleaned up after a minute.",
    ),
    "IndexOwned": Remedy(
        "A SkippingIndex owns the index, so that SQL and Python may not change it.",
        "Change the resource that the message names.",
    ),
    "IndexUnreadable": Remedy(
        "Files of the index are damaged, or a newer Snaploom wrote them. Queries read every file.",
        "Upgrade, or ask for a run of the SkippingIndex with `refresh.mode` FULL.",
    ),
    "IndexStoreFailed": Remedy(
        "OpenSearch does not answer, or refuses the request: credentials, certificate, or a "
        "cluster that is full.",
        "Correct the cause that the server names: the user and its rights, `ca_file`, or room on "
        "its disks. The run is tried again while attempts are left.",
        see="how-to/opensearch-indexes.md",
    ),
    "IndexCommitUnknown": Remedy(
        "The store of the index stopped answering while a state was being written.",
        "Nothing: the next attempt finds out.",
    ),
    "KeyUnavailable": Remedy(
        "The key management service does not answer, refuses the job, or does not have the key.",
        "Check `spark.snaploom.skipping.kms` and the rights of the job.",
        see="how-to/xskipper.md",
    ),
    "TargetNotIndexable": Remedy(
        "The target is a view, a stream, or a table whose files another system keeps.",
        "Index the files that it reads, with `target.path`.",
        codes=("SL177",),
    ),
    "SortNotPossible": Remedy(
        "The snapshot is not as it was published, or its format does not give back the written "
        "rows.",
        "Nothing was changed. `snaploom check NAME -f FOLDER` shows whether files are damaged.",
        codes=("SL189",),
    ),
    "StatementInvalid": Remedy(
        "A statement, an option or a URI of OpenSearch cannot be parsed.",
        "Correct it where the message points.",
    ),
    "SkippingNotAvailable": Remedy(
        "The session is one of Spark Connect, or of a Spark that is not known.",
        "Use a classic session of Spark 4.1 or newer; for Spark Connect, let the server skip.",
    ),
    "ValueNotWritable": Remedy(
        "A value such as NaN, or a text too long, cannot be kept in JSON or OpenSearch.",
        "Index another column, or keep the index in Parquet.",
    ),
}
"""By reason."""


# Remedies of publishing into an output's folder.

PUBLICATION = {
    "PublicationFailed": Remedy(
        "The folder does not take the snapshot: a table or a name has another owner, for example.",
        "Give the table or the file that is in the way another name, or remove it; take out "
        "settings of Spark that lay files out otherwise. Earlier snapshots are unchanged.",
    ),
    "FolderNotOurs": Remedy(
        "`folderUri` names a folder with files that Snaploom did not make, or the folder of "
        "another output, or of one that was deleted and created anew.",
        "Name an empty folder. To go on with a folder of a resource that was created anew, set "
        "`run.adoptFolder`.",
    ),
    "FolderNotWritable": Remedy(
        "The volume is full or mounted for reading only, or the job's user may not write there.",
        "Make room or correct the rights; the run is tried again. `snaploom gc` frees what "
        "crashed runs and deleted snapshots left.",
    ),
    "FolderRemoved": Remedy(
        "A job with `deletionPolicy: Delete` removes the folder, or has removed it, while another "
        "run publishes into it.",
        "Let the deletion end; then the folder may be begun anew.",
        see="how-to/delete-an-output.md",
    ),
    "ImmutableSettingChanged": Remedy(
        "Format, compression, partition column, or form and zone of times were changed after the "
        "first publication.",
        "Change the declaration back, or publish to a new folder.",
        see="how-to/change-an-output.md",
    ),
    "HistoryIncompatible": Remedy(
        "A column changed its type, or the join tree its form, so that old and new snapshots "
        "cannot be read as one table.",
        "Restore the declarations, give the changed source a new `fieldName`, publish to a new "
        "folder, or allow the break by `outputFolder.incompatibleSchema`. `snaploom diff` shows "
        "what changed.",
        see="how-to/change-an-output.md",
    ),
    "SnapshotChanged": Remedy(
        "A snapshot that was to be replaced was deleted or replaced by another run meanwhile.",
        "Look at `snaploom snapshots NAME -f FOLDER`, and begin again if it is still wanted.",
    ),
    "ClockBehind": Remedy(
        "The clock of the node is behind, or the newest entry of the log was written by a machine "
        "whose clock was ahead.",
        "Set the clock of the node. If the log is ahead, wait until that time has passed: the run "
        "is tried again.",
    ),
    "RunRevoked": Remedy(
        "The run was slow or cut off for longer than the grace, and another run or `snaploom gc` "
        "took it for dead.",
        "Nothing: the next attempt publishes it. If it repeats, raise `outputFolder.readerGrace` "
        "above the time that a run needs between two files.",
        see="how-to/recover.md",
    ),
    "SnapshotsHeld": Remedy(
        "Somebody made a tag or a branch in the Iceberg table of an output, and it shows snapshots "
        "that were deleted or replaced since.",
        "Drop it (`ALTER TABLE ... DROP TAG`, `DROP BRANCH`); the next run removes their files.",
        see="how-to/tables.md",
    ),
    "RunFailed": Remedy(
        "A run that Python started (`Project.run`) failed, or was interrupted.",
        "Look at `runs` of the exception: each has the Report of an output, with its cause.",
    ),
    "ArgumentInvalid": Remedy(
        "A function of the library was given something else than a time, a time without a zone, a "
        "range that ends before it begins, two choices at once, or a name of nothing.",
        "Give `at` or `between` as text of ISO 8601 with `Z` or an offset, a datetime with a time "
        "zone, or a date; `snaploom snapshots` lists the times of snapshots.",
    ),
    "NothingPublished": Remedy(
        "The output has no snapshot, or none so old.",
        "Run the output first; `snaploom status` shows what it waits for.",
    ),
}
"""By reason."""


# Remedies of runs as such: declarations, Spark, leases, reports.

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


# Remedies of sources, of joins, and of expectations about the rows.

SOURCES = {
    "SourceFailed": Remedy(
        "The data of a source contradicts its declaration.",
        "Correct the data or the DataSource that the message names.",
    ),
    "SourceNotReadable": Remedy(
        "A file is missing, cut off, or of another format; it may still be being written, or the "
        "job may not read it.",
        "If the files are still being written, nothing while attempts are left. Otherwise "
        "write the file that the message names anew, remove it, or correct `format`.",
    ),
    "FormatNotAllowed": Remedy(
        "The source names a file format, or an option of it, that is on no list: Spark could be "
        "made to connect somewhere, or to load a class.",
        "Use a format and options of the list. An administrator adds others by `allow.formats` and "
        "`allow.options` of the chart; on a laptop `--allow` does.",
        see="operating/may-i-run-this.md",
        codes=("SL136", "SL137"),
    ),
    "SourceFileUnmatched": Remedy(
        "`sourceUriGlobs` lists a file that does not match `sourceUriPrefix`, so that its "
        "snapshot is not known.",
        "Make the globs match fewer files, or the prefix more.",
    ),
    "SnapshotValueInvalid": Remedy(
        "A folder, a file name or a row has no time where one should be, or one that "
        "`timeFormat` does not read.",
        "Correct the data or `timeFormat`, or leave those files out by `sourceUriGlobs`.",
    ),
    "SourceSchemaInvalid": Remedy(
        "Two columns have one name but for case, a column has no type, or Spark refuses a query "
        "or a transformer.",
        "Rename or choose columns in a simpleVirtual source or by `schemaFields`; correct the "
        "query or the transformer.",
    ),
    "SnapshotMissing": Remedy(
        "The source has no snapshot within the window around the root's, and its "
        "`snapshotMissingMode` is ERROR: it is late, or the window is narrow.",
        "Wait for the data, widen the window, or choose another `snapshotMissingMode`. "
        "`snaploom plan NAME -f FOLDER` shows what each source offers.",
        see="how-to/missing-data.md",
    ),
    "SourceChanged": Remedy(
        "Files of a source were replaced or removed while a snapshot was woven from them, each "
        "time that it was: its rows would have been of several moments. Nothing is published.",
        "Nothing while attempts are left. Otherwise run when the source is not written to, or let "
        "its writer make new files, and a new folder for each snapshot, instead of replacing any.",
        see="how-to/missing-data.md",
    ),
    "RootEmpty": Remedy(
        "The root has no snapshot at all, and `run.onEmptyRoot` is Fail (or `--strict` was given): "
        "the data is late, or the globs match nothing.",
        "Wait for the data, or correct the globs of the root's DataSource. `onEmptyRoot: Warn` "
        "lets the run end well with a warning.",
        see="how-to/missing-data.md",
        codes=("SL307",),
    ),
    "FieldMissing": Remedy(
        "A column of a join or of a groupBy was renamed, dropped or changed its type.",
        "Restore the column, correct the relationship, or choose another "
        "`joinFieldMissingMode` or `groupByFieldMissingMode`.",
    ),
    "RowsMultiplied": Remedy(
        "A key that should be unique in a joined source is there more than once.",
        "The message shows such keys. Collect the rows by `transformations.groupBy`, remove the "
        "duplicates in a simpleVirtual source, correct the key, or exclude the join.",
        see="how-to/expect-rows.md",
    ),
    "CheckFailed": Remedy(
        "The woven rows break one of `checks`, or `rootKey` is not unique.",
        "Correct the source that the samples point to, or the expectation; a check with "
        "`mode: WARN` is reported, and the snapshot is published. `rootKey` has no mode: name "
        "columns that identify a row, or leave it out.",
    ),
    "CheckInvalid": Remedy(
        "An expectation names a column that the output has not, or cannot be computed.",
        "Name columns of the root as `data.column`, those of others as `fieldName.data.column`; "
        "`snaploom schema NAME -f FOLDER` lists them.",
        see="how-to/expect-rows.md",
        codes=("SL188",),
    ),
    "CredentialsRefused": Remedy(
        "The Secret lacks a key, or the database does not accept user or password.",
        "Compare `credentials.fromSecret` with the Secret, correct it, and ask for a run: "
        "`snaploom trigger NAME`. A Secret is read when a pod starts, so that a rotated one "
        "counts from the next run on.",
    ),
    "DriverMissing": Remedy(
        "The jar of the database's JDBC driver is not in the image of jobs.",
        "Put it into the image, or correct `driverClass`; on a laptop `snaploom drivers install`.",
        see="how-to/read-a-database.md",
    ),
    "UrlNotAllowed": Remedy(
        "The source gives a whole JDBC `url`, and the chart's `allowJdbcUrl` is false.",
        "Declare driver, host, port and database instead. `allowJdbcUrl` lets everybody who may "
        "write sources run code in the pods of jobs.",
        see="operating/security.md",
        codes=("SL144",),
    ),
    "ZoneNotUtc": Remedy(
        "Java of the driver or of an executor runs in a zone that is not UTC.",
        "Remove `-Duser.timezone` from `run.spark.sparkConf` and TZ from the pod template.",
    ),
}
"""By reason."""


# Remedies of object stores, file systems and the manifest log.

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


# Remedies by reason, for every error that Snaploom raises on purpose.

REMEDY_BY_REASON: Mapping[str, Remedy] = {
    **RUNS,
    **SOURCES,
    **PUBLICATION,
    **STORAGE,
    **INDEXES,
}
