"""An operator that is newer than the CustomResourceDefinitions of its cluster."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.cluster.cluster import ControlPlane
from support.cluster.sparkcrds import install_spark_crds
from support.declared.declarations import model, spoilt
from support.operator.clusters import until
from support.operator.operatorharness import RealHarness, condition, has_reason, is_ready

from snaploom_operator.cluster.client import KubernetesCluster, open_cluster
from snaploom_operator.cluster.port import SPARK_APPLICATIONS
from snaploom_operator.store.feed import outdated_kinds

WIDE, FIELD = "OutputDataset/wide", "spec.run.startTimeoutSeconds"
DECLARED = [*model()[:-1], spoilt(model()[-1], FIELD, 77)]


def install_older_crd(plane: ControlPlane) -> None:
    """The CustomResourceDefinition of outputs as a version without the field had it."""
    crd: Any = plane.kubectl.get("crd", "outputdatasets.snaploom.io")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    run = schema["properties"]["spec"]["properties"]["run"]
    del run["properties"]["startTimeoutSeconds"]
    plane.kubectl("replace", "-f", "-", stdin=json.dumps(crd))


@pytest.fixture
async def cluster(own_control_plane: ControlPlane) -> AsyncIterator[KubernetesCluster]:
    install_spark_crds(own_control_plane.kubectl)
    install_older_crd(own_control_plane)
    async with open_cluster(own_control_plane.kubeconfig) as cluster:

        async def is_served() -> bool:
            return "OutputDataset" in outdated_kinds(await cluster.schemas())

        await until(is_served)
        yield cluster


@pytest.mark.parametrize("watched", [{}, {"watchNamespaces": []}], ids=["one namespace", "all"])
async def test_no_output_runs_until_the_served_kind_has_its_fields(
    own_control_plane: ControlPlane,
    cluster: KubernetesCluster,
    watched: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("snaploom_operator.process.operator.OUTDATED_SECONDS", 0.2)
    namespace = own_control_plane.create_namespace()
    harness = RealHarness(cluster, own_control_plane.kubeconfig, namespace, **watched)
    await harness.apply(*DECLARED)
    assert "startTimeoutSeconds" not in (await harness.get(WIDE))["spec"].get("run", {})
    await harness.start()
    try:
        assert "outputdatasets.snaploom.io is older than the operator" in caplog.text
        found = await harness.wait_for(WIDE, has_reason("CustomResourceDefinitionOutdated"))
        message = condition(found, "Stalled")["message"]
        assert f"drops {FIELD}, " in message
        assert "`snaploom crds | kubectl apply --server-side" in message
        await harness.wait_for("DataSource/customer", is_ready)
        assert await harness.all(SPARK_APPLICATIONS) == []
        own_control_plane.install_crds()
        await harness.apply(*DECLARED)
        found = await harness.wait_for(WIDE, is_ready)
        assert found["spec"]["run"]["startTimeoutSeconds"] == 77
    finally:
        await harness.stop()


async def test_an_account_without_any_right_sees_that_a_kind_is_outdated(
    own_control_plane: ControlPlane, cluster: KubernetesCluster
) -> None:
    own_control_plane.kubectl("create", "serviceaccount", "nobody", "--namespace", "default")
    async with open_cluster(own_control_plane.kubeconfig_of("default", "nobody")) as seen:
        assert outdated_kinds(await seen.schemas()).keys() == {"OutputDataset"}
