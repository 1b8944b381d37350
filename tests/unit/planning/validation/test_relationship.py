"""What is wrong with relationships, applicators and transformers."""

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
def test_faults_of_relationships(representations, code, path):
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
def test_names_that_need_backticks_are_answered_with_them(field, query, quoted):
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
def test_a_cast_that_spark_does_not_have_is_refused(given, wanted, is_sound):
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


# A column that a source does not declare is found wherever declarations name it.


STRING = {"string": {}}
PLACE = {"struct": {"fields": [{"name": "city", "dataType": STRING}]}}


def fields(*names: str, **types: Raw) -> list[Raw]:
    strings = [{"name": name, "dataType": STRING} for name in names]
    return [*strings, *({"name": name, "dataType": type_} for name, type_ in types.items())]


def declared(name: str, *names: str, **changes: object) -> Raw:
    columns = fields("customer_id", *names, day={"date": {}}, place=PLACE)
    return files(name, schemaFields=columns, **changes)


def model(**changes: object) -> list[Raw]:
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
def test_a_misspelt_column_of_an_output_is_found(changes, code, path):
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
def test_only_a_name_given_by_the_query_itself_needs_no_declaration(query, is_found):
    raws = [declared("customer", "name"), virtual("shaped", query)]
    assert ("SL158" in {code for code, _, _ in found(raws)}) is is_found


# As-of joins: columns of both sides, and types that compare.

TIMES = {"date": {"date": {}}, "instant": {"timestamp": {}}, "number": {"long": {}}}


def as_of(parent: str, child: str, **more: object) -> list[Raw]:
    """The sound set whose address is joined as of a time; both sources declare all kinds."""
    columns = fields("customer_id", "name", **TIMES)
    sources = [files(name, schemaFields=columns) for name in ("customer", "address")]
    key_ = relationship("customer-id", (["customer", "address"], [key("customer_id")]))
    rule = {"parentField": parent, "childField": child, **more}
    sources[0]["spec"]["hdfsLike"]["snapshot"] = sources[1]["spec"]["hdfsLike"]["snapshot"] = {
        "fromReadTime": {}
    }
    return [*sources, key_, output(**{"dataModel.otherDataSources.0.asOf": rule})]


@pytest.mark.parametrize(
    ("parent", "child", "more", "code", "field"),
    [
        ("instnt", "instant", {}, "SL158", "parentField"),
        ("instant", "instnt", {}, "SL158", "childField"),
        ("date", "date", {"childUntilField": "end"}, "SL158", "childUntilField"),
        ("date", "date", {"ties": {"newestBy": "version"}}, "SL158", "ties.newestBy"),
        ("instant", "name", {}, "SL167", "childField"),
        ("instant", "number", {}, "SL167", "childField"),
        ("instant", "date", {}, "SL167", "childField"),
        ("date", "date", {"childUntilField": "instant"}, "SL167", "childField"),
        ("date", "date", {"numberTolerance": 1}, "SL167", "childField"),
        ("number", "number", {"tolerance": "P1D"}, "SL167", "childField"),
        ("date", "date", {"tolerance": "P1M"}, "SL167", "tolerance"),
        ("instant", "date", {"timeZone": "Europe/Berlln"}, "SL132", "timeZone"),
    ],
)
def test_faults_of_as_of_joins(parent, child, more, code, field):
    path = f"spec.dataModel.otherDataSources[0].asOf.{field}"
    raws = as_of(parent, child, **more)
    assert found(raws) == [(code, "OutputDataset/wide", path)]
    (finding,) = validate(parsed(raws))
    assert finding.found
    assert finding.expected
    assert finding.hint


GROUPED = {"transformations": {"groupBy": {"fieldNames": ["customer_id"]}}}
WINDOWS = {"parentField": "date", "childField": "date",
           "aggregates": [{"name": "n", "function": "COUNT"}]}  # fmt: skip


@pytest.mark.parametrize("more", [GROUPED, {"windows": WINDOWS}], ids=["groupBy", "windows"])
def test_source_joined_as_of_a_time_is_not_grouped_as_well(more: dict[str, object]) -> None:
    raws = as_of("date", "date")
    raws[-1]["spec"]["dataModel"]["otherDataSources"][0] |= more
    path = "spec.dataModel.otherDataSources[0].asOf"
    assert found(raws) == [("SL167", "OutputDataset/wide", path)]


@pytest.mark.parametrize(
    ("parent", "child", "more"),
    [
        ("instant", "date", {"timeZone": "Europe/Berlin", "tolerance": "P7D"}),
        ("number", "number", {"numberTolerance": 2.5, "direction": "NEAREST", "strict": True}),
        ("date", "date", {"childUntilField": "date"}),
    ],
)
def test_sound_as_of_joins_have_no_finding(parent, child, more):
    assert found(as_of(parent, child, **more)) == []


# Windows: columns of both sides, and values that their functions take.


def windows(*aggregates: Raw, **rule: object) -> list[Raw]:
    """The sound set whose address has windows."""
    raws = as_of("date", "date")
    given = aggregates or ({"name": "n", "function": "COUNT"},)
    other = raws[-1]["spec"]["dataModel"]["otherDataSources"][0]
    del other["asOf"]
    other["windows"] = {**WINDOWS, "aggregates": list(given), **rule}
    return raws


def aggregate(function: str, field: str | None = None, **more: object) -> Raw:
    return {"name": "n", "function": function, **({"field": field} if field else {}), **more}


@pytest.mark.parametrize(
    ("aggregates", "rule", "code", "field"),
    [
        ([], {"parentField": "dat"}, "SL158", "parentField"),
        ([], {"childField": "dat"}, "SL158", "childField"),
        ([], {"parentField": "number", "childField": "number"}, "SL167", "childField"),
        ([], {"parentField": "instant"}, "SL167", "childField"),
        ([], {"childField": "name"}, "SL167", "childField"),
        ([], {"timeZone": "Europe/Berlln"}, "SL132", "timeZone"),
        ([aggregate("SUM", "numbr")], {}, "SL158", "aggregates[0].field"),
        ([aggregate("SUM", "name")], {}, "SL167", "aggregates[0].field"),
        ([aggregate("AVG", "date")], {}, "SL167", "aggregates[0].field"),
        ([aggregate("COUNT", over="P1M")], {}, "SL167", "aggregates[0].over"),
        ([aggregate("COUNT"), {**aggregate("COUNT"), "name": "N"}], {}, "SL135", "aggregates[1]"),
    ],
)
def test_faults_of_windows(aggregates, rule, code, field):
    raws = windows(*aggregates, **rule)
    path = f"spec.dataModel.otherDataSources[0].windows.{field}"
    assert found(raws) == [(code, "OutputDataset/wide", path)]
    (finding,) = validate(parsed(raws))
    assert finding.found
    assert finding.expected


def test_source_with_windows_is_not_grouped_and_nothing_is_joined_to_it() -> None:
    path = "spec.dataModel.otherDataSources[0].windows"
    raws = windows()
    raws[-1]["spec"]["dataModel"]["otherDataSources"][0] |= GROUPED
    assert found(raws) == [("SL167", "OutputDataset/wide", path)]
    raws = windows()
    below = files("city", schemaFields=fields("name"))
    below["spec"]["hdfsLike"]["snapshot"] = {"fromReadTime": {}}
    by_name = relationship("city-name", (["address", "city"], [key("name")]))
    model = raws[-1]["spec"]["dataModel"]
    model["otherDataSources"].append({"dataSource": "city", "fieldName": "city"})
    model["dataRelationships"].append({"name": "city-name"})
    assert found([below, by_name, *raws]) == [("SL167", "OutputDataset/wide", path)]


@pytest.mark.parametrize(
    "aggregates",
    [
        [aggregate("LAST_K", "name", k=5, over="P7D"), {**aggregate("MAX", "date"), "name": "m"}],
        [aggregate("APPROX_COUNT_DISTINCT", "customer_id"), {**aggregate("COUNT"), "name": "m"}],
    ],
)
def test_sound_windows_have_no_finding(aggregates: list[Raw]) -> None:
    assert found(windows(*aggregates)) == []


def test_expectations_and_clustering_name_windows_and_not_columns() -> None:
    raws = windows()
    raws[-1]["spec"]["checks"] = check("address.data.n >= 0")
    assert found(raws) == []
    raws[-1]["spec"]["checks"] = check("address.data.name > ''")
    (finding,) = validate(parsed(raws))
    assert (finding.code, finding.expected) == ("SL188", "windows of DataSource/address: n")
