"""The weaving of one snapshot: visit its steps, count, stage, look at its sources again, publish.

Where a source is otherwise than it was listed, the snapshot is woven again (rule W34): it would
have rows of before and after the change.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from time import monotonic

from pyspark.sql.types import StructType

from snaploom.engine import latecounts, rowcounts
from snaploom.engine.expectations import Expectations, check_warnings, low_match_warnings
from snaploom.engine.fold import Weave
from snaploom.engine.schemachecks import MissingField
from snaploom.engine.subtrees import FoldedSubtree, sampled
from snaploom.engine.unmatched import TimeAllowance, unmatched_rows, unmatched_warnings
from snaploom.engine.write import WrittenFiles, read_files, write_frame
from snaploom.errors import SnaploomError, SourceChanged
from snaploom.models.common import ROOT_FIELD, format_instant
from snaploom.models.datarelationship import UnmatchedRows
from snaploom.models.outputdataset import DataCompression
from snaploom.models.report import CheckResult, Exclusion, SourceSnapshot
from snaploom.output import publication
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import Folder, Run
from snaploom.output.layout import content_hash
from snaploom.output.manifest import model_nodes
from snaploom.output.replacement import restate
from snaploom.output.state import FolderState
from snaploom.plan.plan import PlannedSnapshot
from snaploom.plan.steps import ReadSource
from snaploom.plan.tree import JoinNode
from snaploom.run.runevents import JoinPlanned, ReadColumns, WovenColumns
from snaploom.run.session.spark import translated
from snaploom.run.weaving.ahead import RUN_ENDS, SnapshotsAhead, WovenAhead
from snaploom.run.weaving.datafindings import shows_samples
from snaploom.run.weaving.filelayout import Shaping
from snaploom.run.weaving.history import SchemaHistory, compare_structure
from snaploom.run.weaving.inputs import InputReader, Sharing, SnapshotInputs
from snaploom.run.weaving.parallel import Turn
from snaploom.run.weaving.preparation import OutputRun
from snaploom.sources.port import SourceFrame
from snaploom.sources.readers import listed_for, located

_log = logging.getLogger(__name__)

MOST_JOINS = 5
"""Joins that an error names."""
MOST_WEAVINGS = 4
"""Number of attempts at a snapshot while its sources change: what is written to for so long is
written to all the time."""


@dataclass(frozen=True, kw_only=True)
class Written(publication.WriteResult):
    """The files of a snapshot in staging, with facts that its record does not keep."""

    notes: tuple[str, ...]
    columns: WovenColumns
    remembered: Mapping[str, FoldedSubtree]
    unmatched: tuple[UnmatchedRows, ...]


Publish = Callable[
    [Folder, Run, publication.SnapshotTarget, Callable[[str], Written], publication.Revalidate],
    publication.Published[Written] | publication.AlreadyPublished,
]
"""Puts a woven snapshot into the folder: as a new one, or in place of one."""


@dataclass(frozen=True)
class WovenSnapshot:
    """Result of weaving one snapshot."""

    outcome: publication.Published[Written] | publication.AlreadyPublished | MissingField
    """Its publication; or the field whose absence fails or skips the snapshot, before anything was
    written."""
    seconds: float = 0.0
    """Wall time."""
    warnings: tuple[str, ...] = ()


class SnapshotWeaver:
    """Weaves one snapshot after the other into a folder."""

    def __init__(
        self, run: OutputRun, folder: Folder, sharing: Sharing, due: Sequence[PlannedSnapshot]
    ) -> None:
        self._run = run
        self._folder = folder
        self._sharing = sharing
        self._history = SchemaHistory(folder.store)
        self._reading = Lock()
        self._has_changed = False
        self._inputs = InputReader(run.prepared, self._history, self._folder.log.read, self._read)
        options = run.job.options
        is_ordered = options.parallel_snapshots > 1 or self._inputs.looks_at_published
        self._ahead = SnapshotsAhead(
            run, folder, sharing, () if is_ordered else due, self._inputs.inputs
        )
        self._publish: Publish = (
            publication.publish
            if options.selection.restated is None
            else partial(restate, reason=options.reason)
        )
        self._allowance = TimeAllowance()
        self._newest = max((one.time for one in due), default=None)
        others = run.output.spec.data_model.other_data_sources
        self._others = {other.field_name: other for other in others}

    def weave(self, planned: PlannedSnapshot, group: str, turn: Turn) -> WovenSnapshot:
        """Weave and publish a planned snapshot; may be called for several at a time.

        It is woven again where its sources change meanwhile.

        `turn` is awaited when its files are written, before anything of it is published; and before
        anything is read that may depend on what is published.

        Raises:
            SourceChanged: the sources changed each time.
        """
        started, name = monotonic(), format_instant(planned.time)
        warnings: list[str] = []
        group_name = f"{self._run.output.identity}: snapshot {name}"
        self._run.job.group.enter(self._run.spark, group, group_name)
        with translated():
            while True:
                try:
                    woven = self._weave(planned, turn)
                    break
                except SourceChanged as changed:
                    if len(warnings) + 1 == MOST_WEAVINGS:
                        raise
                    warnings.append(f"woven again: {changed.resource}: {changed.message}")
                    _log.info("%s: %s", name, changed)
                    with self._reading:
                        self._has_changed = True
                        self._run.prepared.sources.list_again()
                        self._sharing.forget()
                        self._ahead.forget()
        seconds = monotonic() - started - turn.seconds + self._ahead.seconds(planned.time)
        return replace(woven, seconds=seconds, warnings=(*warnings, *woven.warnings))

    def close(self) -> None:
        """Remove what was woven for snapshots that had no turn."""
        self._ahead.forget()

    def _look_again(self, inputs: SnapshotInputs, *, had_moment: bool = False) -> None:
        """Make sure that what a snapshot is woven from has not changed since it was listed."""
        self._run.prepared.sources.look_again(inputs.used.values(), had_moment=had_moment)

    def _weave(self, planned: PlannedSnapshot, turn: Turn) -> WovenSnapshot:
        plan = self._run.prepared.plan
        if self._inputs.looks_at_published:
            turn()
        with self._reading:  # readers are not made for several threads
            inputs = self._ahead.inputs(planned)
        if inputs.outcome.stop is not None:
            turn()
            return WovenSnapshot(inputs.outcome.stop)
        had_moment = self._has_changed
        if had_moment:  # what changes all the time is found before it is woven once more
            self._look_again(inputs)
        target = publication.SnapshotTarget(
            planned.time, planned.partition, plan.hash, model_nodes(plan.tree)
        )
        write = partial(self._stage, planned, inputs, turn, had_moment)
        outcome = self._publish(self._folder, self._run.writer, target, write, self._contradictions)
        if isinstance(outcome, publication.AlreadyPublished):
            return WovenSnapshot(outcome)
        self._history.store_merged(self._folder)
        self._sharing.leave(outcome.result.remembered)
        return WovenSnapshot(outcome, warnings=(*outcome.result.notes, *outcome.remarks))

    def _stage(
        self,
        planned: PlannedSnapshot,
        inputs: SnapshotInputs,
        turn: Turn,
        had_moment: bool,
        uri: str,
    ) -> Written:
        try:
            with translated():
                written = self._write(planned, inputs, uri)
        except SnaploomError as error:
            if not isinstance(error, RUN_ENDS) and self._run.job.interruption.cause is None:
                self._look_again(inputs, had_moment=had_moment)  # it may be for that
                allow = self._run.job.options.allow
                raise located(error, inputs.used.values(), self._run.spark, allow) from error
            raise
        self._look_again(inputs, had_moment=had_moment)
        turn()
        return written

    def _contradictions(self, state: FolderState, record: SnapshotRecord) -> tuple[str, ...]:
        output = self._run.output
        return (
            *compare_structure(output, state, self._run.prepared.plan.tree),
            *self._history.compare_record(output, state, record),
            *self._history.gone_columns(state, record),
        )

    def _read(self, step: ReadSource) -> SourceFrame:
        with translated(f"DataSource/{step.source}"):
            reader = self._run.prepared.sources.reader(step.source)
            found = self._sharing.source(step, reader)
        self._run.record.observations.see_schema(
            step.source, found.time, _fingerprint(found.frame.schema)
        )
        share = self._run.job.options.sample
        if share is None or step.field_name != ROOT_FIELD:
            return found
        key = self._run.output.spec.data_model.root_data_source.root_key
        return replace(found, frame=sampled(found.frame, key, share, step.source))

    def _write(self, planned: PlannedSnapshot, inputs: SnapshotInputs, uri: str) -> Written:
        state = self._folder.log.read()
        assert state.settings is not None  # a folder is configured before anything is woven
        compression = DataCompression(state.settings.data_compression)
        self._run.job.interruption.check()
        ahead = self._ahead.find(planned, inputs, compression, self._join_planned)
        weave = self._run.weave({name: item.frame for name, item in inputs.used.items()})
        self._run.job.group.describe(self._described(planned, weave))
        if ahead is None:
            files, counts, checks = self._write_files(
                planned, inputs, weave, state, compression, uri
            )
        else:
            files, counts, checks = self._take_files(planned, ahead, state, compression, uri)
        ratios = {name: other.warn_null_key_ratio for name, other in self._others.items()}
        silent = frozenset(
            name
            for name, other in self._others.items()
            if other.warn_no_match is False or not shows_samples(self._run.output)
        )  # warnings and near misses show keys
        is_newest = planned.time == self._newest
        unmatched = unmatched_rows(
            weave, counts.joins, silent, self._allowance, is_newest=is_newest
        )
        of_joins = (
            *rowcounts.null_key_warnings(counts.joins, ratios),
            *low_match_warnings(self._run.output, counts.joins),
            *unmatched_warnings(weave, counts.joins, unmatched, silent),
        )
        left_out = (
            f"`{left.field_name}` is left out: {left.message}"
            for left in planned.excluded
            if left.warn
        )
        excluded = (
            Exclusion(field_name=left.field_name, reason=left.reason, message=left.message)
            for left in planned.excluded
        )
        root = f"DataSource/{weave.root.source}"
        rowless = () if counts.rows else (f"it has no rows: {root} has none of its time",)
        read = {name: _read_columns(source) for name, source in inputs.used.items()}
        return Written(
            rows=counts.rows,
            schema=files.json(),
            sources=tuple(
                _source_snapshot(step, inputs.used[step.field_name])
                for step in planned.reads
                if step.field_name in inputs.used
            ),
            excluded=(*excluded, *inputs.outcome.excluded),
            joins=counts.joins,
            checks=checks,
            warnings=of_joins,
            spark_version=self._run.spark.version,
            notes=(
                *left_out,
                *planned.notes,
                *rowless,
                *inputs.outcome.warnings,
                *(remark for each in listed_for(inputs.used.values()) for remark in each.remarks),
                *of_joins,
                *check_warnings(checks),
            ),
            columns=WovenColumns(files.json(), read),
            remembered=counts.remembered,
            unmatched=unmatched,
        )

    def _described(self, planned: PlannedSnapshot, weave: Weave) -> str:
        """The snapshot and its joins, arrays first, whose rows of a key are in memory together."""
        joins = []
        for node in sorted(weave.joins, key=lambda node: not node.group_by):
            array = ", one array a key" if node.group_by else ""
            joins.append(f"`{node.field_name}` (DataSource/{node.source}{array})")
        more = f" and {len(joins) - MOST_JOINS} more" * (len(joins) > MOST_JOINS)
        name = f"{self._run.output.identity}: snapshot {format_instant(planned.time)}"
        root = f"DataSource/{weave.root.source}"
        return f"{name} of {root} with {', '.join(joins[:MOST_JOINS]) or 'no join'}{more}"

    def _join_planned(self, number: int, joins: int, node: JoinNode) -> None:
        if self._run.job.options.parallel_snapshots == 1:  # else nobody knows of which snapshot
            self._run.job.emit(JoinPlanned(number, joins, node.field_name))

    def _write_files(
        self,
        planned: PlannedSnapshot,
        inputs: SnapshotInputs,
        weave: Weave,
        state: FolderState,
        compression: DataCompression,
        uri: str,
    ) -> tuple[StructType, rowcounts.RowCounts, tuple[CheckResult, ...]]:
        spark, output = self._run.spark, self._run.output
        folder = output.spec.output_folder
        subtrees = self._sharing.subtrees(planned.time, weave, inputs.used)
        is_late = latecounts.counts_are_late(spark, folder.data_format)
        weaving = rowcounts.Weaving(weave, self._join_planned, subtrees, counts_late=is_late)
        woven = weaving.frame.schema
        self._history.compare(output, state, planned.time, woven.json())
        try:
            expectations = Expectations(output, weaving.frame, is_written=is_late)
            shaping = self._shaping(compression, woven)
            place = shaping.place(uri)
            schema = write_frame(
                expectations.frame,
                place,
                folder.data_format,
                compression,
                column_metadata=folder.column_metadata,
            )
            (counts,) = weaving.settle(
                spark,
                self._run.job.group.name,
                WrittenFiles(spark, place, folder.data_format, schema),
            )
            checks = self._settled(expectations, place, schema)
            shaping.arrange(uri, schema, counts.rows)
        except BaseException:
            weaving.drop()
            # Tasks outlive the job that failed; what they write must not come after the cleaning.
            rowcounts.await_tasks(spark, rowcounts.TASK_PATIENCE)
            raise
        return schema, counts, checks

    def _take_files(
        self,
        planned: PlannedSnapshot,
        ahead: WovenAhead,
        state: FolderState,
        compression: DataCompression,
        uri: str,
    ) -> tuple[StructType, rowcounts.RowCounts, tuple[CheckResult, ...]]:
        self._history.compare(self._run.output, state, planned.time, ahead.woven_schema.json())
        shaping = self._shaping(compression, ahead.woven_schema)
        place = shaping.place(uri)
        self._ahead.move(ahead, place)
        shape = self._run.spark.createDataFrame([], ahead.woven_schema)
        expectations = Expectations(self._run.output, shape, is_written=True)
        checks = self._settled(expectations, place, ahead.schema)
        shaping.arrange(uri, ahead.schema, ahead.counts.rows)
        return ahead.schema, ahead.counts, checks

    def _shaping(self, compression: DataCompression, schema: StructType) -> Shaping:
        return Shaping(self._run.spark, self._run.output, compression, self._folder.store, schema)

    def _settled(
        self, expectations: Expectations, place: str, schema: StructType
    ) -> tuple[CheckResult, ...]:
        data_format = self._run.output.spec.output_folder.data_format
        return expectations.settle(
            self._run.spark,
            self._run.job.group.name,
            lambda: read_files(self._run.spark, [place], data_format, schema),
        )


def _fingerprint(schema: StructType) -> str:
    """Hash over names, types and order of columns; what may be NULL changes with the reader."""
    return content_hash(schema.simpleString().encode())


def _source_snapshot(step: ReadSource, read: SourceFrame) -> SourceSnapshot:
    *older, (time, fingerprint) = read.snapshots.items()
    return SourceSnapshot(
        field_name=step.field_name,
        source=step.source,
        time=format_instant(time),
        fingerprint=fingerprint,
        history={format_instant(before): text for before, text in older} or None,
    )


def _read_columns(read: SourceFrame) -> ReadColumns:
    schema = read.frame.schema if read.unshaped is None else read.unshaped
    below = {alias: _read_columns(source) for alias, source in read.below.items()}
    return ReadColumns(schema.json(), read.time, below)
