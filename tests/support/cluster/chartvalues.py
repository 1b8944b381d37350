"""Values of the chart: every pair of its switches, and every value that can be set at once."""

from __future__ import annotations

from typing import Any

from support.declared.pairwise import pairwise

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
