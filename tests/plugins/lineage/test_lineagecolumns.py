"""Columns are followed from the output down to what is read: joins, transformers and queries."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from plugins.lineage.lineagecolumns import ADDRESS, CUSTOMER, TIME, WOVEN, array, read, struct
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    key,
    model,
    parsed,
    relationship,
    simple,
    spoilt,
)

from snaploom.plan.bundles import bundle_for
from snaploom.plan.plan import plan_offline
from snaploom.plugins.lineage.events import (
    ColumnLineage,
    QueryColumn,
    column_facet,
    column_lineage,
    query_columns,
)
from snaploom.run.runevents import ReadColumns, WovenColumns


def lineage(
    raws: list[Raw], sources: Mapping[str, ReadColumns] | None = None, woven: Raw | None = None
) -> ColumnLineage:
    resources = parsed(raws)
    bundle = bundle_for("OutputDataset", "wide", resources)
    columns = WovenColumns(
        json.dumps(woven or WOVEN), sources or {"": CUSTOMER, "address": ADDRESS}
    )
    return column_lineage(bundle, plan_offline(bundle).tree, columns)


def flattened(found: ColumnLineage) -> dict[str, list[tuple[str, str, bool]]]:
    return {
        path: [(each.dataset.name, each.column, each.is_same) for each in made_of]
        for path, made_of in found.columns.items()
    }


def test_columns_come_from_the_source_at_their_path() -> None:
    assert flattened(lineage(model())) == {
        "data.customer_id": [("/data/customer", "customer_id", True)],
        "data.name": [("/data/customer", "name", True)],
        "address.data.customer_id": [("/data/address", "customer_id", True)],
        "address.data.city": [("/data/address", "city", True)],
    }


def test_keys_of_joins_act_on_the_whole_output() -> None:
    found = lineage(model())
    assert [(each.dataset.name, each.column) for each in found.joined_by] == [
        ("/data/customer", "customer_id"),
        ("/data/address", "customer_id"),
    ]
    assert found.grouped_by == ()


def test_times_of_as_of_joins_act_on_the_whole_output() -> None:
    rule = {"parentField": "name", "childField": "city"}
    raws = spoilt(model()[-1], "spec.dataModel.otherDataSources.0.asOf", rule)
    found = lineage([*model()[:-1], raws])
    assert [each.column for each in found.joined_by] == [
        "customer_id", "customer_id", "name", "city"]  # fmt: skip


def test_windows_come_from_what_they_aggregate() -> None:
    rule = {"parentField": "name", "childField": "city", "aggregates": [
        {"name": "Most", "function": "MAX", "field": "customer_id"},
        {"name": "rows", "function": "COUNT"}]}  # fmt: skip
    raws = spoilt(model()[-1], "spec.dataModel.otherDataSources.0.windows", rule)
    columns = struct(data=struct(Most="long", rows="long"))
    woven = struct(data=struct(name="string"), address=columns)
    found = lineage([*model()[:-1], raws], woven=woven)
    assert flattened(found) == {
        "data.name": [("/data/customer", "name", True)],
        "address.data.Most": [("/data/address", "customer_id", False)],
        "address.data.rows": [("/data/address", "city", False)],
    }
    assert [each.column for each in found.joined_by] == [
        "customer_id", "customer_id", "name", "city"]  # fmt: skip


def test_keys_of_joins_have_the_steps_by_which_they_are_normalised() -> None:
    raws = model()
    (keys,) = [raw for raw in raws if raw["kind"] == "DataRelationship"]
    keys["spec"]["representations"][0]["joinKey"][0]["normalize"] = ["TRIM", "UPPER"]
    assert {each.changes for each in lineage(raws).joined_by} == {"TRIM, UPPER"}
    acting = column_facet(lineage(raws)).dataset
    how = {each.transformations[0].description for each in acting}
    assert how == {"TRIM, UPPER"}


def test_what_is_grouped_is_followed_inside_its_array() -> None:
    raws = model()
    grouped = {"groupBy": {"fieldNames": ["customer_id"]}}
    raws[-1]["spec"]["dataModel"]["otherDataSources"][0]["transformations"] = grouped
    woven = struct(data=struct(name="string"), address=array(struct(data=struct(city="string"))))
    found = lineage(raws, woven=woven)
    assert flattened(found)["address.data.city"] == [("/data/address", "city", True)]
    assert [each.column for each in found.grouped_by] == ["customer_id"]


def test_a_source_that_is_left_out_is_not_in_lineage() -> None:
    found = lineage(model(), {"": CUSTOMER}, struct(data=struct(name="string")))
    assert flattened(found) == {"data.name": [("/data/customer", "name", True)]}
    assert found.joined_by == ()


def with_transformers(*transformers: Raw) -> list[Raw]:
    raws = model()
    source = spoilt(files("address"), "spec.hdfsLike.fieldTransformers", ["shape"])
    shape = document("FieldTransformer", "shape", {"transformers": list(transformers)})
    return [source if raw["metadata"]["name"] == "address" else raw for raw in raws] + [shape]


def change(of: str, **how: Any) -> Raw:
    return {"selectors": [{"coordinateIncludeRegex": of}], **how}


def test_transformers_are_followed_in_their_order() -> None:
    raws = with_transformers(
        change("^town$", rename={"to": "city"}),
        change("^city$", expression={"sql": "upper(value)"}),
        change("^cust$", rename={"to": "customer_id"}),
        change("^secret$", drop={}),
    )
    address = read(cust="long", town="string", secret="string")
    assert flattened(lineage(raws, {"": CUSTOMER, "address": address}))["address.data.city"] == [
        ("/data/address", "town", False)
    ]


def test_a_copy_comes_from_the_same_column() -> None:
    raws = with_transformers(
        change("^town$", rename={"to": "city"}, replaceInputs=False),
        change("^town$", cast={"dataType": {"long": {}}}),
    )
    woven = struct(
        data=struct(name="string"), address=struct(data=struct(city="string", town="long"))
    )
    address = read(customer_id="long", town="string")
    found = flattened(lineage(raws, {"": CUSTOMER, "address": address}, woven))
    assert found["address.data.city"] == [("/data/address", "town", True)]
    assert found["address.data.town"] == [("/data/address", "town", False)]


def test_a_change_counts_for_its_snapshots_only() -> None:
    raws = with_transformers(
        change("^town$", rename={"to": "city"}, snapshotRange={"from": "2020-01-02T00:00:00Z"})
    )
    address = read(customer_id="long", town="string", city="string")
    found = flattened(lineage(raws, {"": CUSTOMER, "address": address}))
    assert found["address.data.city"] == [("/data/address", "city", True)]


def virtual_model(source: Raw, *more: Raw) -> list[Raw]:
    """The model with a virtual source `places` in place of `address`."""
    raws = model()
    raws[-1]["spec"]["dataModel"]["otherDataSources"][0]["dataSource"] = "places"
    named = (["customer", "places"], [key("customer_id")])
    return [raws[0], raws[1], relationship("customer-id", named), raws[-1], source, *more]


def test_a_query_is_followed_to_what_it_reads() -> None:
    query = "SELECT customer_id, upper(c.city) AS city FROM c WHERE city <> ''"
    raws = virtual_model(simple("places", query, source="address"))
    below = {"c": ADDRESS}
    address = ReadColumns(json.dumps(struct(customer_id="long", city="string")), TIME, below)
    found = flattened(lineage(raws, {"": CUSTOMER, "address": address}))
    assert found["address.data.customer_id"] == [("/data/address", "customer_id", True)]
    assert found["address.data.city"] == [("/data/address", "city", False)]


def test_a_query_over_several_sources_is_followed_to_each() -> None:
    query = (
        "SELECT a.*, concat(b.name, a.city) AS label FROM c0 a JOIN c1 b USING (customer_id) "
        "WHERE {{ SNAPSHOT | UNIX_MILLISECONDS }} > 0"
    )
    raws = virtual_model(complex_("places", query, "address", "customer"))
    below = {"c0": ADDRESS, "c1": CUSTOMER}
    made = struct(customer_id="long", city="string", label="string")
    address = ReadColumns(json.dumps(made), TIME, below)
    woven = struct(data=struct(name="string"), address=struct(data=made))
    found = flattened(lineage(raws, {"": CUSTOMER, "address": address}, woven))
    assert found["address.data.city"] == [("/data/address", "city", True)]
    assert set(found["address.data.label"]) == {
        ("/data/customer", "name", False),
        ("/data/address", "city", False),
    }


@pytest.mark.parametrize(
    ("query", "column", "expected"),
    [
        ("SELECT x AS y FROM t", "y", {("t", "x", True)}),
        ("SELECT X FROM T", "x", {("t", "x", True)}),
        ("SELECT * FROM t", "x", {("t", "x", True)}),
        ("SELECT x + 1 AS y FROM t", "y", {("t", "x", False)}),
        ("SELECT count(*) AS n FROM t", "n", set()),
        ("SELECT 1 AS n FROM t", "n", set()),
        ("WITH s AS (SELECT x AS z FROM t) SELECT z AS y FROM s", "y", {("t", "x", True)}),
        ("SELECT y FROM (SELECT x + z AS y FROM t)", "y", {("t", "x", False), ("t", "z", False)}),
        ("SELECT x FROM t UNION ALL SELECT w FROM u", "x", {("t", "x", True), ("u", "w", True)}),
    ],
)
def test_what_a_column_of_a_query_is_made_of(query, column, expected):
    found = query_columns(query, {"t": ["x", "z"], "u": ["w"]})[column]
    assert {(each.alias, each.column, each.is_same) for each in found} == expected


def test_names_keep_their_case() -> None:
    found = query_columns("SELECT orderid FROM t", {"t": ["OrderId"]})
    assert found == {"orderid": (QueryColumn("t", "OrderId", True),)}
