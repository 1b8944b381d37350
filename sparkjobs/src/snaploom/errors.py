"""Errors that Snaploom raises on purpose, in one tree, and the entries of all problems.

`problems.toml` has an entry for each reason and each code of a finding; docs/reference/problems.md
shows them. A class has the entry of its name, or that which it gives as `reason`, or else that of
the class above. Callers need not parse messages: `reason` (the CamelCase
reason of a Kubernetes condition), `retryable` (is it worth trying again with nothing changed?)
and `exit_code` (of the command line) come from the entry. An instance can name resource, field
path, found, expected and a hint, so that the text a user reads is always of one shape.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from snaploom.confidential import visible, visible_lines, without_secrets


class Problem(NamedTuple):
    """An entry of `problems.toml`, which documents the keys."""

    name: str
    """Code of a finding, or reason."""
    cause: str = ""
    """Its usual causes, as sentences."""
    fix: str = ""
    """The fix, as sentences; empty where nothing is wrong."""
    title: str = ""
    """A few words that no other finding has; empty for a reason, whose name is enough."""
    severity: str = ""
    """Of a finding: ERROR, WARNING, or EITHER as the caller decides."""
    at: str = "error"
    """Where a reason appears: error, condition, event or operator."""
    of: str = ""
    """The entry with the texts of this problem, when it is another one."""
    exit: int = 1
    """Exit code of a command that fails by it."""
    retried: bool = False
    """Whether a run that fails by it is tried again."""
    example: str = ""
    """A situation that leads to the error."""
    see: str = ""
    """The page below `docs/` with details."""


@cache
def problems() -> Mapping[str, Problem]:
    """The entry of every code and reason."""
    text = files("snaploom").joinpath("problems.toml").read_text("utf-8")
    found = {name: Problem(name, **entry) for name, entry in tomllib.loads(text).items()}
    return {
        name: each._replace(cause=found[each.of].cause, fix=found[each.of].fix) if each.of else each
        for name, each in found.items()
    }


class _OfEntry:
    """An attribute of a class of errors that the entry of the class has."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __get__(self, _instance: object, owner: type[SnaploomError]) -> object:
        return getattr(owner.problem(), self._key)


class SnaploomError(Exception):
    """Root of the tree; `except SnaploomError` catches all that Snaploom raises on purpose.

    Args:
        message: the event, one sentence without a final full stop.
        resource: `Kind/name` of the resource concerned.
        path: field path inside the resource, such as `spec.dataModel.maxDepth`.
        found: the value found, as the user would recognise it.
        expected: the correct form.
        hint: the fix, where the entry does not state it.
    """

    _entry: ClassVar[str] = "Failed"
    if TYPE_CHECKING:
        reason: ClassVar[str]
        retryable: ClassVar[bool]
        exit_code: ClassVar[int]
    else:
        reason = _OfEntry("name")
        retryable = _OfEntry("retried")
        exit_code = _OfEntry("exit")

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
        self._hint = None if hint is None else _shown(hint)

    def __init_subclass__(cls, *, reason: str = "") -> None:
        cls._entry = reason or cls.__name__

    @classmethod
    def problem(cls) -> Problem:
        """Return the entry of the class, or of the nearest class above it that has one."""
        names = (vars(each).get("_entry", "") for each in cls.__mro__)
        return next(problems()[name] for name in names if name in problems())

    @property
    def hint(self) -> str:
        """The fix: that of this case, or else that of the entry."""
        return self._hint or self.problem().fix

    def __str__(self) -> str:
        place = " ".join(part for part in (self.resource, self.path) if part)
        lines = [f"{place}: {self.message}" if place else self.message]
        if self.found is not None:
            lines.append(f"  found:    {self.found}")
        if self.expected is not None:
            lines.append(f"  expected: {self.expected}")
        return "\n".join(lines) + f"{FIX}{self.hint}"


FIX = "\n  fix:      "
"""The mark of the fix, which ends the text of an error."""


def _shown(text: str) -> str:
    return visible_lines(without_secrets(text))


class ArgumentInvalid(SnaploomError):
    """An argument of a function of the library cannot be read, or contradicts another one."""


class MemoryUsedUp(SnaploomError):
    """Spark found no memory for the rows that it reads or joins."""


class SourceError(SnaploomError, reason="SourceFailed"):
    """Data of a source does not match the declarations."""


class SourceNotReadable(SourceError):
    """A file of a source cannot be read: missing, truncated, or not of its declared format."""


class FormatNotAllowed(SourceError):
    """A file format, or an option of it, is neither built in nor allowed by the administrator."""


class SourceFileUnmatched(SourceError):
    """A listed file does not start with `sourceUriPrefix`; no file is ever dropped silently."""


class SnapshotValueInvalid(SourceError):
    """A snapshot value is NULL, cannot be parsed, or has a type that its format cannot hold."""


class SourceSchemaInvalid(SourceError):
    """Columns of a source clash, or a query over it is refused by Spark."""


class SnapshotMissing(SourceError):
    """No snapshot of a source lies in its window and `snapshotMissingMode` is ERROR."""


class SourceChanged(SourceError):
    """The sources of a snapshot changed each time that it was woven."""


class RootEmpty(SourceError):
    """The root has no snapshot at all, and `run.onEmptyRoot` or `--strict` makes that a failure."""


class FieldMissing(SourceError):
    """A join or groupBy field is absent (or of another type) and its missing mode is ERROR."""


class RowsMultiplied(SnaploomError):
    """A left join returned more rows than it received: a right key matched twice."""


class PublicationError(SnaploomError, reason="PublicationFailed"):
    """A snapshot cannot be published into its folder."""


class FolderNotOurs(PublicationError):
    """The output folder is neither empty nor one that Snaploom made."""


class FolderNotWritable(PublicationError):
    """The output folder refuses writes: read-only, full, or not allowed."""


class FolderRemoved(PublicationError):
    """The output folder is being removed, or was removed while the run was at work."""


class ImmutableSettingChanged(PublicationError):
    """A setting that is fixed by the first publication differs from the folder's."""


class HistoryIncompatible(PublicationError):
    """Structure or types contradict the snapshots that are already published."""


class CheckFailed(PublicationError):
    """An expectation (`checks[]`, `rootKey`) does not hold, so that nothing is published."""


class CheckInvalid(PublicationError):
    """An expectation cannot be measured on the woven rows: a column is absent, or so."""


class SnapshotChanged(PublicationError):
    """The version of a snapshot that was to be replaced has ended meanwhile."""


class RunRevoked(PublicationError):
    """Another run revoked this one before touching its files (rule P11)."""


class StorageError(SnaploomError, reason="StorageFailed"):
    """An object store answered with a failure."""


class ObjectNotFound(StorageError):
    """There is no object under this key."""


class ObjectAlreadyExists(StorageError):
    """An object is already under this key: the put-if-absent was lost."""


class ObjectTooLarge(StorageError):
    """An object is longer than any of its kind that Snaploom writes; it was not read."""


class NotAPlainFile(StorageError):
    """A link, pipe, socket or device is where a file or folder should be; it was not followed."""


class StoreNotSafe(StorageError):
    """The store's put-if-absent let two writers win, so that publishing there is not safe."""


class ManifestCorrupt(StorageError):
    """An entry of the manifest log cannot be parsed or contradicts the ones before it."""


class FormatTooNew(StorageError):
    """A document was written by a newer Snaploom (rule P8)."""


class SkippingError(SnaploomError, reason="SkippingFailed"):
    """Something about a skipping index; no query of a user ever fails by one (rule S14)."""


class IndexNotPossible(SkippingError):
    """There is no such index type, or it cannot be kept about this column, or so."""


class IndexNotFound(SkippingError):
    """The target has no skipping index."""


class IndexAlreadyExists(SkippingError):
    """The target has a skipping index already."""


class IndexBusy(SkippingError):
    """The state of the index does not allow the operation now."""


class IndexOwned(SkippingError):
    """The index is owned by a resource; only that resource may change it (rule S26)."""


class IndexUnreadable(SkippingError):
    """The stored index is damaged, or was written by a newer Snaploom."""


class KeyUnavailable(SkippingError):
    """The index is encrypted and its key is unavailable."""


class TargetNotIndexable(SkippingError):
    """The named target has no files of its own: a view, a stream, a table of another system."""


class SortNotPossible(SkippingError):
    """Files cannot be rewritten clustered, or not to where they were to go; nothing is changed."""


class StatementInvalid(SkippingError):
    """A statement about skipping indexes that cannot be parsed; points at the token."""


class SkippingNotAvailable(SkippingError):
    """This Spark session cannot skip files."""


class LeaseNotObtained(SnaploomError):
    """Another run holds the lease and the snapshot is still unpublished."""


class Interrupted(SnaploomError):
    """The run was stopped by Ctrl-C or SIGTERM; nothing was left half published."""
