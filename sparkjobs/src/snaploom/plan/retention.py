"""Snapshots that `snapshotAutoDelete` removes, as data.

Four rules, each by itself, each off when all zero (rule P21) or -1: age of the snapshot, age of
its publication, number of old ones, and tiers that thin out what is left of the past (rule P21).
The latest by snapshot time never goes. The same rules, applied to what is there together with what
could be added, decide which candidates are not woven, because they would be removed at once.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from snaploom.models.common import EpochNanos, TimeOffset
from snaploom.models.outputdataset import CatchupMode, SnapshotAutoDelete, Tier
from snaploom.plan.intervals import Intervals, IntervalSequence
from snaploom.plan.times import length_of, minus_bounded


class RetentionRule(StrEnum):
    """The rule by which a snapshot goes; kept in its tombstone."""

    MAX_SNAPSHOT_AGE = "maxSnapshotAge"
    MAX_SNAPSHOT_CREATION_AGE = "maxSnapshotCreationAge"
    MAX_OLD_SNAPSHOTS = "maxOldSnapshots"
    TIERS = "tiers"


class HeldSnapshot(NamedTuple):
    """A published snapshot, or one about to be; a tuple, since there may be 100,000."""

    time: EpochNanos
    created: EpochNanos
    """Time of publication."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A snapshot that goes, and by which rule."""

    time: EpochNanos
    rule: RetentionRule


def removals(
    rules: SnapshotAutoDelete,
    held: Iterable[HeldSnapshot],
    now: EpochNanos,
    periods: IntervalSequence,
) -> tuple[Removal, ...]:
    """The snapshots that go, oldest first, each with the first rule that removes it.

    Ages and number are rules by themselves. Tiers thin out what those leave, from the youngest
    tier to the oldest, each what the one before it leaves: months made of what weeks keep. Judged
    side by side, the first of a month would go for not being the first of its week, and all others
    of the month for not being its first.

    `periods` gives the zone of every age, and the start from which periods of tiers are counted.
    """
    ordered = sorted(held, key=lambda snapshot: snapshot.time)
    chosen: dict[EpochNanos, RetentionRule] = {}
    for rule, times in _by_age_and_number(rules, ordered[:-1], now, periods.zone):
        for time in times:
            chosen.setdefault(time, rule)
    kept = [snapshot.time for snapshot in ordered if snapshot.time not in chosen]
    for time in _thinned(rules.tiers, kept, now, periods):
        chosen[time] = RetentionRule.TIERS
    return tuple(Removal(time, chosen[time]) for time in sorted(chosen))


def _by_age_and_number(
    rules: SnapshotAutoDelete, old: Sequence[HeldSnapshot], now: EpochNanos, zone: str
) -> list[tuple[RetentionRule, list[EpochNanos]]]:
    aged = _before(rules.max_snapshot_age, now, zone)
    published = _before(rules.max_snapshot_creation_age, now, zone)
    surplus = len(old) - rules.max_old_snapshots if rules.max_old_snapshots >= 0 else 0
    return [
        (RetentionRule.MAX_SNAPSHOT_AGE, [s.time for s in old if s.time < aged]),
        (RetentionRule.MAX_SNAPSHOT_CREATION_AGE, [s.time for s in old if s.created < published]),
        (RetentionRule.MAX_OLD_SNAPSHOTS, [s.time for s in old[: max(surplus, 0)]]),
    ]


def _before(age: TimeOffset, now: EpochNanos, zone: str) -> float:
    """The instant before which snapshots are too old; before all time when the rule is off."""
    return float("-inf") if age.is_zero else minus_bounded(now, age, zone)


def _thinned(
    tiers: Sequence[Tier], times: Sequence[EpochNanos], now: EpochNanos, periods: IntervalSequence
) -> list[EpochNanos]:
    """Of ascending times, those that are older than a tier's age and not the first of a period."""
    limits = [(minus_bounded(now, tier.older_than, periods.zone), tier) for tier in tiers]
    found: list[EpochNanos] = []
    for aged, tier in sorted(limits, key=lambda one: -one[0]):
        own = Intervals(periods.start, length_of(tier.keep_one_every), periods.zone)
        gone = _not_first(own, times[:-1], aged)
        found += gone
        times = [time for time in times if time not in gone]
    return found


def _not_first(
    periods: Intervals, times: Iterable[EpochNanos], aged: EpochNanos
) -> set[EpochNanos]:
    found: set[EpochNanos] = set()
    seen: set[int] = set()
    for time, period in periods.of_each(times):
        if period.index in seen and time < aged:
            found.add(time)
        seen.add(period.index)
    return found


def not_worth_weaving(
    rules: SnapshotAutoDelete,
    held: Iterable[HeldSnapshot],
    candidates: Iterable[EpochNanos],
    now: EpochNanos,
    periods: IntervalSequence,
) -> dict[EpochNanos, RetentionRule]:
    """The candidates that would be removed at once, by this run or by those that follow it now.

    Runs are played through until nothing more is woven. Removals by the first one can stand in the
    way of a candidate: the next run weaves that one then, and it takes the place of what the first
    one has woven. That is not worth weaving either.
    """
    there, offered = tuple(held), set(candidates)
    dropped: dict[EpochNanos, RetentionRule] = {}
    while True:
        dropped |= _removed_at_once(rules, there, offered - dropped.keys(), now, periods)
        lost = _lost_later(rules, there, offered, offered - dropped.keys(), now, periods)
        if not lost:
            return dropped
        dropped |= lost


def _removed_at_once(
    rules: SnapshotAutoDelete,
    there: Sequence[HeldSnapshot],
    candidates: Iterable[EpochNanos],
    now: EpochNanos,
    periods: IntervalSequence,
) -> dict[EpochNanos, RetentionRule]:
    """The candidates that would go at once, if those that would not were published now.

    Played through until nothing more goes: a candidate that is not woven saves the place of one
    that is there, which may stand in the way of another candidate.
    """
    coming = set(candidates)
    dropped: dict[EpochNanos, RetentionRule] = {}
    while True:
        added = [HeldSnapshot(time, now) for time in coming]
        gone = {r.time: r.rule for r in removals(rules, (*there, *added), now, periods)}
        if not coming & gone.keys():
            return dropped
        dropped.update((time, gone[time]) for time in coming & gone.keys())
        coming -= gone.keys()


def _lost_later(
    rules: SnapshotAutoDelete,
    there: Sequence[HeldSnapshot],
    offered: Iterable[EpochNanos],
    woven: Iterable[EpochNanos],
    now: EpochNanos,
    periods: IntervalSequence,
) -> dict[EpochNanos, RetentionRule]:
    """Snapshots woven by a run that later runs would remove, each with the rule that removes it."""
    first = coming = set(woven)
    left, held = set(offered), list(there)
    lost: dict[EpochNanos, RetentionRule] = {}
    while coming:
        left -= coming
        held += [HeldSnapshot(time, now) for time in coming]
        gone = {r.time: r.rule for r in removals(rules, held, now, periods)}
        lost.update((time, gone[time]) for time in first & gone.keys())
        if not gone or not left:
            break  # nothing stood in anybody's way
        held = [snapshot for snapshot in held if snapshot.time not in gone]
        coming = left - _removed_at_once(rules, held, left, now, periods).keys()
    return lost


def removals_before(
    coming: Iterable[EpochNanos],
    rules: SnapshotAutoDelete,
    held: Iterable[HeldSnapshot],
    now: EpochNanos,
    periods: IntervalSequence,
) -> tuple[Removal, ...]:
    """The snapshots that go while a run has others still to publish.

    One goes only if it goes with and without those that are to come: without them, for they may
    fail; with them, for then nothing goes that was woven in this very run (NEWEST_FIRST).
    """
    there = tuple(held)
    added = [HeldSnapshot(time, now) for time in coming]
    gone = {removal.time for removal in removals(rules, (*there, *added), now, periods)}
    if not gone:
        return ()
    return tuple(r for r in removals(rules, there, now, periods) if r.time in gone)


def removals_of_run(
    due: Sequence[EpochNanos],
    published: Collection[EpochNanos],
    rules: SnapshotAutoDelete,
    held: Iterable[HeldSnapshot],
    now: EpochNanos,
    periods: IntervalSequence,
) -> tuple[Removal, ...]:
    """The snapshots that a run removes, in the order in which it does.

    A run removes behind each publication what `removals_before` returns, with what it has still to
    publish; this plays the same through. A run that ends early removes no others. `due` are the
    times of the snapshots that the run sets out to publish, in its order, and `published` those
    that it does publish.
    """
    if rules == SnapshotAutoDelete():
        return ()
    there = {snapshot.time: snapshot for snapshot in held}
    found: list[Removal] = []
    for place, time in enumerate(due):
        if time not in published:
            continue
        there[time] = HeldSnapshot(time, now)
        gone = removals_before(due[place + 1 :], rules, there.values(), now, periods)
        found.extend(gone)
        for removal in gone:
            del there[removal.time]
    return tuple(found)


def catchup_order(times: Iterable[EpochNanos], mode: CatchupMode) -> tuple[EpochNanos, ...]:
    """The times in the order in which a backlog is processed."""
    return tuple(sorted(times, reverse=mode is CatchupMode.NEWEST_FIRST))
