"""Compares the rows of two versions of snapshots, in a session; nothing is changed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.expectations import key_columns, uniqueness
from snaploom.engine.fold import Recording, Weave, fold
from snaploom.engine.rowcomparison import compare_rows
from snaploom.engine.write import read_files
from snaploom.errors import ArgumentInvalid, CheckFailed, SnaploomError
from snaploom.files.objectstore import ObjectStore, refuse_links
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import DataFormat
from snaploom.output.folder import is_unused, open_folder
from snaploom.output.history import refuse_empty
from snaploom.output.manifest import read_schema
from snaploom.output.versions import VersionChoice
from snaploom.plan.bundle import Bundle
from snaploom.plan.differences import ComparedSnapshot, DataComparison
from snaploom.plan.plan import PlannedSnapshot
from snaploom.plan.steps import Action
from snaploom.plan.times import Selection
from snaploom.run.job import JobGroup, run_in_group
from snaploom.run.published.diff import DataDiffRequest
from snaploom.run.runevents import Interruption
from snaploom.run.session.providers import OpenSession
from snaploom.run.session.spark import build_session, translated
from snaploom.run.weaving.history import SchemaHistory
from snaploom.run.weaving.inputs import InputReader
from snaploom.run.weaving.preflight import PlanRequest
from snaploom.run.weaving.preparation import Prepared, folder_store, prepare
from snaploom.run.weaving.requests import RunOptions
from snaploom.sources.readers import located
from snaploom.spark.types import conform_frame, struct_from
from snaploom.types.merge import common_fields


@contextmanager
def dry_woven(
    spark: SparkSession,
    bundle: Bundle,
    time: EpochNanos,
    moment: EpochNanos,
    allow: Allowances,
    check: Callable[[], None],
) -> Iterator[DataFrame]:
    """The rows of a snapshot as they would be woven now; computed when they are asked for.

    The snapshot is planned as a restatement where it is published, else as one that is due. Row
    counts of joins are not proved: rows that a join multiplied have a key twice.

    `check` is called before the sources are read; what it raises comes out.

    Raises:
        SourceChanged: a source was written to before the rows were computed, at the end.
    """
    store = folder_store(bundle.output, allow=allow)
    published = {} if is_unused(store) else open_folder(store).log.read().versions
    selection = (
        Selection(restated=time)
        if time in published
        else Selection(first=time, end=EpochNanos(time + 1))
    )
    request = PlanRequest(bundle, moment, RunOptions(selection, allow=allow))
    with prepare(spark, request) as prepared:
        planned = _due(prepared, time)
        check()
        reader = InputReader(
            prepared,
            SchemaHistory(store),
            lambda: prepared.state,
            lambda step: prepared.readers[step.source].read(*step.times),
        )
        inputs = reader.inputs(planned)
        if inputs.outcome.stop is not None:
            raise inputs.outcome.stop.error()
        frames = {name: item.frame for name, item in inputs.used.items()}
        relationships = {one.name: one for one in bundle.data_relationships}
        with translated():
            # Observations would be counted again by each query over the frame.
            woven = fold(Weave(prepared.plan.tree, frames, relationships), Recording())
        try:
            with translated():
                yield woven
        except SnaploomError as error:
            raise located(error, inputs.used.values(), spark, allow) from error
        prepared.sources.look_again(inputs.used.values())


def _due(prepared: Prepared, time: EpochNanos) -> PlannedSnapshot:
    candidates = {one.time: one for one in prepared.plan.snapshots or ()}
    planned = candidates.get(time)
    if planned is not None and planned.action is Action.PUBLISH:
        return planned
    reason = f"{planned.reason.value}: {planned.message}" if planned else "no candidate"
    raise ArgumentInvalid(
        f"a run would not weave the snapshot of {format_instant(time)}",
        path="data",
        found=reason,
        expected="a published snapshot whose sources are there, or one that is due",
        hint="'snaploom plan' lists what is due",
    )


@dataclass(frozen=True)
class _Side:
    frame: DataFrame
    schema: str
    time: str
    sequence: int | None


def compare_data(
    request: DataDiffRequest,
    store: ObjectStore,
    moment: EpochNanos,
    interruption: Interruption,
    allow: Allowances = NO_ALLOWANCES,
    open_session: OpenSession = build_session,
) -> DataComparison:
    """Compare two versions of snapshots row by row.

    Raises:
        CheckFailed: a key is not unique, or NULL, in a dry run.
        CheckInvalid: one of them has no column of the key.
    """
    group = JobGroup()

    def work() -> DataComparison:
        spark = open_session("snaploom diff", request.bundle.output.spec.run, allow)
        group.enter(spark, "diff", f"{request.bundle.output.identity}: comparing rows")
        with ExitStack() as held, translated():
            sides = _Sides(spark, request, store, moment, allow, interruption.check)
            before, after = (sides.open(side, held) for side in (request.before, request.after))
            interruption.check()
            return _compared(request, before, after)

    return run_in_group(work, group, interruption)


@dataclass(frozen=True)
class _Sides:
    spark: SparkSession
    request: DataDiffRequest
    store: ObjectStore
    moment: EpochNanos
    allow: Allowances
    check: Callable[[], None]

    def open(self, choice: VersionChoice, held: ExitStack) -> _Side:
        """The rows of a version; what a dry run holds is released by `held`."""
        time = format_instant(choice.time)
        if choice.is_dry_run:
            woven = dry_woven(
                self.spark, self.request.bundle, choice.time, self.moment, self.allow, self.check
            )
            frame = held.enter_context(woven)
            return _Side(frame, frame.schema.json(), time, None)
        folder = open_folder(self.store)
        state = folder.log.read()
        settings = refuse_empty(state, self.store.uri)
        record = choice.record(folder, state, "data")
        schema = read_schema(self.store, record.schema_hash)
        files = [file.path for file in record.files]
        refuse_links(self.store, files)
        struct = struct_from(schema)
        if files:
            data_format = DataFormat(settings.data_format).of_files
            uris = [f"{self.store.uri}{path}" for path in files]
            frame = read_files(self.spark, uris, data_format, struct)
        else:
            frame = self.spark.createDataFrame([], struct.toNullable())
        return _Side(frame, schema, time, record.seq)


def _compared(request: DataDiffRequest, before: _Side, after: _Side) -> DataComparison:
    output = request.bundle.output
    key = output.spec.data_model.root_data_source.root_key
    fields = common_fields(before.schema, after.schema)
    common = struct_from(fields.schema)
    for side in (before, after):
        columns = key_columns(side.frame.schema, key, output.identity)
        if side.sequence is None:
            _refuse_what_a_run_would(request, side, columns)
    # A key whose types have nothing in common is in neither: the same error names the column.
    key_columns(common, key, output.identity)
    frames = [conform_frame(side.frame, common) for side in (before, after)]
    rows = compare_rows(frames[0], frames[1], key, request.samples)
    both = rows.changed + rows.unchanged
    counts = both + rows.removed, both + rows.added
    return DataComparison(
        output.name,
        tuple(key),
        ComparedSnapshot(before.time, before.sequence, counts[0]),
        ComparedSnapshot(after.time, after.sequence, counts[1]),
        fields,
        rows,
    )


def _refuse_what_a_run_would(
    request: DataDiffRequest, woven: _Side, columns: Sequence[str]
) -> None:
    """A dry run proves no counts of joins: rows that one multiplied are found by their key."""
    unique = uniqueness(woven.frame, columns)
    if unique.holds:
        return
    output = request.bundle.output
    key = output.spec.data_model.root_data_source.root_key
    raise CheckFailed(
        f"a run would not publish the rows of {woven.time}",
        resource=output.identity,
        path="spec.dataModel.rootDataSource.rootKey",
        found=f"{', '.join(key)}: {unique.measured}",
        expected="every key once, and no NULL in it",
        hint="name columns in rootKey that identify a row, or correct the sources",
    )
