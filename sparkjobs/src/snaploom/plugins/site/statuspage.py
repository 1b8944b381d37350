"""The page of an output in a cluster, from the statuses written by the operator.

Nothing is planned and no text is parsed, since a page of one tenant must not keep others waiting:
the join tree is the one that the operator planned, and snapshots are those that it lists.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from snaploom.models import common, outputdataset
from snaploom.models.datasource import DataSource
from snaploom.models.report import JoinMeasure, LatestSnapshot
from snaploom.models.run import CurrentRun, LastPhase, LastRun
from snaploom.models.skippingindex import SkippingIndex, SkippingIndexStatus
from snaploom.plan.drawings import published_picture
from snaploom.plugins.site import drawings
from snaploom.plugins.site.pagedata import (
    NOTHING,
    Html,
    Node,
    ago,
    counted,
    join,
    moment,
    number,
    size,
    table,
    tag,
    warnings_about,
)
from snaploom.plugins.site.sections import Section, data_table, tile
from snaploom.plugins.site.timeline import Axis, Lane, Series, chart, newest, spans_of, usual_length

_NOT_HERE = (
    "The output folder is not read: schema and its history, checks, gaps, lineage by column, sizes "
    "of older snapshots and findings are on the pages of `snaploom page` and `snaploom serve`."
)


@dataclass(frozen=True)
class StatusPage:
    """One output of a cluster with the objects that belong to it, as last seen."""

    namespace: str
    output: outputdataset.OutputDataset
    now: common.EpochNanos
    """Instant of the observation; ages are measured to it."""
    sources: Mapping[str, DataSource] = field(default_factory=dict)
    """DataSources of the namespace by name, as far as the output names them and they exist."""
    indexes: tuple[SkippingIndex, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.output.name}"

    @property
    def status(self) -> outputdataset.OutputDatasetStatus:
        """The status written by the operator; empty before."""
        return self.output.status or outputdataset.OutputDatasetStatus()

    @property
    def state(self) -> tuple[str, str]:
        """The state of the output in a word, and how good that is: good, warn, bad or nothing."""
        held = {
            each.type: each.status is common.ConditionStatus.TRUE for each in self.status.conditions
        }
        if "Ready" not in held:
            return "not reconciled yet", "warn"
        if held.get("Stalled"):
            return "stalled", "bad"
        if held.get("SnapshotFresh") is False:
            return "stale", "bad"
        if held.get("Suspended"):
            return "suspended", "warn"
        return ("ready", "good") if held["Ready"] else ("not ready", "warn")


def status_tiles(page: StatusPage) -> Html:
    """The state in a few numbers."""
    status = page.status
    word, mood = page.state
    ready = next((each for each in status.conditions if each.type == "Ready"), None)
    found = [tile("State", word, ready.reason if ready is not None else "", mood)]
    latest = status.latest_snapshot
    if latest is not None:
        found.append(
            tile("Newest snapshot", status_moment(latest.time), f"{number(latest.rows)} rows, "
                 f"{counted(latest.files, 'file')}, {size(latest.bytes)}"),
        )  # fmt: skip
        published = _known(latest.published_at)
        if published is not None:
            found.append(tile("Published", ago(published, page.now, True), "last"))
    if status.snapshot_count is not None:
        found.append(tile("Snapshots", number(status.snapshot_count), "published"))
    run = status.current_run
    if run is not None:
        found.append(tile("Run in flight", run.phase.value, run.progress or run.waiting_for or ""))
    return tag("ul", *found, class_="tiles", aria_label="State in numbers")


def status_sections(page: StatusPage) -> tuple[Section, ...]:
    """All sections that have something to show, in their order."""
    status = page.status
    snapshots = status.snapshots
    found = [
        Section("conditions", "Conditions", _conditions(page.status, page.now)
                or tag("p", "The operator has not looked at this output yet.")),
        Section("graph", "Join graph", _graph(page)),
        Section("sources", "Sources", _sources(page), f"{len(page.sources):,}"),
        Section("volume", "Rows", _rows_chart(status)) if len(snapshots) > 1 else None,
        Section("snapshots", "Snapshots", _snapshots(status), f"{status.snapshot_count or 0:,}"),
        Section("data", "About the data", data_table(status.data_findings),
                f"{len(status.data_findings):,}") if status.data_findings else None,
        Section("runs", "Runs", _runs(page)),
        Section("indexes", "Indexes", join(_index(each, page.now) for each in page.indexes),
                f"{len(page.indexes):,}") if page.indexes else None,
        Section("folder", "Output folder", _folder(page)),
    ]  # fmt: skip
    return tuple(section for section in found if section is not None)


def _known(text: str | None) -> common.EpochNanos | None:
    """An instant of a status; None where it is missing or is none: users can write statuses."""
    try:
        return None if text is None else common.parse_instant(text)
    except ValueError:
        return None


def status_moment(text: str | None) -> Html:
    """An instant of a status; a dash where it is missing or is none."""
    return moment(_known(text))


def _conditions(status: common.ResourceStatus | None, now: common.EpochNanos) -> Html:
    rows = [
        (
            tag("strong", each.type),
            tag("span", each.status.value, class_=_mood(each)),
            each.reason,
            _age(each.last_transition_time, now),
            each.message,
        )
        for each in (status.conditions if status is not None else ())
    ]
    return table("Conditions", ("condition", "status", "reason", "since", "message"), rows)


def _mood(condition: common.Condition) -> str | None:
    if condition.type == "Stalled":
        return "bad" if condition.status is common.ConditionStatus.TRUE else None
    is_doubtful = condition.type in ("Ready", "SnapshotFresh", "IndexFresh", "Validated", "Planned")
    return "warn" if is_doubtful and condition.status is not common.ConditionStatus.TRUE else None


def _age(text: str | None, now: common.EpochNanos) -> Html:
    since = _known(text)
    return Html("–") if since is None else ago(since, now, True)


def _graph(page: StatusPage) -> Html:
    nodes = status_nodes(page)
    if not nodes:
        return tag("p", "No join tree is planned: the conditions name the reason.")
    model = drawings.model_of_nodes(
        f"OutputDataset/{page.output.name}", counted(len(nodes) - 1, "join"), nodes
    )
    return drawings.graph_section(published_picture(model), nodes)


def status_drawings(
    namespace: str, output: outputdataset.OutputDataset, now: common.EpochNanos
) -> tuple[str, Callable[[int], str] | None]:
    """The join tree of an output as text, and its timeline by the number of columns."""
    page = StatusPage(namespace, output, now)
    nodes, lanes = status_nodes(page), status_lanes(page)
    has_timeline = len(page.status.snapshots) > 1 or len(lanes) > 1
    return (
        drawings.tree_drawing(nodes) if nodes else "",
        partial(drawings.timeline_drawing, lanes) if has_timeline else None,
    )


def status_lanes(page: StatusPage) -> tuple[Lane, ...]:
    """The history in an output's status: its newest snapshots, and the last failure."""
    known = {_known(each.time) for each in page.status.snapshots}
    times = sorted(time for time in known if time is not None)
    run = page.status.last_run
    # Each begins with the time of a snapshot, which its reason follows.
    tried = {_known(text.partition(" ")[0]) for text in (run.failed if run is not None else ())}
    failed = sorted(time for time in tried - known if time is not None)
    length = usual_length(times)
    lanes = (
        Lane("published", "published", len(times), spans_of(times, length)),
        Lane("failed", "failed", len(failed), spans_of(failed, length)),
    )
    return tuple(lane for lane in lanes if lane.count)


def status_nodes(page: StatusPage) -> tuple[Node, ...]:
    """The sources of the planned tree, with the snapshot of each in the newest snapshot."""
    plan = page.status.plan
    if plan is None:
        return ()
    latest = page.status.latest_snapshot
    root = page.output.spec.data_model.root_data_source.data_source
    return (
        Node(0, "", root, "", "", kind=_kind_of(page, root), taken=_taken(latest, "")),
        *(
            Node(
                place,
                each.field_name,
                each.source,
                each.parent,
                each.relationship,
                kind=_kind_of(page, each.source),
                group_by=each.group_by,
                taken=_taken(latest, each.field_name),
                left_out=_left_out(latest, each.field_name),
                measure=_measured(latest, each.field_name),
                warnings=() if latest is None else warnings_about(each.field_name, latest.warnings),
            )
            for place, each in enumerate(_joined(plan), 1)
        ),
    )


def _joined(plan: outputdataset.PlanStatus) -> Iterator[outputdataset.PlannedJoin]:
    """The joins that lead to the root: a status that somebody else wrote may have circles."""
    known = {""}
    for each in plan.joins:
        name = each.field_name.casefold()
        if name not in known and each.parent.casefold() in known:
            known.add(name)
            yield each


def _kind_of(page: StatusPage, source: str) -> str:
    declared = page.sources.get(source)
    if declared is None:
        return ""
    given = zip(declared.spec.one_of, (value for _, value in declared.spec), strict=True)
    return next(name for name, value in given if value is not None)


def _taken(latest: LatestSnapshot | None, field_name: str) -> str:
    for each in latest.sources if latest is not None else ():
        if each.field_name == field_name and _known(each.time) is not None:
            return each.time
    return ""


def _measured(latest: LatestSnapshot | None, field_name: str) -> JoinMeasure | None:
    joins = latest.joins if latest is not None else ()
    return next((each for each in joins if each.child == field_name), None)


def _left_out(latest: LatestSnapshot | None, field_name: str) -> str:
    for each in latest.excluded if latest is not None else ():
        if each.field_name == field_name:
            return each.reason.value
    return ""


def _sources(page: StatusPage) -> Html:
    rows = []
    for name, source in sorted(page.sources.items()):
        status = source.status
        seen = status.last_seen if status is not None else None
        ready = next((c for c in (status.conditions if status else ()) if c.type == "Ready"), None)
        rows.append((
            tag("strong", name),
            _kind_of(page, name),
            "not reconciled yet" if ready is None else ready.reason,
            "–" if seen is None else status_moment(seen.latest_snapshot),
            "–" if seen is None else _age(seen.at, page.now),
            "" if ready is None or ready.status is common.ConditionStatus.TRUE else ready.message,
        ))  # fmt: skip
    columns = ("source", "reads", "state", "newest snapshot seen", "looked at", "message")
    return table("Sources", columns, rows) or tag("p", "None of the sources exists.")


def _rows_chart(status: outputdataset.OutputDatasetStatus) -> Html:
    known = [(_known(each.time), float(each.rows)) for each in reversed(status.snapshots)]
    times = [time for time, _ in known if time is not None]
    rows = Series("rows", tuple(count for time, count in known if time is not None))
    return tag(
        "div",
        chart("rows-chart", "Rows a snapshot", times, [rows], Axis(number, newest, 0)),
        class_="charts",
    )


def _snapshots(status: outputdataset.OutputDatasetStatus) -> Html:
    if not status.snapshots:
        return tag("p", "No snapshot is published.")
    rows = [(status_moment(each.time), number(each.rows)) for each in status.snapshots]
    more = (status.snapshot_count or 0) - len(rows)
    latest = status.latest_snapshot
    return join([
        table("Snapshots, the newest first", ("snapshot", "rows"), rows, numbers=(1,),
              name="snapshot-table"),
        tag("p", f"and {more:,} older: a status lists the newest", class_="quiet")
        if more > 0 else NOTHING,
        tag("ul", *(tag("li", tag("span", each, class_="warn")) for each in latest.warnings))
        if latest is not None and latest.warnings else NOTHING,
    ])  # fmt: skip


def _runs(page: StatusPage) -> Html:
    status = page.status
    rows = [
        *_current(status.current_run, page.now),
        *_last(status.last_run),
    ]
    columns = ("run", "state", "started", "ended", "message")
    due = _known(status.next_run_time)
    return join([
        table("Runs", columns, rows) or tag("p", "No run has started yet."),
        tag("p", "Next run ", moment(due), ", ", ago(due, page.now, True), ".")
        if due is not None else NOTHING,
    ])  # fmt: skip


def _current(run: CurrentRun | None, now: common.EpochNanos) -> Iterator[Sequence[str | Html]]:
    if run is not None:
        about = run.progress or (f"waits for {run.waiting_for}" if run.waiting_for else "")
        state = join([run.phase.value, " since ", _age(run.since, now)])
        yield tag("code", run.id), state, status_moment(run.started_at), "–", about


def _last(run: LastRun | None) -> Iterator[Sequence[str | Html]]:
    if run is not None:
        has_failed = run.phase in (LastPhase.FAILED, LastPhase.LOST)
        word = f"{run.phase.value} ({run.reason})" if run.reason else run.phase.value
        state = tag("span", word, class_="bad" if has_failed else None)
        done = f"{counted(run.published, 'snapshot')} published"
        times = (status_moment(run.started_at), status_moment(run.finished_at))
        yield tag("code", run.id), state, *times, run.message or done


def _index(index: SkippingIndex, now: common.EpochNanos) -> Html:
    status = index.status or SkippingIndexStatus()
    target, files = index.spec.target, status.files
    facts: list[tuple[str, str | Html]] = [
        ("about", target.output_dataset or target.data_source or ""),
        ("state", status.state.value if status.state is not None else ""),
        ("refreshed", _age(status.last_refreshed, now) if status.last_refreshed else ""),
        ("files", "" if files is None else f"{number(files.indexed)} indexed, "
                  f"{number(files.stale)} changed since, {number(files.missing)} not known"),
        ("size", "" if status.bytes is None else size(status.bytes)),
    ]  # fmt: skip
    return tag(
        "article",
        tag("h3", index.name),
        drawings.definitions(facts),
        _conditions(index.status, now),
    )


def _folder(page: StatusPage) -> Html:
    manifest = page.status.manifest
    facts: list[tuple[str, str | Html]] = [
        ("folder", tag("code", page.output.spec.output_folder.folder_uri)),
        ("manifest", f"entry {manifest.sequence}" if manifest is not None else ""),
        *(manifest.fixed.items() if manifest is not None else ()),
    ]
    return join([drawings.definitions(facts), tag("p", _NOT_HERE, class_="quiet")])
