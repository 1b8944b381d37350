"""Turns events of a run to OpenLineage events; pure.

A run of an output is a run of the job that bears the output's name. Each snapshot that it weaves is
a run of a second job, `OUTPUT.snapshot`, whose parent is the first: its nominal time is the
snapshot's, and it has the datasets. So one run of many snapshots has the inputs of each.

A message of an error is the Report's, which holds no secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from uuid import UUID

from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    tags_run,
)
from openlineage.client.uuid import generate_static_uuid

from snaploom.jobs.lineage.columnlineage import column_lineage
from snaploom.jobs.lineage.datasets import output_dataset
from snaploom.jobs.lineage.facets import (
    PRODUCER,
    column_facet,
    error_facet,
    schema_facet,
    version_facet,
)
from snaploom.jobs.lineageinput import ReadColumns, WovenColumns
from snaploom.jobs.runevents import Event, SnapshotLeftOut, SnapshotPublished, SnapshotStarted
from snaploom.models.report import Report, RunPhase, SnapshotReport, Unpublished
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle
from snaploom.planning.datasetnames import DatasetName
from snaploom.planning.plan import plan_offline
from snaploom.planning.schemas import parse_schema
from snaploom.planning.sourceplaces import read_places
from snaploom.planning.sources.registry import declared
from snaploom.planning.tree import JoinTree
from snaploom.version import VERSION

INTEGRATION = "SNAPLOOM"

_ENDS = {
    RunPhase.SUCCEEDED: RunState.COMPLETE,
    RunPhase.FAILED: RunState.FAIL,
    RunPhase.INTERRUPTED: RunState.ABORT,
    RunPhase.RUNNING: RunState.RUNNING,
}


@dataclass(frozen=True)
class LineageRun:
    """One run of one output."""

    bundle: Bundle
    id: UUID
    """New for every run: of version 7, which begins with the time. The specification asks for it,
    and some catalogues take no other, since they find runs by it."""
    namespace: str
    """Of our jobs."""

    @cached_property
    def job(self) -> str:
        """Name of its job: the output's, behind that of its namespace in a cluster."""
        output = self.bundle.output
        return ".".join(part for part in (output.metadata.namespace, output.name) if part)

    @cached_property
    def tree(self) -> JoinTree:
        """Its join tree."""
        return plan_offline(self.bundle).tree

    def snapshot(self, time: str) -> UUID:
        """The run of one of its snapshots: the same id for the same time."""
        milliseconds = self.id.int >> 80
        begun = datetime.fromtimestamp(milliseconds / 1000, UTC)
        return generate_static_uuid(begun, f"{self.id} {time}".encode())


def start_of(run: LineageRun, at: EpochNanos) -> RunEvent:
    """The event that a run began."""
    return _of_run(run, RunState.START, at, {})


def end_of(run: LineageRun, report: Report, at: EpochNanos) -> RunEvent:
    """The event that a run ended, from its Report."""
    facets: dict[str, RunFacet] = {}
    if report.storage_run_id:
        tag = tags_run.TagsRunFacetFields("storageRunId", report.storage_run_id, INTEGRATION)
        facets["tags"] = tags_run.TagsRunFacet([tag], producer=PRODUCER)
    if report.phase is not RunPhase.SUCCEEDED:
        facets["errorMessage"] = error_facet(report.message or report.reason)
    if report.spark_version:
        facets["processing_engine"] = processing_engine_run.ProcessingEngineRunFacet(
            report.spark_version, "Spark", VERSION, producer=PRODUCER
        )
    return _of_run(run, _ENDS[report.phase], at, facets)


def fault_of(run: LineageRun, at: EpochNanos) -> RunEvent:
    """The event that a run ended by a fault of Snaploom itself."""
    error = error_facet("a fault of Snaploom itself ended the run")
    return _of_run(run, RunState.FAIL, at, {"errorMessage": error})


def events_of(run: LineageRun, begun: str, event: Event, at: EpochNanos) -> tuple[RunEvent, ...]:
    """The OpenLineage events of an event of a run, if any.

    Args:
        run: the run.
        begun: time of the snapshot that began and has not ended; empty for none.
        event: of the run.
        at: when it happened.
    """
    match event:
        case SnapshotStarted(_, _, time):
            return (_snapshot_start(run, format_instant(time), at),)
        case SnapshotPublished(report, columns):
            return (_snapshot_end(run, report, columns, at),)
        case SnapshotLeftOut(outcome, True):
            failure = _left_out(run, outcome, RunState.FAIL, at)
            is_begun = begun == outcome.time
            return (failure,) if is_begun else (_snapshot_start(run, outcome.time, at), failure)
        case SnapshotLeftOut(outcome, False) if begun == outcome.time:
            return (_left_out(run, outcome, RunState.ABORT, at),)
    return ()


def _of_run(
    run: LineageRun, state: RunState, at: EpochNanos, facets: dict[str, RunFacet]
) -> RunEvent:
    return _event(run, state, at, "", run.id, facets)


def _snapshot_start(run: LineageRun, time: str, at: EpochNanos) -> RunEvent:
    names = (node.source for node in run.tree.nodes)
    places = sorted({place for name in names for place in read_places(run.bundle, name)})
    event = _of_snapshot(run, RunState.START, time, at, {})
    event.inputs = [InputDataset(place.namespace, place.name) for place in places]
    event.outputs = [_output(run, {})]
    return event


def _snapshot_end(
    run: LineageRun, report: SnapshotReport, columns: WovenColumns | None, at: EpochNanos
) -> RunEvent:
    event = _of_snapshot(run, RunState.COMPLETE, report.time, at, {})
    facets = {"version": version_facet(str(report.sequence))}
    if columns is not None:
        facets["schema"] = schema_facet(parse_schema(columns.schema, ""))
        lineage = column_lineage(run.bundle, run.tree, columns)
        facets["columnLineage"] = column_facet(lineage)
    output = _output(run, facets)
    output.outputFacets = {
        "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=report.rows, size=report.bytes, fileCount=report.files, producer=PRODUCER
        )
    }
    event.inputs = _inputs(run, report, columns)
    event.outputs = [output]
    return event


def _left_out(run: LineageRun, outcome: Unpublished, state: RunState, at: EpochNanos) -> RunEvent:
    facets = {"errorMessage": error_facet(outcome.message or outcome.reason.value)}
    event = _of_snapshot(run, state, outcome.time, at, facets)
    event.outputs = [_output(run, {})]
    return event


def _of_snapshot(
    run: LineageRun,
    state: RunState,
    time: str,
    at: EpochNanos,
    facets: Mapping[str, RunFacet],
) -> RunEvent:
    parent = parent_run.ParentRunFacet(
        parent_run.Run(str(run.id)),
        parent_run.Job(run.namespace, run.job),
        producer=PRODUCER,
    )
    nominal = nominal_time_run.NominalTimeRunFacet(time, producer=PRODUCER)
    all_facets = {"parent": parent, "nominalTime": nominal, **facets}
    return _event(run, state, at, "snapshot", run.snapshot(time), all_facets)


def _event(
    run: LineageRun,
    state: RunState,
    at: EpochNanos,
    part: str,
    run_id: UUID,
    facets: dict[str, RunFacet],
) -> RunEvent:
    type_ = job_type_job.JobTypeJobFacet(
        "BATCH", INTEGRATION, part.upper() or "RUN", producer=PRODUCER
    )
    name = f"{run.job}.{part}" if part else run.job
    return RunEvent(
        eventTime=format_instant(at),
        producer=PRODUCER,
        run=Run(str(run_id), facets),
        job=Job(run.namespace, name, {"jobType": type_}),
        eventType=state,
    )


def _output(run: LineageRun, facets: dict[str, DatasetFacet]) -> OutputDataset:
    place = output_dataset(run.bundle.output)
    return OutputDataset(place.namespace, place.name, facets=facets)


def _inputs(
    run: LineageRun, report: SnapshotReport, columns: WovenColumns | None
) -> list[InputDataset]:
    """The datasets that went into a snapshot; of what a source reads itself, columns and time."""
    facets: dict[DatasetName, dict[str, DatasetFacet]] = {}
    for taken in report.sources:
        read = None if columns is None else columns.read.get(taken.field_name)
        for place in read_places(run.bundle, taken.source):
            of_input = facets.setdefault(place, {})
            if place in declared(run.bundle.source(taken.source)).datasets:
                of_input.update(_input_facets(taken.time, read))
    return [
        InputDataset(place.namespace, place.name, facets=of_input)
        for place, of_input in sorted(facets.items(), key=lambda item: item[0])
    ]


def _input_facets(time: str, read: ReadColumns | None) -> dict[str, DatasetFacet]:
    version = {"version": version_facet(time)}
    if read is None:
        return version
    return version | {"schema": schema_facet(parse_schema(read.schema, ""))}
