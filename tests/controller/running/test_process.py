"""The command: it starts, answers probes, ends cleanly, and reports faults in one form."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.cluster.cluster import Cluster
from support.cluster.clusterkubectl import Kubectl
from support.declared.declarations import model
from support.operator.operatorprocess import WORKS, OperatorProcess, operator_process


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


def test_probes_and_metrics_are_answered(
    started: OperatorProcess, kubectl: Kubectl, namespace: str
) -> None:
    assert started.get("health", "/healthz") == "{}"
    assert started.get("readiness", "/readyz") == "ok\n"
    assert "snaploom_leader 1.0" in started.get("metrics", "/metrics")


def test_logs_are_json_that_names_the_resource(
    started: OperatorProcess, kubectl: Kubectl, namespace: str
) -> None:
    lines = [json.loads(line) for line in started.output.splitlines()]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()


def without_cluster(folder: Path, *arguments: str, kubeconfig: str) -> OperatorProcess:
    return OperatorProcess(folder, arguments, {"KUBECONFIG": kubeconfig})


def test_invalid_settings_are_reported(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("wokers: 3\n")
    process = without_cluster(tmp_path, "--settings", str(settings), kubeconfig="/nowhere")
    assert process.ended() == 2
    assert "settings.yaml:1" in process.output
    assert "workers" in process.output


@pytest.mark.parametrize(("submitters", "found"), [("[]", "an empty list"), ("[Local]", "Local")])
def test_settings_with_which_nobody_may_start_jobs_are_refused(
    tmp_path: Path, submitters: str, found: str
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"submitters: {submitters}\n")
    process = without_cluster(tmp_path, "--settings", str(settings), kubeconfig="/nowhere")
    assert process.ended() == 2
    assert "SettingsInvalid submitters" in process.output
    assert f"found:    {found}\n  expected: SparkOperator, ApacheSpark" in process.output


def test_an_operator_that_runs_jobs_itself_needs_no_other_submitter(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("submitters: []\n")
    options = ("--settings", str(settings), "--local")
    process = without_cluster(tmp_path, *options, kubeconfig="/nowhere")
    assert process.ended() == 2
    assert "no Kubernetes cluster" in process.output


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


def test_permissions_that_are_missing_are_an_error(
    tmp_path: Path, spark_plane: Cluster, namespace: str
) -> None:
    kubeconfig = spark_plane.kubeconfig_of(namespace, "default")
    with operator_process(tmp_path, kubeconfig, namespace) as process:
        assert process.ended() == 1
    assert "lacks a permission" in process.output
    assert "Traceback" not in process.output


def test_it_works_without_any_right_beyond_its_namespace(
    tmp_path: Path, spark_plane: Cluster, namespace: str, kubectl: Kubectl
) -> None:
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
