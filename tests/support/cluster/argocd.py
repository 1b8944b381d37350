"""Argo CD beside a control plane: its real components as processes.

Its settings are those that its own manifests install, patched as in `docs/how-to/argo-cd.md`.
Only its place differs: outside a pod the cluster has an address, which is in a Secret.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.cluster.chart import CHART, REPOSITORY
from support.cluster.cluster import READY_SECONDS, ControlPlane
from support.cluster.kubebox import Server, built
from support.servers.gotools import go_tool
from support.servers.ports import free_ports

from snaploom.models.common import parse_instant
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason, next_conditions

FIXTURES = Path(__file__).parents[2] / "cluster" / "charts" / "argocd"
NOW = parse_instant("2026-11-21T20:00:00Z")


@dataclass(frozen=True)
class State:
    """A resource as the API server shows it, and how Argo CD should."""

    kind: str
    name: str
    resource: Raw
    conditions: Raw
    health: Raw

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def states() -> list[State]:
    """Every state of every kind."""
    return [
        state_of(kind, each)
        for path in sorted(FIXTURES.glob("*.yaml"))
        for content in [yaml.safe_load(path.read_text("utf-8"))]
        for kind in content["kinds"]
        for each in content["states"]
    ]


def state_of(kind: str, given: Raw) -> State:
    metadata = {"name": "flights", "generation": 2} | given.get("metadata", {})
    resource: Raw = {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": given.get("spec", {}),
    }
    conditions = given.get("conditions")
    if conditions is not None:
        values = (
            ConditionValue(ConditionType(type_), is_true, Reason(reason), message)
            for type_, (is_true, reason, message) in conditions.items()
        )
        found = [each.dump() for each in next_conditions((), values, 2, NOW)]
        resource["status"] = {"observedGeneration": 2, "conditions": found}
    health = {"status": given["health"], "message": given["message"]}
    return State(kind, given["name"], resource, conditions or {}, health)


Raw = dict[str, Any]

NAMESPACE = "argocd"
DEADLINE = 120.0
"""Seconds for what takes some: a machine that is busy with other tests takes longer."""
RESYNC = 5
"""Seconds after which every Application is compared anew; people have minutes."""
KINDS = ("applications", "applicationsets", "appprojects")
PATCHES = (CHART / "argocd" / "argocd-cm.yaml", REPOSITORY / "docs/gitops/argocd/argocd-cm.yaml")
ANYTHING: Raw = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "default"},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    },
}
"""The project that an installation has."""


class ArgoCD:
    """Application controller, repo server, API server and their Redis.

    Args:
        plane: where it is, and where it brings things.
        folder: where its copies of repositories are; its path is short, for there is a socket.
    """

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self._folder = folder
        redis, repo, metrics, api = free_ports(8)[::2]
        more = free_ports(2)
        self._redis, self._repo = f"127.0.0.1:{redis}", f"127.0.0.1:{repo}"
        self._metrics = f"http://127.0.0.1:{metrics}/metrics"
        self._api = f"http://127.0.0.1:{api}"
        us = [f"--kubeconfig={plane.kubeconfig}", f"--namespace={NAMESPACE}"]
        others = [f"--repo-server={self._repo}", "--repo-server-plaintext"]
        shared = [f"--redis={self._redis}", "--logformat=text", "--loglevel=info"]
        self.redis = self._server("redis", f"--address={self._redis}")
        self.repo_server = self._server(
            "repo-server", "--disable-tls", "--address=127.0.0.1", f"--port={repo}",
            "--metrics-address=127.0.0.1", f"--metrics-port={more[0]}", *shared,
        )  # fmt: skip
        self.controller = self._server(
            "application-controller", f"--app-resync={RESYNC}", "--app-resync-jitter=0",
            "--persist-resource-health", f"--metrics-port={metrics}", *us, *others, *shared,
        )  # fmt: skip
        self.api_server = self._server(
            "server", "--insecure", "--disable-auth", "--address=127.0.0.1", f"--port={api}",
            f"--metrics-port={more[1]}", *us, *others, *shared,
        )  # fmt: skip

    def _server(self, component: str, *flags: str) -> Server:
        log = self.plane.folder / f"argocd-{component}.log"
        programs = f"{go_tool('helm').parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            "PATH": programs,
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "ARGOCD_ASK_PASS_SOCK": str(self._folder / "ask.sock"),
            "ARGOCD_GPG_ENABLED": "false",
        }
        return Server(f"argocd-{component}", (built("argocd"), component, *flags), log, environment)

    @property
    def servers(self) -> tuple[Server, ...]:
        """All of them, in the order of their start."""
        return (self.redis, self.repo_server, self.controller, self.api_server)

    def start(self) -> None:
        """Install its kinds and settings, and start what syncs; the API server waits."""
        self._install()
        self.redis.start()
        self.repo_server.start()
        for address in (self._redis, self._repo):
            self._await(lambda address=address: _listens(address))
        self.controller.start()

    def serve(self) -> None:
        """Start its API server, unless it runs: people and their clients ask it for things."""
        if self.api_server.is_running:
            return
        self.api_server.start()
        self._await(lambda: _listens(urllib.parse.urlsplit(self._api).netloc))

    def close(self) -> None:
        """End everything at once."""
        for server in reversed(self.servers):
            server.kill()

    def request(self, path: str, body: Raw | None = None, **query: str) -> Raw:
        """What its API server answers.

        Args:
            path: below `/api/v1/applications/`.
            body: what is posted; None to get.
            query: the query of the address.
        """
        url = f"{self._api}/api/v1/applications/{path}?{urllib.parse.urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            result: Raw = json.load(answer)
        return result

    def figure(self, name: str, **labels: str) -> float:
        """A figure of the application controller, added up over what is not asked for."""
        with urllib.request.urlopen(self._metrics, timeout=DEADLINE) as answer:
            lines = answer.read().decode().splitlines()
        asked = [f'{key}="{value}"' for key, value in labels.items()]
        found = [each for each in lines if each.startswith(f"{name}{{")]
        return sum(
            float(each.rpartition(" ")[2])
            for each in found
            if all(label in each for label in asked)
        )

    def _install(self) -> None:
        kubectl, folder = self.plane.kubectl, built("argocd").parent
        kubectl("apply", "--server-side", "-f", str(folder / "crds"))
        self.plane.await_crds(*(f"{kind}.argoproj.io" for kind in KINDS))
        kubectl("create", "namespace", NAMESPACE)
        settings = folder / "config"
        kubectl("apply", "--namespace", NAMESPACE, "-f", str(settings))
        for patch in PATCHES:
            self._patch_settings("--patch-file", str(patch))
        self._patch_settings("--patch", json.dumps({"data": {"cluster.inClusterEnabled": "false"}}))
        key = {"stringData": {"server.secretkey": "of-these-tests"}}
        where = ("--namespace", NAMESPACE, "--patch", json.dumps(key))
        kubectl("patch", "secret", "argocd-secret", *where)
        kubectl.apply(ANYTHING, self._cluster(), namespace=NAMESPACE)

    def _patch_settings(self, *patch: str) -> None:
        self.plane.kubectl("patch", "configmap", "argocd-cm", "--namespace", NAMESPACE, *patch)

    def _cluster(self) -> Raw:
        config = json.loads(self.plane.kubeconfig.read_text())
        user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
        trust = {
            "caData": cluster["certificate-authority-data"],
            "certData": user["client-certificate-data"],
            "keyData": user["client-key-data"],
        }
        labels = {"argocd.argoproj.io/secret-type": "cluster"}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "cluster", "labels": labels},
            "stringData": {
                "name": "cluster",
                "server": self.plane.url,
                "config": json.dumps({"tlsClientConfig": trust}),
            },
        }

    def _await(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.tails()
            time.sleep(0.05)

    def tails(self) -> str:
        """The ends of the logs."""
        return "\n".join(server.tail() for server in self.servers)


@contextmanager
def running_argo_cd(plane: ControlPlane) -> Iterator[ArgoCD]:
    """Run Argo CD beside a control plane, without its API server, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="argocd-") as folder:
        argo = ArgoCD(plane, Path(folder))
        try:
            argo.start()
            yield argo
        finally:
            argo.close()


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            return True
    except OSError:
        return False
