"""Pods of a run: Spark settings, sizes, and templates within restricted pod security."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.models.base import ApiModel, ListType
from snaploom.models.podtemplate import PodTemplate
from snaploom.models.run import (
    DriverSettings,
    DynamicAllocation,
    ExecutorSettings,
    SparkSettings,
    memory_mebibytes,
    spark_memory,
)
from snaploom.planning.jobvariables import (
    KEY_VARIABLE,
    LOG_FORMAT_VARIABLE,
    NAMESPACE_VARIABLE,
    URL_VARIABLE,
)
from snaploom.planning.podsettings import BUNDLE_FOLDER, OUR_VOLUMES, normal_path
from snaploom.planning.podvariables import PINNED
from snaploom.planning.sources.databases.urls import ALLOW_URL_VARIABLE
from snaploom_operator.settings import LineageSettings
from snaploom_operator.submit.applications import RunRequest
from snaploom_operator.submit.configmaps import child_labels

# Spark settings of every run that protect its connections and temporary files.

PROTECTION: Mapping[str, str] = {
    # Connections to ports of driver and executors need the run's secret.
    "spark.authenticate": "true",
    # Messages and blocks between the pods; this version and cipher also notice changed bytes.
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    # What is spilled to the disks of nodes.
    "spark.io.encryption.enabled": "true",
    # The web UI has no authentication, and shows settings, plans and samples of data.
    "spark.ui.enabled": "false",
}
"""Settings by name."""


# Merges a resource's Spark settings over the operator's.

M = TypeVar("M", bound=ApiModel)


def merged_settings(own: SparkSettings | None, settings: SparkSettings) -> SparkSettings:
    """The settings of a run: each field from the resource, else from the operator.

    Maps are merged, with the resource's values taking precedence. Lists whose members have a key
    (environment variables by name, volumes by name, mounts by path) are merged by it, members as a
    whole. Any other list of the resource replaces the operator's, unless it is empty.
    """
    return settings if own is None else _over(own, settings)


def _over(own: M, below: M) -> M:
    fields = type(own).model_fields
    keys = {
        name: next((note.keys for note in field.metadata if isinstance(note, ListType)), ())
        for name, field in fields.items()
    }
    return own.model_copy(
        update={
            name: _either(getattr(own, name), getattr(below, name), keys[name]) for name in fields
        }
    )


def _either(own: object, below: object, keys: tuple[str, ...]) -> object:
    if own is None or own == ():
        return below
    if isinstance(own, ApiModel) and isinstance(below, ApiModel):
        return _over(own, below)
    if isinstance(own, Mapping) and isinstance(below, Mapping):
        return {**below, **own}
    if keys and isinstance(own, tuple) and isinstance(below, tuple):
        return tuple({_key(member, keys): member for member in (*below, *own)}.values())
    return own


def _key(member: ApiModel, keys: tuple[str, ...]) -> tuple[object, ...]:
    written = member.dump()
    return tuple(written[key] for key in keys)


# Cores, memory and number of driver and executors, with defaults for omitted settings.

_CORES = 1
_MEMORY_DEFAULT = "1g"
_EXECUTORS = 1
_OVERHEAD_FACTOR = 0.4
"""By which Spark enlarges pods of a Python program."""
_DRIVER_OVERHEAD = 640
"""MiB that a driver needs beside its heap: some 230 for the classes, code and threads of its JVM,
240 for the Python program (measured in a pod of the flights example), and some for listings."""
_OVERHEAD_SETTINGS = (
    "spark.driver.memoryOverhead",
    "spark.driver.memoryOverheadFactor",
    "spark.driver.minMemoryOverhead",
    "spark.kubernetes.memoryOverheadFactor",
)


@dataclass(frozen=True)
class Sizes:
    """Driver and executors of one run."""

    driver_cores: int
    driver_memory: str
    """In Spark's own units, in which `g` is a GiB."""
    driver_overhead: str
    """Memory of the driver's pod beyond that; empty where Spark's own default suffices, or where
    settings choose it."""
    executor_cores: int
    executor_memory: str
    executors: int
    """Fixed number of executors; 0 for local mode."""
    allocation: DynamicAllocation | None
    """Dynamic allocation; None for a fixed number."""

    @property
    def local_master(self) -> str:
        """Spark's master in local mode; empty with executors."""
        is_local = self.allocation is None and self.executors == 0
        return f"local[{self.driver_cores}]" if is_local else ""


def sizes(spark: SparkSettings) -> Sizes:
    """The sizes of a run's settings.

    With dynamic allocation the fixed number is the initial one, within its bounds, unless that is
    given too. Without executors the driver runs Spark in local mode.
    """
    driver, executor = spark.driver or DriverSettings(), spark.executor or ExecutorSettings()
    count = _EXECUTORS if executor.instances is None else executor.instances
    allocation = spark.dynamic_allocation
    is_dynamic = allocation is not None and allocation.enabled
    driver_memory = driver.memory or _MEMORY_DEFAULT
    return Sizes(
        driver_cores=driver.cores or _CORES,
        driver_memory=spark_memory(driver_memory),
        driver_overhead=_driver_overhead(driver_memory, spark.spark_conf),
        executor_cores=executor.cores or _CORES,
        executor_memory=spark_memory(executor.memory or _MEMORY_DEFAULT),
        executors=count,
        allocation=_started(allocation, count) if allocation and is_dynamic else None,
    )


def _driver_overhead(memory: str, spark_conf: Mapping[str, str]) -> str:
    is_chosen = any(key in spark_conf for key in _OVERHEAD_SETTINGS)
    if is_chosen or memory_mebibytes(memory) * _OVERHEAD_FACTOR >= _DRIVER_OVERHEAD:
        return ""
    return f"{_DRIVER_OVERHEAD}m"


def _started(allocation: DynamicAllocation, count: int) -> DynamicAllocation:
    if allocation.initial_executors is not None:
        return allocation
    within = max(count, allocation.min_executors or 0)
    if allocation.max_executors is not None:
        within = min(within, allocation.max_executors)
    return allocation.model_copy(update={"initial_executors": within})


# Templates of driver and executor pods: the user's additions within restricted pod security.

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
