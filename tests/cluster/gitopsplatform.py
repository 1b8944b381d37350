"""A cluster to which everything comes by Argo CD from a local repository, as `docs/gitops` has it.

There is no node. What pods would do is done by processes and by hand: the operator runs with the
account and the settings that the chart brought, Deployments are marked available when a test
asks for it, and a double plays the runs.
"""

import asyncio
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml
from support.cluster.argocd import DEADLINE, Applications, ArgoCD, Objects
from support.cluster.argocd import NAMESPACE as ARGO
from support.cluster.chart import NAMESPACE, REPOSITORY
from support.cluster.cluster import ControlPlane
from support.operator.jobdouble import JobDouble, Script, completes, indexed
from support.operator.operatorprocess import WORKS, OperatorProcess

from snaploom.models.common import GROUP, VERSION
from snaploom.models.kinds import KIND_BY_NAME
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.decide.runsteps import PREFIXES
from snaploom_operator.objects import Application

IDENTITY = {
    "GIT_AUTHOR_NAME": "Tests", "GIT_AUTHOR_EMAIL": "tests@snaploom.invalid",
    "GIT_COMMITTER_NAME": "Tests", "GIT_COMMITTER_EMAIL": "tests@snaploom.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
"""Nobody's own settings are read: they may sign, or run hooks."""


class GitRepository:
    """One branch, `main`, in a folder that is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch", "main")

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def copy(self, source: Path, place: str) -> None:
        shutil.copytree(source, self.folder / place)

    def path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def change(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        before = path.read_text("utf-8")
        assert before.count(old) == 1, f"{name} has it {before.count(old)} times: {old}"
        path.write_text(before.replace(old, new), "utf-8")

    def commit(self, message: str) -> str:
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        return self.head

    @property
    def head(self) -> str:
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder, env=os.environ | IDENTITY, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip


Raw = dict[str, Any]
Predicate = Callable[[Raw], bool]

GITOPS = "docs/gitops"
ROOT = f"{GITOPS}/argocd/root.yaml"
OPERATOR = f"{GITOPS}/argocd/applications/operator.yaml"
PROJECTS = f"{GITOPS}/argocd/applications/projects.yaml"
SHOP = f"{GITOPS}/shop"
DATA, EARLY, SHUFFLED = "data", "early", "shuffled"
COPIES = (EARLY, SHUFFLED)
"""Namespaces of copies of the shop that know no order."""
DEPLOYMENTS = "deployments.v1.apps"
BUDGETS = "poddisruptionbudgets.v1.policy"
ACCOUNT = "snaploom-operator"
COUNTED = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
"""The status of a Deployment about its pods."""
BUDGETED = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
"""The status of a PodDisruptionBudget about them."""


def a_repository(folder: Path, cluster: str) -> GitRepository:
    """What a company would have in Git: our folders, with its own addresses put in.

    Args:
        folder: where it is made.
        cluster: address of the cluster that everything is for.
    """
    repository = GitRepository(folder)
    for place in ("crds", "charts/snaploom", GITOPS):
        repository.copy(REPOSITORY / place, place)
    for path in (folder / GITOPS / "argocd").rglob("*.yaml"):
        text = path.read_text("utf-8").replace("https://git.example/snaploom", repository.url)
        path.write_text(text.replace("https://kubernetes.default.svc", cluster), "utf-8")
    # More namespaces than the shop's; and a webhook of which nobody asks anything, since no pod
    # answers there.
    webhook = "admission: {namespaceSelector: {matchLabels: {asks: webhook}}}"
    watched = f"watchNamespaces: [{', '.join((DATA, *COPIES))}]\n        {webhook}"
    repository.change(OPERATOR, f"watchNamespaces: [{DATA}]", watched)
    allowed = f"{{server: {cluster}, namespace: {DATA}}} # account and roles of jobs"
    more = "".join(f"\n    - {{server: {cluster}, namespace: {name}}}" for name in COPIES)
    repository.change(PROJECTS, allowed, allowed + more)
    for namespace in COPIES:
        for raw in shop():
            del raw["metadata"]["annotations"]
            name = f"{namespace}/{raw['kind']}-{raw['metadata']['name']}.yaml"
            text = yaml.safe_dump(raw).replace("s3://lake/shop/", f"s3://lake/{namespace}/")
            repository.path(name).write_text(text, "utf-8")
    repository.commit("Everything")
    return repository


def shop() -> list[Raw]:
    """The declarations of `docs/gitops/shop`: at least one of every kind."""
    files = sorted((REPOSITORY / SHOP).glob("*.yaml"))
    return [raw for file in files for raw in yaml.safe_load_all(file.read_text("utf-8"))]


class Platform:
    """The cluster, its Argo CD, the repository, and the processes in place of pods."""

    def __init__(self, plane: ControlPlane, argo: ArgoCD, repository: GitRepository) -> None:
        self.plane = plane
        self.argo = argo
        self.repository = repository
        self.objects = Objects(plane.kubeconfig)
        self.applications = Applications(argo, self.objects)
        self._stack = ExitStack()
        self._stack.callback(self.objects.close)

    def apply_root(self) -> None:
        self.plane.kubectl("apply", "-f", str(self.repository.folder / ROOT))

    def apply_application(self, name: str, policy: Raw) -> None:
        """An Application of a folder of the repository, for the namespace of the same name."""
        source = {"repoURL": self.repository.url, "targetRevision": "main", "path": name}
        application = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": name, "namespace": ARGO},
            "spec": {
                "project": "default",
                "source": source,
                "destination": {"server": self.plane.url, "namespace": name},
                "syncPolicy": policy,
            },
        }
        self.plane.kubectl.apply(application)

    def start_operator(self) -> None:
        """Start what would run in the operator's pod, with what the chart brought for it."""
        stored = self.plane.kubectl.get("configmap", "snaploom-settings", NAMESPACE)
        settings = yaml.safe_load(stored["data"]["settings.yaml"])
        folder = self.plane.folder / "operator"
        folder.mkdir()
        file = folder / "settings.yaml"
        file.write_text(
            yaml.safe_dump(settings | {"healthPort": 0, "metricsPort": 0, "readinessPort": 0}),
            "utf-8",
        )
        kubeconfig = self.plane.kubeconfig_of(NAMESPACE, ACCOUNT)
        arguments = ("--settings", str(file), "--kubeconfig", str(kubeconfig))
        operator = OperatorProcess(folder, arguments)
        self._stack.callback(operator.process.wait)
        self._stack.callback(operator.process.kill)
        operator.await_output(WORKS)
        self._stack.enter_context(jobs_played(self.plane.kubeconfig))

    def roll_out(self) -> None:
        """Write the status of ready pods into Deployments and their budgets."""
        for each in self.plane.kubectl.list("deployment", NAMESPACE):
            counts = dict.fromkeys(COUNTED, each["spec"]["replicas"])
            self._write_status(DEPLOYMENTS, each, "Available", counts)
        for each in self.plane.kubectl.list("poddisruptionbudget", NAMESPACE):
            self._write_status(BUDGETS, each, "DisruptionAllowed", dict.fromkeys(BUDGETED, 1))

    def _write_status(self, plural: str, stored: Raw, type_: str, counts: Raw) -> None:
        generation = {"observedGeneration": stored["metadata"]["generation"]}
        condition = {
            "type": type_, "status": "True", "reason": "ArePlayed", "message": "",
            "lastTransitionTime": stored["metadata"]["creationTimestamp"],
        }  # fmt: skip
        status = {**generation, **counts, "conditions": [condition]}
        name = stored["metadata"]["name"]
        self.objects.patch(plural, name, NAMESPACE, {"status": status}, status=True)

    def get(self, kind: str, name: str, namespace: str = DATA) -> Raw:
        """A resource of ours as it is; empty when there is none."""
        return self.objects.get(_plural(kind), name, namespace)

    def patch(
        self, kind: str, name: str, patch: Raw, namespace: str = DATA, status: bool = False
    ) -> Raw:
        """Change a resource of ours by hand."""
        return self.objects.patch(_plural(kind), name, namespace, patch, status=status)

    def wait_for(self, kind: str, name: str, predicate: Predicate) -> Raw:
        """Wait until a resource of the shop satisfies a condition; returns it."""
        deadline = time.monotonic() + DEADLINE
        while not predicate(found := self.get(kind, name)):
            assert time.monotonic() < deadline, yaml.safe_dump(found)
            time.sleep(0.1)
        return found

    def close(self) -> None:
        self._stack.close()


def _plural(kind: str) -> str:
    return f"{KIND_BY_NAME[kind].plural}.{VERSION}.{GROUP}"


@contextmanager
def jobs_played(kubeconfig: Path) -> Iterator[None]:
    """Play every run of the cluster to success while a test goes on."""
    ends = threading.Event()

    async def play() -> None:
        async with open_cluster(kubeconfig) as cluster:
            double = JobDouble(cluster, _script)
            while not ends.is_set():
                await double.step()
                await asyncio.sleep(0.1)

    thread = threading.Thread(target=asyncio.run, args=(play(),))
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def _script(application: Application) -> Script:
    is_of_index = application.name.startswith(f"{PREFIXES['SkippingIndex']}-")
    return completes(indexed()) if is_of_index else completes()
