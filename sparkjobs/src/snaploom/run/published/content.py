"""Published files checked against their records, and the deletion of an output."""

from collections.abc import Callable, Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.expectations import key_columns, uniqueness
from snaploom.engine.publishedfiles import FORMAT_NAMES, READ_OPTIONS, SPARK_FORMATS
from snaploom.engine.write import read_files
from snaploom.errors import SnaploomError, SourceSchemaInvalid, StorageError
from snaploom.files.objectstore import ObjectStore, refuse_links
from snaploom.installed import VERSION
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import DataFormat, OutputDataset
from snaploom.models.report import Removed
from snaploom.models.run import RunSettings
from snaploom.output import layout
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import FolderOwner, Run
from snaploom.output.foldercheck import Fault, FaultKind
from snaploom.output.layout import new_run_id
from snaploom.output.manifest import read_schema
from snaploom.output.removal import remove_folder
from snaploom.output.state import FolderState
from snaploom.parquet.footers import read_footer
from snaploom.policy.fileformats import format_of
from snaploom.run.job import JobGroup, run_in_group
from snaploom.run.published.outputcheck import CheckRequest
from snaploom.run.runevents import Interruption
from snaploom.run.session.classarchive import SMALL_BYTES
from snaploom.run.session.providers import OpenSession
from snaploom.run.session.spark import build_session, translated
from snaploom.run.weaving.preparation import folder_store
from snaploom.run.weaving.registration import drop_table
from snaploom.spark.types import same_types, schema_of, struct_from

# Checks published files against their records: rows, schema, keys of the root.


def check_content(
    request: CheckRequest,
    report: Callable[[str], None],
    interruption: Interruption,
    open_session: OpenSession = build_session,
) -> tuple[Fault, ...]:
    """Read snapshots, and compare them with the manifest.

    `report` is called from another thread.
    """
    group, state, times = JobGroup(), request.state, request.times
    spec = request.spec
    run = RunSettings() if spec is None else spec.run
    root_key = () if spec is None else spec.data_model.root_data_source.root_key

    def work() -> tuple[Fault, ...]:
        size = sum(file.bytes for time in times for file in state.live[time].files)
        is_small = size <= SMALL_BYTES
        spark = open_session("snaploom check", run, request.allow, is_small=is_small)
        checker = _Checker(spark, request.store, state, root_key)
        faults: list[Fault] = []
        for number, time in enumerate(times):
            interruption.check()
            report(f"snapshot {number + 1} of {len(times)}: {format_instant(time)}")
            group.enter(spark, f"check-{number}", f"checking {format_instant(time)}")
            faults.extend(checker.faults(state.live[time]))
        # Neither an interrupted job nor the end of Spark is a fault of files.
        interruption.check()
        group.check()
        return tuple(faults)

    return run_in_group(work, group, interruption)


class _Checker:
    def __init__(
        self, spark: SparkSession, store: ObjectStore, state: FolderState, root_key: Sequence[str]
    ) -> None:
        assert state.settings is not None  # something is published
        self._spark = spark
        self._store = store
        self._format = DataFormat(state.settings.data_format).of_files
        self._root_key = root_key

    def faults(self, record: SnapshotRecord) -> Iterator[Fault]:
        try:
            schema = struct_from(read_schema(self._store, record.schema_hash))
        except (SourceSchemaInvalid, StorageError) as error:
            key = layout.schema_key(record.schema_hash)
            yield Fault(FaultKind.DOCUMENT, key, f"{error.message}: {error.found}", record.time)
            return
        files = [file.path for file in record.files]
        if not files:
            if record.rows:
                yield self._rows(record, 0)
            return
        try:
            refuse_links(self._store, files)
            with translated():
                yield from self._content(record, schema, files)
        except SnaploomError as error:
            broken = list(self._unreadable(record, schema))
            detail = f"{error.message}: {error.found}" if error.found else error.message
            whole = Fault(FaultKind.FILE, record.partition, detail[:1000], record.time)
            yield from broken or [whole]

    def _content(
        self, record: SnapshotRecord, schema: StructType, files: Sequence[str]
    ) -> Iterator[Fault]:
        frame = self._frame(files, schema)
        _read_through(frame)
        rows = frame.count()
        if rows != record.rows:
            yield self._rows(record, rows)
        if format_of(FORMAT_NAMES[self._format]).is_self_describing:
            detail = self._footer_schema(files)
            if not same_types(detail, schema):
                message = (
                    f"the files hold {detail.simpleString()}, and held {schema.simpleString()}"
                )
                yield Fault(FaultKind.SCHEMA, record.partition, message[:1000], record.time)
        if self._root_key:
            result = uniqueness(frame, key_columns(schema, self._root_key))
            if not result.holds:
                yield Fault(FaultKind.ROOT_KEY, record.partition, result.measured, record.time)

    def _rows(self, record: SnapshotRecord, rows: int) -> Fault:
        detail = f"it has {rows:,} rows, and had {record.rows:,} when it was published"
        return Fault(FaultKind.ROWS, record.partition, detail, record.time)

    def _unreadable(self, record: SnapshotRecord, schema: StructType) -> Iterator[Fault]:
        for file in record.files:
            try:
                refuse_links(self._store, [file.path])
                with translated():
                    _read_through(self._frame([file.path], schema))
            except SnaploomError as error:
                detail = f"it cannot be read: {error.found or error.message}"
                yield Fault(FaultKind.FILE, file.path, detail, record.time)

    def _frame(self, files: Sequence[str], schema: StructType) -> DataFrame:
        return read_files(self._spark, self._uris(files), self._format, schema)

    def _footer_schema(self, files: Sequence[str]) -> StructType:
        if self._format is DataFormat.PARQUET:
            refuse_foreign_types(self._store, files)
        options = {**READ_OPTIONS[self._format], "mergeSchema": "true", "__globPaths__": "false"}
        reader = self._spark.read.format(SPARK_FORMATS[self._format]).options(**options)
        return schema_of(reader.load(self._uris(files)))

    def _uris(self, files: Sequence[str]) -> list[str]:
        return [f"{self._store.uri}{path}" for path in files]


def refuse_foreign_types(store: ObjectStore, files: Sequence[str]) -> None:
    """Refuse files whose footers name classes as types, of which Spark would make instances."""
    for file in files:
        info = store.head(file)
        footer = None if info is None else read_footer(store, info)
        if footer is not None and footer.schema is not None:
            struct_from(footer.schema)


def _read_through(frame: DataFrame) -> None:
    """Decode every value: a count looks at few columns, and of Parquet only at footers."""
    frame.write.format("noop").mode("overwrite").save()


# Deletion of what an output published (`deletionPolicy: Delete`).

NAMES_SHOWN = 20
"""Names of files that stay, in a Report."""


def remove_output(
    output: OutputDataset,
    clock: Callable[[], EpochNanos],
    check: Callable[[], None],
    allow: Allowances = NO_ALLOWANCES,
) -> Removed:
    """Remove the catalog table and the folder of an output, as far as they are Snaploom's.

    `check` is called between files and raises to stop; running again goes on.
    """
    run = Run(new_run_id(clock()), VERSION, clock, lambda _: check())
    metadata = output.metadata
    owner = FolderOwner(output.name, metadata.namespace or "", metadata.uid or "")
    store = folder_store(output, allow=allow)
    table = None
    declared = output.spec.output_folder
    if declared.register_table is not None or declared.table is not None:
        spark = build_session("snaploom delete", output.spec.run, allow)
        table = drop_table(spark, output, store.uri)
        check()
    removal = remove_folder(store, owner, run)
    return Removed(
        files=removal.files,
        bytes=removal.bytes,
        left=len(removal.left),
        left_names=tuple(name[:1024] for name in removal.left[:NAMES_SHOWN]),
        table=table,
    )
