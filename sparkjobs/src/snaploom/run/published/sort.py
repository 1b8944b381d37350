"""Published snapshots rewritten in another order: each one a replacement (rule P20)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.rowcounts import TASK_PATIENCE, await_tasks
from snaploom.engine.write import column_metadata_of, read_files, under_schema, write_frame
from snaploom.errors import IndexNotPossible, SnapshotChanged, SortNotPossible
from snaploom.files.objectstore import ObjectStore, refuse_links, self_test
from snaploom.models.common import EpochNanos, format_instant, now
from snaploom.models.outputdataset import DataCompression, DataFormat
from snaploom.output import layout
from snaploom.output.entries import FolderSettings, SnapshotRecord
from snaploom.output.folder import Folder, Run, inspect_folder, is_unused, open_folder
from snaploom.output.history import folder_identity, folder_settings, left_open
from snaploom.output.manifest import read_schema
from snaploom.output.replacement import Rewrite, replace_version
from snaploom.output.state import FolderState
from snaploom.output.tablecommits import has_table
from snaploom.run.indexes.jobs import follow_publication, in_session
from snaploom.run.job import Job, JobGroup
from snaploom.run.joblog import warnings_as_events
from snaploom.run.published.content import refuse_foreign_types
from snaploom.run.published.sortrequests import (
    LeftSnapshot,
    PublishedPlace,
    SnapshotsSorted,
    SortedSnapshot,
)
from snaploom.run.runevents import Event, Interruption, Warned
from snaploom.run.session.spark import open_place, translated
from snaploom.skipping.advice.orders import Checksum, Rewritten, SortRequest
from snaploom.skipping.spark.builds.clusteredwrite import Clustering
from snaploom.skipping.spark.interfaces.sort import checksum, clustering_under, sorted_frame
from snaploom.skipping.spark.targets.targetfiles import own_session
from snaploom.sources.tables.iceberg import IcebergLibrary, require_iceberg
from snaploom.spark.types import struct_from
from snaploom.version import VERSION

# One published snapshot read, written once more in another order, and proved to be the same.


@dataclass(frozen=True)
class Rewriting:
    """A snapshot to be written in another order."""

    session: SparkSession
    """Reads and writes."""
    store: ObjectStore
    """The folder's store."""
    settings: FolderSettings
    """Format and compression."""
    record: SnapshotRecord
    """The live version."""
    schema: StructType
    """Its schema, as it was written."""
    clustering: Clustering
    """The order."""
    request: SortRequest
    """The size of files."""

    def write(self, uri: str) -> tuple[Rewrite, Checksum]:
        """Write the rows into a folder that does not exist yet, and read them back.

        Raises:
            SortNotPossible: the files that are read are not those that were published, or what is
                read back is not what was read.
        """
        data_format = DataFormat(self.settings.data_format)
        files = [f"{self.store.uri}{file.path}" for file in self.record.files]
        frame = read_files(self.session, files, data_format, self.schema)
        before = checksum(frame)
        if before.rows != self.record.rows:
            raise SortNotPossible(
                f"snapshot {format_instant(self.record.time)} is not as it was published",
                found=f"{before.rows:,} rows in its files",
                expected=f"{self.record.rows:,} rows",
                hint="restore its files from a backup; nothing was changed",
            )
        size = sum(file.bytes for file in self.record.files)
        ordered = sorted_frame(frame, self.clustering, self.request, size, before.rows)
        compression = DataCompression(self.settings.data_compression)
        try:
            write_frame(
                under_schema(ordered, self.schema),
                uri,
                data_format,
                compression,
                column_metadata=column_metadata_of(self.session, files, data_format),
            )
        except BaseException:
            # Tasks outlive the job that failed; what they write must not come after the cleaning.
            await_tasks(self.session, TASK_PATIENCE)
            raise
        after = checksum(read_files(self.session, [uri], data_format, self.schema))
        if after != before:
            raise SortNotPossible(
                f"{data_format.value} does not give back what was written",
                found=str(after),
                expected=str(before),
            )
        return Rewrite(after.rows, self.session.version), after


def rewriting_of(
    session: SparkSession,
    store: ObjectStore,
    settings: FolderSettings,
    record: SnapshotRecord,
    request: SortRequest,
) -> Rewriting:
    """Prepare to sort a snapshot; its files are not read yet.

    Raises:
        IndexNotPossible: the snapshot cannot be sorted by these columns.
    """
    schema = struct_from(read_schema(store, record.schema_hash))
    files = [file.path for file in record.files]
    refuse_links(store, files)
    if DataFormat(settings.data_format).of_files is DataFormat.PARQUET:
        refuse_foreign_types(store, files)
    try:
        clustering = clustering_under(session, schema, request)
    except IndexNotPossible as error:
        error.message = f"snapshot {format_instant(record.time)}: {error.message}"
        raise
    return Rewriting(session, store, settings, record, schema, clustering, request)


# Published snapshots, rewritten in another order: each one a replacement (rule P20).

_SHOWN = 5
"""Snapshot times in a message: enough to recognise their form."""


def sort_snapshots(
    place: PublishedPlace,
    request: SortRequest,
    times: Sequence[EpochNanos],
    report: Callable[[str, int, int], None],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> SnapshotsSorted:
    """Replace snapshots by the same rows in another order, one after the other.

    Each is replaced by one entry of the manifest log, when its new files were read back and
    compared. Indexes that follow the output are refreshed in the end.

    Args:
        place: whose snapshots.
        request: the order.
        times: of the snapshots; empty for all that are live.
        report: takes a label, the number of files rewritten and of all; from any thread.
        on_tick: called several times a second from this thread.
        interruption: from `signal_handlers`.

    Raises:
        SparkNotStarted: there is no Spark to work with.
        IndexNotPossible: a snapshot cannot be sorted by these columns; nothing is changed.
        SkippingError, PublicationError, StorageError: it cannot be done; what was replaced before
            stays, everything else is as it was.
        Interrupted: somebody asked to stop; likewise.
    """
    warnings: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, Warned):
            warnings.append(event.message)

    def work(spark: SparkSession, group: JobGroup) -> SnapshotsSorted:
        job = Job(now=now(), clock=now, emit=note, interruption=interruption, group=group)
        with translated(place.owner):
            sorter = _Sorter(spark, place, request, job)
            done = sorter.sort(times, lambda files, all_: report(place.label, files, all_))
        if done.replaced:
            follow_publication(spark, done.run_id, place.indexes, job)
        return done

    with warnings_as_events(note):
        done = in_session(place.run, place.settings, place.allow, work, on_tick, interruption)
    return SnapshotsSorted(
        done.uri, done.run_id, done.replaced, done.left, (*done.notes, *warnings)
    )


class _Sorter:
    """Sorts snapshots of one folder."""

    def __init__(
        self, spark: SparkSession, place: PublishedPlace, request: SortRequest, job: Job
    ) -> None:
        self._place = place
        self._request = request
        self._job = job
        self._run = Run(layout.new_run_id(job.clock()), VERSION, job.clock)
        # Files are read whole, and none is left out, whatever the user's session has set.
        self._session = own_session(spark)
        self._folder = _open(place, self._session)

    def sort(
        self, times: Sequence[EpochNanos], report: Callable[[int, int], None]
    ) -> SnapshotsSorted:
        """Sort those of some times, or all that are live."""
        state = self._folder.log.read()
        if state.settings is None or not state.live:
            raise SortNotPossible(
                "nothing is published here",
                found=self._folder.store.uri,
                expected="an output with snapshots",
                hint="run the output first",
            )
        chosen = _chosen(state, times)
        rewritings = [self._rewriting(state.settings, record) for record in chosen]
        self_test(self._folder.store)
        outcomes: list[SortedSnapshot | LeftSnapshot] = []
        files, done = sum(len(record.files) for record in chosen), 0
        for number, (record, rewriting) in enumerate(zip(chosen, rewritings, strict=True)):
            report(done, files)
            self._job.interruption.check()
            label = f"{self._place.label}: {format_instant(record.time)}"
            self._job.group.enter(self._session, f"{self._run.run_id}-{number}", label)
            outcomes.append(self._replace(rewriting))
            done += len(record.files)
        report(done, files)
        replaced = tuple(each for each in outcomes if isinstance(each, SortedSnapshot))
        left = tuple(each for each in outcomes if isinstance(each, LeftSnapshot))
        notes = self._notes() if replaced else ()
        return SnapshotsSorted(self._folder.store.uri, self._run.run_id, replaced, left, notes)

    def _rewriting(self, settings: FolderSettings, record: SnapshotRecord) -> Rewriting:
        return rewriting_of(self._session, self._folder.store, settings, record, self._request)

    def _replace(self, rewriting: Rewriting) -> SortedSnapshot | LeftSnapshot:
        old = rewriting.record
        if not old.rows:
            return LeftSnapshot(old.time, "it has no rows", is_failure=False)
        proofs: list[Checksum] = []

        def write(uri: str) -> Rewrite:
            rewrite, proof = rewriting.write(uri)
            proofs.append(proof)
            return rewrite

        order = f"sorted by {', '.join(self._request.columns)}, {rewriting.clustering.curve.value}"
        try:
            new = replace_version(self._folder, self._run, old, write, message=order).record
        except SnapshotChanged as error:
            return LeftSnapshot(old.time, f"it changed meanwhile, {error.found}", is_failure=True)
        rewritten = Rewritten(proofs[0], len(old.files), len(new.files), _size(old), _size(new))
        return SortedSnapshot(new.time, new.seq, rewritten)

    def _notes(self) -> tuple[str, ...]:
        uri = self._folder.store.uri
        notes = (
            "Readers that list folders see both versions until 'snaploom gc' has removed the old "
            f"files: snaploom gc {uri}",
        )
        if self._place.output is not None:
            return notes
        return (
            *notes,
            "Indexes that follow the output were not refreshed, since only its folder was named; "
            "the new files are read by every query until they are.",
        )


def _open(place: PublishedPlace, session: SparkSession) -> Folder:
    store = open_place(place.folder, create=False)
    if place.output is not None and not is_unused(store):
        inspect_folder(
            store,
            folder_settings(place.output),
            folder_identity(place.output),
            open_names=left_open(place.output),
            accept_root_change=True,  # nothing is woven, so that the root does not matter
        )
    folder = open_folder(store, IcebergLibrary(session))
    if has_table(folder.log.read().settings):
        require_iceberg(session, place.owner)
    return folder


def _chosen(state: FolderState, times: Sequence[EpochNanos]) -> tuple[SnapshotRecord, ...]:
    unknown = [format_instant(time) for time in times if time not in state.live]
    if unknown:
        live = [format_instant(record.time) for record in state.snapshots]
        others = ", ..." if live[_SHOWN:] else ""
        raise SortNotPossible(
            "no live snapshot has this time",
            found=", ".join(unknown),
            expected=f"one of {', '.join(live[:_SHOWN])}{others}",
            hint="'snaploom snapshots' lists them all",
        )
    return tuple(record for record in state.snapshots if not times or record.time in times)


def _size(record: SnapshotRecord) -> int:
    return sum(file.bytes for file in record.files)
