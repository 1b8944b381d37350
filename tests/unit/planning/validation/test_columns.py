"""A column that a source does not declare is found wherever declarations name it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import (
    Raw,
    document,
    files,
    found,
    key,
    output,
    parsed,
    relationship,
)
from support.declared.declarations import simple as virtual

from snaploom.models.datasource import DataSource
from snaploom.sources.registry import declared as declared_source
from snaploom.validate.validator import validate

STRING = {"string": {}}
PLACE = {"struct": {"fields": [{"name": "city", "dataType": STRING}]}}


def fields(*names: str, **types: Raw) -> list[Raw]:
    strings = [{"name": name, "dataType": STRING} for name in names]
    return [*strings, *({"name": name, "dataType": type_} for name, type_ in types.items())]


def declared(name: str, *names: str, **changes: object) -> Raw:
    columns = fields("customer_id", *names, day={"date": {}}, place=PLACE)
    return files(name, schemaFields=columns, **changes)


def model(**changes: object) -> list[Raw]:
    """A sound set whose sources declare customer_id, name, day and place.city."""
    key_ = relationship("customer-id", (["customer", "address"], [key("customer_id")]))
    sources = [declared("customer", "name"), declared("address", "name")]
    return [*sources, key_, output(**changes)]


def check(expression: str) -> list[Raw]:
    return [{"name": "c", "expression": expression}]


def test_a_sound_set_has_no_finding() -> None:
    sound = {
        "checks": check(
            "count_if(data.name = address.data.NAME) > 0 and max(data.place.city) > 'a'"
        ),
        "dataModel.rootDataSource.rootKey": ["customer_id"],
        "outputFolder.clusterBy": ["data.name", "data.`place`.city"],
    }
    assert found(model(**sound)) == []


@pytest.mark.parametrize("name", ["dya", "day.x", "place.town"])
def test_a_snapshot_field_that_is_not_declared_is_found(name: str) -> None:
    at = {"fromFieldValue": {"fieldName": name, "timeFormat": "ISO8601_DATE"}}
    source = declared("customer", "name", snapshot=at)
    path = "spec.hdfsLike.snapshot.fromFieldValue.fieldName"
    assert found([source]) == [("SL158", "DataSource/customer", path)]
    (finding,) = validate(parsed([source]))
    assert "day" in finding.expected + finding.hint


def test_a_snapshot_field_may_be_captured_or_come_by_an_option() -> None:
    at = {"fromFieldValue": {"fieldName": "hour", "timeFormat": "ISO8601_DATE"}}
    columns = fields("a")
    captured = files("x", schemaFields=columns, snapshot=at, sourceUriPrefix="/data/x/{hour:DATE}/")
    by_option = files(
        "x", format="csv", schemaFields=columns, snapshot=at, formatOptions={"basePath": "/data"}
    )
    assert "SL158" not in {code for code, _, _ in [*found([captured]), *found([by_option])]}


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        ({"checks": check("data.nmae is not null")}, "SL188", "spec.checks[0].expression"),
        ({"checks": check("min(address.data.nmae) > 'a'")}, "SL188", "spec.checks[0].expression"),
        ({"checks": check("data.place.town = 'a'")}, "SL188", "spec.checks[0].expression"),
        ({"checks": check("address.name is not null")}, "SL188", "spec.checks[0].expression"),
        ({"outputFolder.clusterBy": ["data.nmae"]}, "SL189", "spec.outputFolder.clusterBy[0]"),
        ({"dataModel.rootDataSource.rootKey": ["costumer_id"]}, "SL158",
         "spec.dataModel.rootDataSource.rootKey[0]"),
        ({"dataModel.otherDataSources.0.transformations": {"groupBy": {"fieldNames": ["id"]}}},
         "SL158", "spec.dataModel.otherDataSources[0].transformations.groupBy.fieldNames[0]"),
    ],
)  # fmt: skip
def test_a_misspelt_column_of_an_output_is_found(
    changes: dict[str, object], code: str, path: str
) -> None:
    assert found(model(**changes)) == [(code, "OutputDataset/wide", path)]
    (finding,) = validate(parsed(model(**changes)))
    assert finding.found
    assert finding.expected
    assert finding.hint


def test_a_misspelt_field_of_a_key_is_found_in_the_source_that_lacks_it() -> None:
    broken = relationship("customer-id", (["customer", "address"], [key("custmer_id")]))
    two = [declared("customer"), files("address"), broken, output()]
    path = "spec.representations[0].joinKey[0].fields[0].fieldName"
    assert found(two) == [("SL158", "DataRelationship/customer-id", path)]
    (finding,) = validate(parsed(two))
    assert finding.hint == "did you mean `customer_id`?"


def test_a_misspelt_column_of_a_query_is_found() -> None:
    wrong = "SELECT c.customer_id, nmae AS n FROM c GROUP BY customer_id, n"
    path = "spec.simpleVirtual.dataQuery"
    assert found([declared("customer", "name"), virtual("v", wrong)]) == [
        ("SL158", "DataSource/v", path)
    ]
    right = (
        "SELECT max(c.place.city) AS x, name FROM c WHERE day > '2020' GROUP BY NAME HAVING x > 1"
    )
    assert found([declared("customer", "name"), virtual("v", right)]) == []


@pytest.mark.parametrize(
    ("change", "is_known"),
    [
        ({"rename": {"to": "fullName"}}, True),
        ({"rename": {"pattern": "n(.*)", "replacement": "full$1"}}, True),
        ({"drop": {}}, False),
    ],
)
def test_what_transformers_may_name_is_no_misspelt_column(change: Raw, is_known: bool) -> None:
    selected = {"selectors": [{"coordinateIncludeRegex": "name"}], **change}
    shaped = [document("FieldTransformer", "t", {"transformers": [selected]})]
    sources = [declared("customer", "name", fieldTransformers=["t"]), *model()[1:3]]
    wide = output(checks=check("data.fullName is not null"))
    assert (found([*sources, wide, *shaped]) == []) is is_known


def test_without_a_declared_schema_nothing_is_known() -> None:
    key_ = relationship("customer-id", (["customer", "address"], [key("customer_id")]))
    wide = output(checks=check("data.nmae = address.data.nmae"))
    assert found([files("customer"), files("address"), key_, wide]) == []


NAMES = st.text("ab.`", min_size=1, max_size=4)


@given(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower), st.data())
def test_every_declared_name_is_there_and_no_other(names: list[str], data: st.DataObject) -> None:
    spec = files("x", schemaFields=fields(*names))
    source = parsed([spec])[0]
    assert isinstance(source, DataSource)
    columns = declared_source(source).columns
    assert columns is not None
    name = data.draw(st.sampled_from(names))
    assert columns.missing_part((name.upper(),)) is None
    assert columns.missing_part(("z",)) == "z"


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("SELECT nmae FROM c", True),
        ("SELECT c.nmae AS nmae FROM c", True),
        ("SELECT upper(nmae) AS big FROM c WHERE nmae > 'a'", True),
        ("SELECT upper(name) AS big, length(big) AS size FROM c GROUP BY big", False),
        ("SELECT *, upper(name) AS big, length(big) AS size FROM c", False),
    ],
)
def test_only_a_name_given_by_the_query_itself_needs_no_declaration(
    query: str, is_found: bool
) -> None:
    raws = [declared("customer", "name"), virtual("shaped", query)]
    assert ("SL158" in {code for code, _, _ in found(raws)}) is is_found
