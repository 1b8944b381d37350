"""Errors that Snaploom raises on purpose, in one tree; their modules have the rest of its leaves.

Each class has three attributes, so that callers need not parse messages: `reason` (the
CamelCase reason of a Kubernetes condition), `retryable` (is it worth trying again with nothing
changed?) and `exit_code` (of the command line). An instance can name resource, field path, found,
expected and a hint, so that the text a user reads is always of one shape.
"""

from __future__ import annotations

from typing import ClassVar

from snaploom.confidential import visible, visible_lines, without_secrets


class SnaploomError(Exception):
    """Root of the tree; `except SnaploomError` catches all that Snaploom raises on purpose.

    Args:
        message: the event, one sentence without a final full stop.
        resource: `Kind/name` of the resource concerned.
        path: field path inside the resource, such as `spec.dataModel.maxDepth`.
        found: the value found, as the user would recognise it.
        expected: the correct form.
        hint: the fix.
    """

    reason: ClassVar[str] = "Failed"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        resource: str | None = None,
        path: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        # What was found may hold anything: the name of somebody's file, or what a server was sent.
        self.message = _shown(message)
        super().__init__(self.message)
        self.resource = None if resource is None else visible(resource)
        self.path = None if path is None else visible(path)
        self.found = None if found is None else _shown(found)
        self.expected = None if expected is None else _shown(expected)
        self.hint = None if hint is None else _shown(hint)

    def __str__(self) -> str:
        place = " ".join(part for part in (self.resource, self.path) if part)
        lines = [f"{place}: {self.message}" if place else self.message]
        if self.found is not None:
            lines.append(f"  found:    {self.found}")
        if self.expected is not None:
            lines.append(f"  expected: {self.expected}")
        if self.hint is not None:
            lines.append(f"  fix:      {self.hint}")
        return "\n".join(lines)


def _shown(text: str) -> str:
    return visible_lines(without_secrets(text))


class ArgumentInvalid(SnaploomError):
    """An argument of a function of the library cannot be read, or contradicts another one."""

    reason = "ArgumentInvalid"
    exit_code = 2


class SourceError(SnaploomError):
    """Data of a source does not match the declarations."""

    reason = "SourceFailed"


class SourceNotReadable(SourceError):
    """A file of a source cannot be read: missing, truncated, or not of its declared format."""

    reason = "SourceNotReadable"
    retryable = True


class FormatNotAllowed(SourceError):
    """A file format, or an option of it, is neither built in nor allowed by the administrator."""

    reason = "FormatNotAllowed"
    exit_code = 2


class SourceFileUnmatched(SourceError):
    """A listed file does not start with `sourceUriPrefix`; no file is ever dropped silently."""

    reason = "SourceFileUnmatched"


class SnapshotValueInvalid(SourceError):
    """A snapshot value is NULL, cannot be parsed, or has a type that its format cannot hold."""

    reason = "SnapshotValueInvalid"


class SourceSchemaInvalid(SourceError):
    """Columns of a source clash, or a query over it is refused by Spark."""

    reason = "SourceSchemaInvalid"


class SnapshotMissing(SourceError):
    """No snapshot of a source lies in its window and `snapshotMissingMode` is ERROR."""

    reason = "SnapshotMissing"
    retryable = True


class SourceChanged(SourceError):
    """The sources of a snapshot changed each time that it was woven."""

    reason = "SourceChanged"
    retryable = True


class RootEmpty(SourceError):
    """The root has no snapshot at all, and `run.onEmptyRoot` or `--strict` makes that a failure."""

    reason = "RootEmpty"
    retryable = True
    exit_code = 5


class FieldMissing(SourceError):
    """A join or groupBy field is absent (or of another type) and its missing mode is ERROR."""

    reason = "FieldMissing"


class RowsMultiplied(SnaploomError):
    """A left join returned more rows than it received: a right key matched twice."""

    reason = "RowsMultiplied"


class PublicationError(SnaploomError):
    """A snapshot cannot be published into its folder."""

    reason = "PublicationFailed"


class FolderNotOurs(PublicationError):
    """The output folder is neither empty nor one that Snaploom made."""

    reason = "FolderNotOurs"


class FolderNotWritable(PublicationError):
    """The output folder refuses writes: read-only, full, or not allowed."""

    reason = "FolderNotWritable"
    retryable = True


class FolderRemoved(PublicationError):
    """The output folder is being removed, or was removed while the run was at work."""

    reason = "FolderRemoved"
    retryable = True


class ImmutableSettingChanged(PublicationError):
    """A setting that is fixed by the first publication differs from the folder's."""

    reason = "ImmutableSettingChanged"


class HistoryIncompatible(PublicationError):
    """Structure or types contradict the snapshots that are already published."""

    reason = "HistoryIncompatible"


class CheckFailed(PublicationError):
    """An expectation (`checks[]`, `rootKey`) does not hold, so that nothing is published."""

    reason = "CheckFailed"


class CheckInvalid(PublicationError):
    """An expectation cannot be measured on the woven rows: a column is absent, or so."""

    reason = "CheckInvalid"


class SnapshotChanged(PublicationError):
    """The version of a snapshot that was to be replaced has ended meanwhile."""

    reason = "SnapshotChanged"
    retryable = True


class RunRevoked(PublicationError):
    """Another run revoked this one before touching its files (rule P11)."""

    reason = "RunRevoked"
    retryable = True


class StorageError(SnaploomError):
    """An object store answered with a failure."""

    reason = "StorageFailed"
    retryable = True


class ObjectNotFound(StorageError):
    """There is no object under this key."""

    reason = "ObjectNotFound"


class ObjectAlreadyExists(StorageError):
    """An object is already under this key: the put-if-absent was lost."""

    reason = "ObjectAlreadyExists"


class ObjectTooLarge(StorageError):
    """An object is longer than any of its kind that Snaploom writes; it was not read."""

    reason = "ObjectTooLarge"
    retryable = False


class NotAPlainFile(StorageError):
    """A link, pipe, socket or device is where a file or folder should be; it was not followed."""

    reason = "NotAPlainFile"
    retryable = False


class StoreNotSafe(StorageError):
    """The store's put-if-absent let two writers win, so that publishing there is not safe."""

    reason = "StoreNotSafe"
    retryable = False


class ManifestCorrupt(StorageError):
    """An entry of the manifest log cannot be parsed or contradicts the ones before it."""

    reason = "ManifestCorrupt"
    retryable = False


class FormatTooNew(StorageError):
    """A document was written by a newer Snaploom (rule P8)."""

    reason = "FormatTooNew"
    retryable = False


class SkippingError(SnaploomError):
    """Something about a skipping index; no query of a user ever fails by one (rule S14)."""

    reason = "SkippingFailed"


class IndexNotPossible(SkippingError):
    """There is no such index type, or it cannot be kept about this column, or so."""

    reason = "IndexNotPossible"
    exit_code = 2


class IndexNotFound(SkippingError):
    """The target has no skipping index."""

    reason = "IndexNotFound"


class IndexAlreadyExists(SkippingError):
    """The target has a skipping index already."""

    reason = "IndexAlreadyExists"


class IndexBusy(SkippingError):
    """The state of the index does not allow the operation now."""

    reason = "IndexBusy"
    retryable = True


class IndexOwned(SkippingError):
    """The index is owned by a resource; only that resource may change it (rule S26)."""

    reason = "IndexOwned"


class IndexUnreadable(SkippingError):
    """The stored index is damaged, or was written by a newer Snaploom."""

    reason = "IndexUnreadable"


class KeyUnavailable(SkippingError):
    """The index is encrypted and its key is unavailable."""

    reason = "KeyUnavailable"
    retryable = True


class TargetNotIndexable(SkippingError):
    """The named target has no files of its own: a view, a stream, a table of another system."""

    reason = "TargetNotIndexable"
    exit_code = 2


class SortNotPossible(SkippingError):
    """Files cannot be rewritten clustered, or not to where they were to go; nothing is changed."""

    reason = "SortNotPossible"


class StatementInvalid(SkippingError):
    """A statement about skipping indexes that cannot be parsed; points at the token."""

    reason = "StatementInvalid"
    exit_code = 2


class SkippingNotAvailable(SkippingError):
    """This Spark session cannot skip files."""

    reason = "SkippingNotAvailable"


class LeaseNotObtained(SnaploomError):
    """Another run holds the lease and the snapshot is still unpublished."""

    reason = "LeaseNotObtained"
    retryable = True
    exit_code = 4


class Interrupted(SnaploomError):
    """The run was stopped by Ctrl-C or SIGTERM; nothing was left half published."""

    reason = "Interrupted"
    retryable = True
    exit_code = 130
