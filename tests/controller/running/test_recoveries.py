"""The operator recovers from outside faults, and counts and logs them."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from support.cluster.cluster import Cluster, ControlPlane
from support.cluster.sparkcrds import install_spark_crds
from support.declared.declarations import files
from support.documentation.commands import wait_until
from support.operator.clusters import until
from support.operator.operatorharness import OperatorThread, RealHarness, real_settings
from support.operator.operatorprocess import WORKS, OperatorProcess, operator_process

from snaploom.models.common import NANOS_PER_SECOND, EpochNanos, now
from snaploom_operator.cluster.port import LEASES
from snaploom_operator.process.operator import Clocks, RunOptions
from snaploom_operator.serve.metrics import UNANSWERED, Metrics
from snaploom_operator.settings import OperatorSettings


def metrics_of(process: OperatorProcess) -> dict[str, float]:
    """Values of metrics, by name and labels."""
    families = text_string_to_metric_families(process.get("metrics", "/metrics"))
    samples = (sample for family in families for sample in family.samples)
    return {each.name + "".join(sorted(each.labels.values())): each.value for each in samples}


def await_metrics(process: OperatorProcess, **wanted: float) -> None:
    """Wait until metrics have these values: they are computed for some seconds."""
    wait_until(lambda: wanted.items() <= metrics_of(process).items(), process.process)


def test_one_answer_that_is_lost_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(CollectorRegistry())
    for code in (200, *[0] * (UNANSWERED - 1), 503):
        metrics.requested("get", "pods", code, 0.1)
    assert metrics.registry.get_sample_value("snaploom_api_outages_total") == 0.0
    assert not caplog.messages


def test_an_outage_of_the_api_server_is_counted_and_logged(
    own_control_plane: ControlPlane, tmp_path: Path
) -> None:
    plane = own_control_plane
    install_spark_crds(plane.kubectl)
    source = files("customer")
    plane.kubectl.apply({**source, "metadata": {**source["metadata"], "namespace": "default"}})
    with operator_process(tmp_path, plane.kubeconfig, "default", "--local") as process:
        process.await_output(WORKS)
        process.await_output("the watch of DataSource started")
        began = metrics_of(process)["snaploom_watch_beginnings_totalDataSource"]
        plane.apiserver.kill()
        process.await_output("the API server is unreachable")
        await_metrics(process, snaploom_api_reachable=0)
        plane.apiserver.start()
        plane.await_ready()
        process.await_output("the API server is reachable again")
        await_metrics(process, snaploom_api_reachable=1, snaploom_api_outages_total=1)
        process.await_output("the watch of DataSource started", times=2)
        await_metrics(process, snaploom_watch_beginnings_totalDataSource=began + 1)


async def test_a_lost_lease_is_counted_and_logged(
    harness: RealHarness, caplog: pytest.LogCaptureFixture
) -> None:
    registry = harness.operator.metrics.registry
    assert registry.get_sample_value("snaploom_leader") == 1.0
    stolen = {"spec": {"holderIdentity": "somebody"}}
    await harness.cluster.patch(LEASES, harness.namespace, OperatorSettings().lease, stolen)

    async def is_lost() -> bool:
        return registry.get_sample_value("snaploom_leader") == 0.0

    await until(is_lost)
    labels = {"change": "lost"}
    assert registry.get_sample_value("snaploom_leadership_changes_total", labels) == 1.0
    assert any("lost lease" in line for line in caplog.messages)
    assert harness.failure is not None


async def test_a_changed_clock_is_counted_and_logged(
    spark_plane: Cluster,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("snaploom_operator.process.operator.CLOCK_CHECK_SECONDS", 0.01)
    ahead = 0
    clocks = Clocks(lambda: EpochNanos(now() + ahead * NANOS_PER_SECOND))
    place = RunOptions(spark_plane.kubeconfig)
    thread = OperatorThread(real_settings(namespace), place, clocks)
    await thread.begin()
    try:
        registry = thread.running.operator.metrics.registry
        ahead = 3600

        async def is_counted() -> bool:
            return registry.get_sample_value("snaploom_clock_jumps_total") == 1.0

        await until(is_counted)
    finally:
        await thread.end()
    assert any("the clock changed by 3600 s" in line for line in caplog.messages)
