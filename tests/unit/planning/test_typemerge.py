import json
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.declared.declarations import Raw, files, found, key, parsed, relationship

from snaploom.models.common import DataType, EpochNanos, parse_instant
from snaploom.models.datarelationship import DataRelationship, Normalization
from snaploom.types.merge import (
    WHITE_SPACE,
    MergedSchema,
    common_cast,
    conflicts_with,
    explains_more,
    merge_schemas,
    normalized,
)
from snaploom.types.schemas import parse_schema, schema_json
from snaploom.validate.validator import validate

JsonType = object


def field(name: str, type_: JsonType, nullable: bool = True) -> dict[str, JsonType]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": {}}


def struct(*fields: dict[str, JsonType]) -> dict[str, JsonType]:
    return {"type": "struct", "fields": list(fields)}


def array(element: JsonType, nulls: bool = True) -> dict[str, JsonType]:
    return {"type": "array", "elementType": element, "containsNull": nulls}


def merged(*schemas: dict[str, JsonType]) -> MergedSchema:
    first = parse_instant("2020-01-01T00:00:00Z")
    day = 24 * 3600 * 10**9
    return merge_schemas(
        (EpochNanos(first + i * day), json.dumps(schema)) for i, schema in enumerate(schemas)
    )


def of(*types: JsonType) -> JsonType:
    """The merge of types as the one column `c`; None on conflict."""
    found = merged(*(struct(field("c", type_)) for type_ in types))
    return None if found.conflicts else json.loads(found.schema)["fields"][0]["type"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("integer", "integer", "integer"),
        ("byte", "long", "long"),
        ("short", "integer", "integer"),
        ("float", "double", "double"),
        ("void", "string", "string"),
        ("void", struct(field("x", "long")), struct(field("x", "long"))),
        ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
        ("decimal(10,2)", "decimal(9,1)", "decimal(10,2)"),
        ("decimal(38,0)", "decimal(38,1)", None),
        ("long", "float", None),
        ("integer", "decimal(10,0)", None),
        ("string", "integer", None),
        ("timestamp", "timestamp_ntz", None),
        ("date", "timestamp", None),
        ("string", array("string"), None),
        (array("integer", False), array("long", True), array("long", True)),
        (array("void"), array("string"), array("string")),
    ],
)
def test_two_types_merge_to_their_bound_in_the_lattice(first, second, expected):
    assert of(first, second) == expected
    assert of(second, first) == expected


def test_fields_come_and_go_and_are_nullable_then() -> None:
    found = merged(
        struct(field("a", "long", False), field("gone", "long", False)),
        struct(field("a", "long", False), field("new", "long", False)),
    )
    assert json.loads(found.schema)["fields"] == [
        field("a", "long", False), field("gone", "long"), field("new", "long"),
    ]  # fmt: skip


def test_names_differ_in_case_only_and_the_first_is_kept() -> None:
    found = merged(struct(field("Name", "string")), struct(field("NAME", "string", False)))
    assert json.loads(found.schema)["fields"] == [field("Name", "string")]


def test_a_conflict_names_the_path_and_both_snapshots() -> None:
    inside = [struct(field("data", array(struct(field("k", t))))) for t in ("byte", "long", "date")]
    [conflict] = merged(*inside).conflicts
    assert str(conflict) == (
        "data.element.k is long in snapshot 2020-01-02T00:00:00Z "
        "and date in snapshot 2020-01-03T00:00:00Z"
    )


def test_order_is_that_of_snapshot_time_not_of_the_call() -> None:
    early = (parse_instant("2020-01-01T00:00:00Z"), json.dumps(struct(field("Old", "long"))))
    late = (parse_instant("2021-01-01T00:00:00Z"), json.dumps(struct(field("OLD", "long"))))
    assert '"Old"' in merge_schemas([late, early]).schema


def test_metadata_is_the_newest_and_no_conflict() -> None:
    plain, noted = field("c", "long"), field("c", "long") | {"metadata": {"unit": "m"}}
    found = merged(struct(plain), struct(noted))
    assert (json.loads(found.schema)["fields"], found.conflicts) == ([noted], ())


@pytest.mark.parametrize("text", ['"string"', '{"type":"struct"}', '{"type":"array"}', "[]"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the JSON of"):
        parse_schema(text, "now")


SIMPLE = st.sampled_from(
    ["void", "byte", "short", "integer", "long", "float", "double", "string", "decimal(5,2)",
     "decimal(9,0)", "timestamp_ntz", "interval day to second", "varchar(9)"]
)  # fmt: skip


def _containers(inner: st.SearchStrategy[JsonType]) -> st.SearchStrategy[JsonType]:
    fields = st.dictionaries(
        st.sampled_from(["a", "b", "c"]), st.tuples(inner, st.booleans()), min_size=1
    )
    return st.one_of(
        st.builds(array, inner, st.booleans()),
        st.builds(
            lambda key, value, nulls: {
                "type": "map", "keyType": key, "valueType": value, "valueContainsNull": nulls,
            },
            inner, inner, st.booleans(),
        ),
        fields.map(lambda parts: struct(*(field(n, t, nulls) for n, (t, nulls) in parts.items()))),
    )  # fmt: skip


TYPES = st.recursive(SIMPLE, _containers, max_leaves=6)
SCHEMAS = st.lists(TYPES, min_size=1, max_size=3).map(
    lambda types: struct(*(field(f"c{i}", type_) for i, type_ in enumerate(types)))
)


@given(SCHEMAS)
def test_schemas_survive_the_round_trip(schema: dict[str, JsonType]) -> None:
    assert json.loads(schema_json(parse_schema(json.dumps(schema), "now"))) == schema


def unordered(schema: JsonType) -> JsonType:
    if isinstance(schema, list):
        return sorted((unordered(part) for part in schema), key=json.dumps)
    if isinstance(schema, dict):
        return {key: unordered(value) for key, value in schema.items()}
    return schema


@given(st.lists(SCHEMAS, min_size=2, max_size=3))
def test_merging_is_idempotent_and_its_order_matters_to_order_only(schemas):
    found = merged(*schemas)
    orders = [merged(*order) for order in permutations(schemas)]
    assert {bool(other.conflicts) for other in orders} == {bool(found.conflicts)}
    if not found.conflicts:
        assert all(
            unordered(json.loads(other.schema)) == unordered(json.loads(found.schema))
            for other in orders
        )
        again = merged(json.loads(found.schema), *schemas)
        assert again.schema == found.schema


def day(number: int) -> EpochNanos:
    return EpochNanos(number * 24 * 3600 * 10**9)


def against(history: str, number: int, type_: str) -> list[str]:
    """Conflicts of a column `c` on a day with a history of types by day, written `1i 2s`."""
    names = {"i": "integer", "l": "long", "s": "string", "d": "date"}
    others = [
        (day(int(at[:-1])), json.dumps(struct(field("c", names[at[-1]])))) for at in history.split()
    ]
    schema = json.dumps(struct(field("c", names[type_])))
    return [
        f"{c.first} {c.first_seen[8:10]}, {c.second} {c.second_seen[8:10]}"
        for c in conflicts_with(others, day(number), schema)
    ]


@pytest.mark.parametrize(
    ("history", "number", "type_", "expected"),
    [
        pytest.param("1i 2l", 3, "i", [], id="widens"),
        pytest.param("1i 2i", 3, "s", ["integer 02, string 04"], id="a break at the end"),
        pytest.param("2i 3i", 1, "s", ["string 02, integer 03"], id="a break at the beginning"),
        pytest.param("1i 3i", 2, "s", ["integer 02, string 03"], id="a break in between"),
        pytest.param("1i 2s", 3, "s", [], id="continues the newer side of a break"),
        pytest.param("1i 2s", 3, "i", ["string 03, integer 04"], id="back to before a break"),
        pytest.param("2i 3s", 1, "i", [], id="continues the older side"),
        pytest.param("1i 3s", 2, "s", [], id="at a break, with the newer side"),
        pytest.param("1i 3s", 2, "i", [], id="at a break, with the older side"),
        pytest.param("1i 3s", 2, "d", ["integer 02, date 03"], id="at a break, with neither"),
    ],
)
def test_snapshot_must_agree_with_its_side_of_older_breaks(history, number, type_, expected):
    assert against(history, number, type_) == expected


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


# Normalised keys without Spark: each step, types that may have it, and what it explains.


SOURCES = [files(name) for name in ("a", "b")]
PATH = "spec.representations[0].joinKey[0]"


@pytest.mark.parametrize(
    ("text", "steps", "expected"),
    [
        (None, "TRIM", None),
        ("", "UPPER", None),
        (f"{WHITE_SPACE}a b{WHITE_SPACE}", "TRIM", "a b"),
        (WHITE_SPACE, "TRIM", None),
        ("\u200ba", "TRIM", "\u200ba"),
        ("stra\u00dfe", "UPPER", "STRASSE"),
        ("\u00c4\u0130", "LOWER", "\u00e4i\u0307"),
        ("007", "STRIP_LEADING_ZEROS", "7"),
        ("000", "STRIP_LEADING_ZEROS", "0"),
        ("00A1", "STRIP_LEADING_ZEROS", "A1"),
        ("-01", "STRIP_LEADING_ZEROS", "-01"),
        ("1.0", "INTEGER", "1"),
        ("+1", "INTEGER", "1"),
        (" 0001\u00a0", "INTEGER", "1"),
        ("-0.00", "INTEGER", "0"),
        ("-07", "INTEGER", "-7"),
        ("9" * 60, "INTEGER", "9" * 60),
        ("1e3", "INTEGER", None),
        ("1.5", "INTEGER", None),
        ("1.", "INTEGER", None),
        ("1,000", "INTEGER", None),
        ("\u0661", "INTEGER", None),
        ("n/a", "INTEGER", None),
        ("e\u0301", "NFC", "\u00e9"),
        ("\u2013a-b\u2212", "REMOVE_DASHES", "ab"),
        ("---", "REMOVE_DASHES", None),
        (" ab-01 ", "TRIM REMOVE_DASHES UPPER", "AB01"),
        ("0 1", "STRIP_LEADING_ZEROS TRIM", "1"),
        ("x", "INTEGER TRIM", None),
    ],
)
def test_each_step_does_what_it_is_described_as(text, steps, expected):
    assert normalized(text, map(Normalization, steps.split())) == expected


@given(st.text(), st.sampled_from(Normalization))
def test_a_step_taken_twice_changes_nothing_more(text: str, step: Normalization) -> None:
    once = normalized(text, [step])
    if step not in (Normalization.UPPER, Normalization.LOWER):  # of a few letters it does
        assert normalized(once, [step]) == once


def component(type_: Any, *steps: str, **more: Any) -> list[Raw]:
    return [{"fields": [{"fieldName": "x", "dataType": type_}], "normalize": list(steps), **more}]


@pytest.mark.parametrize(
    ("type_", "steps", "is_sound"),
    [
        ("string", ["TRIM", "INTEGER"], True),
        ("bigint", ["INTEGER"], True),
        ("double", ["INTEGER"], True),
        ("decimal(10,2)", ["INTEGER"], True),
        ("long", ["STRIP_LEADING_ZEROS"], False),
        ("double", ["TRIM", "INTEGER"], False),
        ("date", ["TRIM"], False),
        ("boolean", ["INTEGER"], False),
        ("array<string>", ["UPPER"], False),
    ],
)
def test_only_texts_and_whole_numbers_are_normalised(type_, steps, is_sound):
    raws = [*SOURCES, relationship("r", (["a"], component(type_, *steps)))]
    expected = [] if is_sound else [("SL166", "DataRelationship/r", f"{PATH}.normalize")]
    assert found(raws) == expected
    if not is_sound:
        (finding,) = validate(parsed(raws))
        assert finding.found == f"{', '.join(steps)} of x ({type_})"
        assert finding.hint


def test_a_query_may_be_normalised_and_the_cast_is_from_text() -> None:
    query = component("date", "TRIM", query="date_format(x, 'y')")
    assert found([*SOURCES, relationship("r", (["a"], query))]) == []
    cast = component("double", "INTEGER", castDataType="binary")
    assert found([*SOURCES, relationship("r", (["a"], cast))]) == []


def test_types_that_integer_makes_one_have_no_warning() -> None:
    plain = [(["a"], component("int", "INTEGER")), (["b"], component("double", "INTEGER"))]
    assert found([*SOURCES, relationship("r", *plain)]) == []
    half = [
        (["a"], component("int", "INTEGER")),
        (["b"], [{"fields": [{"fieldName": "x", "dataType": "double"}]}]),
    ]
    assert [code for code, *_ in found([*SOURCES, relationship("r", *half)])] == ["SL159"]


@pytest.mark.parametrize("steps", [[], ["TRIM", "TRIM"], ["CASEFOLD"], ["trim"]])
def test_an_empty_list_a_repetition_and_an_unknown_step_are_refused(steps: list[str]) -> None:
    with pytest.raises(ValidationError):
        DataRelationship.parse(relationship("r", (["a"], component("string", *steps))))


def test_a_declaration_without_normalize_is_what_it_was() -> None:
    raw = relationship("r", (["a"], [{"fields": [{"fieldName": "x", "dataType": "string"}]}]))
    resource = DataRelationship.parse(raw)
    assert "normalize" not in resource.dump_json()
    assert resource.spec.normalized_keys("a") == ""


@pytest.mark.parametrize(
    ("child", "parent", "steps", "share", "as_written"),
    [
        (["001", "2"], ["1", "2"], "STRIP_LEADING_ZEROS", 1.0, 0.5),
        (["1.0", "2.0"], ["001", "002"], "INTEGER", 1.0, 0.0),
        (["a ", None, ""], ["a"], "TRIM", 1.0, 0.0),
        (["A-1", "b2 "], ["a1", "B2"], "TRIM UPPER REMOVE_DASHES", 1.0, 0.0),
        (["a ", "b "], ["A", "B"], "TRIM UPPER", 1.0, 0.0),
        (["a"], ["a"], None, 0, 0),
        (["x"], ["a"], None, 0, 0),
        (["a", "x"], ["A", "a", "X"], None, 0, 0),
    ],
)
def test_the_normalisation_that_explains_more_is_found_with_its_evidence(
    child: list[str | None], parent: list[str], steps: str | None, share: float, as_written: float
) -> None:
    explained = explains_more(child, parent)
    if steps is None:
        assert explained is None
    else:
        assert (" ".join(explained.steps), explained.share, explained.as_written) == (
            steps, share, as_written,
        )  # fmt: skip
