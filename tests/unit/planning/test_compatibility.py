from __future__ import annotations

from random import Random

import pytest
from support.declared.joinmodels import customer_model, random_model

from snaploom.models.common import EpochNanos
from snaploom.plan.history import (
    Structure,
    StructureNode,
    continued,
    merge_structures,
    structure_breaks,
    structure_from,
    structure_of,
)
from snaploom.plan.tree import plan_tree


def structure(*nodes: str) -> Structure:
    """Nodes written `parent>name` or `parent>name[key,key]`; empty parent for the root."""
    found = []
    for text in nodes:
        place, _, key = text.partition("[")
        parent, _, name = place.partition(">")
        group_by = tuple(key.rstrip("]").split(",")) if key else ()
        found.append(StructureNode(name, parent, group_by, name.lower(), "r"))
    return structure_from(found)


def conflicts(history: Structure, today: Structure) -> list[str]:
    return [str(conflict) for conflict in merge_structures(history, today).conflicts]


@pytest.mark.parametrize(
    "today",
    [
        pytest.param(structure(">a", "a>b[k]"), id="the same"),
        pytest.param(structure(">A", "A>B[K]"), id="another case"),
        pytest.param(structure(">a", "a>b[k]", "b>c", "c>d", ">e"), id="new subtrees"),
        pytest.param(structure(">a"), id="a leaf vanished"),
        pytest.param(structure(), id="all vanished"),
    ],
)
def test_structures_that_continue_history_have_no_conflict(today: Structure) -> None:
    assert conflicts(structure(">a", "a>b[k]"), today) == []


@pytest.mark.parametrize(
    ("today", "expected"),
    [
        pytest.param(
            structure(">a", ">b[k]"),
            ["b: its place is below the root, but was below a"], id="moved up",
        ),
        pytest.param(
            structure(">a", "a>new", "new>b[k]"),
            ["b: its place is below a.new, but was below a"], id="inserted between",
        ),
        pytest.param(
            structure(">a", "a>b"), ["b: groupBy is [], but was [k]"], id="no longer grouped"
        ),
        pytest.param(
            structure(">a[k]", "a>b[k,l]"),
            ["a: groupBy is [k], but was []", "b: groupBy is [k, l], but was [k]"],
            id="every conflict is named",
        ),
    ],
)  # fmt: skip
def test_structures_that_contradict_history_are_conflicts(
    today: Structure, expected: list[str]
) -> None:
    assert conflicts(structure(">a", "a>b[k]"), today) == expected


def test_what_vanished_comes_back_in_its_place_only() -> None:
    history = structure(">a", "a>b")
    without = merge_structures(history, structure(">a")).structure
    assert without == history
    assert conflicts(without, structure(">a", "a>b")) == []
    assert conflicts(without, structure(">a", ">b")) != []


def test_another_source_or_relationship_is_allowed_and_recorded() -> None:
    before = structure_from([StructureNode("Orders", "", (), "orders_v1", "by_id")])
    today = structure_from([StructureNode("orders", "", (), "orders_v2", "by_key")])
    merge = merge_structures(before, today)
    assert merge.conflicts == ()
    assert [(s.aspect, s.before, s.after) for s in merge.swaps] == [
        ("source", "orders_v1", "orders_v2"),
        ("relationship", "by_id", "by_key"),
    ]
    assert merge.structure["orders"] == StructureNode("Orders", "", (), "orders_v2", "by_key")


def test_structure_of_a_tree_follows_it() -> None:
    found = structure_of(plan_tree(customer_model().graph()))
    assert found["group_attributes"].parent == "customer_group"
    assert found["customer_group"].group_by == ("customer_id",)


def test_every_tree_continues_itself_and_its_own_prunings() -> None:
    random = Random(11)
    for _ in range(200):
        tree = plan_tree(random_model(random, sources=7).graph())
        full = structure_of(tree)
        cut = random.randint(0, len(tree.joins))
        early = dict(list(full.items())[:cut])  # closed upward: BFS
        assert merge_structures(early, full).structure == full
        assert merge_structures(full, early).structure == full
        assert not merge_structures(early, full).conflicts


def test_what_was_published_in_spite_of_a_conflict_is_continued() -> None:
    history = continued([structure(">A", "A>b[k]", ">c"), structure(">a", ">b[k]")])
    assert conflicts(history, structure(">a", ">b[k]", ">c")) == []
    assert conflicts(history, structure(">a", "a>b[k]")) == [
        "b: its place is below a, but was below the root"
    ]
    assert history["a"].field_name == "A"


def test_break_of_structure_names_both_snapshots_by_time() -> None:
    day = 24 * 3600 * 10**9
    old, new = structure(">a", ">b"), structure(">a", "a>b", ">c")
    times = [(EpochNanos(n * day), old if n < 3 else new) for n in (4, 1, 3, 2)]
    assert [str(one) for one in structure_breaks(times)] == [
        "b: its place is below the root in snapshot 1970-01-02T00:00:00Z "
        "and below a in snapshot 1970-01-04T00:00:00Z"
    ]
    assert structure_breaks([(EpochNanos(day), old), (EpochNanos(0), old)]) == ()
