"""Argo CD beside a control plane: its real components as processes.

Its settings are those that its own manifests install, patched as in `docs/how-to/argo-cd.md`.
Only its place differs: outside a pod the cluster has an address, which is in a Secret.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
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
from kubernetes.client import ApiException, CustomObjectsApi
from kubernetes.config import new_client_from_config
from support.cluster.chart import CHART, REPOSITORY
from support.cluster.cluster import READY_SECONDS, ControlPlane, Server, built
from support.servers.gotools import go_tool
from support.servers.ports import free_ports

from snaploom.models.common import parse_instant
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.readiness import next_conditions

Raw = dict[str, Any]
MISSING = 404
MERGED = "application/merge-patch+json"


class Objects:
    """Objects of a cluster, of any group but the core's; quicker than a kubectl for each."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = new_client_from_config(config_file=str(kubeconfig))
        self._api = CustomObjectsApi(self._client)

    def get(self, plural: str, name: str, namespace: str) -> Raw:
        """An object as it is stored; empty when there is none.

        Args:
            plural: `plural.version.group`, as `kubectl` has it.
            name: the object's.
            namespace: where it is.
        """
        kind, version, group = plural.split(".", 2)
        try:
            found: Raw = self._api.get_namespaced_custom_object(
                group, version, namespace, kind, name
            )
        except ApiException as answer:
            if answer.status != MISSING:
                raise
            return {}
        return found

    def patch(
        self, plural: str, name: str, namespace: str, patch: Raw, status: bool = False
    ) -> Raw:
        """Merge something into an object, or into its status; the object."""
        kind, version, group = plural.split(".", 2)
        method = (
            self._api.patch_namespaced_custom_object_status
            if status
            else self._api.patch_namespaced_custom_object
        )
        changed: Raw = method(
            group, version, namespace, kind, name, patch,
            _content_type=MERGED,
        )  # fmt: skip
        return changed

    def close(self) -> None:
        self._client.close()


Predicate = Callable[[Raw], bool]
Health = dict[tuple[str, str], Raw]
"""By kind and name: `status` and `message`."""

APPLICATIONS = "applications.v1alpha1.argoproj.io"
REFRESH = "argocd.argoproj.io/refresh"
ENDED = ("Succeeded", "Failed", "Error")
"""Phases of a sync that is over."""


class Applications:
    """The Applications of one Argo CD."""

    def __init__(self, argo: ArgoCD, objects: Objects) -> None:
        self._argo = argo
        self._objects = objects
        self._numbers = itertools.count(1)

    def get(self, name: str) -> Raw:
        """An Application as it is; empty when there is none."""
        return self._objects.get(APPLICATIONS, name, NAMESPACE)

    def change(self, name: str, patch: Raw) -> None:
        self._objects.patch(APPLICATIONS, name, NAMESPACE, patch)

    def refresh(self, *names: str) -> None:
        """Have Argo CD compare Applications with Git, and wait until it has."""
        for name in names:
            self.change(name, {"metadata": {"annotations": {REFRESH: "normal"}}})
        for name in names:
            self.wait_for(name, lambda app: REFRESH not in app["metadata"].get("annotations", {}))

    def sync(self, name: str, **operation: Any) -> Raw:
        """Have an Application synced, as `argocd app sync` does, and wait for the end of it."""
        asked = [{"name": "asked by", "value": f"test {next(self._numbers)}"}]
        self.change(name, {"operation": {"info": asked, "sync": operation}})

        def has_ended(app: Raw) -> bool:
            state = app.get("status", {}).get("operationState", {})
            is_ours = state.get("operation", {}).get("info") == asked
            return is_ours and state["phase"] in ENDED

        return self.wait_for(name, has_ended)

    @contextmanager
    def watched(self) -> Iterator[set[tuple[str, str]]]:
        """Name and sync status of every Application, whenever one changes; known at the end."""
        kubectl, seen = self._argo.plane.kubectl, set[tuple[str, str]]()
        shown = "jsonpath={.metadata.name} {.status.sync.status}{'\\n'}"
        watching = subprocess.Popen(
            [*kubectl.program, "get", "applications", "--namespace", NAMESPACE, "--watch",
             "--output", shown],
            env=os.environ | {"KUBECONFIG": str(kubectl.kubeconfig), "HOME": str(kubectl.home)},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield seen
        finally:
            watching.terminate()
            lines, _ = watching.communicate()
        seen.update(
            (name, state) for name, _, state in (each.partition(" ") for each in lines.splitlines())
        )

    def wait_for(self, name: str, predicate: Predicate) -> Raw:
        """Wait until an Application satisfies a condition; returns it."""
        deadline = time.monotonic() + DEADLINE
        while not predicate(found := self.get(name)):
            status = json.dumps(found.get("status", {}), indent=1)
            assert time.monotonic() < deadline, f"{name}: {status}\n{self._argo.tails()}"
            time.sleep(0.1)
        return found


def is_well(app: Raw) -> bool:
    """Whether it is as Git has it, and everything in it is healthy."""
    return is_synced(app) and health(app) == "Healthy"


def is_synced(app: Raw) -> bool:
    """Whether it is as Git has it, and no sync is at work."""
    status = app.get("status", {})
    is_idle = status.get("operationState", {}).get("phase") == "Succeeded"
    return is_idle and status.get("sync", {}).get("status") == "Synced"


def is_at(revision: str) -> Predicate:
    """Whether it is as Git has it at a commit."""
    return lambda app: is_synced(app) and app["status"]["sync"]["revision"] == revision


def health(app: Raw) -> str:
    return str(app.get("status", {}).get("health", {}).get("status", ""))


def healths(app: Raw) -> Health:
    """How each resource is that has health."""
    return {
        (each["kind"], each["name"]): {
            "status": each["health"]["status"],
            "message": each["health"].get("message", ""),
        }
        for each in app.get("status", {}).get("resources", ())
        if "health" in each
    }


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
    if (conditions := given.get("conditions")) is not None:
        values = (
            ConditionValue(ConditionType(type_), is_true, Reason(reason), message)
            for type_, (is_true, reason, message) in conditions.items()
        )
        found = [each.dump() for each in next_conditions((), values, 2, NOW)]
        resource["status"] = {"observedGeneration": 2, "conditions": found}
    health = {"status": given["health"], "message": given["message"]}
    return State(kind, given["name"], resource, conditions or {}, health)


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
