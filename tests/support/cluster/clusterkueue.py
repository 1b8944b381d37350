"""The real Kueue, as a process of this machine, for any cluster with kinds of the Spark operator.

Its webhooks are those of its own module, at an address of this machine in place of a Service.
"""

import base64
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from support.cluster.cluster import Cluster, Server
from support.servers.certificates import Authority
from support.servers.gotools import go_tool
from support.servers.ports import free_port

HOST = "127.0.0.1"
ACCOUNT = "kueue"
HOOKED = ("kueue.x-k8s.io", "sparkoperator.k8s.io", "")
"""API groups whose webhooks are registered: those of kinds that the cluster has."""
FRAMEWORKS = ("sparkoperator.k8s.io/sparkapplication", "pod")
COPIED = ("snaploom.io/owner-uid", "snaploom.io/run")
Raw = dict[str, Any]


@contextmanager
def running_kueue(cluster: Cluster, frameworks: Iterable[str]) -> Iterator[Server]:
    """Its CRDs, its webhooks and the controller, which may do everything: it is not tested."""
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
    cluster.kubectl("create", "serviceaccount", ACCOUNT, "--namespace", "default")
    subject = f"--serviceaccount=default:{ACCOUNT}"
    cluster.kubectl("create", "clusterrolebinding", ACCOUNT, "--clusterrole=cluster-admin", subject)
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
        "integrations": {"frameworks": [*frameworks], "labelKeysToCopy": [*COPIED]},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    server = Server(
        "kueue",
        (program, f"--config={folder / 'config.yaml'}"),
        cluster.folder / "kueue.log",
        {"KUBECONFIG": str(cluster.kubeconfig_of("default", ACCOUNT))},
    )
    server.start()
    try:
        server.await_ready(f"http://{HOST}:{health}/readyz")
        registered = components / "webhook" / "manifests.yaml"
        for found in yaml.safe_load_all(registered.read_text()):
            cluster.kubectl.apply(_at(found, client))
        yield server
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
