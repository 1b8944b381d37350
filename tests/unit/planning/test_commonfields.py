"""Which fields two schemas have in common, and under which type they are compared."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from snaploom.types.merge import common_fields


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
