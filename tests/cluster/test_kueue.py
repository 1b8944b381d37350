"""The real Kueue and the real Spark operator: a run waits for quota, and starts once it is there.

There are no nodes: Spark's own `spark-submit` creates the driver's pod, and nobody starts it.
"""

import asyncio
import base64
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from support.cluster.cluster import Cluster, Server, running_control_plane
from support.cluster.clustersparkoperator import running_spark_operator
from support.declared.declarations import model, spoilt
from support.operator.operatorharness import OperatorThread, real_settings
from support.servers.certificates import Authority
from support.servers.gotools import go_tool
from support.servers.ports import free_port

from snaploom_operator.process.operator import RunOptions

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

DEADLINE = 240.0
NAMESPACE = "jobs"
ACCOUNT = "snaploom-job"
HOST = "127.0.0.1"
KUEUE = "kueue"
HOOKED = ("kueue.x-k8s.io", "sparkoperator.k8s.io", "")
"""API groups whose webhooks are registered: those of kinds that the cluster has."""
FRAMEWORKS = ("sparkoperator.k8s.io/sparkapplication", "pod")
COPIED = ("snaploom.io/owner-uid", "snaploom.io/run")
Raw = dict[str, Any]


@contextmanager
def running_kueue(cluster: Cluster) -> Iterator[None]:
    """Its CRDs, webhooks and controller, as a process of this machine that may do everything."""
    program = go_tool("kueue")
    components = program.parent / "components"
    folder = cluster.folder / "kueue"
    folder.mkdir()
    authority = Authority(folder, "authority")
    health, hooks = free_port(), free_port()
    client = {
        "url": f"https://{HOST}:{hooks}",
        "caBundle": base64.b64encode(authority.certificate.read_bytes()).decode(),
    }
    for path in sorted((components / "crd" / "bases").glob("*.yaml")):
        cluster.kubectl.apply(_converted(yaml.safe_load(path.read_text()), client))
    kinds = ("workloads", "clusterqueues", "localqueues", "resourceflavors")
    cluster.await_crds(*(f"{kind}.kueue.x-k8s.io" for kind in kinds))
    cluster.kubectl("create", "namespace", "kueue-system")
    # It insists on a certificate of its own, for webhooks of these names.
    unused = "kueue-webhook-server-cert"
    cluster.kubectl("create", "secret", "generic", unused, "--namespace", "kueue-system")
    for kind in ("Mutating", "Validating"):
        name = f"kueue-{kind.lower()}-webhook-configuration"
        api = "admissionregistration.k8s.io/v1"
        empty: Raw = {"apiVersion": api, "kind": f"{kind}WebhookConfiguration"}
        cluster.kubectl.apply(empty | {"metadata": {"name": name}, "webhooks": []})
    cluster.kubectl("create", "serviceaccount", KUEUE, "--namespace", "default")
    subject = f"--serviceaccount=default:{KUEUE}"
    cluster.kubectl("create", "clusterrolebinding", KUEUE, "--clusterrole=cluster-admin", subject)
    issued = authority.issue(HOST)
    shutil.copy(issued.certificate, folder / "tls.crt")
    shutil.copy(issued.key, folder / "tls.key")
    settings: Raw = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": HOST, "port": hooks, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "featureGates": {"SparkApplicationIntegration": True, "VisibilityOnDemand": False},
        "integrations": {"frameworks": [*FRAMEWORKS], "labelKeysToCopy": [*COPIED]},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    server = Server(
        "kueue",
        (program, f"--config={folder / 'config.yaml'}"),
        cluster.folder / "kueue.log",
        {"KUBECONFIG": str(cluster.kubeconfig_of("default", KUEUE))},
    )
    server.start()
    try:
        server.await_ready(f"http://{HOST}:{health}/readyz")
        registered = components / "webhook" / "manifests.yaml"
        for found in yaml.safe_load_all(registered.read_text()):
            cluster.kubectl.apply(_at(found, client))
        yield
    finally:
        server.kill()


def _converted(crd: Raw, client: Raw) -> Raw:
    """A kind as Kueue insists on it; nobody asks for a version that would have to be converted."""
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": _below(client, "/convert")}
    conversion = {"strategy": "Webhook", "webhook": webhook}
    return {**crd, "spec": {**crd["spec"], "conversion": conversion}}


def _below(client: Raw, path: str) -> Raw:
    return {**client, "url": f"{client['url']}{path}"}


def _at(configuration: Raw, client: Raw) -> Raw:
    """Webhooks as registered by the module, without those of other kinds, at another address."""
    hooks = []
    for hook in configuration["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        if {group for rule in hook["rules"] for group in rule["apiGroups"]} <= {*HOOKED}:
            hooks.append({**hook, "clientConfig": _below(client, path)})
    metadata = {"name": f"real-{configuration['metadata']['name']}"}
    return {**configuration, "metadata": metadata, "webhooks": hooks}


def queue_of(cluster: Cluster, namespace: str, name: str, cores: int) -> None:
    """A LocalQueue whose ClusterQueue has so many cores; again, to change their number."""
    api = "kueue.x-k8s.io/v1beta2"
    quota = [{"name": "cpu", "nominalQuota": cores}, {"name": "memory", "nominalQuota": "64Gi"}]
    group = {
        "coveredResources": ["cpu", "memory"],
        "flavors": [{"name": "default", "resources": quota}],
    }
    whole = {"namespaceSelector": {}, "resourceGroups": [group]}
    local = {"name": name, "namespace": namespace}
    for kind, metadata, spec in (
        ("ResourceFlavor", {"name": "default"}, {}),
        ("ClusterQueue", {"name": name}, whole),
        ("LocalQueue", local, {"clusterQueue": name}),
    ):
        declared = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(declared))


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_control_plane(tmp_path_factory.mktemp("kueue")) as found:
        found.install_crds()
        found.kubectl("create", "namespace", NAMESPACE)
        found.kubectl("create", "serviceaccount", ACCOUNT, "--namespace", NAMESPACE)
        with running_spark_operator(found), running_kueue(found):
            yield found


async def status_with(plane: Cluster, name: str, phase: str, words: str = "") -> Raw:
    """The status of an output once its run is in a phase and waits for something."""
    deadline = time.monotonic() + DEADLINE
    while True:
        status: Raw = plane.kubectl.get("outputdataset", name, NAMESPACE).get("status", {})
        run = status.get("currentRun", {})
        if run.get("phase") == phase and words in run.get("waitingFor", ""):
            return status
        log = (plane.folder / "kueue.log").read_text()[-1500:]
        assert time.monotonic() < deadline, f"{status}\n{log}"
        await asyncio.sleep(0.3)


def declared(queue: str) -> list[Raw]:
    spark = {"image": "snaploom-spark:test", "serviceAccountName": ACCOUNT}
    run = {"queue": queue, "startTimeoutSeconds": 600, "spark": spark}
    return [spoilt(each, "spec.run", run) if each["kind"] == "OutputDataset" else each
            for each in model()]  # fmt: skip


@pytest.mark.parametrize("scheduler", ["Kueue", "KueuePods"])
async def test_run_waits_for_quota_and_starts_once_it_is_there(plane, scheduler):
    queue = f"team-{scheduler.lower()}"
    queue_of(plane, NAMESPACE, queue, 0)
    settings = real_settings(NAMESPACE, queueScheduler=scheduler)
    operator = OperatorThread(settings, RunOptions(plane.kubeconfig))
    await operator.begin()
    try:
        plane.kubectl.apply(*declared(queue), namespace=NAMESPACE)
        waiting = await status_with(plane, "wide", "QuotaPending", "quota for cpu")
        assert f"quota in the queue {queue}" in waiting["currentRun"]["waitingFor"]
        reasons = {each["type"]: each["reason"] for each in waiting["conditions"]}
        assert reasons["Ready"] == "QuotaPending"
        queue_of(plane, NAMESPACE, queue, 8)
        await status_with(plane, "wide", "Submitted", "SUBMITTED")
        (pod,) = plane.kubectl.list("pods", NAMESPACE)
        assert not pod["spec"].get("schedulingGates")
    finally:
        await operator.end()
        plane.kubectl("delete", "outputdataset", "wide", "--namespace", NAMESPACE)
        plane.kubectl("delete", "pods,sparkapplications", "--all", "--namespace", NAMESPACE)
