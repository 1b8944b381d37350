"""Years of runs against rules that are read one snapshot at a time.

What is proved of every history: what a run weaves neither it nor the next one deletes before time
has passed; what was deleted never comes again; the latest stays; and what is left is what a plain
reading of the rules leaves.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples

from snaploom.models.common import EpochNanos, Preference, TimeOffset, parse_instant
from snaploom.models.outputdataset import CatchupMode, SnapshotAutoDelete, Tier
from snaploom.plan.intervals import Intervals, IntervalSettings, SourceSnapshots, root_candidates
from snaploom.plan.retention import (
    HeldSnapshot,
    RetentionRule,
    catchup_order,
    not_worth_weaving,
    removals,
    removals_before,
)
from snaploom.plan.times import length_of

DAY = 86_400 * 10**9
MOST_RUNS = 6
"""At one instant, until nothing is left to do."""
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
PERIODS = Intervals(EpochNanos(int(FIRST.timestamp()) * 10**9), length_of(TimeOffset(day=1)), "UTC")


@dataclass
class Folder:
    """What runs leave behind, by number of the day."""

    rules: SnapshotAutoDelete
    mode: CatchupMode
    created: dict[int, float] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    def run(self, offered: list[int], now: float, failing: set[int]) -> tuple[set[int], set[int]]:
        """What one run wrote and what it deleted; a snapshot that fails is left out."""
        settings_ = IntervalSettings(PERIODS, Preference.NEWEST)
        taken = [day(d) for d in (*self.created, *self.ended)]
        times = SourceSnapshots.of(day(d) for d in offered)
        found = [c.time for c in root_candidates(settings_, times, taken, day(now))]
        dropped = not_worth_weaving(self.rules, self.held(), found, day(now), PERIODS)
        due = catchup_order([t for t in found if t not in dropped], self.mode)
        written: set[int] = set()
        deleted: set[int] = set()
        for position, time in enumerate(due):
            if number(time) in failing:
                continue
            assert number(time) not in self.created.keys() | self.ended
            self.created[number(time)] = now
            written.add(number(time))
            deleted |= self.delete(now, due[position + 1 :])
        assert not written & deleted
        return written, deleted

    def delete(self, now: float, coming: tuple[EpochNanos, ...] = ()) -> set[int]:
        removed = removals_before(coming, self.rules, self.held(), day(now), PERIODS)
        gone = {number(removal.time) for removal in removed}
        for one in gone:
            del self.created[one]
        self.ended |= gone
        return gone

    def held(self) -> list[HeldSnapshot]:
        return [HeldSnapshot(day(d), day(created)) for d, created in self.created.items()]


def day(offset: float) -> EpochNanos:
    return EpochNanos(PERIODS.start + int(offset * DAY))


def number(time: EpochNanos) -> int:
    return (time - PERIODS.start) // DAY


def read_plainly(rules: SnapshotAutoDelete, created: dict[int, float], now: float) -> set[int]:
    """What the rules leave, in calendar dates; tiers by weeks or months."""
    left = sorted(created)
    old = left[:-1]
    kept = [
        one
        for position, one in enumerate(old)
        if not (rules.max_snapshot_age.day and one < now - rules.max_snapshot_age.day)
        and not (
            rules.max_snapshot_creation_age.day
            and created[one] < now - rules.max_snapshot_creation_age.day
        )
        and not (rules.max_old_snapshots >= 0 and position < len(old) - rules.max_old_snapshots)
    ]
    for tier in sorted(rules.tiers, key=lambda tier: tier.older_than.day):
        firsts: dict[object, int] = {}
        for one in kept:
            firsts.setdefault(period(one, tier), one)
        kept = [
            one
            for one in kept
            if one >= now - tier.older_than.day or firsts[period(one, tier)] == one
        ]
    return {*kept, *left[-1:]}


def period(one: int, tier: Tier) -> object:
    if tier.keep_one_every.month:
        date = FIRST + timedelta(days=one)
        return (date.year * 12 + date.month - 1) // tier.keep_one_every.month
    return one // (7 * tier.keep_one_every.week)


ages = st.builds(lambda days: TimeOffset(day=days), st.sampled_from([0, 0, 0, 3, 40, 500]))
tiers = st.builds(
    lambda age, every: Tier(older_than=TimeOffset(day=age), keep_one_every=every),
    st.integers(1, 200),
    st.sampled_from(
        [TimeOffset(week=1), TimeOffset(week=2), TimeOffset(month=1), TimeOffset(month=3)]
    ),
)
rules_of = st.builds(
    lambda age, creation, old, some: SnapshotAutoDelete(
        max_snapshot_age=age, max_snapshot_creation_age=creation, max_old_snapshots=old, tiers=some
    ),
    ages, ages, st.sampled_from([-1, -1, -1, 0, 1, 30]),
    st.lists(tiers, max_size=3, unique_by=lambda tier: tier.older_than.day).map(tuple),
)  # fmt: skip


@settings(max_examples=examples(30))
@given(
    rules_of, st.sampled_from(CatchupMode), st.lists(st.integers(1, 120), min_size=2, max_size=6),
    st.sets(st.integers(0, 900), max_size=40), st.data(),
)  # fmt: skip
def test_years_of_runs_never_write_what_they_delete_nor_bring_back_what_is_gone(
    rules: SnapshotAutoDelete,
    mode: CatchupMode,
    pauses: list[int],
    late: set[int],
    data: st.DataObject,
) -> None:
    folder = Folder(rules, mode)
    now, arrived = 0, set[int]()
    for pause in pauses:
        now += pause
        # Some days of the source are late, and a run may fail at some of what it has to weave.
        arrived |= {one for one in range(now) if one not in late or data.draw(st.booleans())}
        failing = data.draw(st.sets(st.integers(max(0, now - 60), now), max_size=4))
        woven, _ = folder.run(sorted(arrived), now + 0.5, failing)
        written = woven
        # Deletions by age may make room below maxOldSnapshots, which later runs fill; that ends.
        for _ in range(MOST_RUNS):
            if not written:
                break
            written, deleted = folder.run(sorted(arrived), now + 0.5, set())
            woven |= written
            assert not woven & deleted
        assert not written
        if woven:
            assert set(folder.created) == read_plainly(rules, folder.created, now + 0.5)
            assert max(folder.created) >= max(folder.ended, default=-1)


@settings(max_examples=examples(60))
@given(rules_of, st.dictionaries(st.integers(0, 900), st.integers(0, 30), max_size=150))
def test_what_is_left_is_what_a_plain_reading_leaves_and_reading_again_leaves_it(rules, history):
    folder = Folder(rules, CatchupMode.OLDEST_FIRST)
    folder.created = {one: one + later for one, later in history.items()}
    expected = read_plainly(rules, folder.created, 930)
    folder.delete(930)
    assert set(folder.created) == expected
    assert folder.delete(930) == set()


def test_what_a_removal_makes_room_for_never_takes_the_place_of_what_the_run_has_woven() -> None:
    # The week of day 60 begins with day 56, which goes with its month. Then day 60 begins what is
    # left of its week, and its month too, in which day 63 was the first.
    week = Tier(older_than=TimeOffset(day=4), keep_one_every=TimeOffset(week=1))
    month = Tier(older_than=TimeOffset(day=5), keep_one_every=TimeOffset(month=1))
    folder = Folder(SnapshotAutoDelete(tiers=(week, month)), CatchupMode.OLDEST_FIRST)
    for today in (1, 60):
        folder.run(list(range(today)), today + 0.5, set())
    first, _ = folder.run(list(range(68)), 68.5, set())
    second, deleted = folder.run(list(range(68)), 68.5, set())
    assert (first, second) == ({65, 66, 67}, {60})
    assert not deleted & first
    assert folder.run(list(range(68)), 68.5, set()) == (set(), set())


@pytest.mark.slow
def test_daily_runs_for_years_end_with_days_weeks_and_months() -> None:
    week = Tier(older_than=TimeOffset(day=14), keep_one_every=TimeOffset(week=1))
    month = Tier(older_than=TimeOffset(day=90), keep_one_every=TimeOffset(month=1))
    folder = Folder(SnapshotAutoDelete(tiers=(month, week)), CatchupMode.OLDEST_FIRST)
    for today in range(400):
        folder.run([today], today + 0.5, set())
    left = sorted(folder.created)
    assert set(left) == read_plainly(folder.rules, folder.created, 399.5)
    gaps = [later - earlier for earlier, later in pairwise(left)]
    assert gaps[-14:] == [1] * 14
    assert set(gaps[-24:-15]) == {7}
    assert all(21 <= gap <= 42 for gap in gaps[:8])


#


LENGTH = 24 * 3_600_000_000_000
START = parse_instant("2020-01-01T00:00:00Z")
DAYS = Intervals(START, length_of(TimeOffset(day=1)), "UTC")


def at_day(number: float) -> EpochNanos:
    return EpochNanos(START + int(number * LENGTH))


def held(*days: float, created: float = 0) -> list[HeldSnapshot]:
    return [HeldSnapshot(at_day(number), at_day(created)) for number in days]


def gone(rules: SnapshotAutoDelete, snapshots: list[HeldSnapshot], now: float) -> list[float]:
    return [(r.time - START) / LENGTH for r in removals(rules, snapshots, at_day(now), DAYS)]


def test_age_counts_from_now_and_spares_the_latest() -> None:
    rules = SnapshotAutoDelete(max_snapshot_age=TimeOffset(day=2))
    assert gone(rules, held(1, 2, 3, 4), 5) == [1, 2]
    assert gone(rules, held(1, 2, 3, 4), 500) == [1, 2, 3]


def test_creation_age_spares_the_latest_by_snapshot_time() -> None:
    rules = SnapshotAutoDelete(max_snapshot_creation_age=TimeOffset(day=2))
    snapshots = [*held(1, created=8), *held(2, created=7.9), *held(3, created=2)]
    assert gone(rules, snapshots, 10) == [2]


def test_months_are_made_of_what_weeks_keep() -> None:
    weeks = Tier(older_than=TimeOffset(day=5), keep_one_every=TimeOffset(week=1))
    months = Tier(older_than=TimeOffset(day=20), keep_one_every=TimeOffset(day=30))
    for tiers in ((weeks, months), (months, weeks)):
        removed = gone(SnapshotAutoDelete(tiers=tiers), held(*range(70)), 100)
        assert sorted(set(range(70)) - set(removed)) == [0, 35, 63, 69]


@pytest.mark.parametrize(("age", "expected"), [(0, [1, 2, 3, 4]), (2, [1, 2])])
def test_a_tier_thins_what_is_older_than_its_age_but_the_latest(age, expected) -> None:
    tier = Tier(older_than=TimeOffset(day=age), keep_one_every=TimeOffset(week=1))
    assert gone(SnapshotAutoDelete(tiers=(tier,)), held(*range(6)), 5) == expected


def test_while_a_run_has_more_to_publish_nothing_goes_that_would_come_back_into_its_own() -> None:
    rules = SnapshotAutoDelete(max_old_snapshots=1)
    there = held(1, 4)
    for coming, expected in (([], []), ([at_day(3)], []), ([at_day(5)], [])):
        assert list(removals_before(coming, rules, there, at_day(9), DAYS)) == expected
    [removal] = removals_before([at_day(3)], rules, held(1, 2, 4), at_day(9), DAYS)
    assert removal.time == at_day(1)
    # With day 9 the number takes day 5, and day 7 is the first of its ten days.
    tier = Tier(older_than=TimeOffset(), keep_one_every=TimeOffset(day=10))
    thinned = SnapshotAutoDelete(max_old_snapshots=2, tiers=(tier,))
    assert gone(thinned, held(5, 7, 10), 21) == [7]
    assert removals_before([at_day(9)], thinned, held(5, 7, 10), at_day(21), DAYS) == ()


def test_a_removal_names_its_rule() -> None:
    rules = SnapshotAutoDelete(max_snapshot_age=TimeOffset(day=2), max_old_snapshots=0)
    found = removals(rules, held(1, 4, 5), at_day(5), DAYS)
    assert [removal.rule for removal in found] == [
        RetentionRule.MAX_SNAPSHOT_AGE, RetentionRule.MAX_OLD_SNAPSHOTS,
    ]  # fmt: skip


def test_candidates_that_would_go_at_once_are_not_worth_weaving() -> None:
    rules = SnapshotAutoDelete(max_old_snapshots=1)
    found = not_worth_weaving(rules, held(2), [at_day(1), at_day(3), at_day(4)], at_day(9), DAYS)
    assert found == {at_day(1): RetentionRule.MAX_OLD_SNAPSHOTS}


def test_catchup_order_is_by_time() -> None:
    times = [at_day(2), at_day(1), at_day(3)]
    assert catchup_order(times, CatchupMode.OLDEST_FIRST) == (at_day(1), at_day(2), at_day(3))
    assert catchup_order(times, CatchupMode.NEWEST_FIRST) == (at_day(3), at_day(2), at_day(1))
