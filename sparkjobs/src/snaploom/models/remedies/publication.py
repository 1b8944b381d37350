"""Remedies of publishing into an output's folder."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy

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
