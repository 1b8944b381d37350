"""Before a run with a session: sources, forecasts of schemas, then the plan (rule W5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from snaploom.engine import schemachecks
from snaploom.engine.expectations import Expectations
from snaploom.engine.fold import Weave
from snaploom.engine.rowcounts import Weaving
from snaploom.errors import CheckInvalid, HistoryIncompatible, SourceError
from snaploom.files.objectstore import ObjectStore
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos
from snaploom.models.common import now as current_time
from snaploom.models.outputdataset import DataFormat, OutputDataset
from snaploom.models.report import ExclusionReason, SnapshotReason
from snaploom.output.caches import Listings
from snaploom.output.folder import Run
from snaploom.output.icebergtable import TableLibrary
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import sources_behind
from snaploom.plan.intervals import SourceSnapshots, settings_of
from snaploom.plan.plan import PlannedSnapshot, RunPlan, Unforeseen, followed, publishing_times
from snaploom.plan.retention import HeldSnapshot, removals_before
from snaploom.plan.steps import (
    Action,
    ExcludedSource,
    ReadSource,
    Times,
)
from snaploom.plan.tree import JoinTree
from snaploom.run.job import Job
from snaploom.run.reports.record import Observations, RunRecord, reason_of
from snaploom.run.session.spark import open_place, translated
from snaploom.run.weaving.history import SchemaHistory, refuse_conflicts
from snaploom.run.weaving.preflight import PlannedRun, PlanRequest, look_into_folder, plan_listed
from snaploom.sources.port import SourceFrame, SourceReader
from snaploom.sources.readers import Sources
from snaploom.sources.registry import declared
from snaploom.sources.sourcefiles import SourceFiles
from snaploom.sources.tables.iceberg import IcebergLibrary, require_iceberg

# Reads the sources of one snapshot, each when it is needed.


class Reading(Mapping[str, StructType]):
    """Schemas by field name; a source is read when its schema is first asked for."""

    def __init__(
        self, steps: Iterable[ReadSource], read: Callable[[ReadSource], SourceFrame]
    ) -> None:
        self._steps = {step.field_name: step for step in steps}
        self._read = read
        self._found: dict[str, SourceFrame] = {}

    def source(self, field_name: str) -> SourceFrame:
        """The frame of a source; read once."""
        if field_name not in self._found:
            self._found[field_name] = self._read(self._steps[field_name])
        return self._found[field_name]

    def __getitem__(self, field_name: str) -> StructType:
        return self.source(field_name).frame.schema

    def __contains__(self, field_name: object) -> bool:
        return field_name in self._steps

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


# Forecasts the schema of every candidate before a run, where no data must be read for it.


def foreseen(prepared: Prepared, check: Callable[[], None]) -> RunPlan:
    """The plan with its candidates, each as its schemas leave it.

    As in a run, what fails leaves the candidates behind it to the next run.

    `check` is called before each candidate; what it raises comes out.
    """
    planned = prepared.plan.snapshots or ()
    unforeseen: tuple[Unforeseen, ...] = ()
    if prepared.plan.is_woven:
        planned = tuple(_looked_at(prepared, planned, check))
        unforeseen = tuple(_unforeseen(prepared))
    plan = followed(prepared.plan, planned, prepared.published, prepared.present)
    return replace(plan, unforeseen=unforeseen)


_OF_OTHERS = "it reads a source whose files do not contain them"


def has_known_schema(bundle: Bundle, name: str) -> bool:
    """Whether the schema of a source is known without reading its data."""
    return not any(declared(each).unknown_schema for each in sources_behind(bundle, name))


def _unforeseen(prepared: Prepared) -> Iterator[Unforeseen]:
    bundle, tree = prepared.bundle, prepared.plan.tree
    for node in tree.nodes:
        source = bundle.source(node.source)
        if not has_known_schema(bundle, node.source):
            why = declared(source).unknown_schema or _OF_OTHERS
            yield Unforeseen(node.source, f"columns and types, which {why}")


def _looked_at(
    prepared: Prepared,
    planned: tuple[PlannedSnapshot, ...],
    check: Callable[[], None],
) -> Iterator[PlannedSnapshot]:
    bundle, tree = prepared.bundle, prepared.plan.tree
    self_described = {node.source for node in tree.nodes if has_known_schema(bundle, node.source)}
    known: dict[tuple[str, Times], SourceFrame] = {}
    failed = ""
    due = publishing_times(planned)
    output = OutputForecast(prepared)

    def read(step: ReadSource) -> SourceFrame:
        if (step.source, step.times) not in known:
            with translated(f"DataSource/{step.source}"):
                known[step.source, step.times] = prepared.readers[step.source].read(*step.times)
        return known[step.source, step.times]

    for one in planned:
        if one.action is not Action.PUBLISH or tree.root.source not in self_described:
            yield one
            continue
        if failed:
            message = f"left for the next run, after: {failed}"
            yield _skipped(one, SnapshotReason.EARLIER_FAILURE, message)
            continue
        check()
        reading = Reading((s for s in one.reads if s.source in self_described), read)
        found = _outcome(prepared, one, reading, output)
        if found.action is Action.FAIL:
            failed = found.message.splitlines()[0]
        elif found.action is Action.PUBLISH:
            output.publish(one.time, due[due.index(one.time) + 1 :])
        yield found


def _outcome(
    prepared: Prepared, planned: PlannedSnapshot, reading: Reading, output: OutputForecast
) -> PlannedSnapshot:
    bundle, tree = prepared.bundle, prepared.plan.tree
    others = {one.field_name: one for one in bundle.output.spec.data_model.other_data_sources}
    relationships = {one.name: one for one in bundle.data_relationships}
    try:
        outcome = schemachecks.check_schemas(tree, reading, others, relationships)
        if outcome.stop is not None:
            return _stopped(planned, outcome.stop)
        # Reading begins with the comparison of declared types, also where no join needs a field.
        left_out = {one.field_name for one in outcome.excluded}
        used = {name: reading.source(name).frame for name in reading if name not in left_out}
        if all(s.field_name in used or s.field_name in left_out for s in planned.reads):
            output.check(planned.time, used)
    except (SourceError, CheckInvalid, HistoryIncompatible) as error:
        return _failed(planned, reason_of(error), str(error))
    excluded = tuple(_exclusions(tree, reading, outcome))
    return replace(planned, excluded=(*planned.excluded, *excluded))


def _exclusions(
    tree: JoinTree, reading: Reading, outcome: schemachecks.SchemaOutcome
) -> Iterator[ExcludedSource]:
    """Exclusions of a snapshot; unknown where they depend on a source without a known schema."""
    silent: set[str] = set()
    for node in tree.joins:
        if node.field_name not in reading or node.parent in silent:
            silent.add(node.field_name)
    warned = {warning[: schemachecks.MESSAGE_LENGTH] for warning in outcome.warnings}
    for one in outcome.excluded:
        if one.reason is ExclusionReason.PARENT_EXCLUDED and one.field_name in silent:
            continue
        yield ExcludedSource(one.field_name, one.reason, one.message in warned, one.message)


def _stopped(planned: PlannedSnapshot, stop: schemachecks.MissingField) -> PlannedSnapshot:
    reason = SnapshotReason(stop.reason.value)
    if stop.mode.skips:
        return replace(_skipped(planned, reason, stop.message), warn=stop.mode.warns)
    return _failed(planned, reason, stop.message)


def _failed(planned: PlannedSnapshot, reason: SnapshotReason, message: str) -> PlannedSnapshot:
    return replace(planned, action=Action.FAIL, reason=reason, message=message, reads=())


def _skipped(planned: PlannedSnapshot, reason: SnapshotReason, message: str) -> PlannedSnapshot:
    return replace(planned, action=Action.SKIP, reason=reason, message=message, reads=())


# Forecast of a run's checks of the output's own schema.


class OutputForecast:
    """The snapshots of one run, in its order."""

    def __init__(self, prepared: Prepared) -> None:
        """Read the schemas of what is published."""
        self._bundle = prepared.bundle
        self._tree = prepared.plan.tree
        self._present = prepared.present
        self._held = {snapshot.time: snapshot for snapshot in prepared.published.held}
        history = SchemaHistory(folder_store(prepared.bundle.output))
        self._schemas = dict(history.schemas(prepared.state))
        self._woven: dict[tuple[tuple[str, str], ...], str] = {}

    def check(self, time: EpochNanos, frames: Mapping[str, DataFrame]) -> None:
        """Raise what the run would raise of a snapshot, before it is written."""
        key = tuple((name, frame.schema.json()) for name, frame in frames.items())
        output = self._bundle.output
        if key not in self._woven:
            relationships = {one.name: one for one in self._bundle.data_relationships}
            woven = Weaving(Weave(self._tree, frames, relationships)).frame
            Expectations(output, woven)
            schemachecks.refuse_unwritable(woven.schema, output.spec.output_folder.data_format)
            self._woven[key] = woven.schema.json()
        others = [one for one in self._schemas.items() if one[0] != time]
        refuse_conflicts(output, others, time, self._woven[key])
        self._schemas[time] = self._woven[key]

    def publish(self, time: EpochNanos, coming: Sequence[EpochNanos]) -> None:
        """Take a snapshot as published, and as deleted what retention deletes behind it."""
        self._held[time] = HeldSnapshot(time, self._present)
        spec = self._bundle.output.spec
        periods = settings_of(spec.data_model.root_data_source.snapshot_filter).intervals
        rules = spec.output_folder.snapshot_auto_delete
        for gone in removals_before(coming, rules, self._held.values(), self._present, periods):
            self._held.pop(gone.time)
            self._schemas.pop(gone.time, None)


# Before a run: preflight of folder and sources with a session, then the plan (rule W5).


@dataclass(frozen=True)
class Prepared(PlannedRun):
    """All that a run needs to begin."""

    sources: Sources
    readers: Mapping[str, SourceReader]
    """By name of the source; what each listed stays as it is for this run."""
    listings: Listings
    """Listings of the sources' files, to be kept for the next run."""


@contextmanager
def prepare(
    spark: SparkSession,
    request: PlanRequest,
    observations: Observations | None = None,
    clock: Callable[[], EpochNanos] = current_time,
    files: SourceFiles | None = None,
) -> Iterator[Prepared]:
    """Look at folder and sources, and plan; what sources hold is released at the end of the block.

    Raises:
        RootEmpty: the root has no snapshot, and that is to be a failure.
    """
    bundle = request.bundle
    table_library(spark, bundle.output)
    store = folder_store(bundle.output)
    listings, allow = Listings(store, clock()), request.options.allow
    with closing(Sources(spark, bundle, request.moment, listings, allow, files)) as sources:
        seen = observations or Observations()
        state = look_into_folder(request, store, seen)
        for node in request.offline.tree.nodes:
            seen.listings[node.source] = _listing(sources.reader(node.source))
        planned = plan_listed(request, store, state, seen.listings, sources.files, clock())
        yield Prepared(
            planned.plan,
            planned.state,
            planned.published,
            planned.present,
            sources=sources,
            readers={node.source: sources.reader(node.source) for node in planned.plan.tree.nodes},
            listings=listings,
        )


def table_library(spark: SparkSession, output: OutputDataset) -> TableLibrary | None:
    """Return the library that writes an output's Iceberg table; None for other formats.

    Raises:
        PublicationError: Iceberg, or the catalog of the table, is not in the session's settings.
    """
    if output.spec.output_folder.data_format is not DataFormat.ICEBERG:
        return None
    require_iceberg(spark, output.identity)
    library = IcebergLibrary(spark)
    if (table := output.spec.output_folder.table) is not None:
        library.of_catalog(str(table))
    return library


def folder_store(
    output: OutputDataset, *, create: bool = False, allow: Allowances = NO_ALLOWANCES
) -> ObjectStore:
    """The store of an output's folder."""
    return open_place(output.spec.output_folder.folder_uri, create, output.spec.run, allow)


def _listing(reader: SourceReader) -> SourceSnapshots:
    with translated(f"DataSource/{reader.name}"):
        return reader.listing()


# One run of one output: what all of its steps share.


@dataclass(frozen=True)
class OutputRun:
    """One run of one output: what all of its steps share."""

    spark: SparkSession
    prepared: Prepared
    writer: Run
    """In whose name it writes."""
    job: Job
    record: RunRecord

    @property
    def output(self) -> OutputDataset:
        return self.prepared.bundle.output

    def weave(self, frames: Mapping[str, DataFrame], snapshots: int = 1) -> Weave:
        """The inputs of one snapshot, or of several together.

        `snapshots`: how many the root's rows are of.
        """
        bundle = self.prepared.bundle
        relationships = {one.name: one for one in bundle.data_relationships}
        return Weave(self.prepared.plan.tree, frames, relationships, snapshots)
