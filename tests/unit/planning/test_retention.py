from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.common import EpochNanos, TimeOffset, parse_instant
from snaploom.models.outputdataset import CatchupMode, SnapshotAutoDelete, Tier
from snaploom.plan.intervals import Intervals
from snaploom.plan.retention import (
    HeldSnapshot,
    RetentionRule,
    catchup_order,
    not_worth_weaving,
    removals,
    removals_before,
)
from snaploom.plan.times import length_of

DAY = 24 * 3_600_000_000_000
START = parse_instant("2020-01-01T00:00:00Z")
PERIODS = Intervals(START, length_of(TimeOffset(day=1)), "UTC")


def day(number: float) -> EpochNanos:
    return EpochNanos(START + int(number * DAY))


def held(*days: float, created: float = 0) -> list[HeldSnapshot]:
    return [HeldSnapshot(day(number), day(created)) for number in days]


def gone(rules: SnapshotAutoDelete, snapshots: list[HeldSnapshot], now: float) -> list[float]:
    return [(r.time - START) / DAY for r in removals(rules, snapshots, day(now), PERIODS)]


def test_no_rule_removes_nothing() -> None:
    assert gone(SnapshotAutoDelete(), held(1, 2, 3), 1000) == []


def test_age_counts_from_now_and_spares_the_latest() -> None:
    rules = SnapshotAutoDelete(max_snapshot_age=TimeOffset(day=2))
    assert gone(rules, held(1, 2, 3, 4), 5) == [1, 2]
    assert gone(rules, held(1, 2, 3, 4), 500) == [1, 2, 3]


def test_creation_age_spares_the_latest_by_snapshot_time() -> None:
    rules = SnapshotAutoDelete(max_snapshot_creation_age=TimeOffset(day=2))
    snapshots = [*held(1, created=9), *held(2, created=3), *held(3, created=2)]
    assert gone(rules, snapshots, 10) == [2]


def test_number_of_old_snapshots_counts_besides_the_latest() -> None:
    assert gone(SnapshotAutoDelete(max_old_snapshots=0), held(3, 1, 2), 9) == [1, 2]
    assert gone(SnapshotAutoDelete(max_old_snapshots=1), held(3, 1, 2), 9) == [1]
    assert gone(SnapshotAutoDelete(max_old_snapshots=5), held(3, 1, 2), 9) == []


def test_tiers_keep_the_first_of_each_period_of_what_is_long_past() -> None:
    tier = Tier(older_than=TimeOffset(day=5), keep_one_every=TimeOffset(week=1))
    rules = SnapshotAutoDelete(tiers=(tier,))
    # Weeks start on days 0 and 7; the age limit is day 9.
    assert gone(rules, held(*range(14)), 14) == [1, 2, 3, 4, 5, 6, 8]


def test_months_are_made_of_what_weeks_keep() -> None:
    weeks = Tier(older_than=TimeOffset(day=5), keep_one_every=TimeOffset(week=1))
    months = Tier(older_than=TimeOffset(day=20), keep_one_every=TimeOffset(day=30))
    for tiers in ((weeks, months), (months, weeks)):
        removed = gone(SnapshotAutoDelete(tiers=tiers), held(*range(70)), 100)
        assert sorted(set(range(70)) - set(removed)) == [0, 35, 63, 69]


def test_a_tier_of_no_age_thins_everything_but_the_latest() -> None:
    tier = Tier(older_than=TimeOffset(), keep_one_every=TimeOffset(week=1))
    assert gone(SnapshotAutoDelete(tiers=(tier,)), held(*range(6)), 9) == [1, 2, 3, 4]


def test_while_a_run_has_more_to_publish_nothing_goes_that_would_come_back_into_its_own() -> None:
    rules = SnapshotAutoDelete(max_old_snapshots=1)
    there = held(1, 4)
    for coming, expected in (([], []), ([day(3)], []), ([day(5)], [])):
        assert list(removals_before(coming, rules, there, day(9), PERIODS)) == expected
    [removal] = removals_before([day(3)], rules, held(1, 2, 4), day(9), PERIODS)
    assert removal.time == day(1)


def test_a_removal_names_its_rule() -> None:
    rules = SnapshotAutoDelete(max_snapshot_age=TimeOffset(day=2), max_old_snapshots=0)
    found = removals(rules, held(1, 4, 5), day(5), PERIODS)
    assert [removal.rule for removal in found] == [
        RetentionRule.MAX_SNAPSHOT_AGE, RetentionRule.MAX_OLD_SNAPSHOTS,
    ]  # fmt: skip


def test_candidates_that_would_go_at_once_are_not_worth_weaving() -> None:
    rules = SnapshotAutoDelete(max_old_snapshots=1)
    found = not_worth_weaving(rules, held(2), [day(1), day(3), day(4)], day(9), PERIODS)
    assert found == {day(1): RetentionRule.MAX_OLD_SNAPSHOTS}


def test_catchup_order_is_by_time() -> None:
    times = [day(2), day(1), day(3)]
    assert catchup_order(times, CatchupMode.OLDEST_FIRST) == (day(1), day(2), day(3))
    assert catchup_order(times, CatchupMode.NEWEST_FIRST) == (day(3), day(2), day(1))


@given(
    st.dictionaries(st.integers(0, 30), st.integers(0, 30)), st.integers(0, 12),
    st.integers(0, 12), st.integers(-1, 6),
)  # fmt: skip
def test_rules_agree_with_reading_them_one_snapshot_at_a_time(
    snapshots: dict[int, int], age: int, creation_age: int, old: int
) -> None:
    rules = SnapshotAutoDelete(
        max_snapshot_age=TimeOffset(day=age),
        max_snapshot_creation_age=TimeOffset(day=creation_age),
        max_old_snapshots=old,
    )
    expected = []
    for time, created in sorted(snapshots.items()):
        newer = sum(other > time for other in snapshots)
        too_old = age > 0 and time < 30 - age
        long_published = creation_age > 0 and created < 30 - creation_age
        if newer and (too_old or long_published or (old >= 0 and newer > old)):
            expected.append(time)
    given_snapshots = [HeldSnapshot(day(t), day(c)) for t, c in snapshots.items()]
    assert gone(rules, given_snapshots, 30) == expected
