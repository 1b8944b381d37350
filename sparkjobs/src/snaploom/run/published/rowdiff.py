"""Compares the rows of two versions of snapshots, in a session; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.expectations import key_columns, uniqueness
from snaploom.engine.rowcomparison import compare_rows
from snaploom.engine.write import read_files
from snaploom.errors import CheckFailed
from snaploom.files.objectstore import ObjectStore, refuse_links
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import DataFormat
from snaploom.output.folder import open_folder
from snaploom.output.history import refuse_empty
from snaploom.output.manifest import read_schema
from snaploom.output.versions import VersionChoice
from snaploom.plan.differences import ComparedSnapshot, DataComparison, RowChanges
from snaploom.run.job import JobGroup, run_in_group
from snaploom.run.published.diff import DataDiffRequest
from snaploom.run.runevents import Interruption
from snaploom.run.session.providers import OpenSession
from snaploom.run.session.spark import build_session, translated
from snaploom.run.weaving.dryrun import dry_woven
from snaploom.spark.types import conform_frame, struct_from
from snaploom.types.merge import common_fields


@dataclass(frozen=True)
class _Side:
    """One of the two."""

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

    Args:
        request: the versions.
        store: of the output's folder.
        moment: the instant for which a dry run is planned.
        interruption: from `signal_handlers`.
        allow: entries allowed beyond the built-in lists.
        open_session: gives the session.

    Raises:
        CheckFailed: a key is not unique, or NULL, in a dry run.
        CheckInvalid: one of them has no column of the key.
        SnaploomError: what keeps a dry run from its rows, as a run would raise it.
        SparkNotStarted: there is no Spark to work with.
        Interrupted: somebody asked to stop.
        SparkStopped: Spark was shut down, or killed.
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
    counts = _row_counts(rows)
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


def _row_counts(rows: RowChanges) -> tuple[int, int]:
    """Rows of both sides: each is counted once."""
    both = rows.changed + rows.unchanged
    return both + rows.removed, both + rows.added
