"""Entries of the manifest log: small, immutable, one JSON document each (rules P1, P2).

An entry records one change of a folder: a snapshot `publish`ed, `replace`d or `tombstone`d, a
`claim` on work, runs `revoke`d before their files are touched, or the folder `configure`d. State
is what folding them in order gives (`snaploom.output.state`).
"""

import json
from collections.abc import Sequence as Members
from typing import Annotated, Literal, Self

from annotated_types import Ge, MinLen
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from snaploom.errors import PublicationError
from snaploom.models.base import ApiModel
from snaploom.models.common import EpochNanos, TimeOffset, format_instant, parse_instant
from snaploom.models.outputdataset import DataCompression, DataFormat, TimestampFormat
from snaploom.models.report import CheckResult, Exclusion, JoinMeasure, SourceSnapshot
from snaploom.output import documents
from snaploom.output.layout import Count, Hash, Line, PartitionName, PublishedPath, RunId, Sequence


def _to_instant(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str):
        return parse_instant(value)
    if info.mode == "json":
        raise ValueError("expected an ISO 8601 date-time")
    return value


Moment = Annotated[
    EpochNanos,
    BeforeValidator(_to_instant),
    PlainSerializer(format_instant, return_type=str),
]
"""An instant: nanoseconds inside, ISO 8601 in UTC outside."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


def _one_of(kinds: type[DataFormat | DataCompression | TimestampFormat]) -> StringConstraints:
    return StringConstraints(pattern=f"^({'|'.join(kind.value for kind in kinds)})$")


class FileRecord(ApiModel):
    """One published file."""

    path: PublishedPath
    """Key relative to the output folder, such as `data/day=1/….parquet`."""
    bytes: Count
    """Size."""
    rows: Count | None = None
    """Rows, where the writer knows."""


def _refuse_others(partition: str, files: Members[FileRecord]) -> None:
    place = f"data/{partition}/"
    if not all(file.path.startswith(place) for file in files):
        raise ValueError("a file that is not in the partition")


class SnapshotRecord(ApiModel):
    """One published snapshot, with its provenance."""

    time: Moment
    """Snapshot time: that of the root's snapshot."""
    partition: PartitionName
    """Folder below `data/`."""
    seq: Sequence
    """Sequence number of the entry that published it."""
    run_id: RunId
    """Run that published it."""
    created_at: Moment
    """Time of publication, by the publisher's clock."""
    plan_hash: Line
    """Hash of the join tree."""
    schema_hash: Hash
    """Names `metadata/schema/<hash>.json`."""
    model_hash: Hash
    """Names `metadata/datamodel/<hash>.json`."""
    rows: Count
    """Rows of the snapshot; zero is a snapshot too."""
    sources: tuple[SourceSnapshot, ...] = ()
    """The snapshot taken of each source."""
    excluded: tuple[Exclusion, ...] = ()
    """Sources that it does without, and why."""
    joins: tuple[JoinMeasure, ...] = ()
    """Counts at each join."""
    checks: tuple[CheckResult, ...] = ()
    """Result of each expectation."""
    warnings: tuple[str, ...] = ()
    """Joins of which many rows had a NULL key, for people."""
    replaces: Sequence | None = None
    """Entry that had published the version which this one corrects; None for a first version."""
    reason: str = ""
    """Reason for the correction, for people."""
    files: tuple[FileRecord, ...] = ()
    """The files that hold it; no others do."""
    tool_version: Line
    """Version of Snaploom."""
    spark_version: Line = ""
    """Version of Spark."""

    @model_validator(mode="after")
    def _own(self) -> Self:
        _refuse_others(self.partition, self.files)
        for source in self.sources:
            for time in (*(source.history or ()), source.time):
                parse_instant(time)
        return self

    def has(self, key: str) -> bool:
        """Whether a file belongs to it."""
        return any(file.path == key for file in self.files)


class TombstoneRecord(ApiModel):
    """One snapshot version that is no longer live; its files go when grace has passed."""

    time: Moment
    """Snapshot time."""
    partition: PartitionName
    """Folder below `data/`."""
    published_seq: Sequence
    """Entry that had published the version."""
    seq: Sequence
    """Entry that ended it."""
    rule: Name
    """Reason: the retention rule, or `REPLACED`."""
    deleted_at: Moment
    """Time by the clock of the run that ended it."""
    files: tuple[FileRecord, ...] = ()
    """Exactly the files that may be removed (rule P10)."""

    @model_validator(mode="after")
    def _own(self) -> Self:
        _refuse_others(self.partition, self.files)
        return self

    def has(self, key: str) -> bool:
        return any(file.path == key for file in self.files)


class ModelNode(ApiModel):
    """One source in the data model of a run."""

    field_name: Line
    """Field of the output; empty for the root."""
    parent: Line
    """Field name of the parent; empty when that is the root, and at the root (rule W12)."""
    group_by: tuple[Line, ...] = ()
    """Fields by which the source is grouped before it is joined."""
    source: Name
    """Name of the DataSource."""
    relationship: Line = ""
    """Name of the DataRelationship of the edge to its parent; empty at the root."""


def _closed(nodes: tuple[ModelNode, ...]) -> tuple[ModelNode, ...]:
    known = {""}
    for number, node in enumerate(nodes):
        name = node.field_name.casefold()
        if node.parent.casefold() not in known or (name in known) != (number == 0):
            raise ValueError("a source that hangs at none before it, or is there twice")
        known.add(name)
    return nodes


DataModel = Annotated[tuple[ModelNode, ...], AfterValidator(_closed)]
"""The data model of a run, root first."""


class FolderSettings(ApiModel):
    """Settings that the first publication fixes for ever."""

    data_format: Annotated[str, _one_of(DataFormat)]
    """PARQUET, AVRO, JSONL, ICEBERG or DELTA."""
    data_compression: Annotated[str, _one_of(DataCompression)]
    """Codec of the files."""
    partition_field_name: Name
    """Name of the partition column."""
    timestamp_format: Annotated[str, _one_of(TimestampFormat)]
    """Format of snapshot times in partitions."""
    output_timezone: Line
    """Zone of the partitions' offsets; empty where the format has none."""
    table: Line | None = None
    """Catalog and name of the table, where it is one of a catalog: `lake.shop.orders_wide`."""


class FolderIdentity(ApiModel):
    """The owner of a folder."""

    output: Name
    """Name of the OutputDataset."""
    root: Name
    """Name of the root DataSource."""
    namespace: Line = ""
    """Namespace of the OutputDataset; empty while nobody published from a cluster."""
    uid: Line = ""
    """UID of the OutputDataset; empty while nobody published from a cluster."""


class EntryBase(ApiModel):
    """Fields of every entry."""

    format: Annotated[int, Ge(1)] = documents.MANIFEST_FORMAT
    """Format version of this document."""
    seq: Sequence
    """Position in the log, from 1, without gaps; never used twice."""
    run_id: RunId
    """Run that wrote it."""
    written_at: Moment
    """Time of writing, by the writer's clock; only `seq` gives the order."""
    tool_version: Line
    """Version of Snaploom."""


class Publish(EntryBase):
    """A snapshot becomes live at a time that had no live one."""

    action: Literal["publish"] = "publish"
    snapshot: SnapshotRecord
    """The snapshot."""
    model: DataModel = ()
    """The data model of the run, root first."""


class Replace(EntryBase):
    """A new version of a snapshot becomes live and ends the old one, at once."""

    action: Literal["replace"] = "replace"
    snapshot: SnapshotRecord
    """The new version."""
    replaced: TombstoneRecord
    """The old version."""
    model: DataModel = ()
    """The data model of the run, root first."""
    message: str = ""
    """Reason, for people."""


class Tombstone(EntryBase):
    """Snapshots are no longer live."""

    action: Literal["tombstone"] = "tombstone"
    snapshots: Annotated[tuple[TombstoneRecord, ...], MinLen(1)]
    """The versions that end."""


class Claim(EntryBase):
    """A run claims that it works on something: saves double work, proves nothing (rule P17)."""

    action: Literal["claim"] = "claim"
    scope: Name
    """Subject of the work; the newest claim on a scope counts, its `seq` is the token."""
    seconds: Count
    """For how long; zero gives the scope back."""


class Revoke(EntryBase):
    """Runs that may commit nothing more, so that their files can be removed (rule P11)."""

    action: Literal["revoke"] = "revoke"
    run_ids: Annotated[tuple[RunId, ...], MinLen(1)]
    """The runs."""


class Configure(EntryBase):
    """The folder's fixed settings; and its identity and grace, which a later one may change."""

    action: Literal["configure"] = "configure"
    settings: FolderSettings
    """Fixed settings."""
    identity: FolderIdentity
    """Owner of the folder."""
    reader_grace: TimeOffset | None = None
    """Time for which readers may use a pinned manifest; None where that is as before."""


Entry = Annotated[
    Publish | Replace | Tombstone | Claim | Revoke | Configure, Field(discriminator="action")
]
"""Any entry, distinguished by `action`."""

_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


def format_entry(entry: Entry) -> bytes:
    """The document of an entry: canonical JSON and a newline."""
    document = entry.dump_json().encode() + b"\n"
    if len(document) > documents.ENTRY.length:
        raise PublicationError(
            "an entry of the manifest would be too long to be read again",
            found=f"{len(document):,} bytes to {entry.action}",
            expected=f"at most {documents.ENTRY.length:,} bytes, some 400,000 files",
            hint="write fewer and longer files: raise outputFolder.targetFileSizeMiB",
        )
    return document


def parse_entry(document: bytes, name: str) -> Entry:
    """Parse an entry; `name` is the file, for messages.

    Raises:
        FormatTooNew: it was written by a newer Snaploom.
        ManifestCorrupt: it is no valid entry.
    """
    documents.parse_versioned(document, name, documents.ENTRY, documents.NEWEST_ENTRY)
    try:
        return _ENTRY.validate_json(document, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise documents.corrupt(name, documents.first_fault(error)) from error


def entry_from(raw: object, name: str) -> Entry:
    """Parse an entry inside the document `name`; `ManifestCorrupt` if it is invalid."""
    return parse_entry(json.dumps(raw).encode(), name)


def parse_record(line: bytes, name: str) -> SnapshotRecord:
    """Parse a record inside the checkpoint `name`; `ManifestCorrupt` if it is invalid."""
    documents.refuse_many(line, name, documents.ENTRY)
    try:
        return SnapshotRecord.model_validate_json(line, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise documents.corrupt(name, documents.first_fault(error)) from error
