"""The weaving of one snapshot: visit its steps, count, stage, publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from time import monotonic

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.expectations import Expectations, check_warnings
from snaploom.engine.fold import Weave
from snaploom.engine.published import read_files
from snaploom.engine.retries import await_tasks
from snaploom.engine.rowcounts import RowCounts, Weaving, null_key_warnings
from snaploom.engine.samples import sampled
from snaploom.engine.schemachecks import MissingField, SchemaOutcome, check_schemas
from snaploom.engine.sources.port import SourceFrame
from snaploom.engine.subtrees import FoldedSubtree
from snaploom.engine.unmatched import unmatched_warnings
from snaploom.engine.write import count_written, write_frame
from snaploom.jobs.job import Job
from snaploom.jobs.lineageinput import ReadColumns, WovenColumns
from snaploom.jobs.reports.observations import Observations
from snaploom.jobs.runevents import JoinPlanned
from snaploom.jobs.session.errortranslation import translated
from snaploom.jobs.weaving.filelayout import Shaping
from snaploom.jobs.weaving.preparation import Prepared
from snaploom.jobs.weaving.schemahistory import SchemaHistory, compare_structure
from snaploom.jobs.weaving.sharedsubtrees import Sharing
from snaploom.jobs.weaving.snapshotsources import Reading
from snaploom.jobs.weaving.valuelesscolumns import ValuelessColumns
from snaploom.models.report import CheckResult, Exclusion, SourceSnapshot
from snaploom.models.times import format_instant
from snaploom.planning.graph import ROOT_FIELD
from snaploom.planning.plan import PlannedSnapshot
from snaploom.planning.steps import ReadSource
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.folder import Folder
from snaploom.storage.layout import content_hash
from snaploom.storage.publication import (
    AlreadyPublished,
    Published,
    Revalidate,
    SnapshotTarget,
    WriteResult,
    publish,
)
from snaploom.storage.restatement import restate
from snaploom.storage.schemadocuments import model_nodes
from snaploom.storage.state import FolderState
from snaploom.storage.writeridentity import Run

Publish = Callable[
    [Folder, Run, SnapshotTarget, Callable[[str], WriteResult], Revalidate],
    Published | AlreadyPublished,
]
"""How a woven snapshot gets into the folder: as a new one, or in place of one."""

TASK_PATIENCE = 10.0
"""Seconds to wait for cancelled tasks to end: Spark's own interrupt at the next row or batch,
an expression that takes longer is left behind, and its file to `snaploom gc`."""


class SnapshotWeaver:
    """Weaves one snapshot after the other into a folder."""

    def __init__(
        self,
        spark: SparkSession,
        prepared: Prepared,
        run: Run,
        job: Job,
        folder: Folder,
        observations: Observations,
        sharing: Sharing,
    ) -> None:
        """Index the declarations that every snapshot needs."""
        self.run = run
        self.job = job
        self.folder = folder
        self.output = prepared.bundle.output
        self.warnings: tuple[str, ...] = ()
        """What a person should know of the latest snapshot."""
        self.seconds = 0.0
        """Wall time of the latest snapshot."""
        self.columns: WovenColumns | None = None
        """Its columns, and those that it was woven from."""
        self._spark = spark
        self._prepared = prepared
        self._observations = observations
        self._sharing = sharing
        self._history = SchemaHistory(folder.store)
        self._valueless = ValuelessColumns(prepared.bundle, prepared.plan.tree, self._history)
        self._history_warnings: tuple[str, ...] = ()
        self._remembered: Mapping[str, FoldedSubtree] = {}
        options = job.options
        self._publish: Publish = (
            publish
            if options.selection.restated is None
            else partial(restate, reason=options.reason)
        )
        others = self.output.spec.data_model.other_data_sources
        self._others = {other.field_name: other for other in others}
        self._relationships = {r.name: r for r in prepared.bundle.data_relationships}

    def weave(
        self, planned: PlannedSnapshot, group: str
    ) -> Published | AlreadyPublished | MissingField:
        """Weave and publish a planned snapshot.

        Args:
            planned: what is to be woven.
            group: name for the group of its Spark jobs.

        Returns:
            How it was published; or the field that is missing, where that fails or skips the
            snapshot: nothing was written then.

        Raises:
            SnaploomError: whatever went wrong, in Snaploom's words.
        """
        started = monotonic()
        self.warnings = self._history_warnings = ()
        name = f"{self.output.identity}: snapshot {format_instant(planned.time)}"
        self.job.group.enter(self._spark, group, name)
        try:
            with translated():
                return self._weave(planned)
        finally:
            self._sharing.done(planned.time)
            self.seconds = monotonic() - started

    def _weave(self, planned: PlannedSnapshot) -> Published | AlreadyPublished | MissingField:
        sources = (step for step in planned.steps if isinstance(step, ReadSource))

        @cache
        def published_rows() -> StructType | None:
            return self._valueless.published(self.folder.log.read(), planned.time)

        def read(step: ReadSource) -> SourceFrame:
            with translated(f"DataSource/{step.source}"):
                return self._valueless.typed(step.field_name, self._read(step), published_rows)

        reading = Reading(sources, read)
        plan = self._prepared.plan
        outcome = check_schemas(
            plan.tree, reading, self._others, self._relationships, self._valueless.sources
        )
        if outcome.stop is not None:
            return outcome.stop
        left_out = {exclusion.field_name for exclusion in outcome.excluded}
        used = {name: reading.source(name) for name in reading if name not in left_out}
        target = SnapshotTarget(planned.time, planned.partition, plan.hash, model_nodes(plan.tree))
        published = self._publish(
            self.folder,
            self.run,
            target,
            lambda uri: self._write(planned, used, outcome, uri),
            self._revalidate,
        )
        self.warnings += self._history_warnings
        if isinstance(published, Published):
            self._history.store_merged(self.folder)
            self._sharing.leave(self._remembered)
        return published

    def _read(self, step: ReadSource) -> SourceFrame:
        with translated(f"DataSource/{step.source}"):
            reader = self._prepared.readers[step.source]
            found = self._sharing.source(step.source, step.time, lambda: reader.read(step.time))
        self._observations.see_schema(step.source, found.time, _fingerprint(found.frame.schema))
        share = self.job.options.sample
        if share is None or step.field_name != ROOT_FIELD:
            return found
        key = self.output.spec.data_model.root_data_source.root_key
        return replace(found, frame=sampled(found.frame, key, share, step.source))

    def _write(
        self,
        planned: PlannedSnapshot,
        used: Mapping[str, SourceFrame],
        outcome: SchemaOutcome,
        uri: str,
    ) -> WriteResult:
        weaving = self._weaving(planned, used)
        schema = weaving.frame.schema.json()
        self._history.compare(self.output, self.folder.log.read(), planned.time, schema)
        self.job.interruption.check()
        try:
            written, counts, checks = self._write_and_count(weaving, uri)
        except BaseException:
            weaving.drop()
            # Tasks outlive the job that failed; what they write must not come after the cleaning.
            await_tasks(self._spark, TASK_PATIENCE)
            raise
        self._remembered = counts.remembered
        read = {name: _read_columns(source) for name, source in used.items()}
        self.columns = WovenColumns(written.json(), read)
        ratios = {name: other.warn_null_key_ratio for name, other in self._others.items()}
        silent = {name for name, other in self._others.items() if other.warn_no_match is False}
        of_joins = (
            *null_key_warnings(counts.joins, ratios),
            *unmatched_warnings(weaving.weave, counts.joins, frozenset(silent)),
        )
        self.warnings = (
            *_planned_warnings(planned),
            *outcome.warnings,
            *of_joins,
            *check_warnings(checks),
        )
        return WriteResult(
            rows=counts.rows,
            schema=written.json(),
            sources=_sources(planned, used),
            excluded=(*_planned_exclusions(planned), *outcome.excluded),
            joins=counts.joins,
            checks=checks,
            warnings=of_joins,
            spark_version=self._spark.version,
        )

    def _weaving(self, planned: PlannedSnapshot, used: Mapping[str, SourceFrame]) -> Weaving:
        frames = {name: item.frame for name, item in used.items()}
        weave = Weave(self._prepared.plan.tree, frames, self._relationships)
        return Weaving(
            weave,
            lambda number, joins, node: self.job.emit(JoinPlanned(number, joins, node.field_name)),
            self._sharing.subtrees(planned.time, weave, used),
        )

    def _write_and_count(
        self, weaving: Weaving, uri: str
    ) -> tuple[StructType, RowCounts, tuple[CheckResult, ...]]:
        folder = self.output.spec.output_folder
        expectations = Expectations(self.output, weaving.frame)
        shaping = Shaping(self._spark, self.output, self.folder.store, weaving.frame.schema)
        place = shaping.place(uri)
        schema = write_frame(
            expectations.frame,
            place,
            folder.data_format,
            folder.data_compression,
            column_metadata=folder.column_metadata,
        )
        counts = weaving.settle(
            self._spark,
            self.job.group.name,
            lambda: count_written(self._spark, place, folder.data_format, schema),
        )
        checks = expectations.settle(
            self._spark,
            self.job.group.name,
            lambda: read_files(self._spark, [place], folder.data_format, schema),
        )
        shaping.arrange(uri, schema, counts.rows)
        return schema, counts, checks

    def _revalidate(self, state: FolderState, record: SnapshotRecord) -> None:
        self._history_warnings = (
            *compare_structure(self.output, state, self._prepared.plan.tree),
            *self._history.compare_record(self.output, state, record),
        )


def _fingerprint(schema: StructType) -> str:
    """Hash over names, types and order of columns; what may be NULL changes with the reader."""
    return content_hash(schema.simpleString().encode())


def _read_columns(read: SourceFrame) -> ReadColumns:
    schema = read.frame.schema if read.unshaped is None else read.unshaped
    below = {alias: _read_columns(source) for alias, source in read.below.items()}
    return ReadColumns(schema.json(), read.time, below)


def _sources(
    planned: PlannedSnapshot, used: Mapping[str, SourceFrame]
) -> tuple[SourceSnapshot, ...]:
    return tuple(
        SourceSnapshot(
            field_name=step.field_name,
            source=step.source,
            time=format_instant(used[step.field_name].time),
            fingerprint=used[step.field_name].fingerprint,
        )
        for step in planned.steps
        if isinstance(step, ReadSource) and step.field_name in used
    )


def _planned_exclusions(planned: PlannedSnapshot) -> tuple[Exclusion, ...]:
    return tuple(
        Exclusion(field_name=left.field_name, reason=left.reason, message=left.message)
        for left in planned.excluded
    )


def _planned_warnings(planned: PlannedSnapshot) -> tuple[str, ...]:
    return tuple(
        f"`{left.field_name}` is left out: {left.message}" for left in planned.excluded if left.warn
    )
