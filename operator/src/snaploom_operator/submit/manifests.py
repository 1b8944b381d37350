"""Objects of a run: its request, ConfigMaps, and pods within restricted pod security."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue
from pydantic_core import from_json

from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.models.base import ApiModel, ListType
from snaploom.models.common import EpochNanos, Resource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import REPORT_FORMAT, Report
from snaploom.models.run import CurrentRun, PodTemplate, SparkSettings
from snaploom.models.skippingindex import SkippingIndex
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import SecretKey, secret_keys
from snaploom.plan.explain import plan_json
from snaploom.plan.plan import RunPlan
from snaploom.policy.acceleration import is_accelerated
from snaploom.policy.pods import BUNDLE_FOLDER, OUR_VOLUMES, normal_path
from snaploom.policy.variables import (
    KEY_VARIABLE,
    LOG_FORMAT_VARIABLE,
    NAMESPACE_VARIABLE,
    PINNED,
    URL_VARIABLE,
)
from snaploom.sources.databases.declared import ALLOW_URL_VARIABLE
from snaploom_operator import objects
from snaploom_operator.errors import BundleTooLarge, SecretInBundle
from snaploom_operator.settings import LineageSettings, OperatorSettings
from snaploom_operator.submit.quota import pod_marks

LONGEST_LABEL = 63
"""Characters of a label's value, a limit of Kubernetes."""
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")


def label_value(text: str) -> str:
    """A text as a label value, with invalid characters replaced.

    It need not be unique: objects are identified by UIDs and full names.
    """
    return _NOT_ALLOWED.sub("-", text)[:LONGEST_LABEL].strip("-_.")


def child_labels(
    owner: Resource, run: str | None = None, role: str | None = None
) -> dict[str, str]:
    """Labels of an object that belongs to a stored resource, and to a run of it."""
    labels = {
        objects.LABEL_KIND: owner.kind,
        objects.LABEL_NAME: label_value(owner.name),
        objects.LABEL_OWNER: uid_of(owner),
    }
    if run is not None:
        labels[objects.LABEL_RUN] = label_value(run)
    if role is not None:
        labels[objects.LABEL_ROLE] = role
    return labels


def owner_reference(owner: Resource) -> dict[str, JsonValue]:
    """The reference by which the cluster deletes an object after its owner."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": False,
    }


def child_metadata(
    owner: Resource, name: str, run: str | None = None, role: str | None = None
) -> dict[str, JsonValue]:
    """Metadata of an object that belongs to a resource, in the resource's namespace."""
    return {
        "name": name,
        "namespace": namespace_of(owner),
        "labels": {**child_labels(owner, run, role)},
        "ownerReferences": [owner_reference(owner)],
    }


def uid_of(owner: Resource) -> str:
    """UID of a stored resource."""
    assert owner.metadata.uid is not None, f"{owner.identity} was never stored"
    return owner.metadata.uid


def namespace_of(owner: Resource) -> str:
    """Namespace of a stored resource."""
    assert owner.metadata.namespace is not None, f"{owner.identity} was never stored"
    return owner.metadata.namespace


BUNDLE_KEY = "bundle.json"
PLAN_KEY = "plan.json"
COMPRESSED = ".gz"
"""Suffix of the key of a compressed value."""
MOST_BYTES = 900_000
"""Bytes of content that a ConfigMap is given: a mebibyte is refused, and metadata counts too."""
_LONGEST_NAME = 253
_KEPT_METADATA = ("name", "namespace", "uid", "generation")
"""Metadata in a Bundle; other fields change without a change of the declaration, and the annotation
of `kubectl apply` repeats an earlier spec."""


def bundle_name(run: str, text: str) -> str:
    """Name of the ConfigMap with the Bundle of a run.

    It contains a hash of the content, so that the ConfigMap of a crashed operator is reused only if
    its content is the same.
    """
    return f"{run}-bundle-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def report_name(run: str) -> str:
    """Name of the ConfigMap that the job of a run writes its Report to."""
    return f"{run}-report"


def plan_name(output: str) -> str:
    """Name of the ConfigMap with the whole plan of an output (rule R13)."""
    return f"{output[: _LONGEST_NAME - len('-plan')]}-plan"


def bundle_config_map(owner: Resource, run: str, bundle: Bundle) -> objects.JsonObject:
    """The immutable ConfigMap with the Bundle of a run.

    Raises:
        SecretInBundle: a spec has a plaintext password (rule R16).
        BundleTooLarge: it does not fit, even compressed.
    """
    document = bundle.dump()
    secret = next(_plaintext(document, ""), None)
    if secret is not None:
        raise SecretInBundle(
            "the spec has a plaintext password",
            resource=owner.identity,
            path=secret,
            expected="fromSecret or fromEnvironment: secrets are never written into a ConfigMap",
            hint="put user name and password into a Secret, and name it in fromSecret",
        )
    text = _compact({key: _bare(value) for key, value in document.items()})
    metadata = child_metadata(owner, bundle_name(run, text), run, role="bundle")
    content = _bundled(text)
    if content is None:
        raise BundleTooLarge(
            "the declarations of this run do not fit into a ConfigMap",
            resource=owner.identity,
            found=f"{len(text.encode()):,} bytes for {len(bundle.data_sources)} sources and "
            f"{len(bundle.data_relationships)} relationships",
            expected=f"at most {MOST_BYTES:,} bytes when compressed",
        )
    return _config_map(metadata, content) | {"immutable": True}


def plan_config_map(output: OutputDataset, plan: RunPlan) -> objects.JsonObject:
    """The ConfigMap with the whole plan of an output, of which the status has the first joins.

    It is plain JSON. If a plan does not fit, its last joins are omitted, and `leftOut` counts them.
    """
    document = plan_json(plan)
    metadata = child_metadata(output, plan_name(output.name), role="plan")
    text, kept = _compact(document), len(plan.tree.joins)
    while len(text.encode()) > MOST_BYTES and kept:
        kept //= 2
        short: dict[str, JsonValue] = {
            "ties": [],
            "findings": [],
            "leftOut": len(plan.tree.joins) - kept,
        }
        joins = document["joins"]
        assert isinstance(joins, list)
        text = _compact({**document, **short, "joins": joins[:kept]})
    return _config_map(metadata, {"data": {PLAN_KEY: text}})


def _config_map(metadata: JsonValue, content: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def _bundled(text: str) -> dict[str, JsonValue] | None:
    raw = text.encode()
    if len(raw) <= MOST_BYTES:
        return {"data": {BUNDLE_KEY: text}}
    packed = gzip.compress(raw, mtime=0)  # the limit applies to the decoded Base64
    if len(packed) > MOST_BYTES:
        return None
    return {"binaryData": {BUNDLE_KEY + COMPRESSED: base64.b64encode(packed).decode()}}


def _compact(document: JsonValue) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _bare(part: JsonValue) -> JsonValue:
    if isinstance(part, list):
        return [_bare(one) for one in part]
    metadata = part.get("metadata") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(metadata, dict):
        return part
    kept: dict[str, JsonValue] = {
        name: metadata[name] for name in _KEPT_METADATA if name in metadata
    }
    return {**part, "metadata": kept}


def _plaintext(value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.{key}" if path else key
            if key == "fromPlaintext" and isinstance(inner, dict):
                yield below
            else:
                yield from _plaintext(inner, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _plaintext(inner, f"{path}[{index}]")


REPORT_ROLE = "report"
REPORT_KEY = "report.json"
"""Key of the ConfigMap under which the job writes its Report."""
LONGEST_REPORT = 1_048_576
"""Characters of a report that are parsed: all that a ConfigMap holds."""
MOST_VALUES = 100_000
"""Values of a report that are parsed. A job writes at most 900 KB, with some 20 bytes a value; so
many take some 50 ms, and a megabyte of other brackets would take ten times as long."""


def found_report(stored: objects.JsonObject, run: str, owner: str) -> objects.FoundReport:
    """The Report that a ConfigMap holds, which should be about a run of an owner by its UID."""
    text = objects.text_in(objects.mapping_in(stored, "data"), REPORT_KEY)
    values = sum(map(text.count, ",[{"))
    if len(text) > LONGEST_REPORT or values > MOST_VALUES:  # the event loop parses it
        return objects.FoundReport(
            run,
            None,
            f"ConfigMap {run}-report has no valid report: {len(text):,} characters with about "
            f"{values:,} values, where at most {LONGEST_REPORT:,} and {MOST_VALUES:,} are read",
        )
    try:
        raw: JsonValue = from_json(text)
        written = raw.get("format") if isinstance(raw, dict) else None
        if isinstance(written, int) and written > REPORT_FORMAT:
            return objects.FoundReport(
                run,
                None,
                f"the report has format {str(written)[:20]}, and this Snaploom reads up to "
                f"{REPORT_FORMAT}: upgrade the operator",
            )
        report = Report.parse(raw)
    except ValueError:  # also of JSON: too deep, or a number of too many digits
        return objects.FoundReport(run, None, f"ConfigMap {run}-report has no valid report")
    if (report.uid, report.run_id) != (owner, run):
        return objects.FoundReport(run, None, f"ConfigMap {run}-report is about another run")
    return objects.FoundReport(run, report)


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
M = TypeVar("M", bound=ApiModel)


def merged_settings(own: SparkSettings | None, settings: SparkSettings) -> SparkSettings:
    """The settings of a run: each field from the resource, else from the operator.

    Maps are merged, with the resource's values taking precedence. Lists whose members have a key
    (environment variables by name, volumes by name, mounts by path) are merged by it, members as a
    whole. Any other list of the resource replaces the operator's, unless it is empty.
    """
    return settings if own is None else _over(own, settings)


def run_settings(own: SparkSettings | None, operator: OperatorSettings) -> SparkSettings:
    """The merged settings of a run, with the image of its accelerator unless it names its own."""
    merged = merged_settings(own, operator.spark)
    if not is_accelerated(merged) or (own is not None and own.image is not None):
        return merged
    version = (own or SparkSettings()).spark_version or operator.comet.spark_version
    chosen = {"image": operator.comet.image, "spark_version": version}
    return merged.model_copy(update=chosen)


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
        dumped = ((member.dump(), member) for member in (*below, *own))
        return tuple({tuple(raw[key] for key in keys): member for raw, member in dumped}.values())
    return own


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
    marks = pod_marks(
        request.settings.queue_scheduler, request.owner.spec.run.queue, is_driver=role == DRIVER
    )
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
            schedulerName=marks.scheduler,
            tolerations=_dumped(asked.tolerations),
        ),
    }
    own = child_labels(request.owner, request.run.name, role)
    labels = {**asked.labels, **marks.labels, **own}
    metadata: dict[str, JsonValue] = {
        "labels": {**labels},
        **_given(annotations={**asked.annotations, **marks.annotations}),
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
    if not isinstance(value, dict):
        return value
    kept = {key: inner for key, inner in value.items() if inner not in (False, "")}
    return {key: _without_defaults(inner) for key, inner in kept.items()}


def _given(**fields: JsonValue) -> dict[str, JsonValue]:
    return {key: value for key, value in fields.items() if value}


@dataclass(frozen=True)
class RunRequest:
    """A run to submit."""

    owner: OutputDataset | SkippingIndex
    run: CurrentRun
    """The run; its application has its name."""
    started_at: EpochNanos
    spark: SparkSettings
    """The resource's settings, merged over the operator's; complete."""
    bundle: str
    """Name of the ConfigMap with the Bundle."""
    settings: OperatorSettings
    secrets: tuple[SecretKey, ...] = ()
    """Keys of Secrets that its driver gets as environment variables."""


def job_arguments(request: RunRequest, bundle: str) -> list[str]:
    """Arguments of `snaploom.run.clusterjob` for a run that is about to be submitted."""
    report = report_name(request.run.name)
    namespace = namespace_of(request.owner)
    return run_arguments(request.run, uid_of(request.owner), bundle, namespace, report)


def run_arguments(
    run: CurrentRun | objects.Application, uid: str, bundle: str, namespace: str, report: str
) -> list[str]:
    """Arguments of the job of a run, by file or folder with its Bundle and name of its Report."""
    return [
        "--bundle", bundle,
        "--uid", uid,
        "--run-id", run.name,
        "--attempt", str(run.attempt),
        "--action", run.action.value.lower(),
        "--report", f"configmap:{namespace}/{report}",
    ]  # fmt: skip


def objects_of_run(
    manifest: Callable[[RunRequest], objects.JsonObject],
    owner: OutputDataset | SkippingIndex,
    run: CurrentRun,
    bundle: Bundle,
    settings: OperatorSettings,
    now: EpochNanos,
) -> tuple[objects.JsonObject, objects.JsonObject]:
    """The ConfigMap with the Bundle of a run, and its application, by the form's function.

    Raises:
        SecretInBundle: a spec has a plaintext password (rule R16).
        BundleTooLarge: the Bundle does not fit, even compressed.
        SparkSettingsRefused: the resource's settings reach beyond its own pods.
    """
    bundled = bundle_config_map(owner, run.name, bundle)
    request = RunRequest(
        owner=owner,
        run=run,
        started_at=objects.known_instant(run.started_at) or now,
        spark=run_settings(owner.spec.run.spark, settings),
        bundle=objects.text_in(objects.metadata_of(bundled), "name"),
        settings=settings,
        secrets=secret_keys(bundle, run.action),
    )
    return bundled, manifest(request)
