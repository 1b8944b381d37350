"""Events and facets of OpenLineage from events of a run, and columns that columns come from."""

from collections.abc import Iterable, Iterator, Mapping
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
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from snaploom.engine.fold import DATA
from snaploom.installed import VERSION
from snaploom.models.asof import AsOf
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import DataFormat
from snaploom.models.outputdataset import OutputDataset as Output
from snaploom.models.report import Report, RunPhase, SnapshotReport, Unpublished
from snaploom.models.windows import Windows
from snaploom.output import layout
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import read_places
from snaploom.plan.plan import plan_offline
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.policy.sqlconditions import parse
from snaploom.policy.sqltext import SqlRefused, scan
from snaploom.run import runevents
from snaploom.sources.declared import DatasetName, place_dataset, table_dataset
from snaploom.sources.readers import origins
from snaploom.sources.registry import declared
from snaploom.types import schemas

# Datasets that outputs publish, under the names that other tools use for them.


def output_dataset(output: Output) -> DatasetName:
    """The dataset of an output: the folder of its files, or its table, by name in a catalog."""
    folder = output.spec.output_folder
    if folder.table is not None:
        return table_dataset(folder.table)
    is_table = folder.data_format is DataFormat.ICEBERG
    return place_dataset(folder.folder_uri + ("" if is_table else layout.DATA))


# Traces columns of a query to columns of its sources; leaves out those in doubt.


@dataclass(frozen=True)
class QueryColumn:
    """A column that a query reads."""

    alias: str
    column: str
    is_same: bool
    """Whether its values are taken as they are."""


def query_columns(
    query: str, tables: Mapping[str, Iterable[str]]
) -> Mapping[str, tuple[QueryColumn, ...]]:
    """The source columns of each column of a query, by its name in lower case."""
    names = {
        alias.casefold(): (alias, {column.casefold(): column for column in columns})
        for alias, columns in tables.items()
    }
    schema = {alias: dict.fromkeys(columns, "string") for alias, (_, columns) in names.items()}
    try:
        parsed = parse(scan(query))
        found = lineage(None, parsed, schema=schema, dialect="spark")
    except (
        SqlglotError,
        SqlRefused,
        KeyError,
        ValueError,
        RecursionError,
    ):  # what cannot be traced is left out
        return {}
    assert isinstance(found, dict)  # as without the name of a column
    return {
        name.casefold(): tuple(dict.fromkeys(_leaves(node, names, is_same=True)))
        for name, node in found.items()
    }


def _leaves(
    node: Node, names: Mapping[str, tuple[str, Mapping[str, str]]], *, is_same: bool
) -> Iterator[QueryColumn]:
    if isinstance(node.source, exp.Table):
        alias, columns = names.get(node.source.name.casefold(), ("", {}))
        column = columns.get(node.name.rpartition(".")[2].strip('`"').casefold())
        if column is not None:
            yield QueryColumn(alias, column, is_same)
        return
    is_taken = isinstance(node.expression.unalias(), exp.Column)
    for below in node.downstream:
        yield from _leaves(below, names, is_same=is_same and is_taken)


# Origins of the columns of a snapshot: by declared joins, transformers and queries.


@dataclass(frozen=True)
class InputColumn:
    """A column of a dataset that is read."""

    dataset: DatasetName
    column: str
    is_same: bool = True
    """Whether its values are taken as they are."""
    changes: str = ""
    """Changes of a key before it is compared; empty for none."""


Found = Mapping[str, tuple[InputColumn, ...]]
"""Origins of the columns of a source, by name in lower case."""


@dataclass(frozen=True)
class ColumnLineage:
    """The source columns of each column of a snapshot."""

    columns: Mapping[str, tuple[InputColumn, ...]]
    """By path in the output, such as `origin.data.name`."""
    joined_by: tuple[InputColumn, ...]
    """Columns of the keys of joins."""
    grouped_by: tuple[InputColumn, ...]
    """Columns by which sources are grouped."""


def column_lineage(bundle: Bundle, tree: JoinTree, woven: runevents.WovenColumns) -> ColumnLineage:
    """Origins of the columns of a snapshot."""
    nodes = [node for node in tree.nodes if node.field_name in woven.read]
    found = {
        node.number: source_columns(bundle, node.source, woven.read[node.field_name])
        for node in nodes
    }
    columns: dict[str, tuple[InputColumn, ...]] = {}
    schema = schemas.parse_schema(woven.schema, "")
    for node in nodes:
        path = (*tree.path(node.number), DATA)
        names = (field.name for field in schemas.struct_at(schema, path).fields)
        below = _windowed(node.timed, found[node.number])
        for name in names:
            columns[".".join((*path, name))] = below.get(name.casefold(), ())
    joined = [column for node in nodes for column in _keys(bundle, tree, node, found)]
    grouped = [
        column
        for node in nodes
        for name in node.group_by
        for column in found[node.number].get(_top(name), ())
    ]
    return ColumnLineage(columns, tuple(dict.fromkeys(joined)), tuple(dict.fromkeys(grouped)))


def _windowed(rule: AsOf | Windows | None, found: Found) -> Found:
    """Origins of the columns that a source has in the output: of windows, what they aggregate."""
    if not isinstance(rule, Windows):
        return found
    return {
        name: tuple(replace(one, is_same=False) for one in found.get(_top(field), ()))
        for name, field in rule.fields_by_name.items()
    }


def source_columns(bundle: Bundle, name: str, read: runevents.ReadColumns) -> Found:
    """Origins of the columns of a source."""
    source = bundle.source(name)
    used = source.spec.variant.field_transformers
    transformers = [item for one in used for item in bundle.field_transformers if item.name == one]
    below = _below(bundle, source, read)
    return {
        column.casefold(): tuple(
            replace(each, is_same=each.is_same and origin.is_same)
            for each in below.get(origin.column.casefold(), ())
        )
        for column, origin in origins(_schema(read), transformers, read.time).items()
    }


def _below(bundle: Bundle, source: DataSource, read: runevents.ReadColumns) -> Found:
    query = declared(source).query(read.time)
    if query is not None:
        return _of_query(bundle, query.text, query.sources, read)
    places = declared(source).datasets
    return {
        field.name.casefold(): tuple(InputColumn(place, field.name) for place in places)
        for field in _schema(read).fields
    }


def _of_query(
    bundle: Bundle, query: str, aliases: Mapping[str, str], read: runevents.ReadColumns
) -> Found:
    found = {
        alias: source_columns(bundle, name, read.below[alias])
        for alias, name in aliases.items()
        if alias in read.below
    }
    return {
        name: tuple(
            replace(each, is_same=each.is_same and column.is_same)
            for column in made_of
            for each in found[column.alias].get(column.column.casefold(), ())
        )
        for name, made_of in query_columns(query, found).items()
    }


def _keys(
    bundle: Bundle, tree: JoinTree, node: JoinNode, found: Mapping[int, Found]
) -> Iterator[InputColumn]:
    """Columns of the key, and times, by which a source is joined to its parent, of both."""
    if not node.relationship:
        return
    relationship = bundle.relationship(node.relationship)
    for side in (tree.nodes[node.parent_number], node):
        for component in relationship.spec.join_key_of(side.source) or ():
            steps = ", ".join(component.normalize or ())
            for field in component.fields_:
                columns = found[side.number].get(_top(field.field_name), ())
                yield from (replace(one, changes=steps) for one in columns)
    rule = node.timed
    if rule is not None:
        yield from found[node.parent_number].get(_top(rule.parent_field), ())
        acting = rule.time_fields if isinstance(rule, Windows) else rule.child_fields
        for path in acting:
            yield from found[node.number].get(_top(rule.child_fields[path]), ())


def _top(path: str) -> str:
    """The column that a path into structs begins with, in lower case."""
    parts = schemas.split_path(path)
    return (parts[0] if parts else path).casefold()


def _schema(read: runevents.ReadColumns) -> schemas.Struct:
    return schemas.parse_schema(read.schema, "")


# Events and facets of OpenLineage from events of a run; pure.


# Facets of datasets and runs.

PRODUCER = f"urn:snaploom:{VERSION}"


def error_facet(message: str) -> RunFacet:
    """Reason why a run failed."""
    return error_message_run.ErrorMessageRunFacet(message, "PYTHON", producer=PRODUCER)


def version_facet(version: str) -> DatasetFacet:
    """Version of a dataset."""
    return dataset_version_dataset.DatasetVersionDatasetFacet(version, producer=PRODUCER)


def schema_facet(schema: schemas.Struct) -> DatasetFacet:
    """The columns of a dataset."""
    return schema_dataset.SchemaDatasetFacet(_fields(schema.fields), producer=PRODUCER)


def _fields(fields: Iterable[schemas.Field]) -> list[schema_dataset.SchemaDatasetFacetFields]:
    return [
        schema_dataset.SchemaDatasetFacetFields(
            field.name, type=_type_name(field.type), fields=_inside(field.type)
        )
        for field in fields
    ]


def _type_name(type_: schemas.Type) -> str:
    """The name of a type; fields of a struct have their own facets."""
    match type_:
        case schemas.Struct():
            return "struct"
        case schemas.Array():
            return "array"
        case schemas.Map():
            return "map"
    return schemas.describe(type_)


def _inside(type_: schemas.Type) -> list[schema_dataset.SchemaDatasetFacetFields]:
    """Fields of a struct; parts of an array and of a map, by the names that the rules give them."""
    match type_:
        case schemas.Struct(fields):
            return _fields(fields)
        case schemas.Array(element):
            return _fields([schemas.Field("_element", element, True, "{}")])
        case schemas.Map(key, value):
            return _fields(
                [schemas.Field("key", key, False, "{}"), schemas.Field("value", value, True, "{}")]
            )
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
            path: column_lineage_dataset.Fields(
                [
                    _input_field(
                        column, "DIRECT", "IDENTITY" if column.is_same else "TRANSFORMATION"
                    )
                    for column in made_of
                ]
            )
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


def events_of(
    run: LineageRun, begun: str, event: runevents.Event, at: EpochNanos
) -> tuple[RunEvent, ...]:
    """The OpenLineage events of an event of a run, if any.

    `begun` is the time of the snapshot that began and has not ended; empty for none.
    """
    match event:
        case runevents.SnapshotStarted(_, _, time):
            return (_snapshot_start(run, format_instant(time), at),)
        case runevents.SnapshotPublished(report, columns):
            return (_snapshot_end(run, report, columns, at),)
        case runevents.SnapshotLeftOut(outcome, True):
            failure = _left_out(run, outcome, RunState.FAIL, at)
            is_begun = begun == outcome.time
            return (failure,) if is_begun else (_snapshot_start(run, outcome.time, at), failure)
        case runevents.SnapshotLeftOut(outcome, False) if begun == outcome.time:
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
    run: LineageRun, report: SnapshotReport, columns: runevents.WovenColumns | None, at: EpochNanos
) -> RunEvent:
    event = _of_snapshot(run, RunState.COMPLETE, report.time, at, {})
    facets = {"version": version_facet(str(report.sequence))}
    if columns is not None:
        facets["schema"] = schema_facet(schemas.parse_schema(columns.schema, ""))
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
    run: LineageRun, report: SnapshotReport, columns: runevents.WovenColumns | None
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


def _input_facets(time: str, read: runevents.ReadColumns | None) -> dict[str, DatasetFacet]:
    version = {"version": version_facet(time)}
    if read is None:
        return version
    return version | {"schema": schema_facet(schemas.parse_schema(read.schema, ""))}
