"""The snapshot of each source that serves a snapshot of the root; the action where none does.

Children are asked in breadth-first order. The window around the root's time is evaluated in the
zone of `intervalStartDate`, the only calendar that an OutputDataset has (rule W17), and both ends
belong to it; NEWEST and OLDEST mean the latest and the earliest in it, not the nearest. A source
that is left out takes everything below it along, unasked, so that their modes cannot fire; the
first SKIP or ERROR in breadth-first order decides the snapshot (rule W18),
and a skipped snapshot is not replaced by another of its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from snaploom.errors import SnapshotMissing
from snaploom.models.common import Preference
from snaploom.models.outputdataset import ChildSnapshot
from snaploom.models.report import ExclusionReason, SnapshotReason
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.calendar import (
    FIRST_INSTANT,
    LAST_INSTANT,
    minus_bounded,
    plus_bounded,
)
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.tree import JoinTree


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
            hint="wait for the data, widen the window, or choose another snapshotMissingMode for "
            f"`{field_name}`",
        )
    )


def _missing(source: str, span: tuple[EpochNanos, EpochNanos]) -> str:
    first, last = map(format_instant, span)
    if first == last:
        return f"DataSource/{source} has no snapshot at {first}"
    return f"DataSource/{source} has no snapshot from {first} to {last}"
