"""`snaploom contract`: valid by the standard, and every broken promise is found; without Spark."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator
from open_data_contract_standard.model import OpenDataContractStandard
from support.declared.shop import CommandResult, Shop, snaploom
from support.storage.folders import a_run, agrees, day, writes

from snaploom.files.stores import open_store
from snaploom.models.common import TimeOffset
from snaploom.output.folder import prepare_folder
from snaploom.output.history import folder_identity, folder_settings
from snaploom.output.manifest import model_nodes
from snaploom.output.publication import SnapshotTarget, publish
from snaploom.plan.plan import plan_offline
from snaploom.plugins.contracts.document import length_text, physical_type
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
    bundle = read_declarations([shop.write()]).bundle("wide")
    plan, output = plan_offline(bundle), bundle.output
    store = open_store(output.spec.output_folder.folder_uri, create=True)
    folder = prepare_folder(store, folder_settings(output), folder_identity(output), a_run())
    target = SnapshotTarget(day(0), "day=0", plan.hash, model_nodes(plan.tree))
    publish(folder, a_run(), target, writes(store, schema=SCHEMA), agrees)
    return shop


def contract(shop: Shop, *options: object) -> CommandResult:
    return snaploom("contract", "wide", "-f", shop.write(), *options)


def written(shop: Shop) -> Contract:
    return contract(shop, "-o", "json").document


def columns(document: Contract) -> dict[str, Contract]:
    return {one["name"]: one for one in document["schema"][0]["properties"]}


def test_contract_is_valid_by_the_schema_and_the_library_of_the_standard(shop) -> None:
    text = contract(shop).out
    document = yaml.safe_load(text)
    schema = json.loads(files("open_data_contract_standard").joinpath("schema.json").read_text())
    assert list(Draft201909Validator(schema).iter_errors(document)) == []
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


def test_contract_that_was_just_written_is_kept(shop, tmp_path) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(contract(shop).out)
    result = contract(shop, "--check", path, "--now", "2020-01-01T00:00:00Z")
    assert (result.code, result.out, result.err) == (0, "wide: the contract is kept.\n", "")


def promised(document: Contract) -> Contract:
    return document["schema"][0]["properties"][0]["properties"][2]


BREAKS: dict[str, Callable[[Contract], Any]] = {
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
