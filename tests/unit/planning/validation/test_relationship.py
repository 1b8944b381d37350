"""What is wrong with relationships, applicators and transformers."""

from __future__ import annotations

import pytest
from support.declared.declarations import Raw, document, files, found, key, parsed, relationship

from snaploom.validate.validator import validate

SOURCES = [files(name) for name in ("a", "b", "c")]
REPRESENTATION = "spec.representations"


@pytest.mark.parametrize(
    ("representations", "code", "path"),
    [
        pytest.param(
            [(["a", "b"], [key("x")]), (["c", "a"], [key("y")])],
            "SL160", f"{REPRESENTATION}[1].dataSources[1]", id="source-in-two",
        ),
        pytest.param(
            [(["a"], [key("x")]), (["b"], [key("x"), key("y")])],
            "SL161", f"{REPRESENTATION}[1].joinKey", id="component-counts",
        ),
        pytest.param(
            [(["a"], [key("x"), key("y")]), (["b"], [key("x"), key("y", cast={"long": {}})])],
            "SL162", f"{REPRESENTATION}[1].joinKey[1].castDataType", id="types",
        ),
        pytest.param(
            [(["a"], [key("x", "y", query="concat(x, z)")])],
            "SL163", f"{REPRESENTATION}[0].joinKey[0].query", id="query-reads-other",
        ),
        pytest.param(
            [(["a"], [key("x", "y", query="upper(x)")])],
            "SL163", f"{REPRESENTATION}[0].joinKey[0].query", id="field-not-read",
        ),
        pytest.param(
            [(["a"], [key("x", query="1 + 1")])],
            "SL163", f"{REPRESENTATION}[0].joinKey[0].query", id="query-reads-nothing",
        ),
        pytest.param(
            [(["a"], [key("x", query="x +")])],
            "SL150", f"{REPRESENTATION}[0].joinKey[0].query", id="syntax",
        ),
        pytest.param(
            [(["a"], [key("x", query="x FROM t")])],
            "SL150", f"{REPRESENTATION}[0].joinKey[0].query", id="statement",
        ),
        pytest.param(
            [(["a"], [key("x", query="max(x)")])],
            "SL151", f"{REPRESENTATION}[0].joinKey[0].query", id="aggregate",
        ),
        pytest.param(
            [(["a"], [key("x", query="explode(x)")])],
            "SL151", f"{REPRESENTATION}[0].joinKey[0].query", id="generator",
        ),
        pytest.param(
            [(["a"], [key("x", query="java_method('a', x)")])],
            "SL151", f"{REPRESENTATION}[0].joinKey[0].query", id="java",
        ),
        pytest.param(
            [(["a"], [key("x", "X", query="x")])],
            "SL135", f"{REPRESENTATION}[0].joinKey[0].fields[1].fieldName", id="field-twice",
        ),
        pytest.param(
            [(["a"], [key("x", cast={"map": {"keyType": {"string": {}},
                                             "valueType": {"string": {}}}})])],
            "SL164", f"{REPRESENTATION}[0].joinKey[0].castDataType", id="map",
        ),
        pytest.param(
            [(["a"], [key("x", cast={"array": {"elementType": {"calendarInterval": {}}}})])],
            "SL164", f"{REPRESENTATION}[0].joinKey[0].castDataType", id="intervals",
        ),
        pytest.param(
            [(["a", "bb"], [key("x")])],
            "SL130", f"{REPRESENTATION}[0].dataSources[1]", id="reference",
        ),
    ],
)  # fmt: skip
def test_faults_of_relationships(
    representations: list[tuple[list[str], list[Raw]]], code: str, path: str
) -> None:
    raws = [*SOURCES, relationship("r", *representations)]
    assert found(raws) == [(code, "DataRelationship/r", path)]


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        (["x", "y"], "concat_ws('-', X, `y`)"),
        (["address.country"], "upper(Address.Country)"),
        (["a.b.c.d.e.f"], "a.b.c.d.e.f"),
        (["tags", "z"], "array_join(transform(tags, t -> concat(t, z)), ',')"),
        (["x"], "CASE WHEN x = 'data' THEN NULL ELSE x END"),
        (["`a.b`"], "upper(`A.B`)"),
        (["a b"], "upper(`a b`)"),
        (["`a b`"], "upper(`a b`)"),
        (["s.c"], "upper(s.`c`)"),
        (["`s x`.`c.d`"], "upper(`s x`.`c.d`)"),
        (["`a``b`"], "upper(`a``b`)"),
    ],
)
def test_queries_that_read_what_is_declared_are_accepted(fields: list[str], query: str) -> None:
    assert found([*SOURCES, relationship("r", (["a", "b"], [key(*fields, query=query)]))]) == []


@pytest.mark.parametrize(
    ("field", "query", "quoted"),
    [
        ("a.b", "upper(`a.b`)", "`a.b`"),
        ("a b", "upper(a b)", "`a b`"),
        ("a-b", "upper(a-b)", "`a-b`"),
        ("`a.b`", "upper(a.b)", "`a.b`"),
        ("a`b", "upper(`a``b`)", "`a``b`"),
    ],
)
def test_names_that_need_backticks_are_answered_with_them(
    field: str, query: str, quoted: str
) -> None:
    raws = [*SOURCES, relationship("r", (["a", "b"], [key(field, query=query)]))]
    (finding,) = validate(parsed(raws))
    assert finding.path == f"{REPRESENTATION}[0].joinKey[0].query"
    assert f"write {quoted} with the backticks" in finding.hint


@pytest.mark.parametrize(
    ("given", "wanted", "is_sound"),
    [
        ({"string": {}}, {"array": {"elementType": {"string": {}}}}, False),
        (
            {"array": {"elementType": {"long": {}}}},
            {"array": {"elementType": {"string": {}}}},
            True,
        ),
        ({"array": {"elementType": {"long": {}}}}, {"string": {}}, True),
        ({"array": {"elementType": {"long": {}}}}, {"long": {}}, False),
        ({"date": {}}, {"long": {}}, False),
        ({"timestampNtz": {}}, {"timestamp": {}}, True),
        ({"string": {}}, {"struct": {"fields": [{"name": "a", "dataType": {"long": {}}}]}}, False),
    ],
)
def test_a_cast_that_spark_does_not_have_is_refused(
    given: Raw, wanted: Raw, is_sound: bool
) -> None:
    component = {"fields": [{"fieldName": "x", "dataType": given}], "castDataType": wanted}
    raws = [*SOURCES, relationship("r", (["a", "b"], [component]))]
    path = f"{REPRESENTATION}[0].joinKey[0].castDataType"
    assert found(raws) == ([] if is_sound else [("SL164", "DataRelationship/r", path)])


def test_a_missing_source_is_answered_with_the_one_that_was_meant() -> None:
    raws = [files("customer_address"), relationship("r", (["customer_adress"], [key("x")]))]
    finding = next(f for f in validate(parsed(raws)) if f.code == "SL130")
    assert finding.hint == "did you mean `customer_address`?"


def test_regular_expressions_of_applicators_must_compile() -> None:
    spec = {
        "fieldSelectors": [
            {"coordinateIncludeRegex": "a"},
            {"coordinateIncludeRegex": "[[a]b", "coordinateExcludeRegex": "("},
        ],
        "metadata": {"k": "v"},
    }
    assert found([document("MetadataApplicator", "m", spec)]) == [
        ("SL131", "MetadataApplicator/m", "spec.fieldSelectors[1].coordinateExcludeRegex")
    ]


@pytest.mark.parametrize(
    ("transformer", "code", "path"),
    [
        ({"rename": {"pattern": "(", "replacement": ""}}, "SL131", "rename.pattern"),
        ({"rename": {"pattern": "(a)", "replacement": "$1$2"}}, "SL131", "rename.replacement"),
        ({"expression": {"sql": "upper("}}, "SL150", "expression.sql"),
        ({"expression": {"sql": "value + other"}}, "SL163", "expression.sql"),
        ({"expression": {"sql": "sum(value)"}}, "SL151", "expression.sql"),
        (
            {"drop": {}, "selectors": [{"coordinateExcludeRegex": "*"}]},
            "SL131",
            "selectors[0].coordinateExcludeRegex",
        ),
        ({"drop": {}, "replaceInputs": False}, "SL165", "replaceInputs"),
        ({"cast": {"dataType": {"long": {}}}, "replaceInputs": False}, "SL165", "replaceInputs"),
        ({"drop": {}, "snapshotRange": {"from": "2020"}}, "SL134", "snapshotRange.from"),
        (
            {
                "drop": {},
                "snapshotRange": {
                    "from": "2020-01-01T01:00:00+01:00",
                    "to": "2020-01-01T00:00:00Z",
                },
            },
            "SL134",
            "snapshotRange",
        ),
    ],
)
def test_faults_of_transformers(transformer: Raw, code: str, path: str) -> None:
    raw = {"selectors": [{"coordinateIncludeRegex": "a"}]} | transformer
    assert found([document("FieldTransformer", "t", {"transformers": [raw]})]) == [
        (code, "FieldTransformer/t", f"spec.transformers[0].{path}")
    ]
