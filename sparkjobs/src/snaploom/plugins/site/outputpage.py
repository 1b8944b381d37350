"""Derives the page of an output from declarations and published snapshots; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.findings import Finding
from snaploom.models.report import DataFinding, Report
from snaploom.models.windows import Windows
from snaploom.output.entries import SnapshotRecord
from snaploom.output.state import EMPTY, FolderState
from snaploom.plan.bundle import Bundle
from snaploom.plan.drawings import picture_of, published_picture, published_tree
from snaploom.plan.history import PublishedModel, difference
from snaploom.plan.intervals import Gap, gaps_of, settings_of
from snaploom.plan.plan import RunPlan
from snaploom.plan.retention import HeldSnapshot, Removal, removals
from snaploom.plan.times import OutOfCalendar, plus
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.plugins.site import pagedata
from snaploom.plugins.site.drawings import changes, columns_at, flat
from snaploom.run.reports.writer import RunSummary
from snaploom.run.weaving.datafindings import snapshot_findings
from snaploom.sources.registry import declared
from snaploom.types.schemas import Struct

MOST_CHANGES = 500
"""Changes of the schema that a page lists."""


@dataclass(frozen=True)
class Declared:
    """The declared properties of an output."""

    bundle: Bundle
    plan: RunPlan
    """Its join tree, planned without data."""


@dataclass(frozen=True)
class Published:
    """The contents of a folder."""

    uri: str
    state: FolderState = EMPTY
    schemas: Mapping[str, Struct] = field(default_factory=dict)
    """Schemas that were read, by hash."""
    models: Mapping[str, PublishedModel] = field(default_factory=dict)
    """Data models of live snapshots by hash, each as one of its snapshots has it."""
    problem: str = ""
    """Reason why it could not be read."""
    runs: tuple[RunSummary, ...] = ()
    running: str = ""
    """The run at work, if one is."""


def output_page(
    name: str,
    published: Published,
    now: EpochNanos,
    *,
    is_present: bool = False,
    declared_as: Declared | None = None,
    findings: Sequence[Finding] = (),
    indexes: Sequence[pagedata.IndexState] = (),
    reports: Iterable[Report] = (),
    due: pagedata.Due | None = None,
    columns: Iterable[pagedata.ColumnFacts] = (),
) -> pagedata.OutputPage:
    """The page of one output.

    Ages are measured to `now`, and `is_present` is whether that is the present. Without
    `declared_as`, only the folder is at hand.
    """
    state = published.state
    snapshots = tuple(state.snapshots)
    newest = snapshots[-1] if snapshots else None
    nodes = _nodes(declared_as, published, newest)
    page = pagedata.OutputPage(
        name=name,
        folder=published.uri,
        now=now,
        is_present=is_present,
        nodes=nodes,
        snapshots=snapshots,
        ended=state.ended,
        revoked=len(state.revoked),
        schema_changes=_schema_changes(published),
        checks=_checks(declared_as, snapshots),
        indexes=tuple(indexes),
        runs=_runs(name, published, reports),
        running=published.running,
        columns=tuple(columns),
        findings=tuple(findings),
        problem=published.problem,
        facts=_facts(published),
    )
    page = replace(page, due=due, data_findings=_data_findings(declared_as, page, due))
    if declared_as is None:
        model = published.models.get(newest.model_hash) if newest else None
        return replace(
            page,
            picture=published_picture(model) if model else None,
            freshness=pagedata.Freshness(
                max((record.created_at for record in snapshots), default=None), None
            ),
        )
    return replace(
        page,
        picture=picture_of(declared_as.bundle, declared_as.plan.graph, declared_as.plan.tree),
        gaps=_gaps(declared_as, state, () if due is None else due.times),
        description=_noted(declared_as, "description"),
        owner=_noted(declared_as, "owner"),
        going=_going(declared_as, state, now),
        freshness=_freshness(declared_as, snapshots),
        lineage=tuple(_lineage(declared_as, nodes)),
    )


def _nodes(
    declared_as: Declared | None, published: Published, newest: SnapshotRecord | None
) -> tuple[pagedata.Node, ...]:
    tree = _tree(declared_as, published, newest)
    if tree is None:
        return ()
    taken = {one.field_name.casefold(): one.time for one in newest.sources} if newest else {}
    left_out = {x.field_name.casefold(): x.reason.value for x in newest.excluded} if newest else {}
    joins = {join.child.casefold(): join for join in newest.joins} if newest else {}
    schema = published.schemas.get(newest.schema_hash) if newest else None
    found = []
    for node in tree.nodes:
        name = node.field_name.casefold() if node.number else ""
        columns = () if schema is None else columns_at(schema, tree.path(node.number))
        one = pagedata.Node(
            node.number,
            node.field_name if node.number else "",
            node.source,
            node.parent,
            node.relationship,
            group_by=node.group_by,
            columns=columns,
            taken=taken.get(name, ""),
            left_out=left_out.get(name, ""),
            measure=joins.get(name),
            warnings=() if newest is None else pagedata.warnings_about(name, newest.warnings),
        )
        found.append(one if declared_as is None else _with_declared(one, declared_as, tree, node))
    return tuple(found)


def _tree(
    declared_as: Declared | None, published: Published, newest: SnapshotRecord | None
) -> JoinTree | None:
    if declared_as is not None:
        return declared_as.plan.tree
    model = published.models.get(newest.model_hash) if newest else None
    return None if model is None else published_tree(model)[0]


def _with_declared(
    node: pagedata.Node, declared_as: Declared, tree: JoinTree, joined: JoinNode
) -> pagedata.Node:
    source = declared(declared_as.bundle.source(node.source))
    columns = source.columns
    names = () if columns is None or node.columns else columns.names
    if isinstance(joined.timed, Windows):
        names = tuple(one.name for one in joined.timed.aggregates)
    return replace(
        node,
        kind=source.caption,
        keys=_keys(declared_as.bundle, tree, joined),
        columns=node.columns or tuple(pagedata.Column(name, "declared") for name in names),
    )


def _keys(bundle: Bundle, tree: JoinTree, node: JoinNode) -> tuple[str, ...]:
    """Each component of a join's key, as both sides write it."""
    if not node.number:
        return ()
    spec = bundle.relationship(node.relationship).spec
    sides = [
        [part.text for part in parts]
        for parts in (
            spec.join_key_of(tree.nodes[node.parent_number].source) or (),
            spec.join_key_of(node.source) or (),
        )
    ]
    return tuple(
        one if one == other else f"{one} = {other}" for one, other in zip(*sides, strict=False)
    )


def _gaps(declared_as: Declared, state: FolderState, due: Iterable[EpochNanos]) -> tuple[Gap, ...]:
    model = declared_as.bundle.output.spec.data_model
    times = (*state.versions, *state.tombstoned_times, *due)
    return gaps_of(settings_of(model.root_data_source.snapshot_filter), times)


def _going(declared_as: Declared, state: FolderState, now: EpochNanos) -> tuple[Removal, ...]:
    spec = declared_as.bundle.output.spec
    held = (HeldSnapshot(one.time, one.created_at) for one in state.timeline)
    periods = settings_of(spec.data_model.root_data_source.snapshot_filter).intervals
    return removals(spec.output_folder.snapshot_auto_delete, held, now, periods)


def _freshness(declared_as: Declared, snapshots: Sequence[SnapshotRecord]) -> pagedata.Freshness:
    """As the operator measures it: the age of the newest snapshot's publication."""
    run = declared_as.bundle.output.spec.run
    published = snapshots[-1].created_at if snapshots else None
    if run.freshness is None or published is None:
        return pagedata.Freshness(published, None, run.freshness is not None)
    zone = run.schedule.time_zone if run.schedule is not None else "UTC"
    try:
        expires = plus(published, run.freshness.max_age, zone)
    except (OutOfCalendar, ValueError, KeyError):
        return pagedata.Freshness(published, None, True)
    return pagedata.Freshness(published, expires, True)


def _schema_changes(published: Published) -> tuple[pagedata.SchemaChange, ...]:
    columns = {name: flat(schema) for name, schema in published.schemas.items()}
    found = []
    for before, after in pairwise(published.state.timeline):
        same = before.schema_hash == after.schema_hash
        if same and before.model_hash == after.model_hash:
            continue
        old, new = columns.get(before.schema_hash), columns.get(after.schema_hash)
        added, removed, retyped = ((), (), ()) if old is None or new is None else changes(old, new)
        models = [published.models.get(one.model_hash) for one in (before, after)]
        was, now = models
        notes = () if was is None or now is None else difference(was, now).notes
        if added or removed or retyped or notes:
            found.append(pagedata.SchemaChange(after.time, added, removed, retyped, notes))
    return tuple(found[::-1][:MOST_CHANGES])


def _checks(
    declared_as: Declared | None, snapshots: Sequence[SnapshotRecord]
) -> tuple[pagedata.CheckHistory, ...]:
    found: dict[str, pagedata.CheckHistory] = {}
    if declared_as is not None:
        for check in declared_as.bundle.output.spec.checks:
            found[check.name] = pagedata.CheckHistory(
                check.name, check.mode.value, check.expression, 0, 0
            )
    for record in snapshots:
        for result in record.checks:
            was = found.get(result.name) or pagedata.CheckHistory(
                result.name, result.mode.value, "", 0, 0
            )
            found[result.name] = (
                replace(was, met=was.met + 1)
                if result.holds
                else replace(
                    was,
                    unmet=was.unmet + 1,
                    last_unmet=record.time,
                    measured=result.measured,
                )
            )
    return tuple(found.values())


def _lineage(
    declared_as: Declared, nodes: Sequence[pagedata.Node]
) -> Iterator[pagedata.LineageLine]:
    """Columns of the newest snapshot; those of declared sources before the first one."""
    tree = declared_as.plan.tree
    for node in nodes:
        source = declared_as.bundle.source(node.source)
        through = [f"transformer {name}" for name in source.spec.variant.field_transformers]
        if source.spec.reads:
            through.append(f"query over {', '.join(source.spec.reads)}")
        if node.group_by:
            through.append(f"array by {', '.join(node.group_by)}")
        join = tree.by_number[node.number]
        if join.history is not None:
            through.append(f"snapshots of the last {join.history.text}")
        timed = join.timed
        if timed is not None:
            through.append(timed.text)
        places = tuple(f"{one.namespace} {one.name}" for one in declared(source).datasets)
        path = (*tree.path(node.number), "data")
        of = timed.fields_by_name if isinstance(timed, Windows) else {}
        for column in node.columns:
            yield pagedata.LineageLine(
                ".".join((*path, column.name)),
                column.type,
                node.source,
                of.get(column.name.casefold(), column.name),
                "; ".join(through),
                places,
            )


def _runs(name: str, published: Published, reports: Iterable[Report]) -> tuple[RunSummary, ...]:
    own = [RunSummary.of(report) for report in reports if report.output == name]
    kept = {run.run_id: run for run in published.runs}
    found = kept | {
        run.run_id: run.model_copy(update={"sample": kept[run.run_id].sample})
        if run.run_id in kept
        else run
        for run in own
    }
    return tuple(sorted(found.values(), key=lambda run: run.started_at, reverse=True))


def _data_findings(
    declared_as: Declared | None, page: pagedata.OutputPage, due: pagedata.Due | None
) -> tuple[DataFinding, ...]:
    """Findings of the newest snapshot, the run that published it, and the listed sources."""
    newest, found = page.newest, list[DataFinding]()
    if newest is not None and declared_as is not None:
        found.extend(snapshot_findings(declared_as.bundle, declared_as.plan.tree, newest))
    last = next(iter(page.runs), None)
    listed = () if due is None else due.data_findings
    of_run = () if last is None else last.data_findings
    found.extend(one for one in of_run if not listed or not one.is_of_listing)
    return tuple({one.subject: one for one in (*found, *listed)}.values())


def _noted(declared_as: Declared, name: str) -> str:
    """An annotation of the output whose key ends in a name, such as `example.com/owner`."""
    annotations = declared_as.bundle.output.metadata.annotations
    return next((text for key, text in annotations.items() if key.split("/")[-1] == name), "")


def _facts(published: Published) -> Mapping[str, str]:
    state = published.state
    facts: dict[str, str] = {}
    if state.settings is not None:
        facts["format"] = f"{state.settings.data_format}, {state.settings.data_compression}"
        facts["partition column"] = state.settings.partition_field_name
    if state.identity is not None:
        facts["output"] = state.identity.output
        if state.identity.namespace:
            facts["namespace"] = state.identity.namespace
    if state.seq:
        facts["manifest"] = f"entry {state.changed_at}"
    if state.timeline:
        facts["first snapshot"] = format_instant(state.timeline[0].time)
    return facts
