"""Checks what a folder promises, and rebuilds a lost manifest from its data."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from pydantic import ValidationError
from whenever import OffsetDateTime

from snaploom.errors import FolderNotOurs, ManifestCorrupt
from snaploom.files.objectstore import ObjectInfo, ObjectStore
from snaploom.models.common import LARGEST, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, EpochNanos
from snaploom.models.outputdataset import DataFormat, TimestampFormat
from snaploom.output import entries, layout
from snaploom.output.folder import Run, prepare_folder
from snaploom.output.icebergtable import TableLibrary
from snaploom.output.layout import FIRST_NANOS, LAST_NANOS
from snaploom.output.manifest import ManifestLog, store_model, store_schema
from snaploom.output.outputtables import output_table, unreachable
from snaploom.output.state import FolderState
from snaploom.output.tablecommits import has_table
from snaploom.output.tablehistory import TableHistory, table_history
from snaploom.parquet.footers import is_spark_schema, read_footer

# Rebuilding the manifest of a folder from its data, when the manifest is lost.

_PUBLISHED = re.compile(r"data/([^/]+)/(.+)-([0-9a-f]{8})-(\d{5,})(?:\.[^/]*)?")
SCOPE = "repair"
"""Scope of the claim from the first entry of a repair to the last."""
_UNITS = {
    TimestampFormat.UNIX_MILLISECONDS: NANOS_PER_MILLISECOND,
    TimestampFormat.UNIX_SECONDS: NANOS_PER_SECOND,
}


@dataclass(frozen=True)
class Proven:
    """A snapshot that its files prove."""

    time: EpochNanos
    partition: str
    run_id: str
    files: tuple[entries.FileRecord, ...]
    rows: int
    schema: str
    """As `StructType.json()` gives it."""
    created_at: EpochNanos
    """Time at which its last file was written, by the store's clock."""


@dataclass(frozen=True)
class Unproven:
    """Files that stay as they are, with the reason."""

    place: str
    """Partition, or key of a file."""
    files: int
    why: str


@dataclass(frozen=True)
class Findings:
    """Snapshots that a folder's data prove, and files that prove none."""

    snapshots: tuple[Proven, ...]
    left: tuple[Unproven, ...]


def find_snapshots(
    store: ObjectStore, settings: entries.FolderSettings, library: TableLibrary | None = None
) -> Findings:
    """Find the snapshots that the files in a folder prove, or its table has; writes nothing.

    Raises:
        ManifestCorrupt: entries of the manifest are left, or checkpoints of it.
    """
    if not is_begun(store):
        _refuse_manifest(store)
    listed = (i for i in store.list(layout.DATA) if not i.key.startswith(layout.DELTA_LOG))
    infos = sorted(listed, key=lambda info: info.key)
    if has_table(settings):
        table = output_table(store, settings, library)
        if table is None:
            raise unreachable(store)
        return _of_table(table_history(store, table.read()), infos)
    staged = {info.key.rsplit("/", 1)[0] for info in infos if info.key.startswith(layout.STAGING)}
    partitions: dict[str, list[ObjectInfo]] = {}
    left: list[Unproven] = []
    for info in infos:
        if info.key.startswith(layout.STAGING):
            continue
        if layout.run_of(info.key) is None:
            left.append(Unproven(info.key, 1, "not written by Snaploom, judging by its name"))
        else:
            partitions.setdefault(layout.partition_of(info.key), []).append(info)
    proven: list[Proven] = []
    for partition, files in partitions.items():
        found = _judge(store, settings, partition, files, staged)
        if isinstance(found, Proven):
            proven.append(found)
        else:
            left.append(Unproven(partition, len(files), found))
    snapshots = sorted(proven, key=lambda one: one.time)
    return Findings(tuple(snapshots), tuple(sorted(left, key=lambda one: one.place)))


def restore(
    store: ObjectStore,
    settings: entries.FolderSettings,
    identity: entries.FolderIdentity,
    model: tuple[entries.ModelNode, ...],
    findings: Findings,
    run: Run,
    library: TableLibrary | None = None,
) -> FolderState:
    """Begin the manifest anew, and publish the findings from the files that are there.

    Runs whose files are restored may be at work no more: each is written down as the publisher of
    its own files. Doing it again after it was interrupted goes on.
    """
    if not findings.snapshots:
        raise FolderNotOurs(
            f"nothing in {store.uri} proves a snapshot of Snaploom",
            found=f"{len(findings.left)} places that prove none",
            expected="files as Snaploom names them, in partitions of the declared format",
            hint="check the folder's URI and the declarations",
        )
    ManifestLog(store).commit(partial(_claim, run, 1))
    folder = prepare_folder(store, settings, identity, run, is_repair=True, library=library)
    if has_table(settings):
        folder.read()
        return folder.log.commit(partial(_claim, run, 0))
    model_hash = store_model(store, model)
    for proven in findings.snapshots:
        schema_hash = store_schema(store, proven.schema)
        folder.log.commit(_entry(proven, run, model, model_hash, schema_hash))
    return folder.log.commit(partial(_claim, run, 0))


def is_begun(store: ObjectStore) -> bool:
    """Whether a repair of the folder was begun and has not ended."""
    try:
        state = ManifestLog(store).read()
    except ManifestCorrupt:
        return False
    claim = state.claims.get(SCOPE)
    return claim is not None and claim.seconds > 0


def _claim(run: Run, seconds: int, state: FolderState) -> entries.Claim | None:
    recorded = state.claims.get(SCOPE)
    if (recorded.seconds if recorded else 0) == seconds:
        return None
    return entries.Claim(**run.head(state), scope=SCOPE, seconds=seconds)


def _entry(
    proven: Proven,
    run: Run,
    model: tuple[entries.ModelNode, ...],
    model_hash: str,
    schema_hash: str,
) -> Callable[[FolderState], entries.Publish | None]:
    def build(state: FolderState) -> entries.Publish | None:
        if proven.time in state.live:
            return None
        record = entries.SnapshotRecord(
            time=proven.time,
            partition=proven.partition,
            seq=state.next_seq,
            run_id=proven.run_id,
            created_at=proven.created_at,
            plan_hash="",
            schema_hash=schema_hash,
            model_hash=model_hash,
            rows=proven.rows,
            files=proven.files,
            tool_version=run.tool_version,
        )
        head = run.head(state)
        head["run_id"] = proven.run_id
        return entries.Publish(**head, snapshot=record, model=model)

    return build


def _refuse_manifest(store: ObjectStore) -> None:
    places = (layout.MANIFEST, layout.CHECKPOINTS)
    remains = [info.key for place in places for info in store.list(place)]
    remains += [key for key in (layout.LATEST, layout.REMOVAL) if store.head(key) is not None]
    if remains:
        raise ManifestCorrupt(
            f"the manifest of {store.uri} is not lost, so that it is not made anew",
            found=f"{min(remains)}" + (f" and {len(remains) - 1} more" if remains[1:] else ""),
            expected="no manifest at all",
            hint="restore what is damaged from a backup; to give it up, move metadata/ elsewhere",
        )


def _of_table(recorded: TableHistory, infos: Iterable[ObjectInfo]) -> Findings:
    proven = tuple(
        Proven(
            time=record.time,
            partition=record.partition,
            run_id=record.run_id,
            files=record.files,
            rows=record.rows,
            schema=schema,
            created_at=record.created_at,
        )
        for record, schema in recorded.live
    )
    left = tuple(
        Unproven(info.key, 1, "not in the table, now or ever")
        for info in infos
        if info.key not in recorded.files
    )
    return Findings(proven, left)


def _judge(
    store: ObjectStore,
    settings: entries.FolderSettings,
    partition: str,
    infos: list[ObjectInfo],
    staged: set[str],
) -> Proven | str:
    time = time_of(settings, partition)
    if time is None:
        return f"its name has no time in the format {settings.timestamp_format}"
    works: Mapping[tuple[str, str], list[int]] = _works(infos)
    if len(works) > 1:
        return f"files of {len(works)} works of runs, of which one at most was published"
    [((run_id, attempt), numbers)] = works.items()
    if numbers != list(range(len(numbers))):
        listed = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
        return f"files of run {run_id} are missing: there are the numbers {listed}"
    if f"{layout.STAGING}{run_id}/{attempt}" in staged:
        return f"run {run_id} died before all of its files were here"
    if settings.data_format != DataFormat.PARQUET.value:
        return f"files in {settings.data_format} prove neither rows nor schema"
    if not all(info.is_plain for info in infos):
        return "a link, pipe or device is among its files, which is not followed or opened"
    try:
        files = tuple(entries.FileRecord(path=info.key, bytes=info.size) for info in infos)
    except ValidationError:
        return "files with names that Snaploom does not give"
    footers = [read_footer(store, info) for info in infos]
    schemas = {None if footer is None else footer.schema for footer in footers}
    schema = next(iter(schemas))
    if None in schemas or len(schemas) != 1 or schema is None:
        return "its files are no Parquet by Spark" if None in schemas else "its schemas differ"
    if not is_spark_schema(schema):
        return "its schema has types that are not Spark's own"
    return Proven(
        time=time,
        partition=partition,
        run_id=run_id,
        files=files,
        rows=min(sum(footer.rows for footer in footers if footer is not None), LARGEST),
        schema=schema,
        created_at=EpochNanos(min(max(info.modified for info in infos), LAST_NANOS)),
    )


def _works(infos: Iterable[ObjectInfo]) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for info in infos:
        match = _PUBLISHED.fullmatch(info.key)
        assert match is not None, "`run_of` knew the name"
        found.setdefault((match[2], match[3]), []).append(int(match[4]))
    return {work: sorted(numbers) for work, numbers in found.items()}


def time_of(settings: entries.FolderSettings, partition: str) -> EpochNanos | None:
    """The snapshot time in the name of a partition; None when it has none.

    Times finer than the format are not in the name: they come back as the format has them.
    """
    name, _, value = partition.partition("=")
    if name != settings.partition_field_name:
        return None
    form = TimestampFormat(settings.timestamp_format)
    try:
        if form in _UNITS:
            time = int(value) * _UNITS[form]
            return EpochNanos(time) if FIRST_NANOS <= time <= LAST_NANOS else None
        moment = OffsetDateTime.parse_iso(value.replace("%3A", ":").replace("Z", "+00:00"))
        return EpochNanos(moment.timestamp(unit="nanosecond"))
    except ValueError:
        return None
