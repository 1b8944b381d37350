"""Which subtrees recur, on a small tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.common import EpochNanos
from snaploom.plan.steps import recurring_subtrees
from snaploom.plan.tree import JoinNode, JoinTree

TREE = JoinTree(
    (
        JoinNode(0, "", "root", "", -1, "", 0),
        JoinNode(1, "a", "a", "", 0, "r", 1),
        JoinNode(2, "b", "b", "", 0, "r", 1),
        JoinNode(3, "c", "c", "a", 1, "r", 2),
    )
)


def kept(*visits: dict[str, int]) -> list[list[int]]:
    times = [{name: EpochNanos(time) for name, time in visit.items()} for visit in visits]
    return [sorted(found) for found in recurring_subtrees(TREE, times)]


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
    fields = [node.field_name for node in TREE.nodes]
    visits = [dict(zip(fields, map(EpochNanos, row), strict=True)) for row in rows]
    below = {1: ("a", "c"), 2: ("b",), 3: ("c",)}
    found = [
        (name, number, tuple(visit[field] for field in below[number]))
        for visit, names in zip(visits, recurring_subtrees(TREE, visits), strict=True)
        for number, name in names.items()
    ]
    for name, *subtree in found:
        assert [name == other for other, *_ in found] == [subtree == rest for _, *rest in found]
