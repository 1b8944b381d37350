"""A release of the chart on a real API server. No pod runs there: the rest is as anywhere."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml
from support.cluster.chart import CHART, NAMESPACE, RELEASE, REPOSITORY, Raw, Rendered, Values, helm
from support.cluster.cluster import Cluster


@dataclass(frozen=True)
class Release:
    """One release, installed or not."""

    cluster: Cluster
    name: str = RELEASE
    namespace: str = NAMESPACE

    def upgrade(self, values: Values, chart: Path = CHART, *options: str) -> None:
        """Install it, or upgrade it; values of before are forgotten."""
        self._helm("upgrade", "--install", "--create-namespace", "--reset-values", *options,
                   self.name, chart, values=values)  # fmt: skip

    def uninstall(self, *, wait: bool = True) -> None:
        """Uninstall it; wait until its objects are deleted, unless the caller does."""
        self._helm("uninstall", self.name, *(["--wait"] if wait else []))

    def manifest(self) -> Rendered:
        """What Helm reports as installed, tests included."""
        texts = [self._helm("get", part, self.name) for part in ("manifest", "hooks")]
        documents = yaml.load_all("\n---\n".join(texts), Loader=yaml.CSafeLoader)
        return Rendered([each for each in documents if each])

    def stored(self, kind: str, name: str) -> Raw:
        """An object as it is in the cluster."""
        namespace = ["--namespace", self.namespace]
        found: Raw = json.loads(
            self.cluster.kubectl("get", kind, name, *namespace, "--output", "json")
        )
        return found

    def _helm(self, *arguments: str | Path, values: Values | None = None) -> str:
        home = str(self.cluster.folder)
        return helm(
            *arguments, "--namespace", self.namespace, values=values,
            KUBECONFIG=str(self.cluster.kubeconfig), HOME=home, HELM_CACHE_HOME=home,
            HELM_CONFIG_HOME=home, HELM_DATA_HOME=home,
        )  # fmt: skip


@dataclass(frozen=True)
class Right:
    """Something that an account may do, or may not."""

    verb: str
    resource: str
    """`plural`, `plural.group` or `plural.group/subresource`."""
    namespace: str = ""
    """Empty for what has none, and for all namespaces."""
    name: str = ""

    def review(self, user: str) -> Raw:
        """The question to the API server."""
        whole, _, subresource = self.resource.partition("/")
        plural, _, group = whole.partition(".")
        attributes = {
            "verb": self.verb, "group": group, "resource": plural, "subresource": subresource,
            "namespace": self.namespace, "name": self.name,
        }  # fmt: skip
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        }


def allowed(cluster: Cluster, account: tuple[str, str], rights: Iterable[Right]) -> set[Right]:
    """Those of some rights that a ServiceAccount has.

    Args:
        cluster: where.
        account: its namespace and name.
        rights: the rights in question.
    """
    asked = list(rights)
    user = "system:serviceaccount:" + ":".join(account)
    reviews = {"apiVersion": "v1", "kind": "List", "items": [each.review(user) for each in asked]}
    printed = cluster.kubectl(
        "create", "--filename", "-", "--output", "jsonpath={.status.allowed}{'\\n'}",
        stdin=json.dumps(reviews),
    ).split()  # fmt: skip
    return {right for right, answer in zip(asked, printed, strict=True) if answer == "true"}


def earliest_chart(folder: Path) -> Path:
    """The chart as it was first committed to this repository.

    A copy of today's where there is no history: of a source archive, for instance.
    """
    commits = subprocess.run(
        ["git", "log", "--format=%H", "--reverse", "--", "charts/snaploom/Chart.yaml"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    if not commits:
        return CHART
    archive = subprocess.run(
        ["git", "archive", commits[0], "charts/snaploom"],
        cwd=REPOSITORY, capture_output=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    return folder / "charts" / "snaploom"
