"""Requests to sort files and published snapshots, and their results; without Spark."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from snaploom.errors import FolderNotOurs
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import UnsupportedStore
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.findings import refuse
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import RunSettings
from snaploom.models.skippingindex import SkippingIndex
from snaploom.output import layout
from snaploom.output.folder import open_folder
from snaploom.run.declarations import Declarations
from snaploom.run.indexes.indexrequests import IndexedPlace, index_names, places_on_publish
from snaploom.skipping.statements.syntax import Properties

# Requests to sort published snapshots, and their results; without Spark.


@dataclass(frozen=True)
class PublishedPlace:
    """Output whose snapshots are sorted."""

    folder: str
    """URI or absolute path of the output's folder."""
    output: OutputDataset | None = None
    """The output; None where only its folder was named."""
    indexes: tuple[IndexedPlace, ...] = ()
    """Indexes that follow its publications."""
    settings: Properties = ()
    """Settings of the Spark session, which win over those of the output's `run`."""
    allow: Allowances = NO_ALLOWANCES
    """Entries that the output may use beyond the built-in lists."""

    @property
    def run(self) -> RunSettings:
        return RunSettings() if self.output is None else self.output.spec.run

    @property
    def owner(self) -> str:
        """`OutputDataset/name`; empty where only its folder was named."""
        return "" if self.output is None else self.output.identity

    @property
    def label(self) -> str:
        return self.folder if self.output is None else self.output.name


def place_of_output(
    declarations: Declarations,
    name: str,
    settings: Properties,
    warn: Callable[[str], None],
) -> PublishedPlace | None:
    """The folder of an output, or of the one that a SkippingIndex is about; None without one."""
    if name not in declarations.output_names and name in index_names(declarations):
        bundle = declarations.bundle(name, SkippingIndex.__name__)
        if bundle.index.spec.target.output_dataset is None:
            return None
        name = bundle.target_output.name
    bundle = declarations.bundle(name)
    refuse(declarations.findings_for(bundle))
    indexes = places_on_publish(declarations, name, warn)
    folder = bundle.output.spec.output_folder.folder_uri
    return PublishedPlace(folder, bundle.output, indexes, settings, declarations.allow)


def place_of_folder(
    uri: str, settings: Properties, opened: Callable[[str], ObjectStore]
) -> PublishedPlace | None:
    """The folder of an output, or the one that holds its data; None for any other.

    `opened` may start Spark.
    """
    folder = uri.rstrip("/")
    data = f"/{layout.DATA.rstrip('/')}"
    places = [folder, *([folder.removesuffix(data)] if folder.endswith(data) else [])]
    for place in places:
        try:
            open_folder(opened(place))
        except (FolderNotOurs, UnsupportedStore):
            continue
        return PublishedPlace(place, settings=settings)
    return None


# Results of sorting, and the proof that no row was lost.


@dataclass(frozen=True)
class Checksum:
    """Checksum of a set of rows, independent of their order."""

    rows: int
    total: int
    """Sum of the hashes of the rows."""
    mixed: int
    """Exclusive or of other hashes of the rows."""

    def __str__(self) -> str:
        return f"{self.rows:,} rows, checksum {self.text}"

    @property
    def text(self) -> str:
        return f"{self.total:x}-{self.mixed & (2**64 - 1):x}"


@dataclass(frozen=True)
class Rewritten:
    """Rows that were written once more, and proved to be the same."""

    checksum: Checksum
    """Of the rows that were read, and of those that were written."""
    files_before: int
    files: int
    bytes_before: int
    """Bytes of the files that were read."""
    bytes: int
    """Bytes of the files that were written."""

    @property
    def document(self) -> dict[str, JsonValue]:
        return {
            "rows": self.checksum.rows,
            "checksum": self.checksum.text,
            "filesBefore": self.files_before,
            "files": self.files,
            "bytesBefore": self.bytes_before,
            "bytes": self.bytes,
        }

    def __str__(self) -> str:
        files = "1 file" if self.files_before == 1 else f"{self.files_before:,} files"
        return f"{files} of {self.bytes_before:,} bytes became {self.files:,} of {self.bytes:,}."


@dataclass(frozen=True)
class SortedSnapshot:
    """A snapshot that was replaced by the same rows in another order."""

    time: EpochNanos
    seq: int
    """Entry of the manifest log that replaced it."""
    rewritten: Rewritten

    @property
    def document(self) -> JsonValue:
        return {
            "time": format_instant(self.time),
            "sequence": self.seq,
            **self.rewritten.document,
        }

    def __str__(self) -> str:
        done = self.rewritten
        proof = f"{done.checksum}: the same as before."
        return f"{format_instant(self.time)}: {done}\n    {proof}"


@dataclass(frozen=True)
class LeftSnapshot:
    """A snapshot that was not replaced."""

    time: EpochNanos
    why: str
    is_failure: bool
    """Whether it should have been."""

    @property
    def document(self) -> JsonValue:
        return {
            "time": format_instant(self.time),
            "message": self.why,
            "failed": self.is_failure,
        }

    def __str__(self) -> str:
        return f"{format_instant(self.time)}: not sorted: {self.why}"


@dataclass(frozen=True)
class SnapshotsSorted:
    """Result of sorting snapshots of one output."""

    uri: str
    run_id: str
    replaced: tuple[SortedSnapshot, ...]
    left: tuple[LeftSnapshot, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def is_complete(self) -> bool:
        """Whether everything that should have been sorted was."""
        return not any(left.is_failure for left in self.left)

    @property
    def document(self) -> JsonValue:
        return {
            "uri": self.uri,
            "runId": self.run_id,
            "snapshots": [each.document for each in self.replaced],
            "left": [each.document for each in self.left],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        count = len(self.replaced)
        head = f"{self.uri}: {count} snapshot{'' if count == 1 else 's'} sorted."
        return "\n".join(
            [head, *(f"  {each}" for each in (*self.replaced, *self.left, *self.notes))]
        )


@dataclass(frozen=True)
class SortResult:
    """Result of sorting."""

    uri: str
    rewritten: Rewritten
    notes: tuple[str, ...] = ()

    @property
    def document(self) -> JsonValue:
        return {"uri": self.uri, **self.rewritten.document, "notes": list(self.notes)}

    def __str__(self) -> str:
        done = self.rewritten
        lines = [
            f"{self.uri}: sorted.",
            f"  {done.checksum}: the same as before.",
            f"  {done}",
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])
