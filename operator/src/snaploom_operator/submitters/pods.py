"""Templates of driver and executor pods: the user's additions within restricted pod security.

The templates are complete, so that nothing depends on a mutating webhook. All pods pass the Pod
Security Standard `restricted`: no root, no capabilities, the runtime's seccomp profile, and a
read-only root file system, with empty folders where Spark writes. Only the driver gets the token of
its service account, and the Secret keys of sources: executors need neither, and Spark passes them
the connection properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.models.base import ApiModel
from snaploom.models.podtemplate import PodTemplate
from snaploom.planning.jobvariables import (
    KEY_VARIABLE,
    LOG_FORMAT_VARIABLE,
    NAMESPACE_VARIABLE,
    URL_VARIABLE,
)
from snaploom.planning.podsettings import BUNDLE_FOLDER, OUR_VOLUMES, normal_path
from snaploom.planning.podvariables import PINNED
from snaploom.planning.sources.databases.urls import ALLOW_URL_VARIABLE
from snaploom_operator.manifests.childmetadata import child_labels
from snaploom_operator.operatorsettings import LineageSettings
from snaploom_operator.submitters.base import RunRequest

DRIVER = "driver"
EXECUTOR = "executor"
"""Values of the label `snaploom.io/role` of pods."""

_CONTAINERS = {DRIVER: "spark-kubernetes-driver", EXECUTOR: "spark-kubernetes-executor"}
"""Names of Spark's containers in a template."""
_SPARK_USER = 185
"""The user of Spark's images; a number, since the kubelet cannot check a name for root."""
_FOLDERS = {f"{OUR_VOLUMES}tmp": "/tmp", f"{OUR_VOLUMES}work": "/opt/spark/work-dir"}
"""Writable volumes, besides Spark's own for shuffle files."""
_BUNDLE_VOLUME = f"{OUR_VOLUMES}bundle"


def driver_template(request: RunRequest) -> dict[str, JsonValue]:
    """The template of the driver's pod."""
    volume: JsonValue = {
        "name": _BUNDLE_VOLUME,
        "configMap": {"name": request.bundle, "optional": False},
    }
    mount: JsonValue = {"name": _BUNDLE_VOLUME, "mountPath": BUNDLE_FOLDER, "readOnly": True}
    variables: list[JsonValue] = [
        {
            "name": key.variable,
            "valueFrom": {"secretKeyRef": {"name": key.secret, "key": key.key}},
        }
        for key in request.secrets
    ]
    if request.settings.log_format != "text":
        variables.append({"name": LOG_FORMAT_VARIABLE, "value": request.settings.log_format})
    variables.extend(_lineage(request.settings.lineage))
    return _template(request, DRIVER, [volume], [mount], variables)


def _lineage(lineage: LineageSettings) -> Iterator[JsonValue]:
    if not lineage.url:
        return
    yield {"name": URL_VARIABLE, "value": lineage.url}
    yield {"name": NAMESPACE_VARIABLE, "value": lineage.namespace}
    if lineage.api_key is not None:
        key: JsonValue = {"name": lineage.api_key.secret, "key": lineage.api_key.key}
        yield {"name": KEY_VARIABLE, "valueFrom": {"secretKeyRef": key}}


def executor_template(request: RunRequest) -> dict[str, JsonValue]:
    """The template of the executors' pods."""
    return _template(request, EXECUTOR, [], [], [])


def _template(
    request: RunRequest,
    role: str,
    volumes: list[JsonValue],
    mounts: list[JsonValue],
    variables: list[JsonValue],
) -> dict[str, JsonValue]:
    asked = request.spark.pod_template or PodTemplate()
    taken = {normal_path(mount.mount_path) for mount in asked.volume_mounts}
    folders = {name: path for name, path in _FOLDERS.items() if path not in taken}
    written: list[JsonValue] = [{"name": name, "emptyDir": {}} for name in folders]
    written_at: list[JsonValue] = [
        {"name": name, "mountPath": path} for name, path in folders.items()
    ]
    container: dict[str, JsonValue] = {
        "name": _CONTAINERS[role],
        "volumeMounts": [*mounts, *written_at, *_dumped(asked.volume_mounts)],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        },
        "resources": {},
        **_given(
            env=[
                *_dumped(asked.env),
                *variables,
                *_allowed(request, role),
                *_pinned(asked, variables),
            ],
            envFrom=_dumped(asked.env_from),
        ),
    }
    spec: dict[str, JsonValue] = {
        "automountServiceAccountToken": role == DRIVER,
        "containers": [container],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _SPARK_USER,
            "runAsGroup": _SPARK_USER,
            "fsGroup": _SPARK_USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [*volumes, *written, *_dumped(asked.volumes)],
        **_given(
            nodeSelector={**asked.node_selector},
            priorityClassName=asked.priority_class_name,
            tolerations=_dumped(asked.tolerations),
        ),
    }
    labels = {**asked.labels, **child_labels(request.owner, request.run.name, role)}
    metadata: dict[str, JsonValue] = {
        "labels": {**labels},
        **_given(annotations={**asked.annotations}),
    }
    return {"metadata": metadata, "spec": spec}


def _allowed(request: RunRequest, role: str) -> Iterator[JsonValue]:
    """Variables with the allow lists of a job.

    They are always set, as the last ones: of two in `env` the later one counts, and `env` takes
    precedence over `envFrom`.
    """
    yield {"name": ALLOW_VARIABLE, "value": request.settings.allow.dump_json()}
    reads_urls = request.settings.allow_jdbc_url and role == DRIVER
    yield {"name": ALLOW_URL_VARIABLE, "value": str(reads_urls).lower()}


def _pinned(asked: PodTemplate, variables: Iterable[JsonValue]) -> Iterator[JsonValue]:
    """Variables that `envFrom` must not set; explicit values are kept."""
    if not asked.env_from:
        return
    given = {entry["name"] for entry in variables if isinstance(entry, dict)}
    given |= {variable.name for variable in asked.env}
    for name in sorted(PINNED.keys() - given):
        yield {"name": name, "value": PINNED[name]}


def _dumped(models: Iterable[ApiModel]) -> list[JsonValue]:
    return [_without_defaults(model.dump()) for model in models]


def _without_defaults(value: JsonValue) -> JsonValue:
    """Without default values, which Kubernetes' own types omit."""
    if not isinstance(value, dict):
        return value
    kept = {key: inner for key, inner in value.items() if inner not in (False, "")}
    return {key: _without_defaults(inner) for key, inner in kept.items()}


def _given(**fields: JsonValue) -> dict[str, JsonValue]:
    return {key: value for key, value in fields.items() if value}
