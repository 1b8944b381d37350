"""Published snapshots as readers see them, and the settings that a folder fixes."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

from snaploom.errors import HistoryIncompatible, SnaploomError
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import DataFormat, OutputDataset, TimestampFormat
from snaploom.models.report import LatestSnapshot, ManifestPointer, PublishedSnapshot
from snaploom.output import layout
from snaploom.output.documents import MANIFEST_FORMAT
from snaploom.output.entries import FolderIdentity, FolderSettings, ModelNode, SnapshotRecord
from snaploom.output.manifest import read_schema
from snaploom.output.state import FolderState, Version
from snaploom.plan import history
from snaploom.plan.times import hive_of
from snaploom.types.merge import merge_schemas, readable_with_first
from snaploom.types.schemas import Field, Simple, Struct, parse_schema, schema_json

_log = logging.getLogger(__name__)


# Settings that the first publication into a folder fixes, and how declarations differ from them.

_COMPRESSION = "dataCompression"
_FOLDER = "spec.outputFolder"
_HIVE = f"{_FOLDER}.snapshotFormat.hivePartitioned"
SETTING_PATHS = {
    "dataFormat": f"{_FOLDER}.dataFormat",
    _COMPRESSION: f"{_FOLDER}.dataCompression",
    "partitionFieldName": f"{_HIVE}.fieldName",
    "timestampFormat": f"{_HIVE}.timestampFormat",
    "outputTimezone": f"{_HIVE}.outputTimezone",
    "table": f"{_FOLDER}.table",
    "output": "metadata.name",
    "root": "spec.dataModel.rootDataSource.dataSource",
}
"""Field of each setting in an OutputDataset."""
_OF_NONE = "of no catalog"


def folder_settings(output: OutputDataset) -> FolderSettings:
    """Settings to fix at the first publication, with defaults for those left open."""
    folder = output.spec.output_folder
    hive = hive_of(folder)
    return FolderSettings(
        data_format=folder.data_format.value,
        data_compression=folder.new_compression.value,
        partition_field_name=hive.field_name,
        timestamp_format=hive.timestamp_format.value,
        output_timezone=hive.output_timezone,
        table=None if folder.table is None else str(folder.table),
    )


def left_open(output: OutputDataset) -> frozenset[str]:
    """Names of the settings that a declaration leaves to the folder, if that was begun."""
    is_open = output.spec.output_folder.data_compression is None
    return frozenset({_COMPRESSION} if is_open else ())


def settled(
    settings: FolderSettings, fixed: FolderSettings | None, open_names: AbstractSet[str]
) -> FolderSettings:
    """Settings of a folder: as asked, and those left open as the folder has them."""
    if fixed is None or _COMPRESSION not in open_names:
        return settings
    return settings.model_copy(update={"data_compression": fixed.data_compression})


def folder_identity(output: OutputDataset) -> FolderIdentity:
    """Identity of the owner that a declaration names."""
    return FolderIdentity(
        output=output.name,
        root=output.spec.data_model.root_data_source.data_source,
        namespace=output.metadata.namespace or "",
        uid=output.metadata.uid or "",
    )


def fixed_by(settings: FolderSettings, identity: FolderIdentity) -> dict[str, str]:
    """Fixed settings by the names of `SETTING_PATHS`."""
    of_none = {"table": _OF_NONE} if settings.data_format == DataFormat.ICEBERG else {}
    return {
        **of_none,
        **{name: str(value) for name, value in settings.dump().items()},
        "output": identity.output,
        "root": identity.root,
    }


def fixed_in(state: FolderState) -> dict[str, str]:
    """Settings that a folder has fixed; empty before its first publication began."""
    if state.settings is None or state.identity is None:
        return {}
    return fixed_by(state.settings, state.identity)


def asked_by(output: OutputDataset, fixed: Mapping[str, str]) -> dict[str, str]:
    """Settings that a declaration asks for, by name; those left open are as the folder has them."""
    asked = fixed_by(folder_settings(output), folder_identity(output))
    return asked | {name: fixed[name] for name in left_open(output) if name in fixed}


def changed_settings(
    fixed: Mapping[str, str], asked: Mapping[str, str], *, accept_root_change: bool
) -> tuple[str, ...]:
    """Names of fixed settings that declarations ask to change; other formats have no `table`."""
    changed = (name for name in fixed if asked.get(name, fixed[name]) != fixed[name])
    return tuple(name for name in changed if name != "root" or not accept_root_change)


def can_move(name: str, fixed: Mapping[str, str]) -> bool:
    """Whether a fixed setting is the one that `snaploom migrate` changes: a table in the folder."""
    return name == "table" and fixed[name] == _OF_NONE


# A folder's published snapshots as readers see them, without Spark.

NOT_IN_MODEL = "NOT_IN_MODEL"
"""Reason of an absence: the data model did not have the field when the snapshot was published."""


class NothingPublished(SnaploomError):
    """There is no snapshot to read."""


@dataclass(frozen=True, slots=True)
class Absence:
    """A field that one snapshot lacks, so that it reads as NULL there."""

    time: str
    """Snapshot time, ISO 8601."""
    field_name: str
    reason: str
    """Reason, for machines: a reason of an exclusion, or `NOT_IN_MODEL`."""
    message: str
    """The same for people."""


class SchemaDocuments:
    """Schemas of a folder by their hash, each read once."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    def get(self, schema_hash: str) -> str:
        """Return a schema, as `StructType.json()` gives it."""
        if schema_hash not in self._known:
            self._known[schema_hash] = read_schema(self._store, schema_hash)
        return self._known[schema_hash]


def refuse_empty(state: FolderState, uri: str) -> FolderSettings:
    """Return the settings of a folder; `NothingPublished` if it has no snapshots."""
    if state.settings is None or not state.snapshots:
        raise NothingPublished(
            f"{uri} has no published snapshot", found="none", expected="at least one"
        )
    return state.settings


def snapshot_at(state: FolderState, time: EpochNanos) -> SnapshotRecord:
    """Return the newest snapshot up to a time; `NothingPublished` if the first is later."""
    return state.records.live(version_at(state, time))


def version_at(state: FolderState, time: EpochNanos) -> Version:
    """Return the newest version up to a time; `NothingPublished` if the first is later."""
    until = [version for version in state.timeline if version.time <= time]
    if not until:
        raise NothingPublished(
            f"there is no snapshot at {format_instant(time)} or before",
            found=f"the first is {format_instant(state.timeline[0].time)}"
            if state.timeline
            else "no snapshot at all",
            expected="a time at or after the first snapshot",
        )
    return until[-1]


def versions_between(
    state: FolderState, first: EpochNanos | None, last: EpochNanos | None
) -> tuple[Version, ...]:
    """Return the versions between two times, both inclusive; None is without a bound."""
    return tuple(
        version
        for version in state.timeline
        if (first is None or first <= version.time) and (last is None or version.time <= last)
    )


def merged_schema(
    state: FolderState,
    documents: SchemaDocuments,
    records: Sequence[SnapshotRecord | Version],
) -> str:
    """Merge schemas into `StructType.json()`; `HistoryIncompatible` names every break."""
    models = {version.model_hash: structure_of(version.nodes) for version in state.models}
    # Thousands of snapshots have few schemas: merging one again changes nothing.
    kinds: dict[tuple[str, str], SnapshotRecord | Version] = {}
    for record in records:
        kinds.setdefault((record.schema_hash, record.model_hash), record)
    firsts = kinds.values()
    moved = history.structure_breaks((record.time, models[record.model_hash]) for record in firsts)
    merged = merge_schemas((record.time, documents.get(record.schema_hash)) for record in firsts)
    breaks = (*map(str, moved), *map(str, merged.conflicts))
    if breaks:
        raise HistoryIncompatible(
            "these snapshots have nothing in common",
            found="; ".join(breaks),
            expected="snapshots on one side of the break",
            hint="read the two sides apart, each by its range of times",
        )
    return merged.schema


def newest_side(state: FolderState, documents: SchemaDocuments) -> tuple[Version, ...]:
    """Return the newest snapshots, by time, as far back as they can be read together."""
    models = {version.model_hash: structure_of(version.nodes) for version in state.models}
    newest_first = state.timeline[::-1]
    schemas = [(record.time, documents.get(record.schema_hash)) for record in newest_first]
    side = newest_first[: len(readable_with_first(schemas))]
    merged: history.Structure = {}
    for index, record in enumerate(side):
        merge = history.merge_structures(merged, models[record.model_hash])
        if merge.conflicts:
            side = side[:index]
            break
        merged = merge.structure
    return side[::-1]


def store_merged_schema(store: ObjectStore, state: FolderState, documents: SchemaDocuments) -> None:
    """Write the schema that reads the newest snapshots, for readers that ignore the log.

    Spark's own `mergeSchema` refuses columns that became wider (rule P26). Nothing of
    ours reads it.
    """
    side = newest_side(state, documents)
    document = {
        "format": MANIFEST_FORMAT,
        "from": format_instant(side[0].time),
        "to": format_instant(side[-1].time),
        "schema": json.loads(merged_schema(state, documents, side)),
    }
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    try:
        store.put(layout.MERGED_SCHEMA, text.encode() + b"\n")
    except STORE_FAILURES as error:
        _log.warning("%s is not up to date: %s", layout.MERGED_SCHEMA, error.message)


def with_partition(schema: str, settings: FolderSettings) -> str:
    """Append the partition column to a schema, as readers see it."""
    is_text = settings.timestamp_format == TimestampFormat.ISO8601_DATE_TIME.value
    kind = Simple("string" if is_text else "long", "")
    whole = parse_schema(schema, "")
    column = Field(settings.partition_field_name, kind, False, json.dumps({}))
    return schema_json(Struct((*whole.fields, column), ""))


def absences(state: FolderState, records: Iterable[SnapshotRecord]) -> tuple[Absence, ...]:
    """Fields that some snapshots lack, by snapshot time, with the reason.

    Fields are those of every data model that was ever published here.
    """
    names = {name: node.field_name for name, node in state.merged_model.items() if name}
    models = {
        version.model_hash: {node.field_name.casefold() for node in version.nodes}
        for version in state.models
    }
    found: list[Absence] = []
    for record in records:
        time = format_instant(record.time)
        found.extend(
            Absence(time, left.field_name, left.reason.value, left.message)
            for left in record.excluded
        )
        found.extend(
            Absence(time, names[name], NOT_IN_MODEL, "the data model did not have it then")
            for name in sorted(names.keys() - models[record.model_hash])
        )
    return tuple(found)


def model_of(uri: str, state: FolderState, record: SnapshotRecord) -> history.PublishedModel:
    """Return the data model of a snapshot, with its sources."""
    nodes = next(v.nodes for v in state.models if v.model_hash == record.model_hash)
    taken = {source.field_name: source.time for source in record.sources}
    reasons = {left.field_name: left.reason.value for left in record.excluded}
    joins = {join.child: join for join in record.joins}
    return history.PublishedModel(
        title=f"OutputDataset/{state.identity.output}" if state.identity else uri,
        caption=format_instant(record.time),
        nodes=tuple(
            history.PublishedNode(
                node.field_name,
                node.parent,
                node.source,
                node.relationship,
                node.group_by,
                taken=taken.get(node.field_name, ""),
                left_out=reasons.get(node.field_name, ""),
                matched=f"{joins[node.field_name].matched:,} of {joins[node.field_name].in_:,} rows"
                if node.field_name in joins
                else "",
            )
            for node in nodes
        ),
    )


def structure_of(nodes: Iterable[ModelNode]) -> history.Structure:
    """Return a data model of a manifest in the form that is compared."""
    return history.structure_from(
        history.StructureNode(
            node.field_name, node.parent, node.group_by, node.source, node.relationship
        )
        for node in nodes
        if node.field_name
    )


# Summary of an output's manifest for its status: number of snapshots, and the newest.

SHOWN = 50
"""Snapshots, sources and joins in a status (rule R13)."""
LONGEST_WARNING = 1024
"""Characters that a status takes of one warning."""


def newest_snapshot(state: FolderState) -> LatestSnapshot | None:
    """Return the newest published snapshot in a status's size; None when there is none."""
    if not state.snapshots:
        return None
    record = state.snapshots[-1]
    return LatestSnapshot(
        time=format_instant(record.time),
        published_at=format_instant(record.created_at),
        partition=record.partition,
        rows=record.rows,
        files=len(record.files),
        bytes=sum(file.bytes for file in record.files),
        sources=tuple(
            one
            if one.history is None
            else one.model_copy(update={"history": dict(sorted(one.history.items())[-SHOWN:])})
            for one in record.sources[:SHOWN]
        ),
        excluded=record.excluded[:SHOWN],
        joins=record.joins[:SHOWN],
        checks=record.checks[:SHOWN],
        warnings=tuple(warning[:LONGEST_WARNING] for warning in record.warnings[:SHOWN]),
    )


def published_snapshots(state: FolderState) -> tuple[PublishedSnapshot, ...]:
    """Return the newest published snapshots in short, newest first."""
    return tuple(
        PublishedSnapshot(time=format_instant(record.time), rows=record.rows)
        for record in islice(reversed(state.snapshots), SHOWN)
    )


def manifest_pointer(uri: str, state: FolderState) -> ManifestPointer:
    """Return the manifest's place and the newest entry that changed what readers see.

    Others, such as claims, are left out: outputs that read this one would run for nothing.
    """
    return ManifestPointer(uri=uri, sequence=state.changed_at, fixed=fixed_in(state))


@dataclass(frozen=True)
class PublishedSnapshots:
    """Snapshots of one folder, read under one schema, by clients of Spark Connect too."""

    data: str
    """URI of the folder of their folders; ends in `/`."""
    folders: Sequence[str]
    """Name of each one's folder: the partition column, `=`, and the time."""
    files: Callable[[int], Sequence[tuple[str, int]]]
    """From the position of a snapshot to name and bytes of each of its files; from any thread."""
    identity: str
    """A text that is another one for other versions of snapshots."""
    size: int | None
    """Bytes of all files; None where finding out would take reading the whole log."""
