"""The weaving of one snapshot: visit its steps, count, stage, look at its sources again, publish.

Where a source is otherwise than it was listed, the snapshot is woven again (rule W34): it would
have rows of before and after the change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from time import monotonic

from pyspark.sql.types import StructType

from snaploom.engine.expectations import Expectations, check_warnings
from snaploom.engine.fold import Weave
from snaploom.engine.matchedrows import low_match_warnings
from snaploom.engine.published import read_files
from snaploom.engine.retries import TASK_PATIENCE, await_tasks
from snaploom.engine.rowcounts import RowCounts, Weaving, null_key_warnings
from snaploom.engine.samples import sampled
from snaploom.engine.schemachecks import MissingField
from snaploom.engine.sources.opened import listed_for
from snaploom.engine.sources.port import SourceFrame
from snaploom.engine.subtrees import FoldedSubtree
from snaploom.engine.unmatched import unmatched_warnings
from snaploom.engine.write import count_written, write_frame
from snaploom.errors import SnaploomError, SourceChanged
from snaploom.jobs.lineageinput import ReadColumns, WovenColumns
from snaploom.jobs.runevents import JoinPlanned
from snaploom.jobs.session.errortranslation import translated
from snaploom.jobs.weaving.filelayout import Shaping
from snaploom.jobs.weaving.orderedwork import Turn
from snaploom.jobs.weaving.outputcontext import OutputRun
from snaploom.jobs.weaving.schemahistory import SchemaHistory, compare_structure
from snaploom.jobs.weaving.sharedsubtrees import Sharing
from snaploom.jobs.weaving.snapshotinputs import InputReader, SnapshotInputs
from snaploom.jobs.weaving.snapshotsahead import RUN_ENDS, SnapshotsAhead, WovenAhead
from snaploom.models.common import ROOT_FIELD
from snaploom.models.outputfolder import DataCompression
from snaploom.models.report import CheckResult, Exclusion, SourceSnapshot
from snaploom.models.times import format_instant
from snaploom.planning.plan import PlannedSnapshot
from snaploom.planning.steps import ReadSource
from snaploom.planning.tree import JoinNode
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

MOST_WEAVINGS = 4
"""How often a snapshot is begun while its sources change, before it is given up: what is written to
for so long is written to all the time."""

_log = logging.getLogger(__name__)

Publish = Callable[
    [Folder, Run, SnapshotTarget, Callable[[str], WriteResult], Revalidate],
    Published | AlreadyPublished,
]
"""How a woven snapshot gets into the folder: as a new one, or in place of one."""


@dataclass(frozen=True)
class WovenSnapshot:
    """How the weaving of one snapshot ended."""

    outcome: Published | AlreadyPublished | MissingField
    """How it was published; or the field that is missing, where that fails or skips the snapshot:
    nothing was written then."""
    seconds: float
    """Wall time."""
    warnings: tuple[str, ...] = ()
    """What a person should know of it."""
    columns: WovenColumns | None = None
    """Its columns, and those that it was woven from; None where nothing was written."""


@dataclass(frozen=True)
class _Written:
    """Staged files, and what was learned while they were written."""

    result: WriteResult
    warnings: tuple[str, ...]
    columns: WovenColumns
    remembered: Mapping[str, FoldedSubtree]


class SnapshotWeaver:
    """Weaves one snapshot after the other into a folder."""

    def __init__(
        self, run: OutputRun, folder: Folder, sharing: Sharing, due: Sequence[PlannedSnapshot]
    ) -> None:
        """Index the declarations that every snapshot needs.

        Args:
            run: the run.
            folder: of the output.
            sharing: what the snapshots have in common.
            due: the snapshots, in the order of work.
        """
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
            publish
            if options.selection.restated is None
            else partial(restate, reason=options.reason)
        )
        others = run.output.spec.data_model.other_data_sources
        self._others = {other.field_name: other for other in others}

    def weave(self, planned: PlannedSnapshot, group: str, turn: Turn) -> WovenSnapshot:
        """Weave and publish a planned snapshot; may be called for several at a time.

        Args:
            planned: what is to be woven.
            group: name for the group of its Spark jobs.
            turn: called when its files are written, before anything of it is published; and before
                anything is read that may depend on what is published.

        Raises:
            SnaploomError: whatever went wrong, in Snaploom's words.
        """
        started = monotonic()
        waited = 0.0

        def await_turn() -> None:
            nonlocal waited
            before = monotonic()
            turn()
            waited += monotonic() - before

        name = f"{self._run.output.identity}: snapshot {format_instant(planned.time)}"
        self._run.job.group.enter(self._run.spark, group, name)
        with translated():
            woven = self._weave_while_changing(planned, await_turn)
        elapsed = monotonic() - started - waited
        return replace(woven, seconds=elapsed + self._ahead.seconds(planned.time))

    def close(self) -> None:
        """Remove what was woven for snapshots that had no turn."""
        self._ahead.forget()

    def _weave_while_changing(self, planned: PlannedSnapshot, turn: Turn) -> WovenSnapshot:
        """Weave a snapshot, and again where sources change meanwhile.

        Raises:
            SourceChanged: they did each time.
        """
        warnings: list[str] = []
        while True:
            try:
                woven = self._weave(planned, turn)
            except SourceChanged as changed:
                if len(warnings) + 1 == MOST_WEAVINGS:
                    raise
                warnings.append(f"woven again: {changed.resource}: {changed.message}")
                _log.info("%s: %s", format_instant(planned.time), changed)
                self._list_again()
            else:
                return replace(woven, warnings=(*warnings, *woven.warnings))

    def _list_again(self) -> None:
        with self._reading:
            self._has_changed = True
            self._run.prepared.sources.list_again()
            self._sharing.forget()
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
        outcome = inputs.outcome
        if outcome.stop is not None:
            turn()
            return WovenSnapshot(outcome.stop, 0.0)
        had_moment = self._has_changed
        if had_moment:  # what changes all the time is found before it is woven once more
            self._look_again(inputs)
        target = SnapshotTarget(planned.time, planned.partition, plan.hash, model_nodes(plan.tree))
        written: list[_Written] = []
        history_warnings: tuple[str, ...] = ()

        def write(uri: str) -> WriteResult:
            try:
                with translated():
                    written.append(self._write(planned, inputs, uri))
            except SnaploomError as error:
                if not isinstance(error, RUN_ENDS) and self._run.job.interruption.cause is None:
                    self._look_again(inputs, had_moment=had_moment)  # it may be for that
                raise
            self._look_again(inputs, had_moment=had_moment)
            turn()
            return written[-1].result

        def revalidate(state: FolderState, record: SnapshotRecord) -> None:
            nonlocal history_warnings
            history_warnings = (
                *compare_structure(self._run.output, state, plan.tree),
                *self._history.compare_record(self._run.output, state, record),
            )

        published = self._publish(self._folder, self._run.writer, target, write, revalidate)
        if isinstance(published, AlreadyPublished):
            return WovenSnapshot(published, 0.0)
        self._history.store_merged(self._folder)
        (found,) = written
        self._sharing.leave(found.remembered)
        return WovenSnapshot(published, 0.0, (*found.warnings, *history_warnings), found.columns)

    def _read(self, step: ReadSource) -> SourceFrame:
        with translated(f"DataSource/{step.source}"):
            reader = self._run.prepared.sources.reader(step.source)
            found = self._sharing.source(step.source, step.time, lambda: reader.read(step.time))
        self._run.record.observations.see_schema(
            step.source, found.time, _fingerprint(found.frame.schema)
        )
        share = self._run.job.options.sample
        if share is None or step.field_name != ROOT_FIELD:
            return found
        key = self._run.output.spec.data_model.root_data_source.root_key
        return replace(found, frame=sampled(found.frame, key, share, step.source))

    def _write(self, planned: PlannedSnapshot, inputs: SnapshotInputs, uri: str) -> _Written:
        state = self._folder.log.read()
        compression = _compression(state)
        self._run.job.interruption.check()
        ahead = self._ahead.find(planned, inputs, compression, self._join_planned)
        weave = self._run.weave({name: item.frame for name, item in inputs.used.items()})
        if ahead is None:
            files, counts, checks = self._write_files(planned, inputs, weave, state, uri)
        else:
            files, counts, checks = self._take_files(planned, ahead, state, compression, uri)
        low_matches = low_match_warnings(self._run.output, counts.joins)
        read = {name: _read_columns(source) for name, source in inputs.used.items()}
        ratios = {name: other.warn_null_key_ratio for name, other in self._others.items()}
        silent = {name for name, other in self._others.items() if other.warn_no_match is False}
        of_joins = (
            *null_key_warnings(counts.joins, ratios),
            *low_matches,
            *unmatched_warnings(weave, counts.joins, frozenset(silent)),
        )
        warnings = (
            *_planned_warnings(planned),
            *inputs.outcome.warnings,
            *(remark for each in listed_for(inputs.used.values()) for remark in each.remarks),
            *of_joins,
            *check_warnings(checks),
        )
        result = WriteResult(
            rows=counts.rows,
            schema=files.json(),
            sources=_sources(planned, inputs.used),
            excluded=(*_planned_exclusions(planned), *inputs.outcome.excluded),
            joins=counts.joins,
            checks=checks,
            warnings=of_joins,
            spark_version=self._run.spark.version,
        )
        columns = WovenColumns(files.json(), read)
        return _Written(result, warnings, columns, counts.remembered)

    def _join_planned(self, number: int, joins: int, node: JoinNode) -> None:
        if self._run.job.options.parallel_snapshots == 1:  # else nobody knows of which snapshot
            self._run.job.emit(JoinPlanned(number, joins, node.field_name))

    def _write_files(
        self,
        planned: PlannedSnapshot,
        inputs: SnapshotInputs,
        weave: Weave,
        state: FolderState,
        uri: str,
    ) -> tuple[StructType, RowCounts, tuple[CheckResult, ...]]:
        """Weave a snapshot by itself."""
        subtrees = self._sharing.subtrees(planned.time, weave, inputs.used)
        weaving = Weaving(weave, self._join_planned, subtrees)
        schema = weaving.frame.schema
        self._history.compare(self._run.output, state, planned.time, schema.json())
        try:
            return self._write_and_count(weaving, uri, _compression(state))
        except BaseException:
            weaving.drop()
            # Tasks outlive the job that failed; what they write must not come after the cleaning.
            await_tasks(self._run.spark, TASK_PATIENCE)
            raise

    def _write_and_count(
        self, weaving: Weaving, uri: str, compression: DataCompression
    ) -> tuple[StructType, RowCounts, tuple[CheckResult, ...]]:
        folder = self._run.output.spec.output_folder
        expectations = Expectations(self._run.output, weaving.frame)
        shaping = self._shaping(compression, weaving.frame.schema)
        place = shaping.place(uri)
        schema = write_frame(
            expectations.frame,
            place,
            folder.data_format,
            compression,
            column_metadata=folder.column_metadata,
        )
        (counts,) = weaving.settle(
            self._run.spark,
            self._run.job.group.name,
            lambda: count_written(self._run.spark, place, folder.data_format, schema),
        )
        checks = self._settled(expectations, place, schema)
        shaping.arrange(uri, schema, counts.rows)
        return schema, counts, checks

    def _take_files(
        self,
        planned: PlannedSnapshot,
        ahead: WovenAhead,
        state: FolderState,
        compression: DataCompression,
        uri: str,
    ) -> tuple[StructType, RowCounts, tuple[CheckResult, ...]]:
        """Go on with a snapshot that was woven together with others."""
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


def _compression(state: FolderState) -> DataCompression:
    assert state.settings is not None  # a folder is configured before anything is woven
    return DataCompression(state.settings.data_compression)


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
