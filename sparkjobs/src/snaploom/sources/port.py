"""The port to an opened source: its snapshots, and the data of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from snaploom.errors import SnapshotMissing, SourceChanged, SourceError
from snaploom.files.listed import OtherFiles
from snaploom.models.allowances import Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.output.caches import Listings
from snaploom.plan.intervals import SourceSnapshots
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.files.snapshots import shown
from snaploom.sources.sourcefiles import Change, SourceFiles

# The interface of a source for the engine: its snapshots, and the data of one of them.


class Listed(Protocol):
    """Listing of a source before any of it was read."""

    @property
    def resource(self) -> str:
        """`Kind/name` of the source."""
        ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for people."""
        ...

    def change(self, now: SourceFiles) -> Change | None:
        """Return the change since listing, without reading data; None where nothing changed.

        `now` reads today's listing of files.

        Raises:
            SourceError: the source cannot be listed.
        """
        ...


def change_of(listed: Listed, now: SourceFiles) -> Change | None:
    """`Listed.change`, with a source that cannot be listed any more as one that has changed."""
    try:
        return listed.change(now)
    except SourceError as error:
        path = error.path or "spec"
        return Change(listed.resource, path, error.message, "what was listed", is_of_read=True)


def changed(changes: Sequence[Change]) -> SourceChanged:
    """The error of a snapshot whose sources have changed while they were read."""
    first, *others = changes
    return SourceChanged(
        "the source was written to while it was read",
        resource=first.resource,
        path=first.path,
        found=shown([first.found, *(f"{each.resource}: {each.found}" for each in others)]),
        expected=first.expected,
    )


@contextmanager
def read_as_listed(listed: Listed, others: OtherFiles) -> Iterator[None]:
    """Report a failure to read as a change, where there was one since the listing.

    `others` lists files that are not on a local disk.

    Raises:
        SourceChanged: what is read is not there any more.
        SourceError: whatever the block raises, where it is.
    """
    try:
        yield
    except SourceError as error:
        change = change_of(listed, SourceFiles(others))
        if change is None or not change.is_of_read:
            raise
        raise changed([change]) from error


@dataclass(frozen=True)
class SourceFrame:
    """The data of one snapshot; nothing but its schema has been read."""

    frame: DataFrame
    """The data; of a source as it is read, the snapshot's field is still in it."""
    time: EpochNanos
    fingerprint: str
    """Changes when the data to read changes."""
    snapshot_field: tuple[str, ...] = ()
    """Path of the snapshot's field where it is still to be dropped, names in the case of the data:
    transformers and applicators come before (`snaploom.sources.readers`)."""
    unshaped: StructType | None = None
    """Its columns before transformers and applicators; None where these have not had their turn."""
    below: Mapping[str, SourceFrame] = field(default_factory=dict)
    """The snapshots that a query over other sources reads, by alias; empty for physical sources."""
    listed: Listed | None = None
    """Listing of its source; None for a query, and for a database, which fixes a moment itself."""


class SourceReader(Protocol):
    """One source during one run; its listing stays as it was first read."""

    @property
    def name(self) -> str:
        """Name of the DataSource."""
        ...

    def listing(self) -> SourceSnapshots:
        """The snapshots that there are.

        Raises:
            SourceError: a file, a snapshot value or the schema is not as declared.
        """
        ...

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """The data of a listed snapshot.

        Raises:
            SourceError: a file or the schema is not as declared.
            SnapshotMissing: the snapshot is not listed.
        """
        ...


def not_listed(name: str, snapshot: EpochNanos) -> SnapshotMissing:
    """The error of a reader that is asked for a snapshot it does not have."""
    return SnapshotMissing(
        f"there is no snapshot of {format_instant(snapshot)}",
        resource=f"DataSource/{name}",
        found="no snapshot of this time",
        expected="one of those that the source lists",
    )


# The inputs of a kind of source to open its reader, and the result.


@dataclass(frozen=True)
class ReaderContext:
    """One run, as readers of sources need it."""

    spark: SparkSession
    """The session, with the settings of `snaploom.spark.jvm`."""
    now: EpochNanos
    """The instant of the run: the time of `fromReadTime` snapshots."""
    allow: Allowances
    """Entries that declarations may use beyond the built-in lists."""
    listings: Listings | None
    """Facts that earlier runs learned of files; None to ask all of them."""
    files: SourceFiles
    reader: Callable[[str], SourceReader]
    """From the name of another source to its reader, which all that read it share."""
    resources: ExitStack
    """Closed at the end of the run: connections, and other resources opened once."""


OpenReader = Callable[[DeclaredSource, ReaderContext], SourceReader | None]
"""The reader of a source, at which nothing is listed or read yet; None for other kinds."""
