import json
from dataclasses import replace
from random import Random
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.joinmodels import customer_model, random_model

from snaploom.models.common import EpochNanos
from snaploom.plan.differences import (
    ChangedValue,
    ColumnChange,
    ComparedSnapshot,
    DataComparison,
    RowChange,
    RowChanges,
    RowSample,
)
from snaploom.plan.drawings import published_mermaid, published_picture, published_tree, to_svg
from snaploom.plan.history import (
    Change,
    PublishedModel,
    PublishedNode,
    Structure,
    StructureNode,
    continued,
    difference,
    merge_structures,
    structure_breaks,
    structure_from,
    structure_of,
)
from snaploom.plan.tree import plan_tree
from snaploom.types.merge import CommonFields, OneSided, Retyped, common_fields


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
    ("today", "expected"),
    [
        pytest.param(structure(">a", "a>b[k]"), [], id="the same"),
        pytest.param(structure(">A", "A>B[K]"), [], id="another case"),
        pytest.param(structure(">a", "a>b[k]", "b>c", "c>d", ">e"), [], id="new subtrees"),
        pytest.param(structure(">a"), [], id="a leaf vanished"),
        pytest.param(structure(), [], id="all vanished"),
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
def test_structures_that_contradict_history_are_conflicts(today, expected):
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


DAY = "2024-05-01T00:00:00Z"


def comparison(rows: RowChanges, fields: CommonFields) -> DataComparison:
    sides = ComparedSnapshot(DAY, 3, 10), ComparedSnapshot(DAY, None, 12)
    return DataComparison("wide", ("id",), *sides, fields, rows)


def test_text_shows_counts_columns_and_samples() -> None:
    value = ChangedValue("data.amount", "5.0", None)
    sample = RowSample(RowChange.CHANGED, (("id", "7"),), (value,), omitted=2)
    rows = RowChanges(3, 1, 1, 8, (ColumnChange("data.amount", 1),), (sample,))
    fields = CommonFields(
        "{}", (OneSided("data.new", "date"),), (), (Retyped("data.x", "string", "long", False),)
    )
    assert str(comparison(rows, fields)).splitlines() == [
        f"wide: {DAY} (manifest 3, 10 rows) -> {DAY} (dry run, 12 rows)",
        "rows by id: 3 added, 1 removed, 1 changed, 8 unchanged",
        "+ column data.new date",
        "~ column data.x string -> long (values are not compared)",
        "~ data.amount: 1 row",
        "~ row id = 7",
        "    data.amount: 5.0 -> NULL",
        "    2 more columns differ",
    ]


def test_many_columns_are_counted_in_text_and_listed_for_programs() -> None:
    columns = tuple(ColumnChange(f"data.c{number}", 1) for number in range(500))
    found = comparison(RowChanges(0, 0, 1, 0, columns), CommonFields("{}"))
    assert len(str(found).splitlines()) < 30
    assert "480 more columns" in str(found)
    assert len(found.document["columns"]) == 500


def test_other_columns_make_a_difference() -> None:
    same = RowChanges(0, 0, 0, 5)
    assert comparison(same, CommonFields("{}")).is_same
    assert not comparison(same, CommonFields("{}", (OneSided("data.new", "date"),))).is_same


# Which fields two schemas have in common, and under which type they are compared.


def struct(**fields: object) -> dict[str, object]:
    listed = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in fields.items()
    ]
    return {"type": "struct", "fields": listed}


def array(element: object) -> dict[str, object]:
    return {"type": "array", "elementType": element, "containsNull": True}


def compared(before: object, after: object) -> tuple[object, object]:
    found = common_fields(json.dumps(before), json.dumps(after))
    return json.loads(found.schema), found.document


def test_fields_of_one_side_are_listed_and_not_compared() -> None:
    before = struct(data=struct(a="long", gone="string"))
    after = struct(data=struct(A="long", new="date"), child=struct(b="long"))
    schema, document = compared(before, after)
    assert schema == struct(data=struct(a="long"))
    assert document == {
        "added": [
            {"column": "data.new", "type": "date"},
            {"column": "child", "type": "struct"},
        ],
        "removed": [{"column": "data.gone", "type": "string"}],
        "retyped": [],
    }


def test_wider_types_are_compared_and_contradictions_are_not() -> None:
    before = struct(wider="integer", other="string", precise="decimal(5,2)")
    after = struct(wider="long", other="long", precise="decimal(7,3)")
    schema, document = compared(before, after)
    assert schema == struct(wider="long", precise="decimal(7,3)")
    assert [(one["column"], one["compared"]) for one in document["retyped"]] == [
        ("wider", True),
        ("other", False),
        ("precise", True),
    ]


def test_lists_are_compared_by_the_fields_that_both_have() -> None:
    before = struct(items=array(struct(a="long")))
    after = struct(items=array(struct(a="long", b="long")))
    schema, document = compared(before, after)
    assert schema == struct(items=array(struct(a="long")))
    assert [one["column"] for one in document["added"]] == ["items.element.b"]
    assert compared(before, struct(items=array(struct(b="long"))))[0] == struct()


kinds = st.recursive(
    st.sampled_from(["long", "string", "decimal(5,2)"]),
    lambda inner: st.one_of(
        st.builds(array, inner),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda d: struct(**d)),
    ),
    max_leaves=6,
)


@given(kinds)
def test_schema_compared_with_itself_is_itself(kind: object) -> None:
    schema, document = compared(struct(x=kind), struct(x=kind))
    assert schema == struct(x=kind)
    assert document == {"added": [], "removed": [], "retyped": []}
