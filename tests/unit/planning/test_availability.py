import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.joinmodels import Relation, customer_model, model, output_of

from snaploom.models.asof import ChildSnapshot
from snaploom.models.common import EpochNanos, MissingMode, Preference, TimeOffset, parse_instant
from snaploom.models.outputdataset import HivePartitioned
from snaploom.models.report import ExclusionReason
from snaploom.plan.intervals import READ_TIME, SourceSnapshots
from snaploom.plan.steps import (
    Action,
    Availability,
    availability,
    choose,
    gaps,
    recurring_subtrees,
)
from snaploom.plan.times import partition_clashes, partition_of
from snaploom.plan.tree import JoinNode, JoinTree, plan_tree

HOUR = 3_600_000_000_000
START = parse_instant("2020-01-01T00:00:00Z")
NAMES = ("customer_address", "customer_contact", "customer_group", "group_attributes")
TREE = plan_tree(customer_model().graph())


def hour(number: float) -> EpochNanos:
    return EpochNanos(START + int(number * HOUR))


def available(missing: dict[str, MissingMode], tree: JoinTree = TREE) -> Availability:
    """Every source has a snapshot at the root's time but those in `missing`."""
    modes = {n.field_name: missing.get(n.field_name, MissingMode.ERROR) for n in tree.joins}
    rules = {name: ChildSnapshot(snapshot_missing_mode=mode) for name, mode in modes.items()}
    offered = {name: SourceSnapshots.of([hour(1)]) for name in modes if name not in missing}
    return availability(tree, rules, offered, hour(1), hour(9), "UTC")


def test_everything_there_is_published_root_first() -> None:
    found = available({})
    assert found.action is Action.PUBLISH
    assert [name for name, _ in found.sources] == ["", *NAMES]


@pytest.mark.parametrize(
    ("mode", "action", "excluded", "warn"),
    [
        (MissingMode.ERROR, Action.FAIL, [], False),
        (MissingMode.CONTINUE_IGNORE, Action.PUBLISH, [("customer_address", False)], False),
        (MissingMode.CONTINUE_WARN, Action.PUBLISH, [("customer_address", True)], False),
        (MissingMode.SKIP_IGNORE, Action.SKIP, [], False),
        (MissingMode.SKIP_WARN, Action.SKIP, [], True),
    ],
)
def test_each_missing_mode_has_its_effect(mode, action, excluded, warn):
    found = available({"customer_address": mode})
    assert (found.action, found.warn) == (action, warn)
    assert [(source.field_name, source.warn) for source in found.excluded] == excluded


def test_what_hangs_on_an_excluded_source_is_not_asked() -> None:
    found = available(
        {"customer_group": MissingMode.CONTINUE_IGNORE, "group_attributes": MissingMode.ERROR}
    )
    assert found.action is Action.PUBLISH
    assert [(source.field_name, source.reason) for source in found.excluded] == [
        ("customer_group", ExclusionReason.SNAPSHOT_MISSING),
        ("group_attributes", ExclusionReason.PARENT_EXCLUDED),
    ]


def test_breadth_comes_before_depth() -> None:
    tree = plan_tree(
        model(
            "r", {"x": Relation(("r", "a", "z")), "y": Relation(("a", "below_a"))}
        ).graph()
    )  # fmt: skip
    missing = {"below_a": MissingMode.ERROR, "z": MissingMode.SKIP_IGNORE}
    assert available(missing, tree).action is Action.SKIP


def test_windows_follow_the_calendar_of_the_zone() -> None:
    noon = parse_instant("2020-03-08T16:00:00Z")  # 12:00 in New York, clocks changed at 02:00
    day_before = SourceSnapshots.of([parse_instant("2020-03-07T17:00:00Z")])
    rules = ChildSnapshot(time_before=TimeOffset(day=1))
    assert choose(rules, day_before, noon, noon, "America/New_York") == day_before.times
    late = SourceSnapshots.of([parse_instant("2020-03-07T16:30:00Z")])
    assert choose(rules, late, noon, noon, "America/New_York") == ()
    assert choose(rules, late, noon, noon, "UTC") == late.times


def test_a_source_without_history_serves_only_windows_that_hold_now() -> None:
    rules = ChildSnapshot(time_after=TimeOffset(hour=2))
    assert choose(rules, READ_TIME, hour(7), hour(9), "UTC") == (hour(9),)
    assert choose(rules, READ_TIME, hour(6), hour(9), "UTC") == ()


def test_a_window_may_reach_beyond_the_calendar() -> None:
    rules = ChildSnapshot(time_before=TimeOffset(year=9999), preference=Preference.OLDEST)
    found = choose(rules, SourceSnapshots.of([hour(-5000), hour(0)]), hour(1), hour(1), "UTC")
    assert found == (hour(-5000),)


@given(
    st.lists(st.integers(-20, 20)), st.integers(-9, 9), st.integers(0, 9), st.integers(0, 9),
    st.sampled_from(Preference),
)  # fmt: skip
def test_choice_agrees_with_a_check_of_every_snapshot(offered, time, before, after, preference):
    inside = [t for t in offered if time - before <= t <= time + after]
    best = (max if preference is Preference.NEWEST else min)(inside, default=None)
    rules = ChildSnapshot(
        preference=preference,
        time_before=TimeOffset(hour=before),
        time_after=TimeOffset(hour=after),
    )
    found = choose(rules, SourceSnapshots.of(map(hour, offered)), hour(time), hour(99), "UTC")
    assert found == (() if best is None else (hour(best),))


def of_history(
    offered: list[float], mode: MissingMode = MissingMode.ERROR, time: float = 9
) -> Availability:
    """A source with these snapshots, of which five hours are taken."""
    tree = plan_tree(model("r", {"x": Relation(("r", "a"))}).graph())
    rules = {"a": ChildSnapshot(history=TimeOffset(hour=5), snapshot_missing_mode=mode)}
    there = {"a": SourceSnapshots.of(map(hour, offered))}
    return availability(tree, rules, there, hour(time), hour(99), "UTC")


def hours(found: Availability) -> list[float]:
    return [(time - START) / HOUR for time in dict(found.sources).get("a", ())]


@pytest.mark.parametrize(
    ("mode", "action", "is_warned"),
    [
        (MissingMode.ERROR, Action.FAIL, False),
        (MissingMode.SKIP_IGNORE, Action.SKIP, False),
        (MissingMode.CONTINUE_WARN, Action.PUBLISH, True),
        (MissingMode.CONTINUE_IGNORE, Action.PUBLISH, False),
    ],
)
@pytest.mark.parametrize(
    ("offered", "gap"),
    [
        pytest.param(
            [4, 5, 6, 9], "after 2020-01-01T06:00:00Z up to 2020-01-01T08:00:00Z", id="inside"
        ),
        pytest.param(
            [5, 6, 7, 8], "after 2020-01-01T08:00:00Z up to 2020-01-01T09:00:00Z", id="last"
        ),
        pytest.param(
            [1, 6, 7, 8, 9], "after 2020-01-01T04:00:00Z up to 2020-01-01T05:00:00Z", id="1st"
        ),
    ],
)
def test_gap_of_a_history_is_treated_as_a_missing_snapshot(offered, gap, mode, action, is_warned):
    found = of_history(offered, mode)
    assert found.action is action
    text = " ".join((found.message, *found.notes))
    assert (gap in text) is (is_warned or action is not Action.PUBLISH)
    assert not found.excluded
    if action is Action.PUBLISH:
        assert hours(found) == [at for at in offered if at > 4]


@pytest.mark.parametrize("mode", [MissingMode.ERROR, MissingMode.SKIP_WARN])
def test_history_that_begins_with_its_source_is_taken_with_a_warning(mode: MissingMode) -> None:
    found = of_history([7, 8, 9], mode)
    assert (found.action, hours(found)) == (Action.PUBLISH, [7, 8, 9])
    assert "every hour of the last 5h: none after 2020-01-01T04:00:00Z" in found.notes[0]
    assert of_history([], mode).action is not Action.PUBLISH


@given(st.sets(st.integers(0, 40)), st.integers(5, 45))
def test_history_agrees_with_a_check_of_every_quarter_of_an_hour(offered, time):
    found = of_history([n / 4 for n in offered], MissingMode.CONTINUE_WARN, time / 4)
    inside = [n for n in sorted(offered) if time - 20 < n <= time]
    assert hours(found) == [n / 4 for n in inside]
    parts = [any(end - 4 < n <= end for n in inside) for end in range(time, time - 20, -4)]
    assert bool(found.notes) is (bool(inside) and not all(parts))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia"])
def test_days_at_midnight_of_utc_are_no_gaps_where_clocks_change(zone: str) -> None:
    days = tuple(EpochNanos(START + n * 24 * HOUR) for n in range(366))
    rules = ChildSnapshot(history=TimeOffset(day=30))
    for time in days[40:]:
        taken = choose(rules, SourceSnapshots.of(days), time, time, zone)
        assert not gaps(rules, taken, time, zone)
        assert len(taken) in (29, 30, 31)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(MissingMode)),
)
def test_outcome_agrees_with_the_truth_table_read_literally(missing):
    excluded: set[str] = set()
    action = Action.PUBLISH
    for name in NAMES:  # the tree's breadth-first order
        mode = missing.get(name)
        below = name == "group_attributes" and "customer_group" in excluded
        if below or (mode and mode.continues):
            excluded.add(name)
        elif mode:
            action = Action.SKIP if mode.skips else Action.FAIL
            break
    found = available(missing)
    assert found.action is action
    assert {source.field_name for source in found.excluded} == excluded


@pytest.mark.parametrize(
    ("given", "time", "folder"),
    [
        ("UNIX_MILLISECONDS UTC", "2020-01-01T00:00:00Z", "at=1577836800000"),
        ("UNIX_SECONDS UTC", "2020-01-01T00:00:00Z", "at=1577836800"),
        ("UNIX_SECONDS UTC", "1969-12-31T23:59:59.5Z", "at=-1"),
        ("ISO8601_DATE_TIME UTC", "2020-01-01T00:00:00Z", "at=2020-01-01T00%3A00%3A00Z"),
        (
            "ISO8601_DATE_TIME Australia/Melbourne", "2020-01-01T00:00:00.25Z",
            "at=2020-01-01T11%3A00%3A00.25+11%3A00",
        ),
        ("ISO8601_DATE_TIME Europe/London", "2020-01-01T00:00:00Z", "at=2020-01-01T00%3A00%3A00Z"),
        (
            "ISO8601_DATE_TIME America/New_York", "2020-07-01T00:00:00Z",
            "at=2020-06-30T20%3A00%3A00-04%3A00",
        ),
    ],
)  # fmt: skip
def test_partition_is_named_as_spark_would(given: str, time: str, folder: str) -> None:
    form, zone = given.split()
    hive = HivePartitioned.parse(
        {"fieldName": "at", "timestampFormat": form, "outputTimezone": zone}
    )
    assert partition_of(hive, parse_instant(time)).folder == folder


def test_snapshots_that_share_a_partition_are_refused() -> None:
    output = output_of(
        customer_model(), snapshotFormat={"hivePartitioned": {"timestampFormat": "UNIX_SECONDS"}}
    )
    times = [parse_instant(f"2020-01-01T00:00:0{s}Z") for s in ("0", "1", "1.5")]
    [finding] = partition_clashes(output, times)
    assert finding.code == "SL305"
    assert "2020-01-01T00:00:01Z and 2020-01-01T00:00:01.5Z" in finding.message
    assert partition_clashes(output, times[:2], published=times[:1]) == ()
    assert len(partition_clashes(output, times[2:], published=times[1:2])) == 1


# Which subtrees recur, on a small tree.


WHOLE = JoinTree(
    (
        JoinNode(0, "", "root", "", -1, "", 0),
        JoinNode(1, "a", "a", "", 0, "r", 1),
        JoinNode(2, "b", "b", "", 0, "r", 1),
        JoinNode(3, "c", "c", "a", 1, "r", 2),
    )
)


def kept(*visits: dict[str, int]) -> list[list[int]]:
    times = [{name: (EpochNanos(time),) for name, time in visit.items()} for visit in visits]
    return [sorted(found) for found in recurring_subtrees(WHOLE, times)]


def test_whole_subtree_is_kept_at_its_top() -> None:
    same = {"a": 1, "b": 1, "c": 1}
    assert kept({"": 1} | same, {"": 2} | same) == [[1, 2], [1, 2]]


def test_part_that_recurs_more_often_is_kept_too() -> None:
    visits = [{"": n, "a": n // 2, "b": n, "c": 1} for n in range(4)]
    assert kept(*visits) == [[1, 3]] * 4


def test_what_hangs_on_something_missing_is_not_there() -> None:
    assert kept({"": 1, "c": 1}, {"": 2, "c": 1}) == [[], []]


def test_subtree_without_a_part_is_another_one() -> None:
    assert kept({"": 1, "a": 1, "c": 1}, {"": 2, "a": 1}) == [[], []]


def test_single_snapshot_keeps_nothing() -> None:
    assert kept({"": 1, "a": 1, "b": 1, "c": 1}) == [[]]


@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1, max_size=5))
def test_names_are_equal_exactly_for_equal_subtrees(rows: list[list[int]]) -> None:
    fields = [node.field_name for node in WHOLE.nodes]
    visits = [dict(zip(fields, ((EpochNanos(n),) for n in row), strict=True)) for row in rows]
    below = {1: ("a", "c"), 2: ("b",), 3: ("c",)}
    found = [
        (name, number, tuple(visit[field] for field in below[number]))
        for visit, names in zip(visits, recurring_subtrees(WHOLE, visits), strict=True)
        for number, name in names.items()
    ]
    for name, *subtree in found:
        assert [name == other for other, *_ in found] == [subtree == rest for _, *rest in found]
