"""The steps of a run as data, and which snapshot of each source serves each of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from snaploom.errors import RootEmpty, SnapshotMissing
from snaploom.models.common import EpochNanos, Preference, format_instant
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding
from snaploom.models.outputdataset import ChildSnapshot
from snaploom.models.report import ExclusionReason, SnapshotReason
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.times import FIRST_INSTANT, LAST_INSTANT, minus_bounded, plus_bounded
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.sources.registry import declared

# The snapshot of each source that serves a snapshot of the root; the action where none does.


class Action(StrEnum):
    """The action of a run for a candidate."""

    PUBLISH = "PUBLISH"
    SKIP = "SKIP"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class ExcludedSource:
    """A source that a snapshot does without."""

    field_name: str
    reason: ExclusionReason
    warn: bool = False
    """Whether its mode asks for a warning."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Availability:
    """The source snapshots available for one snapshot of the root."""

    action: Action
    reason: SnapshotReason
    sources: tuple[tuple[str, EpochNanos], ...]
    """Field name and snapshot time of the sources taken, in breadth-first order, root first."""
    excluded: tuple[ExcludedSource, ...] = ()
    warn: bool = False
    """Whether a skip is to be logged as a warning."""
    message: str = ""


def choose(
    rules: ChildSnapshot, offered: SourceSnapshots, time: EpochNanos, now: EpochNanos, zone: str
) -> EpochNanos | None:
    """The snapshot of a child that goes with a root's snapshot at `time`, if there is one."""
    first, last = window(rules, time, zone)
    if rules.preference is Preference.NEWEST:
        return offered.newest(first, last, now)
    return offered.oldest(first, last, now)


def window(rules: ChildSnapshot, time: EpochNanos, zone: str) -> tuple[EpochNanos, EpochNanos]:
    """First and last time that a child's snapshot may have, both inclusive."""
    return (
        minus_bounded(time, rules.time_before, zone),
        plus_bounded(time, rules.time_after, zone),
    )


def availability(
    tree: JoinTree,
    rules: Mapping[str, ChildSnapshot],
    offered: Mapping[str, SourceSnapshots],
    time: EpochNanos,
    now: EpochNanos,
    zone: str,
) -> Availability:
    """Return the source snapshots available for a snapshot of the root at `time`.

    `rules` choose, by field name, the snapshot that goes with one of the root; `offered` has the
    snapshots of each source, `now` is the time of sources without history, and `zone` that of the
    windows' calendar lengths.
    """
    taken: list[tuple[str, EpochNanos]] = [(tree.root.field_name, time)]
    excluded: dict[int, ExcludedSource] = {}
    for node in tree.joins:
        if node.parent_number in excluded:
            excluded[node.number] = ExcludedSource(
                node.field_name,
                ExclusionReason.PARENT_EXCLUDED,
                message=f"{node.parent} is not part of the snapshot",
            )
            continue
        rule = rules[node.field_name]
        found = choose(rule, offered.get(node.source, SourceSnapshots()), time, now, zone)
        if found is not None:
            taken.append((node.field_name, found))
            continue
        mode = rule.snapshot_missing_mode
        message = _missing(node.source, window(rule, time, zone))
        if not mode.continues and not mode.skips:
            there = offered.get(node.source, SourceSnapshots())
            nearest = (
                there.newest(FIRST_INSTANT, time, now),
                there.oldest(time, LAST_INSTANT, now),
            )
            return Availability(
                Action.FAIL,
                SnapshotReason.SNAPSHOT_MISSING,
                tuple(taken),
                tuple(excluded.values()),
                message=_failure(node.field_name, message, nearest),
            )
        if mode.skips:
            return Availability(
                Action.SKIP,
                SnapshotReason.SNAPSHOT_MISSING,
                tuple(taken),
                tuple(excluded.values()),
                mode.warns,
                f"{node.field_name}: {message}",
            )
        excluded[node.number] = ExcludedSource(
            node.field_name, ExclusionReason.SNAPSHOT_MISSING, mode.warns, message
        )
    return Availability(
        Action.PUBLISH, SnapshotReason.NEW_SNAPSHOT, tuple(taken), tuple(excluded.values())
    )


def _failure(field_name: str, message: str, around: Iterable[EpochNanos | None]) -> str:
    """The whole error of a source that has nothing in its window, and may not be left out."""
    nearest = [time for time in around if time is not None]
    return str(
        SnapshotMissing(
            f"{field_name}: {message}",
            found="the nearest is " + " or ".join(map(format_instant, nearest))
            if nearest
            else "no snapshot at all",
            expected="one in the window that snapshot.timeBefore and timeAfter open",
        )
    )


def _missing(source: str, span: tuple[EpochNanos, EpochNanos]) -> str:
    first, last = map(format_instant, span)
    if first == last:
        return f"DataSource/{source} has no snapshot at {first}"
    return f"DataSource/{source} has no snapshot from {first} to {last}"


# Sources that have no snapshot at all: most often a glob that matches nothing.

EMPTY_SOURCE = "SL307"


def empty_source_findings(
    bundle: Bundle, tree: JoinTree, offered: Mapping[str, SourceSnapshots]
) -> Iterator[Finding]:
    """A warning for every source of the tree without snapshots, for any missing mode."""
    for node in tree.nodes:
        if offered.get(node.source, SourceSnapshots()).is_empty:
            yield _finding(bundle.source(node.source))


def refuse_empty_root(root: DataSource, offered: SourceSnapshots) -> None:
    """Refuse a run whose root offers nothing, where that is not to pass as a warning."""
    if not offered.is_empty:
        return
    finding = _finding(root)
    raise RootEmpty(
        "the root has no snapshot at all, so that nothing can be published",
        resource=finding.resource,
        path=finding.path,
        found=finding.found,
        expected=finding.expected,
    )


def _finding(source: DataSource) -> Finding:
    reported = declared(source).no_snapshots
    return source.finding(
        EMPTY_SOURCE,
        f"spec.{reported.field}",
        "this source has no snapshot at all",
        found=reported.found,
        expected="at least one snapshot",
        hint=reported.hint,
    )


# Subtrees of the join tree that recur from snapshot to snapshot, so that each is folded once.

Visit = Mapping[str, EpochNanos]
"""The snapshots that one snapshot is woven from: times by field name, the root's included."""


def recurring_subtrees(tree: JoinTree, visits: Sequence[Visit]) -> tuple[Mapping[int, int], ...]:
    """For each visit, the subtrees to keep: their signatures, by the number of their top.

    Visits are in the order of work. A source that is missing, and its descendants, are left out of
    its visit.

    Returns:
        Equal values in two visits mean the same subtree of the same snapshots.
    """
    names: dict[tuple[int, EpochNanos, tuple[int, ...]], int] = {}
    found = [_subtrees(tree, visit, names) for visit in visits]
    uses = Counter(name for visit in found for name in visit.values())
    return tuple(_kept(tree, visit, uses) for visit in found)


def _subtrees(
    tree: JoinTree, visit: Visit, names: dict[tuple[int, EpochNanos, tuple[int, ...]], int]
) -> dict[int, int]:
    left_out = tree.subtrees(n.number for n in tree.joins if n.field_name not in visit)
    found: dict[int, int] = {}
    for node in reversed(tree.joins):
        if node.number not in left_out:
            children = (child.number for child in tree.children(node.number))
            parts = tuple(found[number] for number in children if number in found)
            name = (node.number, visit[node.field_name], parts)
            found[node.number] = names.setdefault(name, len(names))
    return found


def _kept(tree: JoinTree, found: Mapping[int, int], uses: Mapping[int, int]) -> dict[int, int]:
    kept: dict[int, int] = {}
    most = {0: 1}
    for node in tree.joins:
        if node.number in found:
            name, above = found[node.number], most[node.parent_number]
            if uses[name] > above:
                kept[node.number] = name
            most[node.number] = max(uses[name], above)
    return kept


# The steps of a run, as data: `plan` prints and `run` visits this one list.


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Read one snapshot of one source."""

    field_name: str
    source: str
    time: EpochNanos


@dataclass(frozen=True, slots=True)
class GroupNode:
    """Collect the rows of a node, its children in them, into one array a key."""

    node: JoinNode


@dataclass(frozen=True, slots=True)
class JoinChildren:
    """Join a node with all its children."""

    junction: JoinNode
    children: tuple[JoinNode, ...]


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Write the woven snapshot to staging."""

    time: EpochNanos
    partition: str
    """Folder below `data/`."""


@dataclass(frozen=True, slots=True)
class PublishSnapshot:
    """Make the written snapshot visible, atomically."""

    time: EpochNanos
    partition: str


@dataclass(frozen=True, slots=True)
class SkipSnapshot:
    """Leave a snapshot out of this run."""

    time: EpochNanos
    reason: SnapshotReason
    warn: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class FailSnapshot:
    """Fail because of a snapshot; nothing is published for it."""

    time: EpochNanos
    reason: SnapshotReason
    message: str = ""


@dataclass(frozen=True, slots=True)
class CollectEnded:
    """Remove files of ended snapshots whose readers' grace has passed; the last step of a run."""

    snapshots: int
    """Ended snapshots whose files may still be there, before the run ends any."""


Step = (
    ReadSource
    | GroupNode
    | JoinChildren
    | WriteSnapshot
    | PublishSnapshot
    | SkipSnapshot
    | FailSnapshot
    | CollectEnded
)


def weaving_steps(tree: JoinTree, found: Availability, partition: str) -> tuple[Step, ...]:
    """The steps that weave and publish one snapshot from the source snapshots available for it."""
    time = found.sources[0][1]
    times = dict(found.sources)
    included = [node for node in tree.nodes if node.field_name in times]
    reads = (ReadSource(n.field_name, n.source, times[n.field_name]) for n in included)
    return (
        *reads,
        *_joins(tree, {node.number for node in included}),
        WriteSnapshot(time, partition),
        PublishSnapshot(time, partition),
    )


def _joins(tree: JoinTree, included: Collection[int]) -> list[Step]:
    steps: list[Step] = []
    for junction in reversed(tree.nodes):
        joined = [node for node in tree.children(junction.number) if node.number in included]
        steps.extend(GroupNode(child) for child in joined if child.group_by)
        if joined:
            steps.append(JoinChildren(junction, tuple(joined)))
    return steps
