"""The port to an opened source: its snapshots, and the data of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from snaploom.errors import SnapshotMissing, SourceChanged, SourceError, SourceSchemaInvalid
from snaploom.files.listed import OtherFiles
from snaploom.models.allowances import Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.output.caches import Listings
from snaploom.plan.intervals import SourceSnapshots
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.files.snapshots import shown
from snaploom.sources.sourcefiles import Change, SourceFiles, joint_fingerprint
from snaploom.spark.types import as_nullable, struct_from
from snaploom.types.merge import merge_schemas

# The interface of a source for the engine: its snapshots, and the data of one of them.


class Listed(Protocol):
    """Listing of a source before any of it was read."""

    @property
    def resource(self) -> str:
        """`Kind/name` of the source."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for people."""

    def change(self, now: SourceFiles) -> Change | None:
        """Return the change since listing, without reading data; None where nothing changed.

        `now` reads today's listing of files.

        Raises:
            SourceError: the source cannot be listed.
        """


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
    """The data of one snapshot, or of a history; nothing but its schema has been read."""

    frame: DataFrame
    """The data; of a source as it is read, the snapshot's field is still in it."""
    time: EpochNanos
    """Of the newest snapshot in it."""
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
    history: Mapping[EpochNanos, str] = field(default_factory=dict)
    """Of several snapshots, the fingerprint of each, the newest last; empty for one."""
    united: tuple[SourceFrame, ...] = ()
    """The frames of which it has the rows, where it has those of several."""

    @property
    def snapshots(self) -> Mapping[EpochNanos, str]:
        """Fingerprints of the snapshots in it, by time, the newest last."""
        return self.history or {self.time: self.fingerprint}


class SourceReader(Protocol):
    """One source during one run; its listing stays as it was first read."""

    @property
    def name(self) -> str:
        """Name of the DataSource."""

    def listing(self) -> SourceSnapshots:
        """The snapshots that there are.

        Raises:
            SourceError: a file, a snapshot value or the schema is not as declared.
        """

    def read(self, *snapshots: EpochNanos) -> SourceFrame:
        """The data of a listed snapshot, or of several together, the newest last.

        Validation lets only kinds that list their snapshots be asked for several.

        Raises:
            SourceError: a file or the schema is not as declared.
            SnapshotMissing: a snapshot is not listed.
        """


def of_all(prints: Mapping[EpochNanos, str]) -> tuple[str, Mapping[EpochNanos, str]]:
    """The fingerprint of snapshots that are read together, and `SourceFrame.history`."""
    if len(prints) == 1:
        return next(iter(prints.values())), {}
    return joint_fingerprint(prints.items()), prints


def united(resource: str, frames: Sequence[SourceFrame]) -> SourceFrame:
    """The rows of the frames of one source, the newest last, under one schema.

    Raises:
        SourceSchemaInvalid: types of one column have nothing in common.
    """
    newest = frames[-1]
    if len(frames) == 1:
        return newest
    merged = merge_schemas((each.time, each.frame.schema.json()) for each in frames)
    if merged.conflicts:
        raise SourceSchemaInvalid(
            "the snapshots of a history give one column types that have nothing in common",
            resource=resource,
            path="spec",
            found="; ".join(map(str, merged.conflicts)),
            expected="types of which one holds all values of the other",
            hint="cast the column in the query, or by a fieldTransformer with a snapshotRange",
        )
    schema = as_nullable(struct_from(merged.schema, resource))
    fingerprint, history = of_all(dict(chain.from_iterable(e.snapshots.items() for e in frames)))
    return replace(
        newest,
        frame=reduce(DataFrame.unionAll, (each.frame.to(schema) for each in frames)),
        fingerprint=fingerprint,
        history=history,
        united=tuple(frames),
    )


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
