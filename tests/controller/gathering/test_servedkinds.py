"""Served kinds that are older than the operator, from their schemas to what is decided."""

import logging
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from support.declared.declarations import document, model, spoilt
from support.operator.fakecluster import FakeCluster, served_schemas
from support.operator.faultycluster import LOST_REQUEST, FaultyCluster
from support.operator.operatorharness import FakeHarness, condition, has_reason, is_ready, started

from snaploom_operator.cluster.port import OURS, SPARK_APPLICATIONS
from snaploom_operator.store.feed import compare_kinds, outdated_kinds
from snaploom_operator.store.store import Store

Raw = dict[str, Any]
WIDE, CUSTOMER = "OutputDataset/wide", "DataSource/customer"
OLD = "datasources.snaploom.io is older than the operator"


def properties(schema: Raw, path: str = "") -> Iterator[tuple[Raw, str, str]]:
    """The properties that hold each field that could be dropped, its name and its path."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, child in schema.get("properties", {}).items():
        field = f"{path}.{name}" if path else name
        if field in ("apiVersion", "kind", "metadata"):
            continue
        yield schema["properties"], name, field
        yield from properties(child, field)
    if "items" in schema:
        yield from properties(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from properties(schema["additionalProperties"], f"{path}.*")


@pytest.mark.parametrize("kind", OURS)
def test_every_field_that_a_served_kind_lacks_is_found(kind: str) -> None:
    served = deepcopy(served_schemas())
    fields = list(properties(served[kind]))
    assert len(fields) > 10
    for parent, name, field in fields:
        removed = parent.pop(name)
        assert f" drops {field}, and no run" in outdated_kinds(served)[kind]
        parent[name] = removed
    assert outdated_kinds(served) == {}


def test_more_fields_than_a_line_has_are_counted() -> None:
    served = {"SkippingIndex": {"properties": {"spec": {"type": "object"}}}}
    assert ", spec.run and 4 more, and no run" in outdated_kinds(served)["SkippingIndex"]


def test_newer_and_reworded_kinds_are_not_outdated() -> None:
    served = deepcopy(served_schemas())
    for parent, name, _ in list(properties(served["OutputDataset"])):
        parent[name]["description"] = "reworded"
        parent[f"newer-{name}"] = {"type": "object"}
    assert outdated_kinds(served | {"Unknown": {}}) == {}


@pytest.mark.parametrize(
    ("parts", "is_outdated"),
    [
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, False, id="any field"),
        pytest.param({"properties": {"a": {"type": "string"}}}, True, id="no map any more"),
        pytest.param({"additionalProperties": {"type": "string"}}, False, id="a map"),
        pytest.param({"additionalProperties": True}, False, id="a map of anything"),
    ],
)
def test_a_map_may_not_become_an_object(parts: Raw, is_outdated: bool) -> None:
    served = deepcopy(served_schemas())
    run = served["OutputDataset"]["properties"]["spec"]["properties"]["run"]["properties"]
    run["spark"]["properties"]["sparkConf"] = {"type": "object"} | parts
    found = outdated_kinds(served).get("OutputDataset", "")
    assert ("drops spec.run.spark.sparkConf.*, and" in found) is is_outdated


async def test_a_question_without_an_answer_changes_nothing(caplog):
    store = Store()
    store.set_outdated({"DataSource": OLD})
    silent = FaultyCluster(FakeCluster(), lambda call: LOST_REQUEST)
    assert await compare_kinds(silent, store) == frozenset()
    assert store.outdated == {"DataSource": OLD}
    assert "cannot compare the CustomResourceDefinitions" in caplog.text
    with caplog.at_level(logging.INFO):
        await compare_kinds(FakeCluster(), store)
    assert store.outdated == {}
    assert "DataSource: the CustomResourceDefinition is not outdated any more" in caplog.text


async def outdated(harness: FakeHarness, kinds: dict[str, str]) -> None:
    harness.operator.queue.add_all(harness.operator.store.set_outdated(kinds))
    await harness.settle()


async def test_nothing_runs_with_what_an_outdated_kind_may_have_lost() -> None:
    harness = await started()
    await outdated(harness, {"DataSource": OLD})
    await harness.apply(*model())
    stalled = await harness.wait_for(CUSTOMER, has_reason("CustomResourceDefinitionOutdated"))
    assert condition(stalled, "Stalled")["message"] == OLD
    await harness.advance(60)
    wide = await harness.get(WIDE)
    assert condition(wide, "Stalled")["reason"] == "ReferenceNotReady"
    assert CUSTOMER in condition(wide, "Stalled")["message"]
    assert harness.fake.all(SPARK_APPLICATIONS) == []
    await outdated(harness, {})
    await harness.wait_for(CUSTOMER, is_ready)
    await harness.wait_for(WIDE, is_ready)


async def test_a_run_in_flight_goes_on_and_no_other_follows() -> None:
    harness = await started(*model())
    await harness.settle()
    await outdated(harness, {"OutputDataset": OLD})
    await harness.wait_for(WIDE, lambda raw: "lastRun" in raw["status"])
    await harness.annotate(WIDE, run="again")
    await harness.advance(3600)
    found = await harness.get(WIDE)
    assert condition(found, "Stalled")["reason"] == "CustomResourceDefinitionOutdated"
    assert found["status"]["lastRun"]["phase"] == "Succeeded"
    assert len(harness.fake.all(SPARK_APPLICATIONS)) == 1


async def test_what_cannot_be_read_may_be_what_was_dropped() -> None:
    harness = await started()
    await outdated(harness, {"DataSource": OLD})
    await harness.apply(document("DataSource", "customer", {}), spoilt(model()[1], "spec", {}))
    await harness.wait_for(CUSTOMER, has_reason("CustomResourceDefinitionOutdated"))
