"""Applications of all submitters: Kubeflow's Spark operator, Apache's, and the operator itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from snaploom.models.allowances import Allowances
from snaploom.models.base import ApiModel
from snaploom.models.common import EpochNanos, TimestampText, format_instant, parse_instant
from snaploom.models.run import (
    DriverSettings,
    DynamicAllocation,
    ExecutorSettings,
    PodTemplate,
    RunAction,
    SparkSettings,
    Submitter,
    Trigger,
    memory_mebibytes,
    spark_memory,
)
from snaploom.policy.acceleration import accelerated_settings, is_accelerated, off_heap_mebibytes
from snaploom.policy.pods import BUNDLE_FOLDER, Refusal, hint_of, refusals, template_refusals
from snaploom.sources.databases.drivers import COMET_SPARK
from snaploom_operator import objects
from snaploom_operator.cluster import port
from snaploom_operator.conditions import joined
from snaploom_operator.errors import SparkSettingsRefused
from snaploom_operator.submit import local, manifests
from snaploom_operator.submit.quota import queued


class ApplicationForm(Protocol):
    """Builds and parses the applications of one submitter."""

    @property
    def submitter(self) -> Submitter: ...

    @property
    def resource(self) -> port.ApiResource: ...

    def manifest(self, request: manifests.RunRequest) -> objects.JsonObject:
        """The object that runs the job, complete, so that no webhook changes it.

        Raises:
            SparkSettingsRefused: the resource's settings reach beyond its own pods.
        """

    def read(self, stored: objects.JsonObject) -> objects.Application | None:
        """The run of an object; None if it is not ours."""


JOB_FILE = "local:///opt/snaploom/clusterjob.py"
"""The job's file in the image, which runs `snaploom.run.clusterjob`."""


_EXCEPTION = re.compile(r'^(?:Exception in thread "[^"]*"|Caused by:) (?P<cause>.+)$', re.MULTILINE)
_LOGGED = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:TRACE|DEBUG|INFO|WARN) |Using Spark's default log4j profile|"
    r"Setting default log level|To adjust logging level"
)
"""Starts of lines that are unrelated to the failure."""
_STACK = re.compile(r"\s+(?:at |\.\.\. \d+ )")
_WARNING = re.compile(r"WARNING: Using incubator modules: \S+")
_PACKAGES = re.compile(r"^(?:[a-z][\w$]*\.)+(?=[A-Z])")
"""The package of a class name, which is removed."""
_ASKED, _ANSWERED, _AGAIN = "Failure executing: ", ". Message: ", " Received status: Status("
"""Text of Spark's client around the API server's message, which it contains twice."""
_LONGEST = 100_000
"""Characters that are searched. Spark's own message has some 12,000; a user could write a longer
one, and searching it must not block the event loop."""


def cause_in(message: str) -> str:
    """The cause in the message of a failed submission; a message without a log is unchanged."""
    message = message[:_LONGEST]
    if "\n" not in message:
        return message
    causes = [_plain(found["cause"]) for found in _EXCEPTION.finditer(message)]
    if causes:
        # The first has the failed operation, the last its root cause.
        return ": ".join(dict.fromkeys((causes[0], causes[-1])))
    lines = (s for s in message.splitlines() if not (_LOGGED.match(s) or _STACK.match(s)))
    informative = (_WARNING.sub("", line).strip() for line in lines)
    return "\n".join(line for line in informative if line) or message


def _plain(exception: str) -> str:
    asked, _, answered = exception.partition(_ANSWERED)
    if answered and _ASKED in asked:
        return answered.partition(_AGAIN)[0].rstrip(".")
    return _PACKAGES.sub("", exception)


_SHOWN = 5
"""Refused settings that a message names."""


class RunNote(ApiModel):
    """The annotation of an application with the data that is needed to adopt it."""

    action: RunAction = RunAction.RUN
    attempt: int = 0
    """Number of the attempt, from 0."""
    started_at: TimestampText
    """Time of the operator's decision."""
    trigger: Trigger = Trigger()
    queue: str = ""
    """The queue in which it waits for quota; empty for none."""


def application_object(
    resource: port.ApiResource,
    request: manifests.RunRequest,
    content: objects.JsonObject,
    role: str | None = None,
) -> objects.JsonObject:
    """The object that runs the job, with the content of a submitter."""
    run = request.run
    note = RunNote(
        action=run.action,
        attempt=run.attempt,
        started_at=format_instant(request.started_at),
        trigger=run.trigger,
        queue=request.owner.spec.run.queue or "",
    )
    metadata = manifests.child_metadata(request.owner, run.name, run.name, role)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {**metadata, "annotations": {objects.ANNOTATION_TRIGGER: note.dump_json()}},
        **content,
    }


def read_application(
    stored: objects.JsonObject, submitter: Submitter, state: objects.ApplicationState, message: str
) -> objects.Application | None:
    """The run of an object; None without an owner's UID, or if it belongs to another run.

    Without a valid annotation it still is ours: it runs, with an unknown trigger.
    """
    metadata = objects.Metadata.of(stored)
    owner = metadata.labels.get(objects.LABEL_OWNER, "")
    if not owner or metadata.labels.get(objects.LABEL_RUN) != metadata.name:
        return None
    try:
        note = RunNote.model_validate_json(metadata.annotations.get(objects.ANNOTATION_TRIGGER, ""))
        started_at = parse_instant(note.started_at)
    except ValueError:
        created = objects.text_in(objects.metadata_of(stored), "creationTimestamp")
        started_at = objects.known_instant(created) or EpochNanos(0)
        note = RunNote(started_at=format_instant(started_at))
    return objects.Application(
        submitter=submitter,
        name=metadata.name,
        uid=metadata.uid,
        owner_uid=owner,
        state=state,
        message=cause_in(message),
        action=note.action,
        attempt=note.attempt,
        trigger=note.trigger,
        started_at=started_at,
        is_deleting=metadata.is_deleting,
        is_suspended=objects.mapping_in(stored, "spec").get("suspend") is True,
        queue=note.queue,
    )


def known_state(
    text: str, names: Mapping[str, objects.ApplicationState], message: str
) -> tuple[objects.ApplicationState, str]:
    """State and message from a submitter's state; unknown states become UNKNOWN with a message."""
    state = names.get(text)
    if state is not None:
        return state, message
    unknown = f"its submitter reports an unknown state: {text}"
    return objects.ApplicationState.UNKNOWN, f"{unknown}; {message}" if message else unknown


def checked_settings(request: manifests.RunRequest) -> SparkSettings:
    """The complete settings of a run.

    The operator's settings are trusted; those of the resource are checked again here, whether they
    were validated or not.

    Raises:
        SparkSettingsRefused: they reach beyond the run's own pods, or contradict each other.
    """
    spark, allow = request.spark, request.settings.allow
    own = request.owner.spec.run.spark
    refused = (*refusals(own, allow), *_shown_elsewhere(own, spark, allow))
    if refused:
        shown = [f"{one.found} ({one.reason})" for one in refused[:_SHOWN]]
        raise SparkSettingsRefused(
            "Spark settings that a resource may not have",
            resource=request.owner.identity,
            path=refused[0].path,
            found="; ".join(shown),
            hint=hint_of(refused[0]),
        )
    if is_accelerated(spark) and not (spark.spark_version or "").startswith(f"{COMET_SPARK}."):
        raise SparkSettingsRefused(
            "the accelerator COMET is built for another Spark",
            resource=request.owner.identity,
            path="spec.run.spark.accelerator",
            found=f"sparkVersion {spark.spark_version}, of the image {spark.image}",
            expected=f"Spark {COMET_SPARK}",
            hint="leave `image` and `sparkVersion` out, for the operator's image with Comet; or "
            f"give an image with Comet and Spark {COMET_SPARK}, and its `sparkVersion`; or set "
            "`accelerator` to NONE",
        )
    allocation = spark.dynamic_allocation
    if allocation is not None and (allocation.min_executors or 0) > (
        allocation.max_executors or allocation.min_executors or 0
    ):
        raise SparkSettingsRefused(
            "minExecutors is greater than maxExecutors, after merging the operator's settings",
            resource=request.owner.identity,
            path="spec.run.spark.dynamicAllocation",
            found=f"{allocation.min_executors} and {allocation.max_executors}",
            hint="give minExecutors and maxExecutors both",
        )
    return spark


def _shown_elsewhere(
    own: SparkSettings | None, merged: SparkSettings, allow: Allowances
) -> Iterator[Refusal]:
    """Volumes of a resource that the operator's mounts would mount at forbidden paths.

    A volume of the resource replaces the operator's volume of the same name.
    """
    if own is None or own.pod_template is None or merged.pod_template is None:
        return
    names = {volume.name for volume in own.pod_template.volumes}
    theirs = set(merged.pod_template.volume_mounts) - set(own.pod_template.volume_mounts)
    mounts = tuple(mount for mount in theirs if mount.name in names)
    yield from template_refusals(PodTemplate(volume_mounts=mounts), allow)


_STATES: Mapping[str, objects.ApplicationState] = {
    state.value: state for state in objects.ApplicationState
}


@dataclass(frozen=True)
class LocalForm:
    """Builds and parses the ConfigMaps of local runs."""

    submitter: Submitter = Submitter.LOCAL
    resource: port.ApiResource = port.CONFIG_MAPS

    def manifest(self, request: manifests.RunRequest) -> objects.JsonObject:
        data: JsonValue = {
            local.BUNDLE: request.bundle,
            local.REPORT: manifests.report_name(request.run.name),
            local.STATE: objects.ApplicationState.NEW.value,
        }
        return application_object(self.resource, request, {"data": data}, local.ROLE)

    def read(self, stored: objects.JsonObject) -> objects.Application | None:
        if objects.Metadata.of(stored).labels.get(objects.LABEL_ROLE) != local.ROLE:
            return None
        data = objects.mapping_in(stored, "data")
        state, message = known_state(
            objects.text_in(data, local.STATE), _STATES, objects.text_in(data, local.MESSAGE)
        )
        return read_application(stored, self.submitter, state, message)


@dataclass(frozen=True)
class SparkOperatorForm:
    """Builds and parses its applications."""

    submitter: Submitter = Submitter.SPARK_OPERATOR
    resource: port.ApiResource = port.SPARK_APPLICATIONS

    def manifest(self, request: manifests.RunRequest) -> objects.JsonObject:
        spark = checked_settings(request)
        spec = _spec(request, spark, sizes(spark))
        made = application_object(self.resource, request, {"spec": spec})
        return queued(made, request.settings.queue_scheduler, request.owner.spec.run.queue)

    def read(self, stored: objects.JsonObject) -> objects.Application | None:
        reported = objects.mapping_in(objects.mapping_in(stored, "status"), "applicationState")
        state, message = known_state(
            objects.text_in(reported, "state"), _STATES, objects.text_in(reported, "errorMessage")
        )
        return read_application(stored, self.submitter, state, message)


def _spec(
    request: manifests.RunRequest, spark: SparkSettings, sized: Sizes
) -> dict[str, JsonValue]:
    spec: dict[str, JsonValue] = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": spark.spark_version,
        "image": spark.image,
        "imagePullPolicy": spark.image_pull_policy or "IfNotPresent",
        "mainApplicationFile": JOB_FILE,
        "arguments": [*manifests.job_arguments(request, BUNDLE_FOLDER)],
        "deps": {},
        # Retries are decided by the operator, as applications of other names.
        "restartPolicy": {"type": "Never"},
        "driver": {
            "cores": sized.driver_cores,
            "memory": sized.driver_memory,
            **({"memoryOverhead": sized.driver_overhead} if sized.driver_overhead else {}),
            "serviceAccount": spark.service_account_name,
            "template": manifests.driver_template(request),
            **({"kubernetesMaster": sized.local_master} if sized.local_master else {}),
        },
        "executor": {
            "cores": sized.executor_cores,
            "memory": sized.executor_memory,
            # The schema requires at least one; in local mode it is not requested.
            **({"instances": max(1, sized.executors)} if sized.allocation is None else {}),
            "template": manifests.executor_template(request),
        },
    }
    if spark.image_pull_secrets:
        spec["imagePullSecrets"] = [*spark.image_pull_secrets]
    spec["sparkConf"] = {**manifests.PROTECTION, **sized.accelerated, **spark.spark_conf}
    if sized.allocation is not None:
        spec["dynamicAllocation"] = {**sized.allocation.dump(), "shuffleTrackingEnabled": True}
    return spec


_PYTHON = "org.apache.spark.deploy.PythonRunner"
_PATIENCE_MILLIS = 366 * 24 * 3_600_000
"""Longer than any run may take (`activeDeadlineSeconds` is at most a year)."""
_TIMEOUTS = (
    "driverStartTimeoutMillis",
    "driverReadyTimeoutMillis",
    "executorStartTimeoutMillis",
)
SUCCEEDED = "Succeeded"
_ENDED = ("ResourceReleased", "TerminatedWithoutReleaseResources")
"""States that mean that it has ended, but not how."""
_APACHE_STATES: Mapping[str, objects.ApplicationState] = {
    "": objects.ApplicationState.NEW,
    "Submitted": objects.ApplicationState.SUBMITTED,
    "ScheduledToRestart": objects.ApplicationState.PENDING_RERUN,
    "DriverRequested": objects.ApplicationState.SUBMITTED,
    "DriverStarted": objects.ApplicationState.RUNNING,
    "DriverReady": objects.ApplicationState.RUNNING,
    "InitializedBelowThresholdExecutors": objects.ApplicationState.RUNNING,
    "RunningHealthy": objects.ApplicationState.RUNNING,
    "RunningWithPartialCapacity": objects.ApplicationState.RUNNING,
    "RunningWithBelowThresholdExecutors": objects.ApplicationState.RUNNING,
    "DriverStartTimedOut": objects.ApplicationState.FAILING,
    "DriverReadyTimedOut": objects.ApplicationState.FAILING,
    "ExecutorsStartTimedOut": objects.ApplicationState.FAILING,
    "SchedulingFailure": objects.ApplicationState.FAILING,
    "DriverEvicted": objects.ApplicationState.FAILING,
    "Failed": objects.ApplicationState.FAILING,
    SUCCEEDED: objects.ApplicationState.SUCCEEDING,
}


@dataclass(frozen=True)
class ApacheSparkForm:
    """Builds and parses its applications."""

    submitter: Submitter = Submitter.APACHE_SPARK
    resource: port.ApiResource = port.APACHE_SPARK_APPLICATIONS

    def manifest(self, request: manifests.RunRequest) -> objects.JsonObject:
        spark = checked_settings(request)
        spec: JsonValue = {
            "runtimeVersions": {"sparkVersion": spark.spark_version},
            "mainClass": _PYTHON,
            "pyFiles": JOB_FILE,
            "driverArgs": [*manifests.job_arguments(request, BUNDLE_FOLDER)],
            "sparkConf": {**_configuration(request, spark, sizes(spark))},
            "driverSpec": {"podTemplateSpec": manifests.driver_template(request)},
            "executorSpec": {"podTemplateSpec": manifests.executor_template(request)},
            "applicationTolerations": {
                "restartConfig": {"restartPolicy": "Never"},
                "resourceRetainPolicy": "Always",
                "applicationTimeoutConfig": dict.fromkeys(_TIMEOUTS, _PATIENCE_MILLIS),
            },
        }
        return application_object(self.resource, request, {"spec": spec})

    def read(self, stored: objects.JsonObject) -> objects.Application | None:
        status = objects.mapping_in(stored, "status")
        current = objects.mapping_in(status, "currentState")
        word, message = (
            objects.text_in(current, "currentStateSummary"),
            objects.text_in(current, "message"),
        )
        if word in _ENDED:
            state, message = _ending(status, message)
        else:
            state, message = known_state(word, _APACHE_STATES, message)
        return read_application(stored, self.submitter, state, message)


def _configuration(
    request: manifests.RunRequest, spark: SparkSettings, sized: Sizes
) -> dict[str, str]:
    own = {
        "spark.app.name": request.run.name,
        "spark.driver.cores": str(sized.driver_cores),
        "spark.driver.memory": sized.driver_memory,
        "spark.driver.memoryOverhead": sized.driver_overhead,
        "spark.executor.cores": str(sized.executor_cores),
        "spark.executor.memory": sized.executor_memory,
        "spark.kubernetes.authenticate.driver.serviceAccountName": spark.service_account_name or "",
        "spark.kubernetes.container.image": spark.image or "",
        "spark.kubernetes.container.image.pullPolicy": spark.image_pull_policy or "IfNotPresent",
        "spark.kubernetes.container.image.pullSecrets": ",".join(spark.image_pull_secrets),
        "spark.kubernetes.driver.master": sized.local_master,
        "spark.kubernetes.driver.pod.name": f"{request.run.name}-driver",
        **_executors(sized),
    }
    given = {key: value for key, value in own.items() if value}
    return {**manifests.PROTECTION, **sized.accelerated, **spark.spark_conf, **given}


def _executors(sized: Sizes) -> dict[str, str]:
    allocation = sized.allocation
    if allocation is None:
        return {"spark.executor.instances": str(sized.executors)} if sized.executors else {}
    numbers = {
        "initialExecutors": allocation.initial_executors,
        "minExecutors": allocation.min_executors,
        "maxExecutors": allocation.max_executors,
    }
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        **{
            f"spark.dynamicAllocation.{name}": str(number)
            for name, number in numbers.items()
            if number is not None
        },
    }


def _ending(status: objects.JsonObject, message: str) -> tuple[objects.ApplicationState, str]:
    history = objects.mapping_in(status, "stateTransitionHistory")
    states = [history[key] for key in sorted(history, key=objects.number_of)]
    before = [state for state in states if _word(state) not in ("", *_ENDED)]
    word = _word(before[-1]) if before else ""
    if word == SUCCEEDED:
        return objects.ApplicationState.COMPLETED, message
    if not word:
        return objects.ApplicationState.FAILED, message or "it ended without a reason"
    cause = objects.text_in(before[-1], "message") if isinstance(before[-1], Mapping) else ""
    return objects.ApplicationState.FAILED, joined(word, cause or message)


def _word(state: JsonValue) -> str:
    return objects.text_in(state, "currentStateSummary") if isinstance(state, Mapping) else ""


FORMS: Mapping[Submitter, ApplicationForm] = {
    form.submitter: form for form in (SparkOperatorForm(), ApacheSparkForm(), LocalForm())
}


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
    accelerated: Mapping[str, str]
    """Settings of the accelerator, whose native memory Spark adds to the pods of executors."""

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
    executor_memory = executor.memory or _MEMORY_DEFAULT
    is_local = count == 0 and not is_dynamic
    # Spark adds native memory to the pods of executors, and not to that of a driver with tasks.
    native = off_heap_mebibytes(driver_memory) if is_local and is_accelerated(spark) else 0
    return Sizes(
        driver_cores=driver.cores or _CORES,
        driver_memory=spark_memory(driver_memory),
        driver_overhead=_driver_overhead(driver_memory, spark.spark_conf, native),
        executor_cores=executor.cores or _CORES,
        executor_memory=spark_memory(executor_memory),
        executors=count,
        allocation=_started(allocation, count) if allocation and is_dynamic else None,
        accelerated=accelerated_settings(spark, driver_memory if is_local else executor_memory),
    )


def _driver_overhead(memory: str, spark_conf: Mapping[str, str], native: int) -> str:
    usual = memory_mebibytes(memory) * _OVERHEAD_FACTOR
    if any(key in spark_conf for key in _OVERHEAD_SETTINGS):
        return ""
    if usual >= _DRIVER_OVERHEAD and not native:
        return ""
    return f"{round(max(usual, _DRIVER_OVERHEAD)) + native}m"


def _started(allocation: DynamicAllocation, count: int) -> DynamicAllocation:
    if allocation.initial_executors is not None:
        return allocation
    within = max(count, allocation.min_executors or 0)
    if allocation.max_executors is not None:
        within = min(within, allocation.max_executors)
    return allocation.model_copy(update={"initial_executors": within})
