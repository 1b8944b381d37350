from typing import Annotated

import pytest
from annotated_types import Gt, Lt, MaxLen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field, StringConstraints
from strategies import resources
from support.declared.modelrules import faults
from support.runner.quick import examples

from snaploom.models.base import ApiModel, ListType
from snaploom.models.common import Preference
from snaploom.models.kinds import KINDS
from snaploom.models.schemas import UnknownConstruct, as_object, crd, structural_schema

VERSIONS = {kind.name: crd(kind)["spec"]["versions"][0] for kind in KINDS}
SCHEMAS = {name: version["schema"]["openAPIV3Schema"] for name, version in VERSIONS.items()}
few = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.slow
@few
@given(st.data(), st.sampled_from(KINDS))
def test_what_the_parser_accepts_the_cluster_accepts(data, kind):
    raw = data.draw(resources(kind.model))
    stored = {name: raw[name] for name in ("spec", "status") if name in raw}
    dumped = kind.model.parse(raw).dump()
    assert faults(SCHEMAS[kind.name], stored) == []
    assert faults(SCHEMAS[kind.name], {name: dumped[name] for name in stored}) == []


def field_schema(annotation, **settings):
    """The converted schema of one described field."""
    namespace = {
        "__module__": __name__,
        "__doc__": "A thing.",
        "__annotations__": {"thing": annotation},
        "thing": Field(description="The thing.", **settings),
    }
    model = type("Thing", (ApiModel,), namespace)
    return as_object(structural_schema(model)["properties"])["thing"]


def test_optional_field_has_the_schema_of_its_type_and_is_not_required():
    assert field_schema(int | None, default=None) == {
        "description": "The thing.",
        "type": "integer",
    }


def test_default_is_in_the_description_only():
    schema = field_schema(Preference, default=Preference.NEWEST)
    assert "default" not in schema
    assert schema["description"] == (
        "The thing. NEWEST: The latest one. OLDEST: The earliest one. Default: NEWEST."
    )


def test_exclusive_bounds_take_the_form_of_openapi():
    schema = field_schema(Annotated[int, Gt(1), Lt(9)])
    assert schema == {
        "description": "The thing.",
        "type": "integer",
        "exclusiveMaximum": True,
        "exclusiveMinimum": True,
        "maximum": 9,
        "minimum": 1,
    }


Text = Annotated[str, StringConstraints(max_length=9)]


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (str, "thing: maxLength is missing"),
        (Annotated[tuple[Text, ...], ListType("atomic")], "thing: maxItems is missing"),
        (Annotated[tuple[Text, ...], MaxLen(9)], "thing: a list type is missing"),
        (dict[Text, Text], "thing: maxProperties is missing"),
        (Annotated[dict[str, str], MaxLen(9)], "thing{}: maxLength is missing"),
        (int | Text, "thing: a union of 2 things"),
        (tuple[int, int], "thing: no structural form of prefixItems is known"),
        (object, "thing: a type is missing"),
    ],
)
def test_what_has_no_bounded_structural_form_is_refused_with_its_place(annotation, complaint):
    with pytest.raises(UnknownConstruct) as refusal:
        field_schema(annotation)
    assert str(refusal.value) == f"Thing.{complaint}"


def test_field_without_description_is_refused():
    namespace = {"__module__": __name__, "__annotations__": {"thing": int}, "thing": 1}
    model = type("Bare", (ApiModel,), namespace)
    with pytest.raises(UnknownConstruct, match=r"Bare\.thing: a field without description"):
        structural_schema(model)


def test_data_type_is_looked_into_one_level_deep():
    fields = SCHEMAS["DataSource"]["properties"]["spec"]["properties"]["hdfsLike"]["properties"]
    data_type = fields["schemaFields"]["items"]["properties"]["dataType"]
    element = data_type["properties"]["array"]["properties"]["elementType"]
    assert "properties" in data_type
    assert "properties" not in element
    assert element["maxProperties"] == element["minProperties"] == 1
    assert {"required": ["long"]} in element["anyOf"]
