"""`snaploom contract`: valid by the standard, and every broken promise is found; without Spark."""

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator
from open_data_contract_standard.model import OpenDataContractStandard
from support.declared.shop import CommandResult, Shop, assert_one_error, snaploom
from support.storage.folders import a_run, agrees, day, writes

from snaploom.files.stores import open_store
from snaploom.models.asof import AsOf
from snaploom.models.common import TimeOffset
from snaploom.models.datarelationship import DataRelationshipSpec
from snaploom.models.report import JoinMeasure
from snaploom.models.windows import Windows
from snaploom.output.folder import prepare_folder
from snaploom.output.history import folder_identity, folder_settings
from snaploom.output.manifest import model_nodes
from snaploom.output.publication import SnapshotTarget, WriteResult, publish
from snaploom.plan.plan import plan_offline
from snaploom.plugins.contracts.document import length_text, physical_type
from snaploom.plugins.contracts.relationships import JoinProof, foreign_keys
from snaploom.run.declarations import read_declarations
from snaploom.types.schemas import parse_schema

Contract = dict[str, Any]


def field(name: str, kind: object, **metadata: str) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct(*fields: object) -> dict[str, object]:
    return {"type": "struct", "fields": list(fields)}


ORDERS = struct(
    field("order_id", "long"), field("customer_id", "long"),
    field("amount", "decimal(9,2)", description="in euros", classification="internal"),
)  # fmt: skip
CUSTOMERS = struct(
    field("data", struct(field("customer_id", "long"), field("name", "string"))),
    field("tags", {"type": "map", "keyType": "string", "valueType": "string",
                   "valueContainsNull": True}),
    field("visits", {"type": "array", "elementType": struct(field("at", "timestamp")),
                     "containsNull": True}),
)  # fmt: skip
SCHEMA = json.dumps(struct(field("data", ORDERS), field("customers", CUSTOMERS)))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """One published snapshot, whose files are not read."""
    shop = Shop(tmp_path)
    shop.set("wide", "dataModel.rootDataSource.rootKey", ["order_id"])
    shop.set("wide", "checks", [{"name": "paid", "expression": "data.amount >= 0"}])
    shop.set("wide", "run", {"freshness": {"maxAge": {"day": 2}}})
    published(shop, 0, JoinMeasure(child="customers", in_=1000, out=1000, matched=999, null_keys=1))
    return shop


def published(shop: Shop, number: int, *joins: JoinMeasure, schema: str = SCHEMA) -> None:
    """Publish the snapshot of a day, as the shop is declared now."""
    bundle = read_declarations([shop.write()]).bundle("wide")
    plan, output = plan_offline(bundle), bundle.output
    store = open_store(output.spec.output_folder.folder_uri, create=True)
    folder = prepare_folder(store, folder_settings(output), folder_identity(output), a_run())
    target = SnapshotTarget(day(number), f"day={number}", plan.hash, model_nodes(plan.tree))

    def write(uri: str) -> WriteResult:
        return replace(writes(store, schema=schema)(uri), joins=joins)

    publish(folder, a_run(), target, write, agrees)


def contract(shop: Shop, *options: object) -> CommandResult:
    return snaploom("contract", "wide", "-f", shop.write(), *options)


def written(shop: Shop) -> Contract:
    return contract(shop, "-o", "json").document


def judged(document: Contract) -> list[str]:
    schema = json.loads(files("open_data_contract_standard").joinpath("schema.json").read_text())
    return [fault.message for fault in Draft201909Validator(schema).iter_errors(document)]


def columns(document: Contract) -> dict[str, Contract]:
    return {one["name"]: one for one in document["schema"][0]["properties"]}


def test_contract_is_valid_by_the_schema_and_the_library_of_the_standard(shop) -> None:
    text = contract(shop).out
    document = yaml.safe_load(text)
    assert "relationships" in document["schema"][0]
    assert judged(document) == []
    parsed = OpenDataContractStandard.from_string(text)
    assert yaml.safe_load(parsed.to_yaml()) == document
    assert written(shop) == document


def test_columns_have_types_keys_texts_and_sources(shop) -> None:
    found = columns(written(shop))
    data = {one["name"]: one for one in found["data"]["properties"]}
    assert data["order_id"]["primaryKeyPosition"] == 1
    assert (data["amount"]["physicalType"], data["amount"]["description"]) == (
        "decimal(9,2)",
        "in euros",
    )
    assert data["amount"]["customProperties"] == [
        {"property": "classification", "value": "internal"}
    ]
    assert found["data"]["transformSourceObjects"] == [f"file/{shop.folder}/orders"]
    customers = {one["name"]: one for one in found["customers"]["properties"]}
    assert customers["data"]["transformLogic"] == "left join of customers by customer-id"
    assert customers["visits"]["items"]["properties"][0]["logicalType"] == "timestamp"
    partition = next(one for one in found.values() if one.get("partitioned"))
    assert (partition["primaryKeyPosition"], partition["required"]) == (2, True)


def test_a_join_by_normalised_keys_has_their_steps(shop) -> None:
    (side,) = shop.raw("customer-id")["spec"]["representations"]
    side["joinKey"][0] |= {"normalize": ["INTEGER"]}
    customers = columns(written(shop))["customers"]["properties"]
    logic = "left join of customers by customer-id, with customers.customer_id (INTEGER)"
    assert logic in [one.get("transformLogic") for one in customers]


def related(document: Contract) -> list[Contract]:
    return [
        {**one, **{each["property"]: each["value"] for each in one["customProperties"]}}
        for one in document["schema"][0]["relationships"]
    ]


def by_ids(document: Contract, reference: str) -> list[str]:
    """Names of the elements that a reference of the standard leads through."""
    at, names = document, []
    steps = reference.split("/")
    for section, wanted in zip(steps[::2], steps[1::2], strict=True):
        listed = at[section] if isinstance(at[section], list) else [at[section]]
        (at,) = (one for one in listed if one.get("id") == wanted)
        names.append(at.get("name", section))
    return names


def test_join_is_a_relationship_of_columns_with_what_all_snapshots_proved(shop) -> None:
    for number in (1, 2):
        join = JoinMeasure(child="customers", in_=10**6, out=10**6, matched=999_999, null_keys=0)
        published(shop, number, join)
    document = written(shop)
    (one,) = related(document)
    assert by_ids(document, one["from"]) == ["wide", "data", "customer_id"]
    assert by_ids(document, one["to"]) == ["wide", "customers", "data", "customer_id"]
    assert one["snaploomProof"] == (
        "0 of 2,001,000 rows multiplied, 99.99 % matched, in 3 snapshots"
    )
    assert one["snaploomCounts"] == {
        "snapshots": 3, "rows": 2_001_000, "multiplied": 0, "matched": 2_000_997, "nullKeys": 1,
    }  # fmt: skip


def test_as_of_join_has_the_times_that_choose_among_rows_of_a_key(shop) -> None:
    rule = {"parentField": "customer_id", "childField": "customer_id"}
    shop.set("wide", "dataModel.otherDataSources.0.asOf", rule)
    document = written(shop)
    (one,) = related(document)
    assert one["snaploomAsOf"] == AsOf.parse(rule).dump()
    assert judged(document) == []
    logic = "left join of customers by customer-id, newest customer_id at or before customer_id"
    customers = columns(document)["customers"]["properties"]
    assert logic in [each.get("transformLogic") for each in customers]


def test_windows_are_columns_with_what_they_aggregate_and_no_foreign_key(shop) -> None:
    rule = {"parentField": "customer_id", "childField": "customer_id", "aggregates": [
        {"name": "customer_id", "function": "MAX", "field": "name", "over": "30d"}]}  # fmt: skip
    shop.set("wide", "dataModel.otherDataSources.0.windows", rule)
    data = struct(field("customer_id", "string"))
    schema = struct(field("data", ORDERS), field("customers", struct(field("data", data))))
    join = JoinMeasure(child="customers", in_=3, out=3, matched=3, null_keys=0)
    published(shop, 1, join, schema=json.dumps(schema))
    document = written(shop)
    assert "relationships" not in document["schema"][0]
    (found,) = columns(document)["customers"]["properties"]
    assert found["customProperties"] == [
        {"property": "snaploomWindows", "value": Windows.parse(rule).dump()}]  # fmt: skip
    (column,) = found["properties"]
    assert (column["physicalType"], column["transformLogic"]) == (
        "string", "MAX of name over 30d")  # fmt: skip
    assert judged(document) == []


def test_key_of_several_columns_in_a_list_refers_to_its_row(shop) -> None:
    (side,) = shop.raw("customer-id")["spec"]["representations"]
    more = ["`Order id`", "Order_id"]
    for name in more:
        side["joinKey"].append({"fields": [{"fieldName": name, "dataType": {"long": {}}}]})
    shop.other(transformations={"groupBy": {"fieldNames": ["customer_id", *more]}})
    names = ("customer_id", "Order id", "Order_id")
    data = struct(*(field(name, "long") for name in names))
    element = struct(field("data", data))
    lists = {"type": "array", "elementType": element, "containsNull": True}
    schema = struct(field("data", data), field("customers", lists))
    join = JoinMeasure(child="customers", in_=3, out=3, matched=3, null_keys=0)
    published(shop, 1, join, schema=json.dumps(schema))
    document = written(shop)
    (one,) = related(document)
    assert [by_ids(document, each) for each in one["to"]] == [["wide", "data", n] for n in names]
    assert [by_ids(document, each) for each in one["from"]] == [
        ["wide", "customers", "items", "data", name] for name in names
    ]
    assert judged(document) == []


@pytest.mark.parametrize(
    "change",
    [
        {"query": "customer_id + order_id", "fields": ["customer_id", "order_id"]},
        {"fields": ["tax"]},
    ],
)
def test_key_that_is_no_published_column_is_no_relationship(shop, change) -> None:
    (side,) = shop.raw("customer-id")["spec"]["representations"]
    fields = [{"fieldName": name, "dataType": {"long": {}}} for name in change["fields"]]
    side["joinKey"][0] |= change | {"fields": fields}
    assert "relationships" not in written(shop)["schema"][0]


def test_join_that_the_newest_snapshot_does_without_is_not_proved(shop) -> None:
    published(shop, 1)
    assert "relationships" not in written(shop)["schema"][0]


@pytest.mark.parametrize(
    ("rows", "matched", "text"),
    [(3, 3, "100 %"), (10**9, 10**9 - 1, "99.99 %"), (1000, 5, "0.5 %"), (0, 0, "0 %")],
)
def test_shares_are_cut_so_that_no_miss_is_rounded_away(rows, matched, text) -> None:
    proof = JoinProof().with_join(
        JoinMeasure(child="c", in_=rows, out=rows, matched=matched, null_keys=0)
    )
    assert str(proof) == f"0 of {rows:,} rows multiplied, {text} matched, in 1 snapshot"


def declared(path: Path) -> tuple[CommandResult, dict[str, Any]]:
    result = snaploom("contract", "--relationships", path)
    found = [each for each in yaml.safe_load_all(result.out) if each]
    return result, {each["metadata"]["name"]: each["spec"] for each in found}


def test_written_relationships_are_read_back_as_they_were_declared(shop, tmp_path) -> None:
    (side,) = shop.raw("customer-id")["spec"]["representations"]
    other = json.loads(json.dumps(side)) | {"dataSources": ["customers"]}
    side["dataSources"], side["joinKey"][0]["normalize"] = ["orders"], ["INTEGER"]
    shop.raw("customer-id")["spec"]["representations"] = [side, other]
    path = tmp_path / "contract.yaml"
    path.write_text(contract(shop).out)
    result, found = declared(path)
    assert (result.code, result.err) == (0, "")
    wanted = DataRelationshipSpec.model_validate(shop.raw("customer-id")["spec"])
    assert {name: DataRelationshipSpec.model_validate(raw) for name, raw in found.items()} == {
        "customer-id": wanted
    }


FOREIGN = """
apiVersion: v3.1.0
kind: DataContract
id: a
version: 1.0.0
status: active
schema:
- name: orders
  properties:
  - {name: customer_id, logicalType: integer, relationships: [{to: customers.id}]}
  - name: billed_to
    logicalType: integer
    physicalType: int
    relationships: [{to: schema/people/properties/key}]
  - name: ref
    logicalType: number
    relationships: [{to: customers.id}, {to: x.yaml#/schema/a/properties/b}]
  - {name: parent, logicalType: integer, relationships: [{to: orders.customer_id}]}
  - name: code
    logicalType: string
    physicalType: VARCHAR(9)
    relationships: [{to: customers.id}]
- name: customers
  id: people
  properties:
  - {name: id, id: key, logicalType: integer, physicalType: bigint}
  - {name: region, logicalType: string}
  - {name: code, logicalType: integer}
- name: prices
  properties:
  - {name: ß, logicalType: integer, relationships: [{to: customers.id}, {to: customers.code}]}
  - name: of
    logicalType: object
    properties: [{name: id, logicalType: integer}, {name: region, logicalType: string}]
  relationships:
  - {from: [prices.of.id, prices.of.region], to: [customers.id, customers.region]}
  - {from: [prices.of.id], to: [customers.id, customers.region]}
  - {from: prices.of.id, to: orders.billed_to}
- name: Größen
  properties: [{name: id, logicalType: integer, relationships: [{to: customers.id}]}]
  relationships: [{from: orders.customer_id, to: customers.id}]
"""
NOTES = [
    "orders.ref -> customers.id: left out, since the type of orders.ref is not known: number",
    "orders.ref -> x.yaml#/schema/a/properties/b: left out, since x.yaml#/schema/a/properties/b is "
    "no column of this contract",
    "orders.parent -> orders.customer_id: left out, since both ends are orders: the other role "
    "needs a DataSource of its own",
    "orders.code -> customers.id: types differ, so that texts are compared",
    "prices.of.id -> customers.id, customers.region: left out, since 1 columns refer to 2",
]


def keys_of(spec: Any) -> dict[str, list[Any]]:
    """Names and types of the columns of each source's key, and the types they are cast to."""
    parts = {side["dataSources"][0]: side["joinKey"] for side in spec["representations"]}
    return {
        source: [
            (*each["fields"][0].values(), each.get("castDataType", {"string": {}})) for each in key
        ]
        for source, key in parts.items()
    }


def test_foreign_keys_of_any_contract_are_relationships_of_their_tables(tmp_path) -> None:
    path = tmp_path / "tables.odcs.yaml"
    path.write_text(FOREIGN)
    assert judged(yaml.safe_load(FOREIGN)) == []
    result, found = declared(path)
    long, integer, text = {"long": {}}, {"integer": {}}, {"string": {}}
    one, other = ("id", long, long), ("region", text, text)
    assert {name: keys_of(spec) for name, spec in found.items()} == {
        "orders-customers": {"orders": [("customer_id", long, long)], "customers": [one]},
        "orders-billed-to": {"orders": [("billed_to", integer, long)], "customers": [one]},
        "orders-code": {"orders": [("code", text, text)], "customers": [("id", long, text)]},
        "prices-customers": {
            "prices": [("of.id", long, long), ("of.region", text, text)],
            "customers": [one, other],
        },
        "prices-orders": {
            "prices": [("of.id", long, long)],
            "orders": [("billed_to", integer, long)],
        },
        "prices-customers-2": {"prices": [("ß", long, long)], "customers": [one]},
        "prices-customers-3": {"prices": [("ß", long, long)], "customers": [("code", long, long)]},
    }
    *notes, last = result.err.splitlines()
    assert sorted(notes) == sorted(NOTES)
    assert last.startswith("Größen.id -> customers.id: left out, since dataSources.0: ")
    assert result.code == 0


@pytest.mark.parametrize(
    ("reference", "is_found"),
    [
        ("#/schema/people/properties/key", True), ("CUSTOMERS.ID", True), ("schema/people", False),
        ("/schema", False), ("a/b/c/d", False), ("", False), ("schema/people/properties/id", False),
        ("customers", False), ("customers.id.more", False), ("schema//properties/key", False),
    ],
)  # fmt: skip
def test_references_lead_to_a_column_or_to_none(reference: str, is_found: bool) -> None:
    document = yaml.safe_load(FOREIGN)
    document["schema"][0]["properties"][0]["relationships"] = [{"to": reference}]
    first = next(foreign_keys(document))
    assert (bool(first.target), first.fault == "") == (is_found, is_found)


def test_contract_without_relationships_and_a_name_beside_one_are_refused(tmp_path) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text("apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.0.0\n")
    result, found = declared(path)
    assert (result.code, found) == (1, {})
    assert_one_error(snaploom("contract", "wide", "--relationships", path), "no name", code=2)
    assert_one_error(snaploom("contract", "wide"), "-f PATH", code=2)
    path.write_text("kind: DataContract\n")
    assert "--relationships apiVersion" in declared(path)[0].err


def test_contract_that_was_just_written_is_kept(shop, tmp_path) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(contract(shop).out)
    result = contract(shop, "--check", path, "--now", "2020-01-01T00:00:00Z")
    assert (result.code, result.out, result.err) == (0, "wide: the contract is kept.\n", "")


def promised(document: Contract) -> Contract:
    return document["schema"][0]["properties"][0]["properties"][2]


BREAKS: dict[str, Callable[[Contract], Any]] = {
    "relationship data.order_id -> customers.data.customer_id": lambda c: c["schema"][0][
        "relationships"
    ].append({"from": "wide.data.order_id", "to": "wide.customers.data.customer_id"}),
    "column data.amount": lambda c: promised(c).update(physicalType="double"),
    "column data.tax": lambda c: promised(c).update(name="tax"),
    "key of data.customer_id": lambda c: c["schema"][0]["properties"][0]["properties"][1].update(
        primaryKey=True
    ),
    "sources of data": lambda c: c["schema"][0]["properties"][0].update(
        transformSourceObjects=["s3://lake/orders"]
    ),
    "check paid": lambda c: c["schema"][0]["quality"][0]["implementation"].update(
        expression="data.amount > 5"
    ),
    "service level latency": lambda c: c["slaProperties"][1].update(value=1),
    "service level retention": lambda c: c["slaProperties"].append(
        {"property": "retention", "value": 5, "unit": "year"}
    ),
}


@pytest.mark.parametrize("subject", BREAKS)
def test_each_broken_promise_is_found(shop, tmp_path, subject) -> None:
    document = written(shop)
    BREAKS[subject](document)
    path = tmp_path / "contract.json"
    path.write_text(json.dumps(document))
    result = contract(shop, "--check", path, "--now", "2020-01-01T00:00:00Z", "-o", "json")
    broken = [o["subject"] for o in result.document["deviations"] if o["verdict"] == "BROKEN"]
    assert (result.code, result.document["kept"], broken) == (1, False, [subject])


def test_what_a_contract_leaves_out_does_not_break_it(shop, tmp_path) -> None:
    document = written(shop)
    document["schema"][0]["properties"].pop(1)
    document["schema"][0].pop("quality")
    document["team"] = {"name": "sales", "members": [{"username": "ada"}]}
    path = tmp_path / "contract.json"
    path.write_text(json.dumps(document))
    result = contract(shop, "--check", path, "--now", "2020-01-01T00:00:00Z", "-o", "json")
    found = {one["subject"]: one["verdict"] for one in result.document["deviations"]}
    assert (result.code, found["column customers"]) == (0, "UNSTATED")
    assert "column customers.data" not in found


def test_old_snapshot_breaks_the_promise_of_freshness(shop, tmp_path) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(contract(shop).out)
    result = contract(shop, "--check", path, "--now", "2050-01-01T00:00:00Z")
    assert (result.code, "service level latency: promised 2 day" in result.out) == (1, True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kind: DataContract\nversion: [1]\n", ("apiVersion", "--check id", "--check version")),
        ("a: [", ("--check",)),
        ("- 1\n", ("no mapping",)),
        ("a: 1\n---\nb: 2\n", ("2 documents",)),
        ("apiVersion: v2.2.0\nkind: X\nid: a\nversion: 1.0.0\n", ("DataContract", "version 3")),
        ("apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.0.0\n", ("something else",)),
    ],
)
def test_what_is_no_contract_is_refused_with_all_that_is_wrong(shop, tmp_path, text, found) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(text)
    result = contract(shop, "--check", path)
    assert (result.code, result.out, "internal error" in result.err) == (2, "", False)
    assert all(part in result.err for part in found), result.err


def test_output_that_never_ran_has_no_contract_yet(tmp_path) -> None:
    result = contract(Shop(tmp_path / "new"))
    assert (result.code, result.out) == (1, "")
    assert "Run the output first" in result.err


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (TimeOffset(day=1), (1, "day")),
        (TimeOffset(week=1, hour=2), ("P7DT2H", "ISO 8601")),
        (TimeOffset(minute=1, nano=500_000_000), ("PT1M0.5S", "ISO 8601")),
    ],
)
def test_lengths_are_numbers_with_a_unit_or_iso_8601(length, text) -> None:
    assert length_text(length) == text


def test_types_are_those_of_sql() -> None:
    schema = parse_schema(json.dumps(struct(field("c", CUSTOMERS))), "")
    assert physical_type(schema.fields[0].type) == (
        "struct<data:struct<customer_id:bigint,name:string>,tags:map<string,string>,"
        "visits:array<struct<at:timestamp>>>"
    )
