"""The steps of a run as data, and which snapshot of each source serves each of them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from snaploom.errors import RootEmpty, SnapshotMissing
from snaploom.models.asof import ChildSnapshot
from snaploom.models.common import EpochNanos, MissingMode, Preference, TimeOffset, format_instant
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding
from snaploom.models.report import MOST_OLDER, ExclusionReason, SnapshotReason
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.times import FIRST_INSTANT, LAST_INSTANT, minus_bounded, plus_bounded
from snaploom.plan.tree import JoinTree
from snaploom.sources.registry import declared

# The snapshot of each source that serves a snapshot of the root; the action where none does.


class Action(StrEnum):
    """The action of a run for a candidate."""

    PUBLISH = "PUBLISH"
    SKIP = "SKIP"
    FAIL = "FAIL"


Times = tuple[EpochNanos, ...]
"""The snapshots of a source that one of the root takes: one, or those of a history, newest last."""
Taken = tuple[str, Times]
"""Field name of a source, and its snapshots."""


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
    sources: tuple[Taken, ...]
    """The sources taken, in breadth-first order, root first."""
    excluded: tuple[ExcludedSource, ...] = ()
    warn: bool = False
    """Whether a skip is to be logged as a warning."""
    message: str = ""
    notes: tuple[str, ...] = ()
    """Warnings about histories that are not whole."""


def choose(
    rules: ChildSnapshot, offered: SourceSnapshots, time: EpochNanos, now: EpochNanos, zone: str
) -> Times:
    """The snapshots of a child that go with a root's snapshot at `time`; empty if there is none."""
    first, last = window(rules, time, zone)
    if rules.history is not None:
        return offered.within(first, last)
    is_newest = rules.preference is Preference.NEWEST
    found = (offered.newest if is_newest else offered.oldest)(first, last, now)
    return () if found is None else (found,)


def window(rules: ChildSnapshot, time: EpochNanos, zone: str) -> tuple[EpochNanos, EpochNanos]:
    """First and last time that a child's snapshot may have, both inclusive."""
    if rules.history is not None:
        return EpochNanos(minus_bounded(time, rules.history, zone) + 1), time
    return (
        minus_bounded(time, rules.time_before, zone),
        plus_bounded(time, rules.time_after, zone),
    )


def gaps(
    rules: ChildSnapshot, times: Times, time: EpochNanos, zone: str
) -> tuple[tuple[EpochNanos, EpochNanos], ...]:
    """Parts of a history without one of its snapshots, ascending: without the start, with the end.

    Neighbours are one gap. There is none without a history.
    """
    if rules.history is None:
        return ()
    unit, number = rules.parts
    ends = (minus_bounded(time, TimeOffset(**{unit: n}), zone) for n in range(number, -1, -1))
    found: list[tuple[EpochNanos, EpochNanos]] = []
    for start, end in pairwise(ends):
        if bisect_right(times, start) < bisect_right(times, end):
            continue
        if found and found[-1][1] == start:
            start = found.pop()[0]
        found.append((start, end))
    return tuple(found)


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
    taken: list[Taken] = [(tree.root.field_name, (time,))]
    excluded: dict[int, ExcludedSource] = {}
    notes: list[str] = []
    for node in tree.joins:
        if node.parent_number in excluded:
            excluded[node.number] = ExcludedSource(
                node.field_name,
                ExclusionReason.PARENT_EXCLUDED,
                message=f"{node.parent} is not part of the snapshot",
            )
            continue
        rule, there = rules[node.field_name], offered.get(node.source, SourceSnapshots())
        mode = rule.snapshot_missing_mode
        found = choose(rule, there, time, now, zone)
        if len(found) > MOST_OLDER + 1:
            count, length = f"{len(found):,}", f"the last {rule.history and rule.history.text}"
            message = (
                f"{node.field_name}: DataSource/{node.source} has {count} snapshots in {length}, "
                f"more than {MOST_OLDER + 1:,}: shorten snapshot.history, or write fewer folders"
            )
            reason = SnapshotReason.SNAPSHOT_MISSING
            return Availability(Action.FAIL, reason, tuple(taken), message=message)
        lacking = gaps(rule, found, time, zone) if found else ()
        if lacking and mode not in _SILENT:
            notes.append(f"{node.field_name}: {_not_whole(node.source, rule, lacking)}")
        # What lies before the first snapshot of all is no gap: the source has begun since.
        between = [gap for gap in lacking if gap[1] >= there.times[0]]
        if found and (mode.continues or not between):
            taken.append((node.field_name, found))
            continue
        message = (
            _not_whole(node.source, rule, between)
            if found
            else _missing(node.source, window(rule, time, zone))
        )
        if not mode.continues and not mode.skips:
            nearest = (
                there.newest(FIRST_INSTANT, time, now),
                there.oldest(time, LAST_INSTANT, now),
            )
            return Availability(
                Action.FAIL,
                SnapshotReason.SNAPSHOT_MISSING,
                tuple(taken),
                tuple(excluded.values()),
                message=_failure(node.field_name, message, () if found else nearest, rule),
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
        Action.PUBLISH,
        SnapshotReason.NEW_SNAPSHOT,
        tuple(taken),
        tuple(excluded.values()),
        notes=tuple(notes),
    )


_SILENT = (MissingMode.CONTINUE_IGNORE, MissingMode.SKIP_IGNORE)
_SHOWN_GAPS = 3
"""Gaps of a history that a message names."""


def _not_whole(
    source: str, rules: ChildSnapshot, lacking: Sequence[tuple[EpochNanos, EpochNanos]]
) -> str:
    assert rules.history is not None  # what has gaps has one
    unit, _ = rules.parts
    spans = [f"after {format_instant(start)} up to {format_instant(end)}" for start, end in lacking]
    more = f" and {len(spans) - _SHOWN_GAPS} more" if len(spans) > _SHOWN_GAPS else ""
    return (
        f"DataSource/{source} has no snapshot for every {unit} of the last {rules.history.text}: "
        f"none {', '.join(spans[:_SHOWN_GAPS])}{more}"
    )


def _failure(
    field_name: str, message: str, around: Iterable[EpochNanos | None], rules: ChildSnapshot
) -> str:
    """The whole error of a source that lacks a snapshot, and may not be left out.

    `around` are the nearest ones; empty for a history that has gaps.
    """
    nearest = [time for time in around if time is not None]
    found = "the nearest is " + " or ".join(map(format_instant, nearest))
    if rules.history is not None:
        expected = f"one for every {rules.parts[0]} of snapshot.history"
    else:
        expected = "one in the window that snapshot.timeBefore and timeAfter open"
    if not nearest:
        found = "no snapshot at all" if around else "snapshots for the other times"
    hint = "wait for it; or let snapshotMissingMode go on without it" * (rules.history is not None)
    return str(
        SnapshotMissing(f"{field_name}: {message}", found=found, expected=expected, hint=hint)
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

Visit = Mapping[str, Times]
"""The snapshots that one snapshot is woven from, by field name, the root's included."""


def recurring_subtrees(tree: JoinTree, visits: Sequence[Visit]) -> tuple[Mapping[int, int], ...]:
    """For each visit, the subtrees to keep: their signatures, by the number of their top.

    Visits are in the order of work. A source that is missing, and its descendants, are left out of
    its visit. Equal values in two visits mean the same subtree of the same snapshots.
    """
    names: dict[tuple[int, Times, tuple[int, ...]], int] = {}
    found = [_subtrees(tree, visit, names) for visit in visits]
    uses = Counter(name for visit in found for name in visit.values())
    return tuple(_kept(tree, visit, uses) for visit in found)


def _subtrees(
    tree: JoinTree, visit: Visit, names: dict[tuple[int, Times, tuple[int, ...]], int]
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


# What a snapshot reads.


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Read one snapshot of one source, or those of a history together."""

    field_name: str
    source: str
    times: Times


def sources_read(tree: JoinTree, found: Availability) -> tuple[ReadSource, ...]:
    """The sources that a snapshot is woven from, root first."""
    times = dict(found.sources)
    included = (node for node in tree.nodes if node.field_name in times)
    return tuple(ReadSource(n.field_name, n.source, times[n.field_name]) for n in included)
