"""Events and facets of OpenLineage from events of a run; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from uuid import UUID

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    tags_run,
)
from openlineage.client.uuid import generate_static_uuid

from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.report import Report, RunPhase, SnapshotReport, Unpublished
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import read_places
from snaploom.plan.plan import plan_offline
from snaploom.plan.tree import JoinTree
from snaploom.plugins.lineage.columns import (
    ColumnLineage,
    InputColumn,
    column_lineage,
    output_dataset,
)
from snaploom.run.runevents import (
    Event,
    ReadColumns,
    SnapshotLeftOut,
    SnapshotPublished,
    SnapshotStarted,
    WovenColumns,
)
from snaploom.sources.declared import DatasetName
from snaploom.sources.registry import declared
from snaploom.types.schemas import Array, Field, Map, Struct, Type, describe, parse_schema
from snaploom.version import VERSION

# Facets of datasets and runs.

PRODUCER = f"urn:snaploom:{VERSION}"
"""The producer of the events."""


def error_facet(message: str) -> RunFacet:
    """Reason why a run failed."""
    return error_message_run.ErrorMessageRunFacet(message, "PYTHON", producer=PRODUCER)


def version_facet(version: str) -> DatasetFacet:
    """Version of a dataset."""
    return dataset_version_dataset.DatasetVersionDatasetFacet(version, producer=PRODUCER)


def schema_facet(schema: Struct) -> DatasetFacet:
    """The columns of a dataset."""
    return schema_dataset.SchemaDatasetFacet(_fields(schema.fields), producer=PRODUCER)


def _fields(fields: Iterable[Field]) -> list[schema_dataset.SchemaDatasetFacetFields]:
    return [
        schema_dataset.SchemaDatasetFacetFields(
            field.name, type=_type_name(field.type), fields=_inside(field.type)
        )
        for field in fields
    ]


def _type_name(type_: Type) -> str:
    """The name of a type; fields of a struct have their own facets."""
    match type_:
        case Struct():
            return "struct"
        case Array():
            return "array"
        case Map():
            return "map"
    return describe(type_)


def _inside(type_: Type) -> list[schema_dataset.SchemaDatasetFacetFields]:
    """Fields of a struct; parts of an array and of a map, by the names that the rules give them."""
    match type_:
        case Struct(fields):
            return _fields(fields)
        case Array(element):
            return _fields([Field("_element", element, True, "{}")])
        case Map(key, value):
            return _fields([Field("key", key, False, "{}"), Field("value", value, True, "{}")])
    return []


def column_facet(lineage: ColumnLineage) -> DatasetFacet:
    """Columns from which the columns of a dataset come.

    A column of the top has those of everything inside it, too: catalogues such as Marquez know
    columns of the top only, and drop what stands at a path.
    """
    indirect = [
        *(_indirect(column, "JOIN") for column in lineage.joined_by),
        *(_indirect(column, "GROUP_BY") for column in lineage.grouped_by),
    ]
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        {
            path: column_lineage_dataset.Fields([_direct(column) for column in made_of])
            for path, made_of in (_top_columns(lineage) | dict(lineage.columns)).items()
            if made_of
        },
        indirect,
        producer=PRODUCER,
    )


def _top_columns(lineage: ColumnLineage) -> dict[str, tuple[InputColumn, ...]]:
    found: dict[str, dict[InputColumn, None]] = {}
    for path, made_of in lineage.columns.items():
        inside = found.setdefault(path.partition(".")[0], {})
        inside.update((replace(column, is_same=False), None) for column in made_of)
    return {name: tuple(columns) for name, columns in found.items()}


def _direct(column: InputColumn) -> column_lineage_dataset.InputField:
    return _input_field(column, "DIRECT", "IDENTITY" if column.is_same else "TRANSFORMATION")


def _indirect(column: InputColumn, subtype: str) -> column_lineage_dataset.InputField:
    return _input_field(column, "INDIRECT", subtype)


def _input_field(
    column: InputColumn, type_: str, subtype: str
) -> column_lineage_dataset.InputField:
    how = column_lineage_dataset.Transformation(type_, subtype, column.changes or None)
    place = column.dataset
    return column_lineage_dataset.InputField(place.namespace, place.name, column.column, [how])


# Turns events of a run to OpenLineage events; pure.

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
        at: time of the event.
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
