"""The chart as Helm renders it, read back as objects."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import yaml
from support.cluster.cluster import Cluster
from support.servers.gotools import go_tool

from snaploom_operator.settings import OperatorSettings

REPOSITORY = Path(__file__).parents[3]
CHART = REPOSITORY / "charts" / "snaploom"
RELEASE = "snaploom"
NAMESPACE = "snaploom-system"
KUBERNETES = "1.34.4"

Raw = dict[str, Any]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Release:
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


def pairwise(choices: Mapping[str, Sequence[Hashable]]) -> list[dict[str, int]]:
    """Combinations, each the number of the choice by name; the same for the same choices.

    Greedy: each combination takes up, name after name, the choice that covers most pairs that no
    earlier combination has.
    """
    names = sorted(choices, key=lambda name: -len(choices[name]))
    open_pairs = {
        frozenset({(one, i), (other, j)})
        for one, other in combinations(names, 2)
        for i, j in product(range(len(choices[one])), range(len(choices[other])))
    }
    found: list[dict[str, int]] = []
    while open_pairs:
        taken = dict(min(sorted(pair) for pair in open_pairs))
        for name in names:
            if name not in taken:
                taken[name] = max(
                    range(len(choices[name])),
                    key=lambda i, name=name: sum(  # type: ignore[misc]
                        frozenset({(name, i), each}) in open_pairs for each in taken.items()
                    ),
                )
        open_pairs -= {frozenset(pair) for pair in combinations(taken.items(), 2)}
        found.append(taken)
    return found


PODS: dict[str, Any] = {
    "resources": {"requests": {"cpu": 1}, "limits": {"cpu": "2", "memory": "1Gi"}},
    "nodeSelector": {"pool": "spark"},
    "tolerations": [{"key": "spark", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["spark"]}]}
                ]
            }
        }
    },
    "priorityClassName": "system-cluster-critical",
    "labels": {"team": "data", "app.kubernetes.io/component": "mistaken"},
    "annotations": {"prometheus.io/scrape": "true"},
    "env": [
        {"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ],
    "volumes": [{"name": "authorities", "configMap": {"name": "authorities"}}],
    "volumeMounts": [{"name": "authorities", "mountPath": "/etc/ssl/certs", "readOnly": True}],
    "podSecurityContext": {"runAsUser": 10001, "fsGroup": 10001},
    "livenessProbe": {"periodSeconds": 20},
}
"""Every setting of the pods of a Deployment."""

POD_TEMPLATE = {
    "labels": {"team": "data"},
    "tolerations": [{"key": "spark", "operator": "Exists"}],
    "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "10Gi"}}],
    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
}
PEER = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
EGRESS = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 4318}]}

CHOICES: dict[str, tuple[Any, ...]] = {
    "watchNamespaces": ([], ["team-a", "team-b", "team-a"]),
    "nameOverride": ("", "loom"),
    "fullnameOverride": ("", "a-name-that-is-far-too-long-for-what-is-to-follow-it"),
    "commonLabels": ({}, {"company": "example", "app.kubernetes.io/name": "mistaken"}),
    "image": ({}, {"repository": "registry.example/loom", "digest": "sha256:" + "0" * 64}),
    "imagePullSecrets": ([], [{"name": "registry"}]),
    "crds.keep": (True, False),
    "logs": ({}, {"format": "text", "level": "debug"}),
    "operator.serviceAccount": ({}, {"create": False, "name": "mine"}),
    "operator.submitters": (["SparkOperator"], ["SparkOperator", "ApacheSpark"], ["ApacheSpark"]),
    "operator.limits": ({}, {"runs": 5, "runsPerNamespace": 1}),
    "operator.queueScheduler": (None, "Kueue", "KueuePods", "YuniKorn", "Volcano"),
    "operator": ({}, PODS),
    "admission.enabled": (True, False),
    "admission.replicas": (2, 1),
    "admission.failurePolicy": ("Ignore", "Fail"),
    "admission.namespaceSelector": ({}, {"matchLabels": {"data": "yes"}}),
    "admission.protectDependants": ("Warn", "Deny"),
    "admission.warnOnDelete": (True, False),
    "admission.hostNetwork": (False, True),
    "admission.serviceAccount": ({}, {"annotations": {"role": "webhook"}}),
    "admission.topologySpreadConstraints": (None, []),
    "admission.podDisruptionBudget.enabled": (True, False),
    "admission.certManager.enabled": (False, True),
    "admission.certManager.issuer": ({}, {"name": "company", "kind": "ClusterIssuer"}),
    "admission": ({}, PODS),
    "pages.enabled": (False, True),
    "pages.replicas": (1, 2),
    "pages.tlsSecret": ("", "pages-tls"),
    "pages.serviceAccount": ({}, {"create": False, "name": "looker"}),
    "pages": ({}, PODS),
    "spark.namespaces": ([], ["jobs"]),
    "spark.serviceAccount": ({}, {"create": False}, {"name": "driver", "annotations": {"a": "b"}}),
    "spark.application": ({}, {"podTemplate": POD_TEMPLATE, "sparkConf": {"spark.ui.port": "0"}}),
    "metrics.serviceMonitor": ({}, {"enabled": True, "labels": {"release": "prometheus"}}),
    "metrics.prometheusRule": ({}, {"enabled": True, "labels": {"release": "prometheus"}}),
    "metrics.podMonitor": ({}, {"enabled": True, "interval": "1m"}),
    "lineage": ({}, {"url": "http://marquez:5000", "apiKey": {"secret": "lineage"}}),
    "metrics.dashboard": ({}, {"enabled": True, "annotations": {"folder": "Data"}}),
    "networkPolicy": (
        {},
        {"enabled": True},
        {"enabled": True, "metricsFrom": [PEER], "pagesFrom": [PEER], "egress": [EGRESS]},
    ),
    "rbac.create": (True, False),
    "rbac.aggregate": (True, False),
}
"""What each value, or group of values, is set to; None keeps its default."""


def values_of(paths: dict[str, Any]) -> dict[str, Any]:
    """Nested values from dotted names; a group is merged with what is set inside it."""
    result: dict[str, Any] = {}
    for path, value in sorted(paths.items()):
        *outer, last = path.split(".")
        inner = result
        for name in outer:
            inner = inner.setdefault(name, {})
        if isinstance(value, dict):
            inner[last] = inner.get(last, {}) | value
        elif value is not None:
            inner[last] = value
    return result


MATRIX = [
    values_of({name: CHOICES[name][number] for name, number in sorted(taken.items())})
    for taken in pairwise({name: range(len(values)) for name, values in CHOICES.items()})
]
"""Every pair of choices; without the CRDs, which take Helm a second."""


class HelmFailed(Exception):
    """Helm ended with a code other than 0; its output is the message."""


def helm(*arguments: str | Path, values: Values | None = None, **environment: str) -> str:
    """What Helm prints.

    Args:
        arguments: what stands behind `helm`.
        values: values of the chart; Helm reads them as a file.
        environment: variables of the process, such as KUBECONFIG.

    Raises:
        HelmFailed: it ended with a code other than 0.
    """
    given = [] if values is None else ["--values", "-"]
    done = subprocess.run(
        [go_tool("helm"), *arguments, *given],
        input=json.dumps(dict(values or {})),  # JSON is YAML
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise HelmFailed(done.stderr.strip())
    return done.stdout


def render_text(
    values: Values,
    *,
    chart: Path = CHART,
    kubernetes: str = KUBERNETES,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
) -> str:
    """The manifest that Helm would install."""
    where = ["--namespace", namespace, "--kube-version", kubernetes]
    return helm("template", release, chart, *where, values=values)


@dataclass(frozen=True)
class Rendered:
    """The objects of a release."""

    objects: Sequence[Raw]

    @classmethod
    def of(cls, values: Values, **options: Any) -> Rendered:
        """The objects that some values give."""
        documents = yaml.load_all(render_text(values, **options), Loader=yaml.CSafeLoader)
        return cls([each for each in documents if each])

    def of_kind(self, *kinds: str) -> list[Raw]:
        return [each for each in self.objects if each["kind"] in kinds]

    def one(self, kind: str, name: str) -> Raw:
        (found,) = (each for each in self.of_kind(kind) if each["metadata"]["name"] == name)
        return found

    def names(self) -> set[tuple[str, str, str]]:
        """Kind, namespace and name of every object."""
        return {identity(each) for each in self.objects}

    def settings(self) -> OperatorSettings:
        """The settings that the pods read, parsed as they parse them."""
        (found,) = (each for each in self.of_kind("ConfigMap") if "settings.yaml" in each["data"])
        return OperatorSettings.parse(yaml.safe_load(found["data"]["settings.yaml"]))

    def pods(self) -> Iterator[tuple[str, Raw]]:
        """The pods: name of the object that has them, and their spec."""
        for each in self.objects:
            if each["kind"] == "Deployment":
                yield each["metadata"]["name"], each["spec"]["template"]["spec"]
            elif each["kind"] == "Pod":
                yield each["metadata"]["name"], each["spec"]

    def rules(self, component: str) -> list[Raw]:
        return [
            rule
            for role in self.of_kind("Role", "ClusterRole")
            if role["metadata"]["labels"].get("app.kubernetes.io/component") == component
            for rule in role["rules"]
        ]


def identity(stored: Raw) -> tuple[str, str, str]:
    """Kind, namespace and name of an object."""
    metadata = stored["metadata"]
    return stored["kind"], metadata.get("namespace", ""), metadata["name"]
