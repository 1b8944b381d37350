"""Remedies of skipping indexes."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy

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
