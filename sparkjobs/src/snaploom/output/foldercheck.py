"""Checks that a folder is complete: its log without a gap, its documents and its files.

Nothing is changed, and nothing is believed that can be looked at: entries are read from the first
one on, without the checkpoints. The content of files is for those who can read them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from snaploom.confidential import visible
from snaploom.errors import ObjectNotFound, PublicationError, StorageError
from snaploom.files.objectstore import ObjectInfo, ObjectStore
from snaploom.models.common import EpochNanos, format_instant
from snaploom.output import layout
from snaploom.output.checkpoints import CHECKPOINT_FAILURES, checkpoint_fault, read_checkpoint
from snaploom.output.deltatable import DeltaTable
from snaploom.output.documents import DOCUMENT, ENTRY, get_bounded
from snaploom.output.entries import Entry, SnapshotRecord, parse_entry
from snaploom.output.icebergtable import TABLE, TableLibrary
from snaploom.output.outputtables import CatalogedTable, output_table
from snaploom.output.state import EMPTY, FolderState, Records, fold
from snaploom.output.tablecommits import has_table
from snaploom.output.tablehistory import table_history


class FaultKind(StrEnum):
    """Kinds of faults."""

    LOG = "LOG"
    """The manifest log has a gap, or an entry that cannot be."""
    CHECKPOINT = "CHECKPOINT"
    """A checkpoint is not what the entries give; readers ignore one that is broken."""
    DOCUMENT = "DOCUMENT"
    """A schema or data model is absent, or its content does not match its name."""
    TABLE = "TABLE"
    """The output's table has another state than the manifest."""
    FILE = "FILE"
    """A published file is absent, has another size, or cannot be read."""
    ROWS = "ROWS"
    """A snapshot has another number of rows than was published."""
    SCHEMA = "SCHEMA"
    """Files have other columns or types than were published."""
    ROOT_KEY = "ROOT_KEY"
    """A key of the root occurs twice, or is NULL."""


@dataclass(frozen=True)
class Fault:
    """One difference from the folder as it was published."""

    kind: FaultKind
    place: str
    """Key in the folder, or the folder of a snapshot."""
    message: str
    snapshot: EpochNanos | None = None
    """The snapshot concerned, where it is one."""

    @property
    def document(self) -> JsonValue:
        when = None if self.snapshot is None else format_instant(self.snapshot)
        return {
            "kind": self.kind.value,
            "place": self.place,
            "snapshot": when,
            "message": self.message,
        }

    def __str__(self) -> str:
        return f"{self.kind.value}  {visible(self.place)}: {visible(self.message)}"


def check_log(store: ObjectStore) -> Iterator[Fault]:
    """Faults of the manifest log and its checkpoints; after a gap nothing more can be judged."""
    numbers = sorted(_numbers(store, layout.MANIFEST))
    marks = set(_numbers(store, layout.CHECKPOINTS))
    state, waiting = EMPTY, list[Entry]()
    for expected, number in enumerate(numbers, start=1):
        key = layout.manifest_key(expected)
        if number != expected:
            missing = number - expected
            yield Fault(FaultKind.LOG, key, f"{missing} entries are missing before {number}")
            return
        try:
            waiting.append(parse_entry(get_bounded(store, key, ENTRY), key))
            if number in marks or number == numbers[-1]:
                state, waiting = fold(state, waiting), []
        except StorageError as error:
            yield Fault(FaultKind.LOG, key, f"{error.message}: {error.found}")
            return
        if number in marks:
            yield from _checkpoint(store, state)
    for number in sorted(marks):
        if number > len(numbers):
            recorded = f"it is of an entry after the last one, {len(numbers)}"
            yield Fault(FaultKind.CHECKPOINT, layout.checkpoint_key(number), recorded)


def _numbers(store: ObjectStore, prefix: str) -> list[int]:
    numbers = (layout.sequence_of(info.key) for info in store.list(prefix))
    return [number for number in numbers if number is not None]


def _checkpoint(store: ObjectStore, state: FolderState) -> Iterator[Fault]:
    key = layout.checkpoint_key(state.seq)
    try:
        recorded = read_checkpoint(store, state.seq, Records())
    except ObjectNotFound:
        return  # a newer one took its place meanwhile
    except CHECKPOINT_FAILURES as error:
        yield Fault(FaultKind.CHECKPOINT, key, checkpoint_fault(error))
        return
    if recorded != state:
        yield Fault(
            FaultKind.CHECKPOINT, key, "its state differs from that of the entries up to it"
        )


def check_table(
    store: ObjectStore, state: FolderState, library: TableLibrary | None = None
) -> Iterator[Fault]:
    """Faults of snapshots whose version in the table differs from that in the log.

    A table of a catalog is looked at with a library only, and so are the rows that it shows.
    """
    settings = state.settings
    if settings is None or not has_table(settings):
        return
    table = output_table(store, settings, library)
    if table is None:
        return
    place = layout.DELTA_LOG if isinstance(table, DeltaTable) else TABLE
    try:
        version = table.read()
        recorded = {record.time: record for record, _ in table_history(store, version).live}
        if version is not None and isinstance(table, CatalogedTable | DeltaTable):
            yield from _of_others(table, settings.partition_field_name, recorded.values())
    except (StorageError, PublicationError) as error:
        yield Fault(FaultKind.TABLE, place, f"{error.message}: {error.found}")
        return
    for time in sorted(recorded.keys() | state.live.keys()):
        here, there = state.live.get(time), recorded.get(time)
        if (here and here.files) == (there and there.files):
            continue
        message = "the table has another version of it; the next run writes what the log lacks"
        if there is None:
            message = "the table does not have it"
        elif here is None:
            message = "the table has it, and the log does not; the next run writes its entry"
        yield Fault(FaultKind.TABLE, place, message, time)


def _of_others(
    table: CatalogedTable | DeltaTable, field_name: str, recorded: Collection[SnapshotRecord]
) -> Iterator[Fault]:
    """Faults of the rows that a table shows to which others may write, too."""
    if isinstance(table, DeltaTable):
        name, left = table.name, dict(table.rows(field_name, recorded))
    else:
        name, left = table.table.name, dict(table.table.rows(field_name))
    for record in recorded:
        found = left.pop(layout.partition_value(record.partition), 0)
        if found != record.rows:
            message = (
                f"{name} shows {found:,} rows of it, and {record.rows:,} were published: "
                "another writer changed the table"
            )
            yield Fault(FaultKind.TABLE, record.partition, message, record.time)
    for value, found in sorted(left.items()):
        message = f"{name} shows {found:,} rows of a snapshot that is not published"
        yield Fault(FaultKind.TABLE, value, message)


def check_files(store: ObjectStore, state: FolderState) -> Iterator[Fault]:
    """Faults of documents and files of the live snapshots, as far as a listing shows them."""
    there: Mapping[str, ObjectInfo] = {info.key: info for info in store.list(layout.DATA)}
    documents = {layout.schema_key(version.schema_hash) for version in state.timeline}
    documents |= {layout.data_model_key(version.model_hash) for version in state.timeline}
    for key in sorted(documents):
        yield from _document(store, key)
    for record in state.snapshots:
        for file in record.files:
            found = there.get(file.path)
            if found is None:
                yield Fault(FaultKind.FILE, file.path, "it is not there", record.time)
            elif not found.is_plain:
                recorded = "a link, pipe or device is in its place, which is not followed or opened"
                yield Fault(FaultKind.FILE, file.path, recorded, record.time)
            elif found.size != file.bytes:
                recorded = (
                    f"it has {found.size:,} bytes, and had {file.bytes:,} when it was published"
                )
                yield Fault(FaultKind.FILE, file.path, recorded, record.time)


def _document(store: ObjectStore, key: str) -> Iterator[Fault]:
    try:
        content = get_bounded(store, key, DOCUMENT)
    except ObjectNotFound:
        yield Fault(FaultKind.DOCUMENT, key, "it is not there")
        return
    except StorageError as error:
        yield Fault(FaultKind.DOCUMENT, key, error.message)
        return
    if f"/{layout.content_hash(content)}." not in key:
        yield Fault(FaultKind.DOCUMENT, key, "its content does not match its name")
