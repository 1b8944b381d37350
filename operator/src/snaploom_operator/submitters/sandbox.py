"""Which Spark settings a resource may ask for, and which reach beyond its own pods.

`spark-submit` runs inside whoever submits, with that one's files, network and rights: a key that
reads a file, resolves a package or loads a class there would act for the whole cluster. Keys that
shape pods could add what the pod template refuses (ruling D16). Of Spark's own Kubernetes keys only
those listed here are harmless; new ones are refused until they are read. Settings with a field of
their own under `run.spark` are refused too, because the field would win without a word; so are
names in the pod template that the operator itself needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import normpath

from snaploom.models.podtemplate import PodTemplate
from snaploom.models.run import SparkSettings

BUNDLE_FOLDER = "/etc/snaploom/bundle"
"""Where the driver finds the Bundle."""
OUR_VOLUMES = "snaploom-"
"""What the names of our own volumes begin with."""
OUR_VARIABLES = "SNAPLOOM_ALLOW_"
"""What the names of environment variables begin with by which jobs are allowed something."""
OUR_LABELS = ("snaploom.io/", "sparkoperator.k8s.io/", "spark-", "spark.operator/")
"""What labels begin with by which pods are found."""

_KEY = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
"""Keys reach `spark-submit` as `key=value`: one with `=` would be another key there."""
_SUBSTITUTED = re.compile(r"\$\{(env|system):")
"""Spark replaces these in values, by what the submitter's process has."""

_KUBERNETES = "spark.kubernetes."
_HARMLESS_KUBERNETES = (
    "allocation.",
    "appKillPodDeletionGracePeriod",
    "driver.annotateExitException",
    "driver.limit.cores",
    "driver.memoryOverheadFactor",
    "driver.request.cores",
    "dynamicAllocation.",
    "executor.apiPollingInterval",
    "executor.checkAllContainers",
    "executor.deleteOnTermination",
    "executor.deletedExecutorsCacheTimeout",
    "executor.enableApiPolling",
    "executor.enableApiWatcher",
    "executor.enablePollingWithResourceVersion",
    "executor.eventProcessingInterval",
    "executor.limit.cores",
    "executor.memoryOverheadFactor",
    "executor.minTasksPerExecutorBeforeRolling",
    "executor.missingPodDetectDelta",
    "executor.podDeletionCost",
    "executor.request.cores",
    "executor.rollInterval",
    "executor.rollPolicy",
    "executor.terminationGracePeriodSeconds",
    "executor.useDriverPodIP",
    "local.dirs.tmpfs",
    "memoryOverheadFactor",
)
"""What may follow `spark.kubernetes.`; what ends in a point is the start of several."""
_CLASSES = "spark.kubernetes.allocation.pods.allocator"
"""Among the harmless by its start, and names a class that creates pods."""

_OWN_FIELD = {
    "spark.driver.cores": "driver.cores",
    "spark.driver.memory": "driver.memory",
    "spark.dynamicAllocation.enabled": "dynamicAllocation.enabled",
    "spark.dynamicAllocation.initialExecutors": "dynamicAllocation.initialExecutors",
    "spark.dynamicAllocation.maxExecutors": "dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.minExecutors": "dynamicAllocation.minExecutors",
    "spark.executor.cores": "executor.cores",
    "spark.executor.instances": "executor.instances",
    "spark.executor.memory": "executor.memory",
    "spark.kubernetes.authenticate.driver.serviceAccountName": "serviceAccountName",
    "spark.kubernetes.container.image": "image",
    "spark.kubernetes.container.image.pullPolicy": "imagePullPolicy",
    "spark.kubernetes.container.image.pullSecrets": "imagePullSecrets",
}
"""Settings that are fields under `run.spark`."""

_BEYOND = {
    "spark.app.": "the submitter names applications",
    "spark.archives": "it makes the submitter read files of its own",
    "spark.driver.bindAddress": "the submitter sets it",
    "spark.driver.host": "the submitter sets it",
    "spark.driver.port": "the submitter sets it",
    "spark.files": "it makes the submitter read files of its own",
    "spark.hadoop.hadoop.security.": "it opens files of the submitter",
    "spark.home": "the image sets it",
    "spark.jars": "it makes the submitter read files of its own; jars belong into the image",
    "spark.kerberos.": "it hands over files of the submitter",
    "spark.master": "the submitter sets it",
    "spark.proxyUser": "it is another identity",
    "spark.remote": "it is another cluster",
    "spark.security.credentials.": "it hands over credentials of the submitter",
    "spark.submit.": "it tells the submitter what to do",
    "spark.yarn.": "it is another cluster",
}
"""Starts of keys that reach beyond the pods of this run, and why."""


@dataclass(frozen=True)
class Refusal:
    """One setting that a resource may not make."""

    path: str
    """Field path in the resource."""
    found: str
    """The setting: a key, a name or a path, never a value."""
    reason: str
    """Why, for people."""


def refusals(spark: SparkSettings | None) -> tuple[Refusal, ...]:
    """What `run.spark` of a resource may not say; it says nothing of the operator's settings."""
    if spark is None:
        return ()
    settings = sorted(spark.spark_conf.items())
    keys = ((key, _refusal(key, value)) for key, value in settings)
    return (
        *(Refusal("spec.run.spark.sparkConf", key, reason) for key, reason in keys if reason),
        *_of_template(spark.pod_template or PodTemplate()),
    )


def _of_template(template: PodTemplate) -> Iterator[Refusal]:
    path = "spec.run.spark.podTemplate"
    for volume in template.volumes:
        if volume.name.startswith(OUR_VOLUMES):
            yield Refusal(f"{path}.volumes", volume.name, "names like this are the operator's own")
    for mount in template.volume_mounts:
        if _overlaps(mount.mount_path):
            reason = "the operator mounts the declarations there"
            yield Refusal(f"{path}.volumeMounts", mount.mount_path, reason)
    for variable in template.env:
        if variable.name.startswith(OUR_VARIABLES):
            reason = "the operator alone says what a job may do"
            yield Refusal(f"{path}.env", variable.name, reason)
    for label in template.labels:
        if label.startswith(OUR_LABELS):
            yield Refusal(f"{path}.labels", label, "pods are found by labels like this")


def normal_path(path: str) -> str:
    """A folder as the kernel knows it: `/a/../b/` and `//b` are `/b`."""
    return f"/{normpath(path).strip('/')}"


def _overlaps(path: str) -> bool:
    """Whether a folder is the Bundle's, in it, or above it."""
    mounted = f"{normal_path(path).rstrip('/')}/"
    return mounted.startswith(f"{BUNDLE_FOLDER}/") or BUNDLE_FOLDER.startswith(mounted)


def _refusal(key: str, value: str) -> str:
    if not _KEY.fullmatch(key):
        return "keys begin with 'spark.' and have letters, digits, '_', '-' and points"
    if "\0" in value:
        return "the value has a NUL character, which no program can be given"
    if _SUBSTITUTED.search(value):
        return "the value names a variable, which would be read where the job is submitted"
    if key in _OWN_FIELD:
        return f"it has a field of its own: run.spark.{_OWN_FIELD[key]}"
    if key.startswith(_KUBERNETES):
        rest = key.removeprefix(_KUBERNETES)
        is_harmless = key != _CLASSES and _starts_like(rest, _HARMLESS_KUBERNETES)
        return "" if is_harmless else "it shapes pods, or acts with the rights of the submitter"
    return next((reason for start, reason in _BEYOND.items() if _starts_like(key, (start,))), "")


def _starts_like(key: str, starts: Iterable[str]) -> bool:
    """Whether it is one of these, or below one: `spark.jars` goes with `spark.jars.packages`."""
    return any(key == start or key.startswith(start.rstrip(".") + ".") for start in starts)
