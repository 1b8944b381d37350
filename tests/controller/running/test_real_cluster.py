"""The operator over a real API server: watches feed it, and it writes what it should."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.cluster.cluster import Cluster
from support.declared.declarations import files, model, spoilt
from support.operator.clusters import a_config_map, an_object, until
from support.operator.fakecluster import Change, ChangeType
from support.operator.operatorharness import RealHarness, has_reason, is_ready

from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import (
    APACHE_SPARK_APPLICATIONS,
    CONFIG_MAPS,
    EVENTS,
    SPARK_APPLICATIONS,
)
from snaploom_operator.objects import LABEL_OWNER, LABEL_ROLE, LABEL_RUN

Raw = dict[str, Any]
FLIGHTS = Path(__file__).parents[3] / "examples" / "flights"


async def test_an_applied_model_is_planned_run_and_published(harness: RealHarness) -> None:
    await harness.apply(*reversed(model()))
    found = await harness.wait_for("OutputDataset/wide", is_ready)
    assert found["status"]["plan"]["joins"][0]["source"] == "address"
    assert found["status"]["lastRun"]["phase"] == "Succeeded"
    assert len(await harness.all(SPARK_APPLICATIONS)) == 1


async def test_the_example_ends_ready_whatever_the_order(harness: RealHarness) -> None:
    await harness.apply(FLIGHTS)
    for identity in ("OutputDataset/flights-wide", "DataRelationship/carrier", "DataSource/legs"):
        await harness.wait_for(identity, is_ready)


async def test_a_mistake_stalls_and_its_correction_goes_on(harness: RealHarness) -> None:
    *others, output = model()
    await harness.apply(*others, spoilt(output, "spec.dataModel.dataRelationships", []))
    await harness.wait_for("OutputDataset/wide", has_reason("SourceUnreachable"))
    await harness.apply(output)
    await harness.wait_for("OutputDataset/wide", is_ready)


async def test_a_deleted_source_is_missing_for_its_users(harness: RealHarness) -> None:
    await harness.apply(*model())
    await harness.wait_for("OutputDataset/wide", is_ready)
    await harness.delete("DataSource/customer")
    await harness.wait_for("OutputDataset/wide", has_reason("ReferenceMissing"))


async def test_a_restart_with_nothing_to_do_writes_nothing(harness: RealHarness) -> None:
    await harness.apply(*model())
    before = await harness.wait_for("OutputDataset/wide", is_ready)
    await harness.restart()

    async def is_settled() -> bool:
        return harness.operator.queue.is_idle

    await until(is_settled)
    assert await harness.get("OutputDataset/wide") == before


async def test_a_deletion_without_an_event_is_found_by_the_next_list(harness):
    await harness.apply(*model())
    await harness.wait_for("OutputDataset/wide", is_ready)
    ghost = dict(await harness.get("DataSource/customer"))
    await harness.delete("DataSource/customer")
    await harness.wait_for("OutputDataset/wide", has_reason("ReferenceMissing"))
    # as if its end had not been heard of
    await harness.deliver(Change(ChangeType.MODIFIED, ghost))
    await harness.wait_for("OutputDataset/wide", is_ready)
    await harness.list_all()
    await harness.wait_for("OutputDataset/wide", has_reason("ReferenceMissing"))


async def test_watches_ask_for_no_name_of_a_user(harness, monkeypatch):
    """A pod may run as a number that the image does not know."""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1000650000")

    monkeypatch.setattr("getpass.getuser", unknown)
    await harness.restart()
    await harness.apply(*model())
    await harness.wait_for("OutputDataset/wide", is_ready)


async def test_events_are_posted_once(harness: RealHarness) -> None:
    await harness.apply(*model())
    await harness.wait_for("OutputDataset/wide", is_ready)

    async def normal() -> list[str]:
        events = [e for e in await harness.all(EVENTS) if e["regarding"]["name"] == "wide"]
        return sorted(e["reason"] for e in events if e["type"] == "Normal")

    async def are_posted() -> bool:
        return await normal() == ["RunStarted", "RunSucceeded"]

    await until(are_posted)
    registry, labels = harness.operator.metrics.registry, {"outcome": "new"}
    posted = registry.get_sample_value("snaploom_events_total", labels)
    assert posted is not None
    assert posted >= 2


def nested_type(levels: int) -> Raw:
    found: Raw = {"integer": {}}
    for _ in range(levels):
        found = {"array": {"elementType": found}}
    return spoilt(files("deep"), "spec.hdfsLike.schemaFields", [{"name": "c", "dataType": found}])


@pytest.fixture
async def of_apache(spark_plane: Cluster, namespace: str) -> AsyncIterator[RealHarness]:
    """An operator that also reads applications of Apache's operator."""
    async with open_cluster(spark_plane.kubeconfig) as cluster:
        submitters = ["SparkOperator", "ApacheSpark"]
        found = RealHarness(cluster, spark_plane.kubeconfig, namespace, submitters=submitters)
        await found.start()
        yield found
        await found.stop()


@pytest.mark.parametrize("levels", [110, 400])
async def test_objects_that_no_parser_reads_end_nothing_after_a_start_and_before(of_apache, levels):
    harness, apache = of_apache, APACHE_SPARK_APPLICATIONS
    cluster, namespace = harness.cluster, harness.namespace
    labels = {LABEL_OWNER: "uid", LABEL_RUN: "run", LABEL_ROLE: "report"}
    reports = {"brackets": "[" * 100_000, "digits": "9" * 5_000, "objects": '{"a":' * 100_000}
    for name, text in reports.items():
        forged = a_config_map(name, {"report.json": text}, labels=labels)
        await cluster.create(CONFIG_MAPS, namespace, forged)
    spec = {"runtimeVersions": {"sparkVersion": "4.0.1"}}
    forged = an_object(apache, "forged", metadata={"labels": labels}, spec=spec)
    await cluster.create(apache, namespace, forged)
    ended: Raw = {"currentStateSummary": "ResourceReleased"}
    status: Raw = {"currentState": ended, "stateTransitionHistory": {"9" * 5_000: ended}}
    await cluster.patch(apache, namespace, "forged", {"status": status}, subresource="status")
    await harness.apply(nested_type(levels))
    for others in (files("before"), files("after")):
        await harness.wait_for("DataSource/deep", has_reason("Invalid"))
        assert harness.operator.store.unreadable() == {"ConfigMap": 3, "DataSource": 1}
        await harness.apply(others)
        await harness.wait_for(f"DataSource/{others['metadata']['name']}", is_ready)
        await harness.restart()
