"""Forecasts the schema of every candidate before a run, where no data must be read for it.

A run looks at the schemas of a snapshot when it comes to it. `plan` looks at those of all, by the
same readers and the same comparison: footers of Parquet, ORC and Avro, declared schemas, and
schemas of tables have them; and whether declared types hold what files have, which every read of
such files begins with (`snaploom.engine.sources.files.checks`). Then the output's own schema is
compared with what is published (`outputforecast`). Where Spark would have to read data
to infer a schema, nothing is forecast, and the plan shows that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from snaploom.engine.schemachecks import (
    MESSAGE_LENGTH,
    MissingField,
    SchemaOutcome,
    check_schemas,
)
from snaploom.engine.sources.port import SourceFrame
from snaploom.errors import CheckInvalid, HistoryIncompatible, SourceError
from snaploom.jobs.reports.runrecord import reason_of
from snaploom.jobs.session.errortranslation import translated
from snaploom.jobs.weaving.outputforecast import OutputForecast
from snaploom.jobs.weaving.preparation import Prepared
from snaploom.jobs.weaving.snapshotsources import Reading
from snaploom.models.report import ExclusionReason, SnapshotReason
from snaploom.models.times import EpochNanos
from snaploom.planning.availability import Action, ExcludedSource
from snaploom.planning.bundle import Bundle
from snaploom.planning.plan import PlannedSnapshot, Unforeseen, publishing_times
from snaploom.planning.sourceplaces import sources_behind
from snaploom.planning.sources.registry import declared
from snaploom.planning.steps import FailSnapshot, ReadSource, SkipSnapshot
from snaploom.planning.tree import JoinTree


@dataclass(frozen=True)
class Forecast:
    """The forecast of schemas before a run."""

    snapshots: tuple[PlannedSnapshot, ...]
    """The candidates, each as its schemas leave it."""
    unforeseen: tuple[Unforeseen, ...] = ()
    """Sources of which not everything could be forecast."""


def foreseen(prepared: Prepared, check: Callable[[], None]) -> Forecast:
    """The candidates, each as its schemas leave it.

    As in a run, what fails leaves the candidates behind it to the next run.

    Args:
        prepared: the plan, and what reads its sources.
        check: called before each candidate; whatever it raises comes out.
    """
    planned = prepared.plan.snapshots or ()
    if any(one.action is Action.FAIL for one in planned):
        return Forecast(planned)  # such a run weaves nothing
    if all(one.action is not Action.PUBLISH for one in planned):
        return Forecast(planned)
    looked_at = tuple(_looked_at(prepared, planned, check))
    return Forecast(looked_at, tuple(_unforeseen(prepared)))


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
    known: dict[tuple[str, EpochNanos], SourceFrame] = {}
    failed = ""
    due = publishing_times(planned)
    output = OutputForecast(prepared)

    def read(step: ReadSource) -> SourceFrame:
        if (step.source, step.time) not in known:
            with translated(f"DataSource/{step.source}"):
                known[step.source, step.time] = prepared.readers[step.source].read(step.time)
        return known[step.source, step.time]

    for one in planned:
        if one.action is not Action.PUBLISH or tree.root.source not in self_described:
            yield one
            continue
        if failed:
            message = f"left for the next run, after: {failed}"
            yield _skipped(one, SnapshotReason.EARLIER_FAILURE, message)
            continue
        check()
        reading = Reading((s for s in _reads(one) if s.source in self_described), read)
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
        outcome = check_schemas(tree, reading, others, relationships)
        if outcome.stop is not None:
            return _stopped(planned, outcome.stop)
        # Reading begins with the comparison of declared types, also where no join needs a field.
        left_out = {one.field_name for one in outcome.excluded}
        used = {name: reading.source(name).frame for name in reading if name not in left_out}
        if all(s.field_name in used or s.field_name in left_out for s in _reads(planned)):
            output.check(planned.time, used)
    except (SourceError, CheckInvalid, HistoryIncompatible) as error:
        return _failed(planned, reason_of(error), str(error))
    excluded = tuple(_exclusions(tree, reading, outcome))
    return replace(planned, excluded=(*planned.excluded, *excluded))


def _reads(planned: PlannedSnapshot) -> Iterator[ReadSource]:
    return (step for step in planned.steps if isinstance(step, ReadSource))


def _exclusions(
    tree: JoinTree, reading: Reading, outcome: SchemaOutcome
) -> Iterator[ExcludedSource]:
    """Exclusions of a snapshot; unknown where they depend on a source without a known schema."""
    silent: set[str] = set()
    for node in tree.joins:
        if node.field_name not in reading or node.parent in silent:
            silent.add(node.field_name)
    warned = {warning[:MESSAGE_LENGTH] for warning in outcome.warnings}
    for one in outcome.excluded:
        if one.reason is ExclusionReason.PARENT_EXCLUDED and one.field_name in silent:
            continue
        yield ExcludedSource(one.field_name, one.reason, one.message in warned, one.message)


def _stopped(planned: PlannedSnapshot, stop: MissingField) -> PlannedSnapshot:
    reason = SnapshotReason(stop.reason.value)
    if stop.mode.skips:
        return replace(_skipped(planned, reason, stop.message), warn=stop.mode.warns)
    return _failed(planned, reason, stop.message)


def _failed(planned: PlannedSnapshot, reason: SnapshotReason, message: str) -> PlannedSnapshot:
    steps = (FailSnapshot(planned.time, reason, message),)
    return replace(planned, action=Action.FAIL, reason=reason, message=message, steps=steps)


def _skipped(planned: PlannedSnapshot, reason: SnapshotReason, message: str) -> PlannedSnapshot:
    steps = (SkipSnapshot(planned.time, reason, message=message),)
    return replace(planned, action=Action.SKIP, reason=reason, message=message, steps=steps)
