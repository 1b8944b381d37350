"""`snaploom status`: the status of outputs and indexes, as a tree."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, cast

import networkx as nx
from cyclopts import Parameter
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from snaploom.confidential import in_ascii, json_visible, visible_lines
from snaploom.errors import problems
from snaploom.files.stores import open_store
from snaploom.installed import PackageMissing, plugged
from snaploom.models.common import (
    NANOS_PER_SECOND,
    Condition,
    ConditionStatus,
    EpochNanos,
    ResourceStatus,
    now,
    parse_instant,
)
from snaploom.models.datasource import DataSource, DataSourceStatus
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.kinds import AnyResource
from snaploom.models.outputdataset import OutputDataset, OutputDatasetStatus
from snaploom.models.run import CurrentRun, LastPhase, LastRun
from snaploom.models.skippingindex import SkippingIndex, SkippingIndexStatus
from snaploom.output.folder import open_folder
from snaploom.output.history import manifest_pointer, newest_snapshot, published_snapshots
from snaploom_operator.apply.executor import write_status
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.commands.options import (
    ClusterOptions,
    Form,
    Named,
    NamespaceView,
    OutputForm,
    not_found_error,
    parse_name,
    read_view,
)
from snaploom_operator.decide.runview import has_attempts
from snaploom_operator.decide.statuses import Configuration
from snaploom_operator.store.entries import references_of

DrawStatus = Callable[[str, OutputDataset, EpochNanos], tuple[str, Callable[[int], str] | None]]
"""Draws an output of a namespace: its join tree, empty without one, and its timeline by columns,
None where that would show one snapshot at most."""


@dataclass(frozen=True)
class Drawing:
    """A heading and lines below it; what is wider than the terminal is cut."""

    heading: str
    draw: Callable[[int], str]
    """The lines, from the columns that there are."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = visible_lines(f"{self.heading}\n{self.draw(options.max_width)}")
        yield Text(
            in_ascii(drawn) if options.ascii_only else drawn, no_wrap=True, overflow="ellipsis"
        )


_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def duration_text(seconds: float) -> str:
    """Format seconds as `45s`, `3m10s`, `5h` or `12d`; two units only below ten of the larger."""
    left = max(0, int(seconds))
    for index, (unit, size) in enumerate(_UNITS):
        if left < size and unit != "s":
            continue
        count, rest = divmod(left, size)
        if index + 1 < len(_UNITS) and count < 10:
            smaller, smaller_size = _UNITS[index + 1]
            if rest >= smaller_size:
                return f"{count}{unit}{rest // smaller_size}{smaller}"
        return f"{count}{unit}"
    return "0s"


def elapsed(since: str, now: EpochNanos) -> str:
    """The duration since a time in ISO 8601: `3m10s`."""
    return duration_text((now - parse_instant(since)) / NANOS_PER_SECOND)


def ago(time: str, now: EpochNanos) -> str:
    """A time in ISO 8601 relative to now: `3m10s ago` or `in 2h`."""
    seconds = (now - parse_instant(time)) / NANOS_PER_SECOND
    return f"in {duration_text(-seconds)}" if seconds < 0 else f"{duration_text(seconds)} ago"


_SHOWN_SNAPSHOTS = 5
"""Snapshots that are listed; the others are counted."""
_WAITING = ("Ready", "Reconciling", "Stalled", "Suspended", "SnapshotFresh", "IndexFresh")
"""Conditions that are shown; those that report success are left out."""


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
    below = nx.DiGraph({each: [*_children(view, view.resources[each])] for each in view.resources})
    for identity in _order(view):
        if identity not in shown:
            shown |= {identity, *nx.descendants(below, identity)}
            yield tree_of(view, identity)
    for identity, why in sorted(view.unread.items()):
        yield Tree(Text.assemble((identity, "bold"), (f"  cannot be shown: {why}", "red")))


def _order(view: NamespaceView) -> list[str]:
    read = {name for each in view.resources.values() for name in _children(view, each)}
    ranks = {OutputDataset: 0, SkippingIndex: 1}
    return sorted(
        view.resources,
        key=lambda each: (ranks.get(type(view.resources[each]), 2), each in read, each),
    )


def _children(view: NamespaceView, resource: AnyResource) -> Iterator[str]:
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
    join_tree, timeline = _drawn(view, output)
    if join_tree:
        tree.add(Drawing("join tree", lambda _: join_tree))
    _add_sources(tree, view, output, is_drawn=bool(join_tree))
    _add_runs(tree, view, output)
    if timeline is not None:
        tree.add(Drawing("timeline", timeline))
    _add_snapshots(tree, view, status)
    for index in _indexes_about(view, output):
        branch = tree.add(_heading(view, index.identity))
        for condition in _notable_conditions(index.status):
            branch.add(_condition_line(condition, view.now))
        _add_index(branch, view, index)


def _drawn(view: NamespaceView, output: OutputDataset) -> tuple[str, Callable[[int], str] | None]:
    """The drawings of an output; none where no plug-in draws."""
    try:
        draw = cast(DrawStatus, plugged("snaploom.status", "drawings", "drawing of outputs"))
    except PackageMissing:
        return "", None
    return draw(view.namespace, output, view.now)


def _add_sources(tree: Tree, view: NamespaceView, output: OutputDataset, *, is_drawn: bool) -> None:
    """Add sources and relationships; where the join tree shows them, those that need a look."""
    model = output.spec.data_model
    places = [(f"DataSource/{model.root_data_source.data_source}", "  root")]
    places += [
        (f"DataSource/{other.data_source}", f"  as {other.field_name}")
        for other in model.other_data_sources
    ]
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
        problem = problems().get(status.last_run.reason)
        if status.last_run.phase in (LastPhase.FAILED, LastPhase.LOST) and problem is not None:
            further = "" if has_attempts(status.last_run, retry) else _NO_ATTEMPT
            ended.add(Text(f"what to do: {problem.fix}{further}"))
    if status.next_run_time is not None:
        tree.add(Text(f"next run: {status.next_run_time} ({ago(status.next_run_time, view.now)})"))


_NO_ATTEMPT = " It is not retried automatically: `snaploom trigger` starts a run."
"""Added to the fix of a failed run that is not retried."""


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
    for finding in status.data_findings:
        branch.add(Text(f"data: {finding}", style="yellow"))


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


def output_named(named: Named | None) -> Named:
    """Check that an OutputDataset is named.

    Raises:
        InvalidDeclarations: no resource is named, or one of another kind.
    """
    if named is not None and named.kind.name == OutputDataset.__name__:
        return named
    finding = make_finding(
        "SL191",
        "only the status of an OutputDataset can be rebuilt",
        path="--rebuild",
        found="no name" if named is None else str(named),
        expected="OutputDataset/NAME",
        hint="name one output; `snaploom status` lists them",
    )
    raise InvalidDeclarations([finding])


async def rebuild_status(output: OutputDataset, cluster: Cluster) -> None:
    """Write the status of an output with the snapshots of its folder; other fields are kept.

    Raises:
        StorageError: the folder cannot be read, or has no manifest.
        ClusterError: the write is not allowed, or the output was changed since it was read.
    """
    uri = output.spec.output_folder.folder_uri
    state = open_folder(open_store(uri, create=False)).log.read()
    before = output.status or OutputDatasetStatus()
    status = before.model_copy(
        update={
            "latest_snapshot": newest_snapshot(state),
            "snapshots": published_snapshots(state),
            "snapshot_count": len(state.live),
            "manifest": manifest_pointer(uri, state),
        }
    )
    await write_status(output, status, cluster)


_WATCH_SECONDS = 2.0
"""Refresh interval; six lists of one namespace take milliseconds."""
_PIPE_WIDTH = 400
"""Columns without a terminal, so that lines are not truncated."""


def status(
    name: Annotated[
        str | None,
        Parameter(
            name="KIND/NAME",
            help="One resource, such as `ods/flights`; without a kind, an OutputDataset. Default: "
            "all of the namespace.",
        ),
    ] = None,
    /,
    *,
    watch: Annotated[bool, Parameter(help="Refresh continuously.")] = False,
    rebuild: Annotated[
        bool,
        Parameter(
            help="First restore the published snapshots in the status of one OutputDataset from "
            "its folder, after the report of a run was lost. Needs the permissions to read the "
            "folder and to patch `outputdatasets/status`."
        ),
    ] = False,
    output: Form = OutputForm.TEXT,
    cluster: ClusterOptions = ClusterOptions(),  # noqa: B008 - frozen
) -> int:
    """Show the status of outputs and indexes: sources, runs, snapshots, and what they wait for."""
    named = None if name is None else parse_name(name)
    if rebuild:
        asyncio.run(_rebuild(output_named(named), cluster))
    if watch:
        asyncio.run(_watch(named, cluster))
    else:
        view = asyncio.run(_view(cluster))
        if output is OutputForm.JSON:
            _print_json(view, named)
        else:
            _console().print(_shown(view, named))
    return 0


async def _view(options: ClusterOptions) -> NamespaceView:
    place = options.place
    async with options.connected() as cluster:
        return await read_view(cluster, place, now())


async def _rebuild(named: Named, options: ClusterOptions) -> None:
    place = options.place
    async with options.connected() as cluster:
        view = await read_view(cluster, place, now())
        found = view.resources.get(str(named))
        if not isinstance(found, OutputDataset):
            raise not_found_error(named, view)
        await rebuild_status(found, cluster)


async def _watch(named: Named | None, options: ClusterOptions) -> None:
    console, place = _console(), options.place
    async with options.connected() as cluster:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                view = await read_view(cluster, place, now())
                live.update(_shown(view, named), refresh=True)
                await asyncio.sleep(_WATCH_SECONDS)


def _shown(view: NamespaceView, named: Named | None) -> RenderableType:
    if named is None:
        trees = list(forest_of(view))
        return (
            Group(*trees)
            if trees
            else f"No Snaploom resources in the namespace {view.namespace}; use `-n` for another."
        )
    if str(named) not in view.resources:
        raise not_found_error(named, view)
    return tree_of(view, str(named))


def _print_json(view: NamespaceView, named: Named | None) -> None:
    if named is not None and str(named) not in view.resources:
        raise not_found_error(named, view)
    chosen = sorted(view.resources) if named is None else [str(named)]
    document = {
        "namespace": view.namespace,
        "resources": [view.resources[identity].dump() for identity in chosen],
        "unread": dict(view.unread) if named is None else {},
    }
    text = json_visible(json.dumps(document, indent=2, ensure_ascii=False))
    print(text, flush=True)  # noqa: T201 - the result


def _console() -> Console:
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, soft_wrap=True, highlight=False, markup=False, width=width)
