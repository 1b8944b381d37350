"""The real job, with Spark, run as a local application over a real API server."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.operator.clusters import until
from support.operator.runrequests import a_request
from support.weaving.loom import OUTPUT, Loom

from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.report import Report, RunPhase
from snaploom.models.run import Submitter
from snaploom.plan.bundles import bundle_for
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import CONFIG_MAPS, OURS, Cluster
from snaploom_operator.objects import Application, ApplicationState, Metadata
from snaploom_operator.submit.applications import FORMS
from snaploom_operator.submit.localrunner import Intervals, LocalRunner, job_environment
from snaploom_operator.submit.manifests import bundle_config_map, uid_of

Raw = dict[str, Any]
RUN = "ods-wide-0a1b2c3d"
FORM = FORMS[Submitter.LOCAL]
PATIENCE = 240.0


@pytest.mark.spark
async def test_local_run_publishes_and_reports(tmp_path, control_plane, namespace):
    loom = Loom(tmp_path)
    loom.write("order", 1, [{"id": 1}, {"id": 2}])
    loom.write("customer", 1, [{"id": 1, "name": "Ada"}])
    loom.join("customer")
    with job_environment(control_plane.kubeconfig, None) as environment:
        async with open_cluster(control_plane.kubeconfig) as cluster:
            uid = await submit(cluster, namespace, loom.documents())
            runner = LocalRunner(
                cluster, environment, [namespace], intervals=Intervals(poll_seconds=0.1)
            )
            await runner.poll()
            await until(lambda: is_over(cluster, namespace), PATIENCE)
            ended = await application(cluster, namespace)
            assert (ended.message, ended.state) == ("", ApplicationState.COMPLETED)
            stored: Any = await cluster.get(CONFIG_MAPS, namespace, f"{RUN}-report")
    report = Report.parse(json.loads(stored["data"]["report.json"]))
    assert (report.phase, report.run_id, report.uid) == (RunPhase.SUCCEEDED, RUN, uid)
    assert [snapshot.rows for snapshot in report.snapshots] == [2]
    assert list(loom.out.glob("data/*/*.parquet"))


async def submit(cluster: Cluster, namespace: str, documents: list[Raw]) -> str:
    """Write what the operator writes for a run; the UID of its output."""
    resources = []
    for raw in documents:
        raw["metadata"]["namespace"] = namespace
        created: Any = await cluster.create(OURS[raw["kind"]], namespace, raw)
        resources.append(KIND_BY_NAME[raw["kind"]].model.parse(created))
    bundle = bundle_for("OutputDataset", OUTPUT, resources)
    bundled = bundle_config_map(bundle.output, RUN, bundle)
    request = a_request(bundle.output, name=RUN, bundle=Metadata.of(bundled).name)
    await cluster.create(CONFIG_MAPS, namespace, bundled)
    await cluster.create(CONFIG_MAPS, namespace, FORM.manifest(request))
    return uid_of(bundle.output)


async def application(cluster: Cluster, namespace: str) -> Application:
    found = FORM.read(await cluster.get(CONFIG_MAPS, namespace, RUN))
    assert found is not None
    return found


async def is_over(cluster: Cluster, namespace: str) -> bool:
    return (await application(cluster, namespace)).state.is_terminal


def test_job_finds_the_cluster_by_the_operators_own_way(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/theirs")
    with job_environment(None, None) as environment:
        assert environment["KUBECONFIG"] == "/theirs"
    with job_environment(tmp_path / "mine", None) as environment:
        assert environment["KUBECONFIG"] == str(tmp_path / "mine")
    with job_environment(None, "other") as environment:
        file, chosen = environment["KUBECONFIG"].split(os.pathsep)
        assert file == "/theirs"
        assert json.loads(Path(chosen).read_text())["current-context"] == "other"
    assert not Path(chosen).exists()


def test_job_in_a_pod_is_left_to_its_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    with job_environment(None, None) as environment:
        assert "KUBECONFIG" not in environment


def test_job_falls_back_to_the_usual_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with job_environment(None, None) as environment:
        assert environment["KUBECONFIG"].endswith("/.kube/config")
