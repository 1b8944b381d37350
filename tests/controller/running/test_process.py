"""The command: it starts, answers probes, ends cleanly, and reports faults in one form."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from support.cluster.cluster import Cluster
from support.cluster.sparkcrds import install_spark_crds
from support.declared.declarations import files, model
from support.documentation.commands import wait_until
from support.operator.clusters import until
from support.operator.operatorharness import OperatorThread, RealHarness, is_ready, real_settings
from support.operator.operatorprocess import WORKS, OperatorProcess, operator_process

from snaploom.models.common import NANOS_PER_SECOND, EpochNanos, now
from snaploom_operator.cluster.port import LEASES, SPARK_APPLICATIONS
from snaploom_operator.process.operator import Clocks, RunOptions
from snaploom_operator.serve.metrics import UNANSWERED, Metrics
from snaploom_operator.settings import OperatorSettings


@pytest.fixture
def started(spark_plane: Cluster, namespace: str, tmp_path: Path) -> Iterator[OperatorProcess]:
    with operator_process(tmp_path, spark_plane.kubeconfig, namespace) as process:
        process.await_output(WORKS)
        yield process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(started: OperatorProcess, number: int) -> None:
    started.process.send_signal(number)
    assert started.ended() == 0
    assert "Traceback" not in started.output


def test_a_second_one_takes_over_at_once_after_the_first_ended(
    started: OperatorProcess, spark_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    with operator_process(tmp_path / "second", spark_plane.kubeconfig, namespace) as second:
        started.process.send_signal(signal.SIGTERM)
        assert started.ended() == 0
        second.await_output(WORKS)


def test_probes_and_metrics_are_answered(started, kubectl, namespace):
    started.await_output("the watch of")  # kopf answers probes once it has started
    assert started.get("health", "/healthz") == "{}"
    assert started.get("readiness", "/readyz") == "ok\n"
    assert "snaploom_leader 1.0" in started.get("metrics", "/metrics")


def test_logs_are_json_that_names_the_resource(started, kubectl, namespace):
    lines = [json.loads(line) for line in started.output.splitlines()]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()


def without_cluster(folder: Path, *arguments: str, kubeconfig: str) -> OperatorProcess:
    return OperatorProcess(folder, arguments, {"KUBECONFIG": kubeconfig})


JOBS = "SettingsInvalid submitters", "\n  expected: SparkOperator, ApacheSpark"


@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("wokers: 3", [], ["settings.yaml:1", "workers"]),
        ("submitters: []", [], [*JOBS, "found:    an empty list"]),
        ("submitters: [Local]", [], [*JOBS, "found:    Local"]),
        ("submitters: []", ["--local"], ["no Kubernetes cluster"]),
    ],
    ids=["unknown", "no submitter", "Local alone", "jobs of its own need no other"],
)
def test_invalid_settings_are_reported(tmp_path, text, options, found):
    settings = tmp_path / "settings.yaml"
    settings.write_text(text + "\n")
    given = ("--settings", str(settings), *options)
    process = without_cluster(tmp_path, *given, kubeconfig="/nowhere")
    assert process.ended() == 2
    assert [each for each in found if each not in process.output] == []


def test_no_cluster_is_an_error(tmp_path: Path) -> None:
    process = without_cluster(tmp_path, kubeconfig="/nowhere")
    assert process.ended() == 2
    assert "no Kubernetes cluster" in process.output


def test_a_cluster_that_does_not_answer_is_reported(tmp_path: Path, spark_plane: Cluster) -> None:
    known = yaml.safe_load(spark_plane.kubeconfig.read_text())
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    known["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(known))
    process = without_cluster(tmp_path, "--local", kubeconfig=str(kubeconfig))
    assert process.ended() == 1
    assert "the API server is unreachable" in process.output
    assert "Traceback" not in process.output


def test_a_taken_port_is_reported(tmp_path: Path, spark_plane: Cluster, namespace: str) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with operator_process(
            tmp_path, spark_plane.kubeconfig, namespace, healthPort=port
        ) as process:
            assert process.ended() == 2
    assert f"port {port}" in process.output


def test_permissions_that_are_missing_are_an_error(tmp_path, spark_plane, namespace):
    kubeconfig = spark_plane.kubeconfig_of(namespace, "default")
    with operator_process(tmp_path, kubeconfig, namespace) as process:
        assert process.ended() == 1
    assert "lacks a permission" in process.output
    assert "Traceback" not in process.output


def test_it_works_without_any_right_beyond_its_namespace(tmp_path, spark_plane, namespace, kubectl):
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "all", "namespace": namespace},
        "rules": [everything],
    }
    kubectl.apply(role)
    kubectl(
        "create", "rolebinding", "all", "-n", namespace, "--role=all",
        f"--serviceaccount={namespace}:default",
    )  # fmt: skip
    kubectl.apply(*(_placed(raw, namespace) for raw in model()))
    kubeconfig = spark_plane.kubeconfig_of(namespace, "default")
    with operator_process(tmp_path, kubeconfig, namespace) as process:
        process.await_output(WORKS)
        kubectl(
            "wait", "-n", namespace, "--for=condition=Ready", "--timeout=60s", "datasource/customer"
        )
        assert "forbidden" not in process.output.lower()


def _placed(raw: dict[str, object], namespace: str) -> dict[str, object]:
    metadata = raw["metadata"]
    assert isinstance(metadata, dict)
    return {**raw, "metadata": {**metadata, "namespace": namespace}}


def metrics_of(process: OperatorProcess) -> dict[str, float]:
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


def test_an_outage_of_the_api_server_is_counted_and_logged(own_control_plane, tmp_path):
    plane = own_control_plane
    install_spark_crds(plane.kubectl)
    source = files("customer")
    plane.kubectl.apply({**source, "metadata": {**source["metadata"], "namespace": "default"}})
    with operator_process(tmp_path, plane.kubeconfig, "default", "--local") as process:
        process.await_output(WORKS)
        process.await_output("the watch of DataSource started")
        began = "snaploom_watch_beginnings_totalDataSource"
        before = metrics_of(process)[began]
        plane.apiserver.kill()
        process.await_output("the API server is unreachable")
        await_metrics(process, snaploom_api_reachable=0)
        plane.apiserver.start()
        plane.await_ready()
        process.await_output("the API server is reachable again")
        await_metrics(process, snaploom_api_reachable=1, snaploom_api_outages_total=1)
        process.await_output("the watch of DataSource started", times=2)
        # A server that has just started may end a watch once more.
        wait_until(lambda: metrics_of(process)[began] > before, process.process)


async def test_a_lost_lease_is_counted_and_logged(harness, caplog):
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


async def test_a_changed_clock_is_counted_and_logged(spark_plane, namespace, monkeypatch, caplog):
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


WIDE = "OutputDataset/wide"


async def test_two_operators_at_once_start_one_run(harness, spark_plane, namespace):
    # Another Lease: neither hears of the other.
    second = RealHarness(harness.cluster, spark_plane.kubeconfig, namespace, lease="second")
    await second.start()
    try:
        await harness.apply(*model())
        ended = await harness.wait_for(WIDE, is_ready)
        assert (ended["status"]["lastRun"]["phase"], ended["status"]["lastRun"]["attempt"]) == (
            "Succeeded",
            0,
        )
        assert len(await harness.all(SPARK_APPLICATIONS)) == 1
        assert second.failure is None
    finally:
        await second.stop()
