"""The tree of `snaploom status`: join tree, sources, runs and snapshots of an output.

Pure: it renders resources and their statuses, and derives nothing itself. Join tree and timeline
are the drawings of an output's page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from rich.text import Text
from rich.tree import Tree

from snaploom.models.common import Condition, ConditionStatus, ResourceStatus
from snaploom.models.datasource import DataSource, DataSourceStatus
from snaploom.models.kinds import AnyResource
from snaploom.models.outputdataset import OutputDataset, OutputDatasetStatus
from snaploom.models.run import CurrentRun, LastPhase, LastRun
from snaploom.models.skippingindex import SkippingIndex, SkippingIndexStatus
from snaploom.models.times import EpochNanos
from snaploom.site.statuspage import StatusPage, status_lanes, status_nodes
from snaploom.site.textdrawings import timeline_drawing, tree_drawing
from snaploom_operator.attempts import has_attempts
from snaploom_operator.commands.drawings import Drawing
from snaploom_operator.commands.durations import ago, elapsed
from snaploom_operator.decide.configuration import Configuration
from snaploom_operator.remedies import EVERY_REMEDY
from snaploom_operator.store.references import reached, references_of

_SHOWN_SNAPSHOTS = 5
"""Snapshots that are listed; the others are counted."""
_WAITING = ("Ready", "Reconciling", "Stalled", "Suspended", "SnapshotFresh", "IndexFresh")
"""Conditions that are shown; those that report success are left out."""


@dataclass(frozen=True)
class NamespaceView:
    """The resources of one namespace, by `Kind/name`, and when they were read."""

    resources: Mapping[str, AnyResource]
    now: EpochNanos
    namespace: str
    unread: Mapping[str, str] = field(default_factory=dict)
    """The cause if a resource cannot be parsed, by `Kind/name`."""


def tree_of(view: NamespaceView, identity: str) -> Tree:
    """The tree of one resource, which must be in the view."""
    resource = view.resources[identity]
    tree = Tree(_heading(view, identity), highlight=False)
    for condition in _notable_conditions(resource.status):
        tree.add(_condition_line(condition, view.now))
    if isinstance(resource, OutputDataset):
        _add_output(tree, view, resource)
    elif isinstance(resource, SkippingIndex):
        _add_index(tree, view, resource)
    else:
        _add_configuration(tree, view, resource)
    return tree


def forest_of(view: NamespaceView) -> Iterator[Tree]:
    """The trees of all outputs with their indexes, then of resources that no tree shows."""
    shown: set[str] = set()
    for identity in _order(view):
        if identity not in shown:
            shown |= reached([identity], partial(_children_of, view))
            yield tree_of(view, identity)
    for identity, why in sorted(view.unread.items()):
        yield Tree(Text.assemble((identity, "bold"), (f"  cannot be shown: {why}", "red")))


def _order(view: NamespaceView) -> list[str]:
    """Roots first: resources that other trees show come last."""
    read = {name for each in view.resources.values() for name in _children(view, each)}
    ranks = {OutputDataset: 0, SkippingIndex: 1}
    return sorted(
        view.resources,
        key=lambda each: (ranks.get(type(view.resources[each]), 2), each in read, each),
    )


def _children_of(view: NamespaceView, identity: str) -> Iterator[str]:
    if identity in view.resources:
        yield from _children(view, view.resources[identity])


def _children(view: NamespaceView, resource: AnyResource) -> Iterator[str]:
    """The resources that a tree shows below a resource."""
    if isinstance(resource, OutputDataset | DataSource):
        yield from (ref.identity for ref in sorted(references_of(resource)))
    if isinstance(resource, OutputDataset):
        yield from (index.identity for index in _indexes_about(view, resource))


def _indexes_about(view: NamespaceView, output: OutputDataset) -> Iterator[SkippingIndex]:
    listed = (view.resources[identity] for identity in sorted(view.resources))
    indexes = (each for each in listed if isinstance(each, SkippingIndex))
    yield from (each for each in indexes if each.spec.target.output_dataset == output.name)


def _add_output(tree: Tree, view: NamespaceView, output: OutputDataset) -> None:
    status = output.status or OutputDatasetStatus()
    page = StatusPage(view.namespace, output, view.now)
    nodes, lanes = status_nodes(page), status_lanes(page)
    if nodes:
        tree.add(Drawing("join tree", lambda _: tree_drawing(nodes)))
    _add_sources(tree, view, output)
    _add_runs(tree, view, output)
    if len(page.status.snapshots) > 1 or len(lanes) > 1:
        tree.add(Drawing("timeline", lambda width: timeline_drawing(lanes, width)))
    _add_snapshots(tree, view, status)
    for index in _indexes_about(view, output):
        branch = tree.add(_heading(view, index.identity))
        for condition in _notable_conditions(index.status):
            branch.add(_condition_line(condition, view.now))
        _add_index(branch, view, index)


def _add_sources(tree: Tree, view: NamespaceView, output: OutputDataset) -> None:
    """Add sources and relationships; where the join tree shows them, those that need a look."""
    model = output.spec.data_model
    places = [(f"DataSource/{model.root_data_source.data_source}", "  root")]
    places += [
        (f"DataSource/{other.data_source}", f"  as {other.field_name}")
        for other in model.other_data_sources
    ]
    is_drawn = output.status is not None and output.status.plan is not None
    listed = [place for place in places if not (is_drawn and _is_plain(view, place[0]))]
    branch = tree.add(_counted("sources", len(places), len(listed)))
    for identity, where in listed:
        _add_source(branch, view, identity, where)
    used = [f"DataRelationship/{each.name}" for each in model.data_relationships]
    shown = [each for each in used if not (is_drawn and _is_plain(view, each))]
    if used:
        branch = tree.add(_counted("relationships", len(used), len(shown)))
        for identity in shown:
            branch.add(_heading(view, identity))


def _counted(noun: str, count: int, shown: int) -> Text:
    ready = count - shown
    about = f", {ready} of them ready" if shown else ", all ready"
    return Text(f"{noun}: {count}" + (about if ready else ""))


def _is_plain(view: NamespaceView, identity: str) -> bool:
    """Return whether a resource is ready as it is declared now, and reads no other one."""
    resource = view.resources.get(identity)
    ready = _condition(resource.status, "Ready") if resource is not None else None
    return (
        resource is not None
        and ready is not None
        and ready.status is ConditionStatus.TRUE
        and ready.observed_generation in (None, resource.metadata.generation)
        and not any(_children(view, resource))
    )


def _add_source(
    branch: Tree,
    view: NamespaceView,
    identity: str,
    where: str = "",
    above: frozenset[str] = frozenset(),
) -> None:
    """Add a source with what it reads and what is applied to it; cycles are cut."""
    node = branch.add(_heading(view, identity, where))
    resource = view.resources.get(identity)
    if isinstance(resource, DataSource) and identity not in above:
        for name in _children(view, resource):
            _add_source(node, view, name, above=above | {identity})


def _add_runs(tree: Tree, view: NamespaceView, resource: OutputDataset | SkippingIndex) -> None:
    status, retry = resource.status, resource.spec.run.retry
    if status is None:
        return
    if status.current_run is not None:
        tree.add(_current_line(status.current_run, view.now))
    if status.last_run is not None:
        publishes = isinstance(status, OutputDatasetStatus)
        ended = tree.add(_last_line(status.last_run, view.now, publishes=publishes))
        remedy = EVERY_REMEDY.get(status.last_run.reason)
        if status.last_run.phase in (LastPhase.FAILED, LastPhase.LOST) and remedy is not None:
            further = "" if has_attempts(status.last_run, retry) else _NO_ATTEMPT
            ended.add(Text(f"what to do: {remedy.fix}{further}"))
    if status.next_run_time is not None:
        tree.add(Text(f"next run: {status.next_run_time} ({ago(status.next_run_time, view.now)})"))


_NO_ATTEMPT = " It is not retried automatically: `snaploom trigger` starts a run."
"""Added to the remedy of a failed run that is not retried."""


def _current_line(run: CurrentRun, now: EpochNanos) -> Text:
    line = Text.assemble(
        "run in flight: ", run.id, "  ", (run.phase, "cyan"), f" for {elapsed(run.since, now)}"
    )
    if run.attempt:
        line.append(f", attempt {run.attempt + 1}")
    for shown_text in (run.progress, run.waiting_for and f"waits for {run.waiting_for}"):
        if shown_text:
            line.append(f": {shown_text}")
    return line


def _last_line(run: LastRun, now: EpochNanos, *, publishes: bool) -> Text:
    style = "green" if run.phase is LastPhase.SUCCEEDED else "red"
    line = Text.assemble("last run: ", run.id, "  ", (run.phase, style))
    if run.reason:
        line.append(f" ({run.reason})")
    line.append(f" {ago(run.finished_at or run.started_at, now)}")
    if publishes and run.phase is LastPhase.SUCCEEDED:
        line.append(f", published {run.published}")
    if run.skipped:
        line.append(f", left out {len(run.skipped)}")
    if run.message:
        line.append(f": {run.message}")
    return line


def _add_snapshots(tree: Tree, view: NamespaceView, status: OutputDatasetStatus) -> None:
    if status.snapshot_count is None:
        return
    branch = tree.add(Text(f"snapshots: {status.snapshot_count}"))
    newest = status.snapshots[:_SHOWN_SNAPSHOTS]
    latest = status.latest_snapshot
    for snapshot in newest:
        line = Text(f"{snapshot.time}  {snapshot.rows:,} rows")
        if latest is not None and latest.time == snapshot.time:
            line.append(
                f", {latest.files:,} files, {latest.bytes:,} bytes, "
                f"published {ago(latest.published_at, view.now)}"
            )
        shown = branch.add(line)
        if latest is not None and latest.time == snapshot.time:
            for warning in latest.warnings:
                shown.add(Text(f"warning: {warning}", style="yellow"))
    if status.snapshot_count > len(newest):
        branch.add(Text(f"and {status.snapshot_count - len(newest)} older"))


def _add_index(tree: Tree, view: NamespaceView, index: SkippingIndex) -> None:
    status = index.status or SkippingIndexStatus()
    if status.state is not None:
        tree.add(Text(f"state: {status.state}"))
    if status.files is not None:
        files = status.files
        tree.add(Text(f"files: {files.indexed:,} indexed, {files.stale:,} stale, "
                      f"{files.missing:,} not known"))  # fmt: skip
    _add_runs(tree, view, index)


def _add_configuration(tree: Tree, view: NamespaceView, resource: Configuration) -> None:
    status = resource.status
    if isinstance(resource, DataSource):
        for name in _children(view, resource):
            _add_source(tree, view, name, above=frozenset({resource.identity}))
    if isinstance(status, DataSourceStatus) and status.last_seen is not None:
        seen = status.last_seen
        what = seen.latest_snapshot or "no snapshot"
        tree.add(Text(f"last seen {ago(seen.at, view.now)} by {seen.run}: {what}"))
    if status is not None and status.used_by is not None and status.used_by.count:
        used_by = status.used_by
        more = used_by.count - len(used_by.names)
        names = ", ".join(used_by.names) + (f" and {more} more" if more else "")
        tree.add(Text(f"used by {names}"))


def _heading(view: NamespaceView, identity: str, where: str = "") -> Text:
    resource = view.resources.get(identity)
    if resource is None:
        trouble = f"cannot be shown: {view.unread[identity]}" if identity in view.unread else (
            "does not exist"
        )  # fmt: skip
        return Text.assemble((identity, "bold"), where, (f"  {trouble}", "red"))
    ready = _condition(resource.status, "Ready")
    if ready is None:
        return Text.assemble((identity, "bold"), where, ("  not reconciled yet", "yellow"))
    is_ready = ready.status is ConditionStatus.TRUE
    outdated = ready.observed_generation not in (None, resource.metadata.generation)
    return Text.assemble(
        (identity, "bold"),
        where,
        "  ",
        ("Ready" if is_ready else "not Ready", "green" if is_ready else "red"),
        f" ({ready.reason})",
        ("  of an older generation" if outdated else "", "yellow"),
    )


def _condition(status: ResourceStatus | None, type_: str) -> Condition | None:
    conditions: Iterable[Condition] = status.conditions if status else ()
    return next((each for each in conditions if each.type == type_), None)


def _notable_conditions(status: ResourceStatus | None) -> Iterator[Condition]:
    """Conditions with information beyond the heading, Ready first."""
    shown_text: set[str] = set()
    for type_ in _WAITING:
        condition = _condition(status, type_)
        if condition is None or condition.message in shown_text or not condition.message:
            continue
        is_as_it_should_be = condition.type.endswith("Fresh") and condition.status == "True"
        if not is_as_it_should_be:
            shown_text.add(condition.message)
            yield condition


def _condition_line(condition: Condition, now: EpochNanos) -> Text:
    style = "red" if condition.type == "Stalled" else ""
    length = elapsed(condition.last_transition_time, now)
    return Text.assemble((f"{condition.type}={condition.status}", style),
                         f" for {length}: {condition.message}")  # fmt: skip
