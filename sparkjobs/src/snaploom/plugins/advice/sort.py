"""Sorts files into a new folder, and published snapshots where they are: the same rows, clustered.

Rows for a new folder are written into a hidden one beside it, read back, compared with what was
read (count, and a checksum that no order changes), and moved into place as the last thing.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructType

from snaploom.engine.rowcounts import TASK_PATIENCE, await_tasks
from snaploom.engine.write import column_metadata_of, read_files, under_schema, write_frame
from snaploom.errors import IndexNotPossible, SnapshotChanged, SortNotPossible
from snaploom.files.objectstore import ObjectStore, refuse_links, self_test
from snaploom.installed import VERSION
from snaploom.models.common import EpochNanos, format_instant, now
from snaploom.models.outputdataset import DataCompression, DataFormat
from snaploom.output import layout
from snaploom.output.entries import FolderSettings, SnapshotRecord
from snaploom.output.folder import Folder, Run, inspect_folder, is_unused, open_folder
from snaploom.output.history import folder_identity, folder_settings, left_open
from snaploom.output.manifest import read_schema
from snaploom.output.replacement import Rewrite, replace_version
from snaploom.output.state import FolderState
from snaploom.plugins.advice import requests
from snaploom.plugins.advice.advise import in_session_at
from snaploom.run.indexes.indexrequests import IndexedPlace
from snaploom.run.indexes.jobs import follow_publication, in_session
from snaploom.run.job import Job, JobGroup
from snaploom.run.joblog import warnings_as_events
from snaploom.run.published.content import refuse_foreign_types
from snaploom.run.runevents import Event, Interruption, Warned
from snaploom.run.session.spark import open_place, translated
from snaploom.skipping.core.valueorder import SortRequest
from snaploom.skipping.spark.builds import clusteredwrite
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.relations.hadoop import cause_of
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetfiles import LITERAL_PATH, own_session
from snaploom.sources.tables.iceberg import IcebergLibrary, require_iceberg
from snaploom.spark.jvm import jvm_of, qualified_uri
from snaploom.spark.types import struct_from

_NOT_COMPARED = (spark_types.MapType, spark_types.VariantType)
"""Types that Spark cannot hash; their JSON is hashed."""

_ABOUT_THE_OLD_FILES = frozenset({
    "path", "paths", "basepath", "pathglobfilter", "recursivefilelookup", "modifiedbefore",
    "modifiedafter",
})  # fmt: skip
"""Options that decide where files are and which are read; others what is in them."""


def sort_into(target: SparkTarget, folder: str, request: SortRequest) -> requests.SortResult:
    """Write the rows of a target, clustered, as a new folder of the same format and partitions."""
    session = target.relation(()).spark
    places = _Places(session, qualified_uri(session, folder))
    places.refuse_published(target.target.uri)
    places.refuse_published(places.uri)
    places.refuse_inside(target.target.uri)
    places.refuse_used()
    with places.staging() as staged:
        result = rewrite(target, staged, request)
        places.refuse_used()
        places.move(staged)
    return requests.SortResult(places.uri, result)


def rewrite(target: SparkTarget, folder: str, request: SortRequest) -> requests.Rewritten:
    """Write the rows of a target, clustered, and verify that none is missing."""
    clustering = clustering_of(target, request)
    listed = target.list_files("")
    relation = target.relation(clustering.terms)
    size = sum(listed.column("length").to_pylist())
    partition_names = [name for name, _ in target.partition_columns]
    before = checksum(relation.read())
    frame = clusteredwrite.clustered(
        relation,
        clustering,
        clusteredwrite.balanced(size, request.target_file_size),
        before.rows,
        partition_names,
        request.seed,
    )
    options = {
        name: value
        for name, value in target.target.options
        if name.lower() not in _ABOUT_THE_OLD_FILES
    }
    _write(frame, folder, target.target.format, options, partition_names)
    written = (
        relation.spark.read.format(target.target.format)
        .schema(relation.read().schema)
        .options(**options, **LITERAL_PATH)
        .load(folder)
    )
    after = checksum(written)
    if after != before:
        raise SortNotPossible(
            f"{target.target.format} does not give back what was written",
            found=str(after),
            expected=str(before),
            hint="the files that were read are as they were; name the reader's options if the "
            "files need some, or convert them to Parquet first",
        )
    sizes = _sizes(relation.spark, written.inputFiles())
    return requests.Rewritten(before, listed.num_rows, len(sizes), size, sum(sizes))


def clustering_of(target: SparkTarget, request: SortRequest) -> clusteredwrite.Clustering:
    """The columns of a request, resolved."""
    partitions = {name for name, _ in target.partition_columns}
    terms = tuple(target.column(name) for name in request.columns)
    for term in terms:
        if term.names is not None and term.names[0] in partitions:
            raise IndexNotPossible(
                f"files lie in folders by {term.label} already",
                found=term.label,
                expected="columns inside the files",
                hint="leave it out: rows of one folder stay together",
            )
    return clusteredwrite.clustering_by(terms, request)


def checksum(frame: DataFrame) -> requests.Checksum:
    """A checksum of rows that their order does not change; all columns and NULLs count."""
    columns = [_comparable(frame, field) for field in frame.schema.fields]
    # A hash leaves NULL out, so that (1, NULL) would be (NULL, 1).
    absent = [column.isNull() for column in columns]
    hashed = sql.xxhash64(*columns, *absent)
    row = frame.agg(
        sql.count(sql.lit(1)),
        sql.sum(hashed.cast("decimal(20,0)")),
        sql.bit_xor(sql.xxhash64(hashed, *reversed(columns))),
    ).first()
    count, total, mixed = row if row is not None else (0, None, None)
    return requests.Checksum(int(count), int(total or 0), int(mixed or 0))


def _comparable(frame: DataFrame, field: spark_types.StructField) -> Column:
    column = frame[f"`{field.name.replace('`', '``')}`"]
    if _holds_unhashable(field.dataType):
        return sql.to_json(sql.struct(column.alias("value")))
    return column


def _holds_unhashable(kind: spark_types.DataType) -> bool:
    match kind:
        case spark_types.StructType():
            return any(_holds_unhashable(field.dataType) for field in kind.fields)
        case spark_types.ArrayType():
            return _holds_unhashable(kind.elementType)
    return isinstance(kind, _NOT_COMPARED)


def _write(
    frame: DataFrame,
    folder: str,
    file_format: str,
    options: Mapping[str, str],
    partition_names: Sequence[str],
) -> None:
    settings = {**options, "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    try:
        writer = frame.write.format(file_format).options(**settings).mode("error")
        writer.partitionBy(*partition_names).save(folder)
    except PySparkException as error:
        raise SortNotPossible(
            f"the rows cannot be written as {file_format}",
            found=cause_of(error),
            expected="columns that the format holds",
            hint="read the files as another format, or leave them as they are",
        ) from error


class _Places:
    """Target folder, and the hidden one beside it in which it is made."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri
        self._jvm = jvm_of(spark)
        self._gateway = spark.sparkContext._gateway
        self._path = self._jvm.org.apache.hadoop.fs.Path(uri)
        configuration = self._configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = self._path.getFileSystem(configuration)
        self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._path.toUri(), configuration
        )

    def refuse_published(self, uri: str) -> None:
        """Refuse a published folder: its manifest decides which files count, not Spark."""
        place = self._jvm.org.apache.hadoop.fs.Path(uri)
        files = place.getFileSystem(self._configuration)
        while place is not None:
            if files.exists(self._child(place, layout.MARKER)):
                raise SortNotPossible(
                    "published snapshots are sorted where they are, not into a new folder",
                    found=f"{uri}, which belongs to {place.toString()}",
                    expected="two folders that Snaploom does not publish into",
                    hint="leave the new folder out to replace the snapshots by sorted ones; or "
                    "write what snaploom.read gives to a folder of its own, and sort that",
                )
            place = place.getParent()

    def refuse_inside(self, source: str) -> None:
        one, other = f"{self.uri.rstrip('/')}/", f"{source.rstrip('/')}/"
        if one.startswith(other) or other.startswith(one):
            raise SortNotPossible(
                "the new folder must lie apart from what is read",
                found=self.uri,
                expected=f"a folder that neither is in {source} nor holds it",
                hint="files that Snaploom did not publish are never rewritten in place",
            )

    def refuse_used(self) -> None:
        if self._files.exists(self._path) and (
            not self._files.getFileStatus(self._path).isDirectory()
            or len(self._files.listStatus(self._path))
        ):
            raise SortNotPossible(
                "the new folder is not empty",
                found=self.uri,
                expected="a folder that is absent or empty",
                hint="name another folder; nothing in it was touched",
            )

    @contextmanager
    def staging(self) -> Iterator[str]:
        """A path inside a hidden folder beside the new one, which is removed in the end."""
        hidden = self._child(self._path.getParent(), f".snaploom-sort-{secrets.token_hex(6)}")
        try:
            yield str(self._child(hidden, "rows").toString())
        finally:
            self._files.delete(hidden, True)

    def move(self, staged: str) -> None:
        """Move the files into place; in one step where the file system renames folders."""
        self._files.mkdirs(self._path.getParent())
        if self._files.exists(self._path):
            self._files.delete(self._path, False)  # empty, else this fails
        plainly = self._gateway.new_array(  # type: ignore[union-attr]
            self._jvm.org.apache.hadoop.fs.Options.Rename, 0
        )
        try:
            # Unlike FileSystem.rename, this one never moves into a folder that has just appeared.
            self._context.rename(self._jvm.org.apache.hadoop.fs.Path(staged), self._path, plainly)
        except Py4JJavaError as error:
            raise SortNotPossible(
                "the sorted files could not be moved to the new folder",
                found=str(error.java_exception.toString()),
                expected=f"{self.uri} absent",
                hint="another process may have made it meanwhile; sort again into another folder",
            ) from error

    def _child(self, parent: JavaObject, name: str) -> JavaObject:
        return self._jvm.org.apache.hadoop.fs.Path(parent, name)


def _sizes(spark: SparkSession, uris: Sequence[str]) -> list[int]:
    jvm = jvm_of(spark)
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    sizes = []
    for uri in uris:
        place = jvm.org.apache.spark.paths.SparkPath.fromUrlString(uri).toPath()
        sizes.append(int(place.getFileSystem(configuration).getFileStatus(place).getLen()))
    return sizes


# One published snapshot read, written once more in another order, and proved to be the same.


@dataclass(frozen=True)
class Rewriting:
    """A snapshot to be written in another order."""

    session: SparkSession
    store: ObjectStore
    settings: FolderSettings
    record: SnapshotRecord
    schema: StructType
    clustering: clusteredwrite.Clustering
    request: SortRequest

    def write(self, uri: str) -> tuple[Rewrite, requests.Checksum]:
        """Write the rows into a folder that does not exist yet, and read them back."""
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
        ordered = clusteredwrite.sorted_frame(
            frame, self.clustering, self.request, size, before.rows
        )
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
                hint="the snapshot is as it was",
            )
        return Rewrite(after.rows, self.session.version), after


def rewriting_of(
    session: SparkSession,
    store: ObjectStore,
    settings: FolderSettings,
    record: SnapshotRecord,
    request: SortRequest,
) -> Rewriting:
    """Prepare to sort a snapshot; its files are not read yet."""
    schema = struct_from(read_schema(store, record.schema_hash))
    files = [file.path for file in record.files]
    refuse_links(store, files)
    if DataFormat(settings.data_format).of_files is DataFormat.PARQUET:
        refuse_foreign_types(store, files)
    try:
        clustering = clusteredwrite.clustering_under(session, schema, request)
    except IndexNotPossible as error:
        error.message = f"snapshot {format_instant(record.time)}: {error.message}"
        raise
    return Rewriting(session, store, settings, record, schema, clustering, request)


# Published snapshots, rewritten in another order: each one a replacement (rule P20).

_SHOWN = 5
"""Snapshot times in a message: enough to recognise their form."""


def sort_snapshots(
    place: requests.PublishedPlace,
    request: SortRequest,
    times: Sequence[EpochNanos],
    report: Callable[[str, int, int], None],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> requests.SnapshotsSorted:
    """Replace snapshots by the same rows in another order, one after the other.

    Each is replaced by one entry of the manifest log, when its new files were read back and
    compared. Indexes that follow the output are refreshed in the end.

    Without `times`, all live snapshots are sorted. `report` takes a label, the files rewritten and
    all; it is called from any thread.
    """
    warnings: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, Warned):
            warnings.append(event.message)

    def work(spark: SparkSession, group: JobGroup) -> requests.SnapshotsSorted:
        job = Job(now=now(), clock=now, emit=note, interruption=interruption, group=group)
        with translated(place.owner):
            sorter = _Sorter(spark, place, request, job)
            done = sorter.sort(times, lambda files, all_: report(place.label, files, all_))
        if done.replaced:
            follow_publication(spark, done.run_id, place.indexes, job)
        return done

    with warnings_as_events(note):
        done = in_session(place.run, place.settings, place.allow, work, on_tick, interruption)
    return requests.SnapshotsSorted(
        done.uri, done.run_id, done.replaced, done.left, (*done.notes, *warnings)
    )


class _Sorter:
    def __init__(
        self, spark: SparkSession, place: requests.PublishedPlace, request: SortRequest, job: Job
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
    ) -> requests.SnapshotsSorted:
        state = self._folder.log.read()
        if state.settings is None or not state.live:
            raise SortNotPossible(
                "nothing is published here",
                found=self._folder.store.uri,
                expected="an output with snapshots",
                hint="run the output first",
            )
        chosen = _chosen(state, times)
        rewritings = [
            rewriting_of(self._session, self._folder.store, state.settings, record, self._request)
            for record in chosen
        ]
        self_test(self._folder.store)
        outcomes: list[requests.SortedSnapshot | requests.LeftSnapshot] = []
        files, done = sum(len(record.files) for record in chosen), 0
        for number, (record, rewriting) in enumerate(zip(chosen, rewritings, strict=True)):
            report(done, files)
            self._job.interruption.check()
            label = f"{self._place.label}: {format_instant(record.time)}"
            self._job.group.enter(self._session, f"{self._run.run_id}-{number}", label)
            outcomes.append(self._replace(rewriting))
            done += len(record.files)
        report(done, files)
        replaced = tuple(each for each in outcomes if isinstance(each, requests.SortedSnapshot))
        left = tuple(each for each in outcomes if isinstance(each, requests.LeftSnapshot))
        notes = self._notes() if replaced else ()
        return requests.SnapshotsSorted(
            self._folder.store.uri, self._run.run_id, replaced, left, notes
        )

    def _replace(self, rewriting: Rewriting) -> requests.SortedSnapshot | requests.LeftSnapshot:
        old = rewriting.record
        if not old.rows:
            return requests.LeftSnapshot(old.time, "it has no rows", is_failure=False)
        proofs: list[requests.Checksum] = []

        def write(uri: str) -> Rewrite:
            rewrite, proof = rewriting.write(uri)
            proofs.append(proof)
            return rewrite

        order = f"sorted by {', '.join(self._request.columns)}, {rewriting.clustering.curve.value}"
        try:
            new = replace_version(self._folder, self._run, old, write, message=order).record
        except SnapshotChanged as error:
            return requests.LeftSnapshot(
                old.time, f"it changed meanwhile, {error.found}", is_failure=True
            )
        rewritten = requests.Rewritten(
            proofs[0], len(old.files), len(new.files), _size(old), _size(new)
        )
        return requests.SortedSnapshot(new.time, new.seq, rewritten)

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


def _open(place: requests.PublishedPlace, session: SparkSession) -> Folder:
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
    settings = folder.log.read().settings
    if settings is not None and settings.data_format == DataFormat.ICEBERG:
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


def sort_files(
    place: IndexedPlace,
    folder: str,
    request: SortRequest,
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> requests.SortResult:
    """Write files, clustered, as a new folder; `on_tick` is called several times a second."""

    def work(spark: SparkSession) -> requests.SortResult:
        target = SkippingIndexes(spark, allow=place.allow).target(place.subject)
        return sort_into(target, folder, request)

    return in_session_at(place, work, on_tick, interruption)
