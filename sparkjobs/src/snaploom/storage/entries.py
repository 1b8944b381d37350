"""Entries of the manifest log: small, immutable, one JSON document each (rulings D24 and D25).

An entry tells one change of a folder: a snapshot `publish`ed, `replace`d or `tombstone`d, a
`claim` on work, runs `revoke`d before their files are touched, or the folder `configure`d. State
is what folding them in order gives (`snaploom.storage.state`).
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from annotated_types import Ge, MinLen
from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from snaploom.errors import FormatTooNew, ManifestCorrupt
from snaploom.models.base import ApiModel
from snaploom.models.common import TimeOffset
from snaploom.models.report import CheckResult, Exclusion, JoinMeasure, SourceSnapshot
from snaploom.models.times import EpochNanos, format_instant, parse_instant

MANIFEST_FORMAT = 1
"""Format of entries, checkpoints and the marker; a newer one is refused (ruling D19)."""


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

Count = Annotated[int, Ge(0)]
Sequence = Annotated[int, Ge(1)]
Name = Annotated[str, StringConstraints(min_length=1)]


class FileRecord(ApiModel):
    """One published file."""

    path: Name
    """Key relative to the output folder, such as `data/day=1/….parquet`."""
    bytes: Count
    """Size."""
    rows: Count | None = None
    """Rows, where the writer knows."""


class SnapshotRecord(ApiModel):
    """One published snapshot, with all that explains it (`join.md` section 2.7)."""

    time: Moment
    """Snapshot time: that of the root's snapshot."""
    partition: Name
    """Folder below `data/`."""
    seq: Sequence
    """Sequence number of the entry that published it."""
    run_id: Name
    """Run that published it."""
    created_at: Moment
    """When it was published, by the publisher's clock."""
    plan_hash: str
    """Hash of the join tree."""
    schema_hash: Name
    """Names `metadata/schema/<hash>.json`."""
    model_hash: Name
    """Names `metadata/datamodel/<hash>.json`."""
    rows: Count
    """Rows of the snapshot; zero is a snapshot too."""
    sources: tuple[SourceSnapshot, ...] = ()
    """The snapshot taken of each source."""
    excluded: tuple[Exclusion, ...] = ()
    """Sources that it does without, and why."""
    joins: tuple[JoinMeasure, ...] = ()
    """What was counted at each join."""
    checks: tuple[CheckResult, ...] = ()
    """What became of each expectation."""
    warnings: tuple[str, ...] = ()
    """Joins of which many rows had a NULL key, for people."""
    replaces: Sequence | None = None
    """Entry that had published the version which this one corrects; None for a first version."""
    reason: str = ""
    """Why it was corrected, for people."""
    files: tuple[FileRecord, ...] = ()
    """The files that hold it; no others do."""
    tool_version: str
    """Version of Snaploom."""
    spark_version: str = ""
    """Version of Spark."""

    def has(self, key: str) -> bool:
        """Whether a file is one of it."""
        return any(file.path == key for file in self.files)


class TombstoneRecord(ApiModel):
    """One snapshot version that is no longer live; its files go when grace has passed."""

    time: Moment
    """Snapshot time."""
    partition: Name
    """Folder below `data/`."""
    published_seq: Sequence
    """Entry that had published the version."""
    seq: Sequence
    """Entry that ended it."""
    rule: Name
    """Why: the retention rule, or `REPLACED`."""
    deleted_at: Moment
    """When, by the clock of who ended it."""
    files: tuple[FileRecord, ...] = ()
    """Exactly the files that may be removed (ruling D28)."""

    def has(self, key: str) -> bool:
        """Whether a file is one of it."""
        return any(file.path == key for file in self.files)


class ModelNode(ApiModel):
    """One source in the data model of a run."""

    field_name: str
    """Field of the output; empty for the root."""
    parent: str
    """Field name of the parent; empty when that is the root, and at the root (ruling D6)."""
    group_by: tuple[str, ...] = ()
    """Fields by which the source is grouped before it is joined."""
    source: Name
    """Name of the DataSource."""
    relationship: str = ""
    """Name of the DataRelationship of the edge to its parent; empty at the root."""


class FolderSettings(ApiModel):
    """What the first publication fixes for ever."""

    data_format: Name
    """PARQUET, AVRO, JSONL or ICEBERG."""
    data_compression: Name
    """Codec of the files."""
    partition_field_name: Name
    """Name of the partition column."""
    timestamp_format: Name
    """How snapshot times are written in partitions."""
    output_timezone: str
    """Zone of the partitions' offsets; empty where the format has none."""


class FolderIdentity(ApiModel):
    """Whose folder this is."""

    output: Name
    """Name of the OutputDataset."""
    root: Name
    """Name of the root DataSource."""
    namespace: str = ""
    """Namespace of the OutputDataset; empty while nobody published from a cluster."""
    uid: str = ""
    """UID of the OutputDataset; empty while nobody published from a cluster."""


class EntryBase(ApiModel):
    """What every entry has."""

    format: Annotated[int, Ge(1)] = MANIFEST_FORMAT
    """Format version of this document."""
    seq: Sequence
    """Position in the log, from 1, without gaps; never used twice."""
    run_id: Name
    """Run that wrote it."""
    written_at: Moment
    """When, by the writer's clock; order is by `seq` alone."""
    tool_version: str
    """Version of Snaploom."""


class Publish(EntryBase):
    """A snapshot becomes live at a time that had no live one."""

    action: Literal["publish"] = "publish"
    snapshot: SnapshotRecord
    """The snapshot."""
    model: tuple[ModelNode, ...] = ()
    """The data model of the run, root first."""


class Replace(EntryBase):
    """A new version of a snapshot becomes live and ends the old one, at once."""

    action: Literal["replace"] = "replace"
    snapshot: SnapshotRecord
    """The new version."""
    replaced: TombstoneRecord
    """The old version."""
    model: tuple[ModelNode, ...] = ()
    """The data model of the run, root first."""
    message: str = ""
    """Why, for people."""


class Tombstone(EntryBase):
    """Snapshots stop being live."""

    action: Literal["tombstone"] = "tombstone"
    snapshots: Annotated[tuple[TombstoneRecord, ...], MinLen(1)]
    """The versions that end."""


class Claim(EntryBase):
    """A run says that it works on something: saves double work, proves nothing (ruling D28)."""

    action: Literal["claim"] = "claim"
    scope: Name
    """What is worked on; the newest claim on a scope counts, its `seq` is the token."""
    seconds: Count
    """For how long; zero gives the scope back."""


class Revoke(EntryBase):
    """Runs that may commit nothing from here on, so that their files can be touched (D27)."""

    action: Literal["revoke"] = "revoke"
    run_ids: Annotated[tuple[Name, ...], MinLen(1)]
    """The runs."""


class Configure(EntryBase):
    """The folder's fixed settings; and its identity and grace, which a later one may change."""

    action: Literal["configure"] = "configure"
    settings: FolderSettings
    """What is fixed."""
    identity: FolderIdentity
    """Whose folder it is."""
    reader_grace: TimeOffset | None = None
    """How long readers may hold on to what they pinned; None where that is as before."""


Entry = Annotated[
    Publish | Replace | Tombstone | Claim | Revoke | Configure, Field(discriminator="action")
]
"""Any entry, told apart by `action`."""

_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


def format_entry(entry: Entry) -> bytes:
    """The document of an entry: canonical JSON and a newline."""
    return entry.dump_json().encode() + b"\n"


def parse_entry(document: bytes, name: str) -> Entry:
    """Parse an entry; `name` is the file, for messages.

    Raises:
        FormatTooNew: it was written by a newer Snaploom.
        ManifestCorrupt: it is no valid entry.
    """
    check_format(document, name)
    try:
        return _ENTRY.validate_json(document, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise corrupt(name, _first_fault(error)) from error


def entry_from(raw: object, name: str) -> Entry:
    """An entry inside another document; `name` is the file, for messages.

    Raises:
        ManifestCorrupt: it is no valid entry.
    """
    return parse_entry(json.dumps(raw).encode(), name)


def check_format(document: bytes, name: str) -> None:
    """Refuse what is not a JSON object with a `format` that this version knows.

    Raises:
        FormatTooNew: it was written by a newer Snaploom.
        ManifestCorrupt: it is not such an object.
    """
    try:
        raw = json.loads(document)
    except ValueError as error:
        raise corrupt(name, f"not JSON: {error}") from error
    version = raw.get("format") if isinstance(raw, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise corrupt(name, "no format version")
    if version > MANIFEST_FORMAT:
        raise FormatTooNew(
            f"{name} was written by a newer Snaploom",
            found=f"format {version}",
            expected=f"format {MANIFEST_FORMAT} or older",
            hint="upgrade Snaploom",
        )


def corrupt(name: str, found: str) -> ManifestCorrupt:
    """The error for a document that cannot be what its name says."""
    return ManifestCorrupt(
        f"{name} is damaged",
        found=found,
        expected="a document as Snaploom wrote it",
        hint="restore the file from a backup; nothing was changed",
    )


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}" if place else fault["msg"]
