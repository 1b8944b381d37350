"""The plan of a run: join tree, candidates, and the sources that each reads; pure data."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from snaploom.models.asof import ChildSnapshot
from snaploom.models.common import EpochNanos, PathMissingMode, Preference, Resource, format_instant
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding, errors_of
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import DataFinding, ExclusionReason, SnapshotReason
from snaploom.plan import intervals, retention
from snaploom.plan.bundle import Bundle
from snaploom.plan.findings import tree_findings
from snaploom.plan.steps import (
    Action,
    Availability,
    ExcludedSource,
    ReadSource,
    Taken,
    availability,
    choose,
    empty_source_findings,
    sources_read,
)
from snaploom.plan.times import EVERYTHING, Selection, hive_of, partition_clashes, partition_of
from snaploom.plan.tree import JoinGraph, JoinNode, JoinTree, join_graph, plan_tree
from snaploom.policy.references import reads_of

# The hash of a plan: equal when the same snapshots would be woven to the same rows.


def plan_hash(bundle: Bundle, tree: JoinTree) -> str:
    """SHA-256 in hexadecimal."""
    others = bundle.output.spec.data_model.other_data_sources
    names = {node.source for node in tree.nodes}
    by_name = {source.name: source for source in bundle.data_sources}
    sources = [by_name[name] for name in reads_of(by_name).reached(names)]
    variants = [source.spec.variant for source in sources]
    applicators = {name for variant in variants for name in variant.metadata_applicators}
    transformers = {name for variant in variants for name in variant.field_transformers}
    relationships = {item.name: item for item in bundle.data_relationships}
    rules: list[JsonValue] = []
    rules.extend(sorted(o.dump_json() for o in others if o.data_source in names))
    parts: JsonValue = [
        tree.root.source,
        [
            _edge(node, relationships[node.relationship], tree.by_number[node.parent_number].source)
            for node in tree.joins
        ],
        rules,
        _specs(sources, {source.name for source in sources}),
        _specs(bundle.metadata_applicators, applicators),
        _specs(bundle.field_transformers, transformers),
    ]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _edge(node: JoinNode, relationship: DataRelationship, parent: str) -> JsonValue:
    """An edge with the key as both of its ends write it."""
    keys = [relationship.spec.join_key_of(source) or () for source in (parent, node.source)]
    return [
        node.field_name,
        node.source,
        node.parent,
        node.relationship,
        list(node.group_by),
        [[component.dump() for component in key] for key in keys],
    ]


def _specs(resources: tuple[Resource, ...] | list[DataSource], names: set[str]) -> JsonValue:
    dumped = {item.name: item.dump().get("spec") for item in resources if item.name in names}
    return [[name, json.dumps(dumped[name], sort_keys=True)] for name in sorted(dumped)]


# The plan of a run: join tree, candidates, and the sources that each reads; pure data.

OPEN_INTERVAL = "SL306"
"""NEWEST on an interval that has not ended makes the result depend on when it is run (rule W16)."""


@dataclass(frozen=True, slots=True)
class PublishedState:
    """Contents of the output's folder that planning needs."""

    held: tuple[retention.HeldSnapshot, ...] = ()
    tombstoned: tuple[EpochNanos, ...] = ()
    """Times of snapshots that were deleted; their intervals are done."""
    waiting: int = 0
    """Ended snapshots whose files may still be there."""


@dataclass(frozen=True, slots=True)
class PlannedSnapshot:
    """One candidate, its action, and what that reads."""

    time: EpochNanos
    partition: str
    """Folder below `data/`."""
    action: Action
    reason: SnapshotReason
    sources: tuple[Taken, ...]
    """The sources taken, root first; empty when it was not evaluated."""
    excluded: tuple[ExcludedSource, ...]
    warn: bool
    """Whether a skip is to be logged as a warning."""
    message: str
    reads: tuple[ReadSource, ...]
    notes: tuple[str, ...] = ()
    """Warnings about histories that are not whole."""


@dataclass(frozen=True, slots=True)
class Unforeseen:
    """A fact about a source that a run finds out and its plan cannot show."""

    source: str
    message: str


@dataclass(frozen=True)
class RunPlan:
    """All that is known before a run; `snapshots` is None where data was not looked at."""

    bundle: Bundle = field(repr=False)
    hash: str
    graph: JoinGraph = field(repr=False)
    tree: JoinTree
    findings: tuple[Finding, ...]
    snapshots: tuple[PlannedSnapshot, ...] | None = None
    """The candidates, in the order in which they are processed."""
    collecting: int | None = None
    """Ended snapshots whose files may still be there, before the run ends any: those whose readers'
    grace has passed are removed at last. None without publications, and then nothing is removed."""
    removing: tuple[retention.Removal, ...] = ()
    """Removals by `snapshotAutoDelete` after these publications, in the order of the run."""
    unforeseen: tuple[Unforeseen, ...] = ()
    """Sources of which only the run knows everything."""
    data_findings: tuple[DataFinding, ...] = ()
    """Faults of the snapshots that sources list, and of files of published ones."""

    @property
    def output(self) -> OutputDataset:
        return self.bundle.output

    @property
    def due(self) -> tuple[PlannedSnapshot, ...]:
        """The candidates that are woven and published."""
        return tuple(one for one in self.snapshots or () if one.action is Action.PUBLISH)

    @property
    def is_woven(self) -> bool:
        """Whether a run weaves anything: one with a candidate that fails does not."""
        return bool(self.due) and all(one.action is not Action.FAIL for one in self.snapshots or ())

    @property
    def is_valid(self) -> bool:
        """Whether nothing among the findings stops the run."""
        return not errors_of(self.findings)


def plan_offline(bundle: Bundle) -> RunPlan:
    """Plan the part that needs no data: the join tree."""
    output = bundle.output
    graph = join_graph(output.spec.data_model, bundle.data_relationships)
    tree = plan_tree(graph)
    findings = tree_findings(output, graph, tree)
    return RunPlan(bundle, plan_hash(bundle, tree), graph, tree, findings)


def plan_run(
    plan: RunPlan,
    offered: Mapping[str, intervals.SourceSnapshots],
    published: PublishedState,
    now: EpochNanos,
    limit: int | None = None,
    selection: Selection = EVERYTHING,
    present: EpochNanos | None = None,
) -> RunPlan:
    """Plan a run.

    Where the tree has errors, `snapshots` stays None: there is nothing that could be woven.

    Args:
        plan: its part that needs no data.
        offered: the snapshots of each source, by its name.
        published: the contents of the folder.
        now: the instant of planning.
        limit: number of snapshots to publish at most.
        selection: the candidates that count, or the snapshot that is woven again.
        present: the instant to which the run measures ages when it deletes, which is never later
            than the store's own; omitted, `now`.
    """
    present = now if present is None else present
    if not plan.is_valid:
        return plan
    planner = _SnapshotPlanner(plan.output, plan.tree, offered, published, now)
    if selection.restated is not None:
        return followed(plan, (planner.restated(selection.restated, present),), published, present)
    candidates = (planned for planned in planner.plan() if selection.holds(planned.time))
    snapshots = _limited(tuple(candidates), limit)
    findings = (
        *plan.findings,
        *empty_source_findings(plan.bundle, plan.tree, offered),
        *planner.findings(snapshots),
    )
    return followed(replace(plan, findings=findings), snapshots, published, present)


def followed(
    plan: RunPlan,
    snapshots: tuple[PlannedSnapshot, ...],
    published: PublishedState,
    present: EpochNanos,
) -> RunPlan:
    """A plan with its candidates, and what is removed behind publications, if any.

    Where schemas were forecast, `snapshots` are the candidates as the run has them. Ages are
    measured to `present`.
    """
    # A snapshot of a source that is not there leaves all others to the next run.
    is_failing = any(one.reason in _EVALUATED and one.action is Action.FAIL for one in snapshots)
    publishing = () if is_failing else publishing_times(snapshots)
    collecting = published.waiting if publishing_times(snapshots) else None
    spec = plan.output.spec
    periods = intervals.settings_of(spec.data_model.root_data_source.snapshot_filter).intervals
    rules = spec.output_folder.snapshot_auto_delete
    # What schemas are known to stop is still to come for the run, until it reaches it.
    due = publishing_times(plan.snapshots or snapshots)
    removing = retention.removals_of_run(due, publishing, rules, published.held, present, periods)
    return replace(plan, snapshots=snapshots, collecting=collecting, removing=removing)


def publishing_times(snapshots: Iterable[PlannedSnapshot]) -> tuple[EpochNanos, ...]:
    """Times of the candidates that are published, in the order of the run."""
    return tuple(one.time for one in snapshots if one.action is Action.PUBLISH)


@dataclass
class _SnapshotPlanner:
    output: OutputDataset
    tree: JoinTree
    offered: Mapping[str, intervals.SourceSnapshots]
    published: PublishedState
    now: EpochNanos

    def __post_init__(self) -> None:
        model = self.output.spec.data_model
        chosen = model.root_data_source.snapshot_filter
        self.settings = intervals.settings_of(chosen)
        self._form = "fromInterval" if chosen.from_interval is not None else "fromCron"
        self.root = self.offered.get(self.tree.root.source, intervals.SourceSnapshots())
        self.rules = {other.field_name: other.snapshot for other in model.other_data_sources}
        self.unreachable = tuple(
            ExcludedSource(
                missing.field_name,
                ExclusionReason.PATH_MISSING,
                missing.mode is PathMissingMode.CONTINUE_WARN,
                f"no path leads from the root to DataSource/{missing.source}",
            )
            for missing in self.tree.unreachable
        )

    def plan(self) -> tuple[PlannedSnapshot, ...]:
        mode = self.output.spec.output_folder.snapshot_catchup_mode
        candidates = {candidate.time: candidate for candidate in self._candidates()}
        decided = self._decide(candidates)
        return tuple(
            self._planned(time, decided[time]) for time in retention.catchup_order(decided, mode)
        )

    def restated(self, time: EpochNanos, present: EpochNanos) -> PlannedSnapshot:
        """A published snapshot, to be woven again from the current snapshots of the sources.

        The run measures ages to `present`.
        """
        zone = self.settings.intervals.zone
        if all(snapshot.time != time for snapshot in self.published.held):
            return self._planned(time, _not_restated(f"no snapshot {format_instant(time)} is live"))
        if choose(ChildSnapshot(), self.root, time, self.now, zone) != (time,):
            source = f"DataSource/{self.tree.root.source}"
            reason = f"{source}, the root, has no snapshot at {format_instant(time)} any more"
            return self._planned(time, _not_restated(reason))
        # The rule by which the run would remove a snapshot behind its restatement.
        rules = self.output.spec.output_folder.snapshot_auto_delete
        periods = self.settings.intervals
        gone = retention.removals_of_run(
            (time,), (time,), rules, self.published.held, present, periods
        )
        rule = next((removal.rule for removal in gone if removal.time == time), None)
        if rule is not None:
            return self._planned(time, _deleted_at_once(time, rule))
        found = availability(self.tree, self.rules, self.offered, time, self.now, zone)
        # What was asked for by name is not skipped in silence.
        return self._planned(
            time, _not_restated(found.message) if found.action is Action.SKIP else found
        )

    def findings(self, snapshots: Iterable[PlannedSnapshot]) -> tuple[Finding, ...]:
        times = sorted(s.time for s in snapshots if s.action is Action.PUBLISH)
        live = (snapshot.time for snapshot in self.published.held)
        return (*partition_clashes(self.output, times, live), *self._open_interval(times))

    def _candidates(self) -> tuple[intervals.RootCandidate, ...]:
        live = (snapshot.time for snapshot in self.published.held)
        return intervals.root_candidates(
            self.settings, self.root, (*live, *self.published.tombstoned), self.now
        )

    def _decide(
        self, candidates: Mapping[EpochNanos, intervals.RootCandidate]
    ) -> dict[EpochNanos, Availability]:
        zone = self.settings.intervals.zone
        found = {
            time: availability(self.tree, self.rules, self.offered, time, self.now, zone)
            if candidate.reason is SnapshotReason.NEW_SNAPSHOT
            else _left_out(candidate)
            for time, candidate in candidates.items()
        }
        publishing = [time for time, one in found.items() if one.action is Action.PUBLISH]
        failing = [time for time, one in found.items() if one.action is Action.FAIL]
        # A failure takes no other snapshot's place, and is none where it would not be kept.
        gone = self._not_kept([*publishing, *failing], failing)
        return found | gone | self._not_kept(publishing, publishing)

    def _not_kept(
        self, added: Iterable[EpochNanos], asked: Iterable[EpochNanos]
    ) -> dict[EpochNanos, Availability]:
        rules = self.output.spec.output_folder.snapshot_auto_delete
        gone = retention.not_worth_weaving(
            rules, self.published.held, added, self.now, self.settings.intervals
        )
        return {
            time: _skipped(SnapshotReason.RETENTION, f"{gone[time]} would remove it at once")
            for time in asked
            if time in gone
        }

    def _planned(self, time: EpochNanos, found: Availability) -> PlannedSnapshot:
        partition = partition_of(hive_of(self.output.spec.output_folder), time).folder
        evaluated = found.action is not Action.SKIP or found.reason in _EVALUATED
        return PlannedSnapshot(
            time,
            partition,
            found.action,
            found.reason,
            found.sources,
            (*self.unreachable, *found.excluded) if evaluated else (),
            found.warn,
            found.message,
            sources_read(self.tree, found) if found.action is Action.PUBLISH else (),
            found.notes,
        )

    def _open_interval(self, times: list[EpochNanos]) -> tuple[Finding, ...]:
        if self.settings.preference is not Preference.NEWEST or not times or self.root.at_read_time:
            return ()
        last = times[-1]
        interval = self.settings.intervals.containing(last)
        if interval is None or self.now >= interval.end:
            return ()
        return (
            self.output.finding(
                OPEN_INTERVAL,
                f"spec.dataModel.rootDataSource.snapshotFilter.{self._form}.preference",
                f"the snapshot {format_instant(last)} is the newest so far of an interval "
                "that has not ended; a later one of the same interval will not be published",
                found=f"now is {format_instant(self.now)}",
                expected=f"a run after {_end_of(interval)}, for a result that does not depend on "
                "when it runs",
            ),
        )


_EVALUATED = frozenset({SnapshotReason.SNAPSHOT_MISSING})
"""Reasons of skipped candidates whose sources were looked at."""


def _left_out(candidate: intervals.RootCandidate) -> Availability:
    if candidate.reason is SnapshotReason.INTERVAL_OPEN:
        return _skipped(candidate.reason, f"its interval ends at {_end_of(candidate.interval)}")
    return _skipped(candidate.reason, "excludeIntervals leaves this time out")


def _end_of(interval: intervals.Interval) -> str:
    return (
        "the end of the calendar"
        if interval.end == intervals.NEVER
        else format_instant(interval.end)
    )


def _not_restated(message: str) -> Availability:
    return Availability(Action.FAIL, SnapshotReason.SNAPSHOT_MISSING, (), message=message)


def _deleted_at_once(time: EpochNanos, rule: retention.RetentionRule) -> Availability:
    message = (
        f"outputFolder.snapshotAutoDelete.{rule} would delete snapshot {format_instant(time)} as "
        "soon as it is restated: change the rule so that it keeps the snapshot, or leave it; the "
        "next run that publishes deletes it"
    )
    return Availability(Action.FAIL, SnapshotReason.RETENTION, (), message=message)


def _skipped(reason: SnapshotReason, message: str) -> Availability:
    return Availability(Action.SKIP, reason, (), message=message)


def _limited(
    snapshots: tuple[PlannedSnapshot, ...], limit: int | None
) -> tuple[PlannedSnapshot, ...]:
    if limit is None:
        return snapshots
    due = [snapshot.time for snapshot in snapshots if snapshot.action is Action.PUBLISH]
    later = set(due[limit:])
    message = f"left for the next run: --limit is {limit}"
    return tuple(
        replace(
            snapshot, action=Action.SKIP, reason=SnapshotReason.LIMIT, message=message, reads=()
        )
        if snapshot.time in later
        else snapshot
        for snapshot in snapshots
    )
