"""Remedies of sources, of joins, and of expectations about the rows."""

from __future__ import annotations

from snaploom.models.remedies.remedy import Remedy

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
        see="how-to/many-rows-a-key.md",
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
