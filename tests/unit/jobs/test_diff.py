"""`snaploom diff`: the effect of changed declarations, found without Spark."""

from pathlib import Path
from typing import Any

import pytest
from support.declared.declarations import Raw, document, spoilt
from support.declared.shop import NOW, CommandResult, Shop, snaploom
from support.storage.folders import a_run, agrees, day, writes

from snaploom.files.stores import open_store
from snaploom.output.folder import prepare_folder
from snaploom.output.history import folder_identity, folder_settings
from snaploom.output.manifest import model_nodes
from snaploom.output.publication import SnapshotTarget, publish
from snaploom.plan.differences import shown
from snaploom.plan.plan import plan_offline
from snaploom.run.declarations import read_declarations


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def published(shop: Shop, days: int = 1) -> Shop:
    """The output with some snapshots whose files are not read."""
    bundle = read_declarations([shop.write()]).bundle("wide")
    plan, output = plan_offline(bundle), bundle.output
    store = open_store(output.spec.output_folder.folder_uri, create=True)
    folder = prepare_folder(store, folder_settings(output), folder_identity(output), a_run())
    for number in range(days):
        target = SnapshotTarget(day(number), f"day={number}", plan.hash, model_nodes(plan.tree))
        publish(folder, a_run(), target, writes(store), agrees)
    return shop


def diff(shop: Shop, *options: object) -> CommandResult:
    return snaploom("diff", "wide", "-f", shop.write(), "--now", NOW, "-o", "json", *options)


def areas(result: CommandResult) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in result.document["differences"]:
        found.setdefault(one["area"], []).append(one["subject"])
    return found


def changed(shop: Shop, name: str, path: str, value: Any) -> Shop:
    documents = [
        spoilt(raw, f"spec.{path}", value) if raw["metadata"]["name"] == name else raw
        for raw in shop.documents
    ]
    return Shop(shop.folder, documents)


def test_compression_that_is_not_declared_is_no_difference(shop) -> None:
    published(changed(shop, "wide", "outputFolder.dataCompression", "SNAPPY"))
    assert diff(shop).document["differences"] == []


def test_what_is_published_by_the_same_declarations_stays_the_same(shop) -> None:
    result = diff(published(shop))
    assert (result.code, result.document["same"], result.document["differences"]) == (0, True, [])
    assert "nothing would change" in snaploom("diff", "wide", "-f", shop.write()).out


def test_output_that_never_ran_would_publish_everything(shop) -> None:
    result = diff(shop)
    assert (result.code, areas(result)) == (1, {"HISTORY": ["snapshots"]})


def test_another_source_is_a_join_and_a_field_more(shop) -> None:
    published(shop)
    shop.documents.append(document("DataSource", "regions", shop.raw("customers")["spec"]))
    keys: Raw = shop.raw("customer-id")["spec"]["representations"][0]
    keys["dataSources"].append("regions")
    exclusions = [{"dataSourceSet": ["customers", "regions"]}]
    model = shop.raw("wide")["spec"]["dataModel"]
    model["otherDataSources"].append({"dataSource": "regions", "fieldName": "regions"})
    model["dataRelationships"][0]["exclusions"] = exclusions
    result = diff(shop)
    assert (result.code, result.document["refused"]) == (1, False)
    assert areas(result) == {"PLAN": ["regions", "hash"], "SCHEMA": ["regions"]}


def test_what_history_forbids_is_marked_as_refused(shop) -> None:
    published(shop)
    shop.other(transformations={"groupBy": {"fieldNames": ["customer_id"]}})
    shop.set("wide", "outputFolder.dataFormat", "AVRO")
    result = diff(shop)
    refused = {one["subject"] for one in result.document["differences"] if one["refused"]}
    assert refused == {"spec.outputFolder.dataFormat", "customers: groupBy"}
    assert "customers ARRAY<STRUCT<...>>" in [o["after"] for o in result.document["differences"]]
    shop.set("wide", "outputFolder.incompatibleSchema", "WARN")
    result = diff(shop)
    refused = {one["subject"] for one in result.document["differences"] if one["refused"]}
    assert refused == {"spec.outputFolder.dataFormat"}


def test_retention_lists_what_it_would_delete(shop) -> None:
    published(shop, days=3)
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 0})
    (found,) = diff(shop, "--offline").document["differences"]
    # A run deletes behind a publication, and then the newest of these is an old one too.
    assert found["before"] == "2020-01-01T00:00:00Z, 2020-01-02T00:00:00Z, 2020-01-03T00:00:00Z"
    assert found["effect"].startswith("3 of 3 snapshots would be deleted once one newer")
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 3})
    assert diff(shop, "--offline").document["differences"] == []


def test_two_sets_of_files_are_compared_field_by_field(shop, tmp_path) -> None:
    old = Shop(tmp_path / "old", shop.documents).write()
    new = changed(shop, "orders", "hdfsLike.formatOptions", {"mergeSchema": "true"})
    new = changed(new, "wide", "run.suspend", True)
    result = diff(new, "--against", old)
    assert areas(result) == {
        "DECLARATION": [
            "DataSource/orders spec.hdfsLike.formatOptions.mergeSchema",
            "OutputDataset/wide spec.run.suspend",
        ],
        "PLAN": ["hash"],
    }
    assert diff(Shop(shop.folder, shop.documents), "--against", old).code == 0


def test_folder_of_another_owner_is_a_warning_beside_a_comparison(shop) -> None:
    shop.published.mkdir(parents=True)
    (shop.published / "theirs.txt").write_text("x")
    result = diff(shop, "--against", shop.write())
    assert (result.code, result.document["same"]) == (0, True)
    assert "cannot be read" in result.document["warnings"][0]
    on_its_own = diff(shop)
    assert (on_its_own.code, on_its_own.out, "theirs.txt" in on_its_own.err) == (2, "", True)


def test_password_in_a_declaration_is_not_shown() -> None:
    path = "DataSource/db spec.jdbc.credentials.fromPlaintext.password"
    assert shown(path, "secret") == "(hidden)"
    assert shown("DataSource/db spec.jdbc.credentials.fromSecret.name", "login") == "login"
