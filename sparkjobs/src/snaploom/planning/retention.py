"""Which snapshots `snapshotAutoDelete` removes, as data.

Four rules, each by itself, each off when all zero (ruling K10) or -1: age of the snapshot, age of
its publication, number of old ones, and tiers that thin out the past (ruling D8). The latest by
snapshot time never goes. The same rules, applied to what is there together with what could be
added, tell which candidates are not worth weaving, because they would be removed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from snaploom.models.common import TimeOffset
from snaploom.models.outputfolder import CatchupMode, SnapshotAutoDelete, Tier
from snaploom.models.times import EpochNanos
from snaploom.planning.calendar import length_of, minus_bounded
from snaploom.planning.intervals import Intervals


class RetentionRule(StrEnum):
    """The rule by which a snapshot goes; kept in its tombstone."""

    MAX_SNAPSHOT_AGE = "maxSnapshotAge"
    MAX_SNAPSHOT_CREATION_AGE = "maxSnapshotCreationAge"
    MAX_OLD_SNAPSHOTS = "maxOldSnapshots"
    TIERS = "tiers"


@dataclass(frozen=True, slots=True)
class HeldSnapshot:
    """A published snapshot, or one about to be."""

    time: EpochNanos
    created: EpochNanos
    """When it was published."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A snapshot that goes, and by which rule."""

    time: EpochNanos
    rule: RetentionRule


def removals(
    rules: SnapshotAutoDelete,
    held: Iterable[HeldSnapshot],
    now: EpochNanos,
    periods: Intervals,
) -> tuple[Removal, ...]:
    """The snapshots that go, oldest first, each with the first rule that says so.

    `periods` gives the zone of every age, and the start from which periods of tiers are counted.
    """
    ordered = sorted(held, key=lambda snapshot: snapshot.time)
    chosen: dict[EpochNanos, RetentionRule] = {}
    for rule, times in _by_rule(rules, ordered[:-1], ordered, now, periods):
        for time in times:
            chosen.setdefault(time, rule)
    return tuple(Removal(time, chosen[time]) for time in sorted(chosen))


def _by_rule(
    rules: SnapshotAutoDelete,
    old: Sequence[HeldSnapshot],
    ordered: Sequence[HeldSnapshot],
    now: EpochNanos,
    periods: Intervals,
) -> list[tuple[RetentionRule, list[EpochNanos]]]:
    zone = periods.zone
    aged = _before(rules.max_snapshot_age, now, zone)
    published = _before(rules.max_snapshot_creation_age, now, zone)
    surplus = len(old) - rules.max_old_snapshots if rules.max_old_snapshots >= 0 else 0
    return [
        (RetentionRule.MAX_SNAPSHOT_AGE, [s.time for s in old if s.time < aged]),
        (RetentionRule.MAX_SNAPSHOT_CREATION_AGE, [s.time for s in old if s.created < published]),
        (RetentionRule.MAX_OLD_SNAPSHOTS, [s.time for s in old[: max(surplus, 0)]]),
        (RetentionRule.TIERS, _thinned(rules.tiers, ordered, now, periods)),
    ]


def _before(age: TimeOffset, now: EpochNanos, zone: str) -> float:
    """The instant before which snapshots are too old; before all time when the rule is off."""
    return float("-inf") if age.is_zero else minus_bounded(now, age, zone)


def _thinned(
    tiers: Sequence[Tier], ordered: Sequence[HeldSnapshot], now: EpochNanos, periods: Intervals
) -> list[EpochNanos]:
    """Snapshots older than a tier's age that are not the first of their period."""
    found: list[EpochNanos] = []
    for tier in tiers:
        if tier.keep_one_every.is_zero:
            continue
        aged = _before(tier.older_than, now, periods.zone)
        own = Intervals(periods.start, length_of(tier.keep_one_every), periods.zone)
        seen: set[int] = set()
        for time, period in own.of_each(snapshot.time for snapshot in ordered[:-1]):
            if period.index in seen and time < aged:
                found.append(time)
            seen.add(period.index)
    return found


def not_worth_weaving(
    rules: SnapshotAutoDelete,
    held: Iterable[HeldSnapshot],
    candidates: Iterable[EpochNanos],
    now: EpochNanos,
    periods: Intervals,
) -> dict[EpochNanos, RetentionRule]:
    """The candidates that would be removed at once, if all of them were published now."""
    added = [HeldSnapshot(time, now) for time in candidates]
    gone = {r.time: r.rule for r in removals(rules, (*held, *added), now, periods)}
    return {s.time: gone[s.time] for s in added if s.time in gone}


def catchup_order(times: Iterable[EpochNanos], mode: CatchupMode) -> tuple[EpochNanos, ...]:
    """The times in the order in which a backlog is worked off."""
    return tuple(sorted(times, reverse=mode is CatchupMode.NEWEST_FIRST))
