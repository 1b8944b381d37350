"""Which types of keys have different texts for equal values, and what to cast them to."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import files, found, key, parsed, relationship

from snaploom.models.common import DataType
from snaploom.types.merge import common_cast
from snaploom.validate.validator import validate


def type_of(name: str) -> DataType:
    if name.startswith("decimal"):
        precision, scale = map(int, name.removeprefix("decimal").split("."))
        return DataType.parse({"decimal": {"precision": precision, "scale": scale}})
    return DataType.parse({name: {}})


@pytest.mark.parametrize(
    ("one", "other", "cast"),
    [
        ("integer", "double", "{double: {}}"),
        ("long", "float", "{double: {}}"),
        ("decimal10.2", "double", "{double: {}}"),
        ("decimal10.2", "decimal12.4", "{decimal: {precision: 12, scale: 4}}"),
        ("integer", "decimal10.2", "{decimal: {precision: 12, scale: 2}}"),
        ("decimal38.0", "decimal38.38", "{decimal: {precision: 38, scale: 38}}"),
        ("date", "timestamp", "{date: {}}"),
        ("boolean", "integer", "{integer: {}}"),
        ("date", "long", "a query"),
        ("boolean", "double", "a query"),
    ],
)
def test_types_whose_texts_differ_have_something_to_do(one: str, other: str, cast: str) -> None:
    for first, second in ((one, other), (other, one)):
        assert cast in (common_cast(type_of(first), type_of(second)) or "")


@pytest.mark.parametrize(
    ("one", "other"),
    [("integer", "long"), ("long", "decimal20.0"), ("decimal10.2", "decimal12.2"),
     ("float", "double"), ("string", "double"), ("date", "string"), ("double", "double")],
)  # fmt: skip
def test_types_whose_texts_are_equal_have_nothing(one: str, other: str) -> None:
    assert common_cast(type_of(one), type_of(other)) is None
    assert common_cast(type_of(other), type_of(one)) is None


@given(st.integers(1, 38), st.integers(0, 38), st.integers(1, 38), st.integers(0, 38))
def test_decimals_are_cast_exactly_when_their_texts_differ(p: int, s: int, q: int, t: int) -> None:
    """The texts of one, by Python's decimals as an oracle."""
    s, t = min(s, p - 1), min(t, q - 1)
    texts = [f"{Decimal(1):.{scale}f}" for scale in (s, t)]
    cast = common_cast(type_of(f"decimal{p}.{s}"), type_of(f"decimal{q}.{t}"))
    assert (cast is not None) == (texts[0] != texts[1])


def sides(one: dict[str, Any], other: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    keys = [{**key("id"), **changes} for _ in range(2)]
    for component, data_type in zip(keys, (one, other), strict=True):
        component["fields"] = [{"fieldName": "id", "dataType": data_type}]
    return [files("a"), files("b"), relationship("r", (["a"], [keys[0]]), (["b"], [keys[1]]))]


def test_validate_warns_of_texts_that_differ_and_names_the_cast() -> None:
    types = sides({"integer": {}}, {"double": {}})
    path = "spec.representations[1].joinKey[0].castDataType"
    assert found(types) == [("SL159", "DataRelationship/r", path)]
    (warning,) = validate(parsed(types))
    assert not warning.is_error
    assert warning.found == "id of type integer and id of type double, compared as text"
    assert "castDataType: {double: {}}" in warning.hint


def test_a_declared_cast_and_equal_types_are_no_warning() -> None:
    assert found(sides({"integer": {}}, {"double": {}}, castDataType={"double": {}})) == []
    assert found(sides({"double": {}}, {"double": {}})) == []
