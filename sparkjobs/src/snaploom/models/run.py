"""Running of jobs of a runnable kind: `spec.run`, with additions to their pods."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le, MaxLen
from pydantic import Field, StringConstraints, model_validator

from snaploom.models import common
from snaploom.models.base import ApiModel, CelRule, ListType, contradiction
from snaploom.models.shortforms import LENGTH_NOT_ZERO

# Additions of users to the pods of driver and executors: bounded, and free of host access.

_Key = Annotated[str, StringConstraints(min_length=1, max_length=253)]


class KeySelector(ApiModel):
    """A key of a Secret or ConfigMap of the same namespace."""

    name: common.ResourceName
    """Name of the object."""
    key: _Key
    """Key in it."""
    optional: bool = False
    """Whether it may be absent."""


class EnvironmentSource(ApiModel):
    """Source of the value of an environment variable."""

    one_of: ClassVar[tuple[str, ...]] = ("secretKeyRef", "configMapKeyRef")

    secret_key_ref: KeySelector | None = None
    """A key of a Secret."""
    config_map_key_ref: KeySelector | None = None
    """A key of a ConfigMap."""


class EnvironmentVariable(ApiModel):
    """An environment variable; secrets come by reference."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("!has(self.value) || !has(self.valueFrom)", "give value or valueFrom, not both"),
    )

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=253)]
    """Name of the variable."""
    value: Annotated[str, StringConstraints(max_length=8192)] | None = None
    """Its value; omitted together with `valueFrom`, the empty text."""
    value_from: EnvironmentSource | None = None
    """Source of its value."""

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.value is not None and self.value_from is not None:
            raise contradiction(
                "give value or valueFrom, not both",
                found="value and valueFrom",
                expected="one of the two",
                hint="remove one of the two",
            )
        return self


class ObjectName(ApiModel):
    """An object of the same namespace."""

    name: common.ResourceName
    """Its name."""
    optional: bool = False
    """Whether it may be absent."""


class EnvironmentObject(ApiModel):
    """All keys of a Secret or ConfigMap, as environment variables."""

    one_of: ClassVar[tuple[str, ...]] = ("secretRef", "configMapRef")

    secret_ref: ObjectName | None = None
    """A Secret."""
    config_map_ref: ObjectName | None = None
    """A ConfigMap."""
    prefix: Annotated[str, StringConstraints(max_length=253)] | None = None
    """Prefix of the variables' names."""


class ClaimVolume(ApiModel):
    """A PersistentVolumeClaim."""

    claim_name: common.ResourceName
    """Name of the claim."""
    read_only: bool = False
    """Whether it is mounted for reading only."""


class SecretVolume(ApiModel):
    """A Secret."""

    secret_name: common.ResourceName
    """Name of the Secret."""
    optional: bool = False
    """Whether it may be absent."""


class EmptyVolume(ApiModel):
    """An empty folder that lives as long as the pod."""

    medium: Literal["", "Memory"] = ""
    """Memory for a folder in memory."""
    size_limit: Annotated[str, StringConstraints(max_length=32)] | None = None
    """Largest size, such as `10Gi`."""


class Volume(ApiModel):
    """A volume of the pods."""

    one_of: ClassVar[tuple[str, ...]] = ("persistentVolumeClaim", "configMap", "secret", "emptyDir")

    name: common.ResourceName
    """Name of the volume."""
    persistent_volume_claim: ClaimVolume | None = None
    """A PersistentVolumeClaim."""
    config_map: ObjectName | None = None
    """A ConfigMap."""
    secret: SecretVolume | None = None
    """A Secret."""
    empty_dir: EmptyVolume | None = None
    """An empty folder."""


class VolumeMount(ApiModel):
    """Mount of a volume in the containers."""

    name: common.ResourceName
    """Name of the volume."""
    mount_path: Annotated[
        str, StringConstraints(min_length=1, max_length=2048, pattern=r"^/[^:]*$")
    ]
    """Folder in the container: absolute, without `:`."""
    sub_path: common.UriText | None = None
    """Folder in the volume."""
    read_only: bool = False
    """Whether it is mounted for reading only."""


class Toleration(ApiModel):
    """Lets pods run on nodes with a taint."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
            "only the operator Exists may go without a key",
        ),
    )

    key: _Key | None = None
    """Key of the taint; omitted (with the operator Exists only), every one."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """Comparison of the value."""
    value: common.ShortText | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; omitted, every one."""
    toleration_seconds: Annotated[int, Ge(0), Le(31_536_000)] | None = None
    """Time for which NoExecute is tolerated."""

    @model_validator(mode="after")
    def _key_or_every(self) -> Self:
        if self.key is None and self.operator != "Exists":
            raise contradiction(
                "only the operator Exists may go without a key",
                found=f"operator {self.operator or 'Equal'}, and no key",
                expected="a key, or the operator Exists",
                hint="add `key`; to tolerate every taint, write `operator: Exists`",
            )
        return self


class PodTemplate(ApiModel):
    """Additions to the pods of driver and executors."""

    labels: common.StringMap = Field(default_factory=dict)
    """Labels."""
    annotations: common.StringMap = Field(default_factory=dict)
    """Annotations."""
    node_selector: common.StringMap = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: Annotated[tuple[Toleration, ...], MaxLen(64), ListType("atomic")] = ()
    """Taints that are tolerated."""
    priority_class_name: common.ResourceName | None = None
    """Priority class."""
    env: Annotated[
        tuple[EnvironmentVariable, ...], MaxLen(128), ListType("map", keys=("name",))
    ] = ()
    """Environment variables."""
    env_from: Annotated[tuple[EnvironmentObject, ...], MaxLen(32), ListType("atomic")] = ()
    """Objects whose keys become environment variables."""
    volumes: Annotated[tuple[Volume, ...], MaxLen(64), ListType("map", keys=("name",))] = ()
    """Volumes."""
    volume_mounts: Annotated[
        tuple[VolumeMount, ...], MaxLen(64), ListType("map", keys=("mountPath",))
    ] = ()
    """Mounts of the volumes."""


# Running of jobs of a runnable kind: `spec.run`.

CronText = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ConcurrencyPolicy(StrEnum):
    """Reaction to a run that is due while another is in flight."""

    FORBID = "Forbid"
    """The new run waits for the other."""
    REPLACE = "Replace"
    """The other run is stopped first."""


class DeletionPolicy(StrEnum):
    """Treatment of published data when the resource is deleted."""

    RETAIN = "Retain"
    """It stays."""
    DELETE = "Delete"
    """A job deletes it."""


class Submitter(StrEnum):
    """Submitter of the job."""

    SPARK_OPERATOR = "SparkOperator"
    """The Kubeflow Spark operator."""
    APACHE_SPARK = "ApacheSpark"
    """The Apache Spark Kubernetes operator."""
    LOCAL = "Local"
    """The Snaploom operator itself, on a developer's machine only (rule R10)."""


class Schedule(ApiModel):
    """Times at which runs are due."""

    cron: CronText
    """Five fields: minute, hour, day of month, month, day of week."""
    time_zone: common.TimeZoneName = "UTC"
    """Zone of the expression."""
    starting_deadline_seconds: common.Seconds | None = None
    """A run that could not start within this time after it was due is left out."""


class Freshness(ApiModel):
    """Maximum age of the newest snapshot with which the resource is Ready."""

    max_age: Annotated[common.TimeOffset, LENGTH_NOT_ZERO]
    """Age limit; longer than nothing."""

    @model_validator(mode="after")
    def _refuse_zero_age(self) -> Self:
        common.refuse_nothing("maxAge", self.max_age)
        return self


class Retry(ApiModel):
    """Retries of failed runs."""

    limit: Annotated[int, Ge(0), Le(100)] = 3
    """Attempts after the first."""
    backoff_seconds: common.Seconds = 60
    """Wait before the first attempt; doubled for each further one."""
    max_backoff_seconds: common.Seconds = 3600
    """Longest wait."""


class HistoryLimit(ApiModel):
    """Number of finished runs to keep."""

    successful: Annotated[int, Ge(0), Le(100)] = 3
    """Successful ones."""
    failed: Annotated[int, Ge(0), Le(100)] = 3
    """Failed ones."""


MemoryText = Annotated[
    str, StringConstraints(pattern=r"^[1-9][0-9]*[kmgtKMGT]i?[bB]?$", max_length=16)
]
_MEMORY = re.compile(r"([0-9]+)([kmgtKMGT])i?[bB]?")


def spark_memory(text: str) -> str:
    """A `MemoryText` in Spark's units: it does not know `Gi`, and its `g` means the same."""
    number, unit = _memory_parts(text)
    return f"{number}{unit}"


def memory_mebibytes(text: str) -> float:
    """The size of a `MemoryText` in MiB."""
    number, unit = _memory_parts(text)
    return int(number) * 2.0 ** (10 * "kmgt".index(unit) - 10)


def _memory_parts(text: str) -> tuple[str, str]:
    parts = _MEMORY.fullmatch(text)
    assert parts is not None, f"the model lets no such size pass: {text}"
    return parts[1], parts[2].lower()


class OnEmptyRoot(StrEnum):
    """Result of a run whose root has no snapshot at all."""

    WARN = "Warn"
    """It ends well, with a warning: nothing is there to publish."""
    FAIL = "Fail"
    """It fails with the reason RootEmpty, so that a scheduler sees it, and is tried again."""


class DriverSettings(ApiModel):
    """The Spark driver."""

    cores: Annotated[int, Ge(1), Le(256)] | None = None
    """Cores."""
    memory: MemoryText | None = None
    """Memory, such as `2g`."""


class ExecutorSettings(ApiModel):
    """The Spark executors."""

    instances: Annotated[int, Ge(0), Le(10_000)] | None = None
    """Number of executors."""
    cores: Annotated[int, Ge(1), Le(256)] | None = None
    """Cores of each."""
    memory: MemoryText | None = None
    """Memory of each, such as `4g`."""


class DynamicAllocation(ApiModel):
    """Lets Spark add and remove executors."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "!has(self.minExecutors) || !has(self.maxExecutors) || "
            "self.minExecutors <= self.maxExecutors",
            "minExecutors must not exceed maxExecutors",
        ),
    )

    enabled: bool = True
    """Whether it does."""
    initial_executors: Annotated[int, Ge(0), Le(10_000)] | None = None
    """Executors at the start."""
    min_executors: Annotated[int, Ge(0), Le(10_000)] | None = None
    """Fewest executors."""
    max_executors: Annotated[int, Ge(1), Le(10_000)] | None = None
    """Most executors."""

    @model_validator(mode="after")
    def _fewest_within_most(self) -> Self:
        fewest, most = self.min_executors, self.max_executors
        if fewest is not None and most is not None and fewest > most:
            raise contradiction(
                "minExecutors must not exceed maxExecutors",
                found=f"minExecutors {fewest} and maxExecutors {most}",
                expected=f"minExecutors of at most {most}",
                hint="lower minExecutors, or raise maxExecutors",
            )
        return self


class Accelerator(StrEnum):
    """Accelerator of Spark's own engine."""

    COMET = "COMET"
    """Apache DataFusion Comet: scans, joins, shuffles and Parquet in native code."""
    NONE = "NONE"
    """None, also where the operator's settings or the environment have one."""


class SparkSettings(ApiModel):
    """The Spark application; omitted fields come from the operator's settings."""

    image: common.ShortText | None = None
    """Container image of driver and executors."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """Policy for pulling the image."""
    image_pull_secrets: Annotated[tuple[common.ResourceName, ...], MaxLen(16), common.Atomic] = ()
    """Secrets for pulling the image."""
    spark_version: Annotated[str, StringConstraints(max_length=32)] | None = None
    """Version of Spark in the image."""
    service_account_name: common.ResourceName | None = None
    """Service account of the driver."""
    driver: DriverSettings | None = None
    """The driver."""
    executor: ExecutorSettings | None = None
    """The executors."""
    spark_conf: common.StringMap = Field(default_factory=dict)
    """Spark configuration, by keys that are known to be harmless; the list `sparkConf` of an
    administrator adds others."""
    dynamic_allocation: DynamicAllocation | None = None
    """Lets Spark add and remove executors."""
    accelerator: Accelerator | None = None
    """Accelerator of the application; omitted everywhere, none."""
    pod_template: PodTemplate | None = None
    """Additions to the pods of driver and executors."""


QueueName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$", max_length=63)
]
"""A value of a label, which is what every scheduler takes."""


class RunSettings(ApiModel):
    """Settings and triggers of this resource's jobs."""

    suspend: bool = False
    """Whether no further run is started."""
    schedule: Schedule | None = None
    """Times at which runs are due; omitted, on changes and by hand only."""
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.FORBID
    """Reaction to a run that is due while another is in flight."""
    freshness: Freshness | None = None
    """Maximum age of the newest snapshot."""
    retry: Retry = Retry()
    """Retries of failed runs."""
    start_timeout_seconds: common.Seconds = 600
    """Maximum time for a submitted run to start, once it has its quota."""
    active_deadline_seconds: Annotated[int, Ge(1), Le(31_536_000)] | None = None
    """Maximum duration of a run."""
    history_limit: HistoryLimit = HistoryLimit()
    """Number of finished runs to keep."""
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """Treatment of published data when the resource is deleted."""
    checkpoint_uri: common.PlaceText | None = None
    """Folder for subtrees that several snapshots share."""
    snapshots_per_job: Annotated[int, Ge(1), Le(12)] = 1
    """Up to how many snapshots one Spark job weaves, where they differ in the root's rows only."""
    on_empty_root: OnEmptyRoot = OnEmptyRoot.WARN
    """Result of a run whose root has no snapshot at all: no file matches, or no row has one."""
    accept_root_change: bool = False
    """Whether another root DataSource may continue an existing output."""
    adopt_folder: bool = False
    """Whether the folder of a resource of the same name and namespace that is gone may be gone on
    with: of one that was deleted and created anew, or moved from another cluster."""
    spark: SparkSettings | None = None
    """The Spark application."""
    submitter: Submitter | None = None
    """Submitter of the job; omitted, the first of the operator's settings."""
    queue: QueueName | None = None
    """Queue of the cluster's scheduler in which runs wait for their quota: a LocalQueue of Kueue,
    or a queue of YuniKorn or Volcano; omitted, none."""


class RunAction(StrEnum):
    """Action of a run."""

    RUN = "Run"
    """It weaves the snapshots that are due, or brings the index up to date."""
    DELETE = "Delete"
    """It deletes the published data (`deletionPolicy: Delete`)."""


class Trigger(ApiModel):
    """Causes of a run; a run is due when one of these has changed."""

    declarations: common.ShortText = ""
    """Hash of the declarations that it works on; how and when jobs run is no part of it."""
    upstream: common.ShortText = ""
    """Hash of how far the outputs that it reads had published; empty when it reads none."""
    token: common.ShortText = ""
    """Value of the annotation `snaploom.io/run`; empty without one."""
    scheduled: common.TimestampText | None = None
    """The latest tick of the schedule that it answers."""


class CurrentPhase(StrEnum):
    """Progress of the run in flight."""

    QUEUED = "Queued"
    """It waits for other runs to end."""
    SUBMITTING = "Submitting"
    """Its application is about to be created; written down first, so that there is never a second
    one (rule R2)."""
    SUBMITTED = "Submitted"
    """The application exists and has not started."""
    QUOTA_PENDING = "QuotaPending"
    """The application waits for quota in the queue `run.queue`; no deadline counts meanwhile."""
    RUNNING = "Running"
    """The driver runs."""
    ENDING = "Ending"
    """The application is ending, or is being stopped."""


class CurrentRun(ApiModel):
    """The run in flight."""

    name: common.ShortText
    """Name of its application."""
    id: common.ShortText
    """Identity of the run: the same name, by which its report and its ConfigMaps are found."""
    action: RunAction = RunAction.RUN
    """Action of the run."""
    phase: CurrentPhase
    """Progress."""
    since: common.TimestampText
    """Time at which it entered the phase."""
    started_at: common.TimestampText
    """Time of the decision."""
    attempt: Annotated[int, Ge(0)] = 0
    """0 for the first attempt, counted up by retries."""
    trigger: Trigger = Trigger()
    """Causes of the run."""
    uid: Annotated[str, StringConstraints(max_length=64)] | None = None
    """UID of its application, once it exists."""
    waiting_for: common.ShortText | None = None
    """Conditions that it waits for."""
    progress: common.ShortText | None = None
    """Progress that the job reports, such as `snapshot 3 of 12, join 4 of 9`."""
    stopping: common.ShortText | None = None
    """Reason for which it is being stopped, such as `DeadlineExceeded`; omitted while it is not."""


RunList = Annotated[tuple[common.ShortText, ...], MaxLen(20), common.Atomic]


class LastPhase(StrEnum):
    """Outcome of a run."""

    SUCCEEDED = "Succeeded"
    """Everything that was due is done."""
    FAILED = "Failed"
    """Something that was due is not done."""
    STOPPED = "Stopped"
    """It was replaced, or stopped by a deadline or a person."""
    LOST = "Lost"
    """Its application went away before it was seen to end, and left no report."""


class LastRun(ApiModel):
    """The run that ended last."""

    id: common.ShortText
    """Identity of the run."""
    uid: Annotated[str, StringConstraints(max_length=64)] | None = None
    """UID of its application, if one was seen."""
    action: RunAction = RunAction.RUN
    """Action of the run."""
    phase: LastPhase
    """Outcome."""
    reason: common.ShortText = ""
    """Stable CamelCase reason of a failure."""
    retryable: bool = False
    """Whether it may succeed with nothing changed."""
    attempt: Annotated[int, Ge(0)] = 0
    """0 for the first attempt, counted up by retries."""
    trigger: Trigger = Trigger()
    """Causes of the run."""
    started_at: common.TimestampText
    """Start time."""
    finished_at: common.TimestampText | None = None
    """End time."""
    published: Annotated[int, Ge(0)] = 0
    """Snapshots that it published."""
    rows: Annotated[int, Ge(0)] = 0
    """Rows of these snapshots."""
    bytes: Annotated[int, Ge(0)] = 0
    """Size of their files."""
    collected_files: Annotated[int, Ge(0)] = 0
    """Files of deleted and replaced snapshots that it removed."""
    skipped: RunList = ()
    """The first snapshots that it left out."""
    failed: RunList = ()
    """The first snapshots that failed."""
    message: Annotated[str, StringConstraints(max_length=4096)] = ""
    """The reason of a failure; of a deletion the data that it removed, and that it left."""
