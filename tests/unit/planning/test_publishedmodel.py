"""What was published, drawn from its manifest; and how two snapshots differ."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from snaploom.plan.drawings import published_mermaid, published_picture, to_svg
from snaploom.plan.history import Change, PublishedModel, PublishedNode, difference
from snaploom.plan.tree import published_tree

ROOT = PublishedNode("", "", "orders", "", taken="2024-01-01T00:00:00Z")
BUYER = PublishedNode(
    "buyer", "", "customer", "id", taken="2024-01-01T00:00:00Z", matched="2 of 3 rows"
)
NATION = PublishedNode("nation", "buyer", "nation", "nation-id", left_out="SNAPSHOT_MISSING")
MODEL = PublishedModel("OutputDataset/wide", "2024-01-01T00:00:00Z", (ROOT, NATION, BUYER))


def changed(*nodes: PublishedNode) -> PublishedModel:
    return difference(MODEL, PublishedModel(MODEL.title, "2024-02-01T00:00:00Z", nodes))


def test_tree_is_numbered_by_breadth() -> None:
    tree, nodes = published_tree(MODEL)
    assert [(n.number, n.field_name, n.parent_number, n.depth) for n in tree.nodes] == [
        (0, "", -1, 0),
        (1, "buyer", 0, 1),
        (2, "nation", 1, 2),
    ]
    assert nodes[2] is NATION


@pytest.mark.parametrize(
    ("now", "note"),
    [
        ({"source": "people"}, "from people, was from customer"),
        ({"relationship": "name"}, "by name, was by id"),
        ({"group_by": ("id",)}, "groupBy [id], was []"),
        ({"left_out": "SNAPSHOT_MISSING"}, "left out (SNAPSHOT_MISSING)"),
        ({"parent": "nation"}, "below nation, was below the root"),
    ],
)
def test_what_changed_is_described(now: dict, note: str) -> None:
    nation = replace(NATION, parent="")
    before = replace(MODEL, nodes=(ROOT, nation, BUYER))
    found = difference(before, replace(MODEL, nodes=(ROOT, nation, replace(BUYER, **now))))
    assert found.notes == (f"buyer: {note}",)


def test_times_and_counts_are_no_difference() -> None:
    later = [replace(node, taken="2024-02-01T00:00:00Z", matched="1") for node in MODEL.nodes]
    assert {node.change for node in changed(*later).nodes} == {Change.SAME}


def test_fields_come_and_go() -> None:
    card = PublishedNode("card", "BUYER", "cards", "card-id")
    found = changed(ROOT, replace(BUYER, field_name="Buyer"), card)
    assert found.notes == ("card: added", "nation: removed")
    assert [node.field_name for node in published_tree(found)[1].values()] == [
        "",
        "Buyer",
        "card",
        "nation",
    ]


def test_difference_is_drawn_in_every_form() -> None:
    found = changed(ROOT, replace(BUYER, source='peo"ple'))
    drawn = published_mermaid(found)
    assert "%% nation: removed" in drawn
    assert 's1["buyer: peo#quot;ple<br/>2024-01-01T00:00:00Z"]:::changed' in drawn
    assert 's1 == "nation-id" ==> s2' in drawn
    svg = ElementTree.fromstring(to_svg(published_picture(found)))
    classes = {element.get("class") for element in svg.iter()}
    assert {"card root", "card changed", "card removed"} <= classes
