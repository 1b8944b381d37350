"""All submitters, by name: the Kubeflow Spark operator, Apache's, and the operator itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.run import SparkSettings, Submitter
from snaploom.planning.podsettings import BUNDLE_FOLDER
from snaploom_operator.cluster.port import (
    APACHE_SPARK_APPLICATIONS,
    SPARK_APPLICATIONS,
    ApiResource,
)
from snaploom_operator.conditions import joined
from snaploom_operator.objects import (
    Application,
    ApplicationState,
    JsonObject,
    mapping_in,
    number_of,
    text_in,
)
from snaploom_operator.submit.applications import (
    JOB_FILE,
    ApplicationForm,
    RunRequest,
    application_object,
    checked_settings,
    job_arguments,
    known_state,
    read_application,
)
from snaploom_operator.submit.local import LocalForm
from snaploom_operator.submit.pods import (
    PROTECTION,
    Sizes,
    driver_template,
    executor_template,
    sizes,
)

# The Kubeflow Spark operator: `sparkoperator.k8s.io/v1beta2` (rule R9).

_SPARK_OPERATOR_STATES: Mapping[str, ApplicationState] = {
    state.value: state for state in ApplicationState
}


@dataclass(frozen=True)
class SparkOperatorForm:
    """Builds and parses its applications."""

    submitter: Submitter = Submitter.SPARK_OPERATOR
    resource: ApiResource = SPARK_APPLICATIONS

    def manifest(self, request: RunRequest) -> JsonObject:
        """The SparkApplication of a run.

        Raises:
            SparkSettingsRefused: the resource's settings reach beyond its own pods.
        """
        spark = checked_settings(request)
        spec = _spec(request, spark, sizes(spark))
        return application_object(self.resource, request, {"spec": spec})

    def read(self, stored: JsonObject) -> Application | None:
        """The run of a SparkApplication; None if it is not ours."""
        reported = mapping_in(mapping_in(stored, "status"), "applicationState")
        state, message = known_state(
            text_in(reported, "state"), _SPARK_OPERATOR_STATES, text_in(reported, "errorMessage")
        )
        return read_application(stored, self.submitter, state, message)


def _spec(request: RunRequest, spark: SparkSettings, sized: Sizes) -> dict[str, JsonValue]:
    spec: dict[str, JsonValue] = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": spark.spark_version,
        "image": spark.image,
        "imagePullPolicy": spark.image_pull_policy or "IfNotPresent",
        "mainApplicationFile": JOB_FILE,
        "arguments": [*job_arguments(request, BUNDLE_FOLDER)],
        "deps": {},
        # Retries are decided by the operator, as applications of other names.
        "restartPolicy": {"type": "Never"},
        "driver": {
            "cores": sized.driver_cores,
            "memory": sized.driver_memory,
            **({"memoryOverhead": sized.driver_overhead} if sized.driver_overhead else {}),
            "serviceAccount": spark.service_account_name,
            "template": driver_template(request),
            **({"kubernetesMaster": sized.local_master} if sized.local_master else {}),
        },
        "executor": {
            "cores": sized.executor_cores,
            "memory": sized.executor_memory,
            # The schema requires at least one; in local mode it is not requested.
            **({"instances": max(1, sized.executors)} if sized.allocation is None else {}),
            "template": executor_template(request),
        },
    }
    if spark.image_pull_secrets:
        spec["imagePullSecrets"] = [*spark.image_pull_secrets]
    spec["sparkConf"] = {**PROTECTION, **spark.spark_conf}
    if sized.allocation is not None:
        spec["dynamicAllocation"] = {**sized.allocation.dump(), "shuffleTrackingEnabled": True}
    return spec


# The Apache Spark Kubernetes operator: `spark.apache.org/v1`.

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
_APACHE_STATES: Mapping[str, ApplicationState] = {
    "": ApplicationState.NEW,
    "Submitted": ApplicationState.SUBMITTED,
    "ScheduledToRestart": ApplicationState.PENDING_RERUN,
    "DriverRequested": ApplicationState.SUBMITTED,
    "DriverStarted": ApplicationState.RUNNING,
    "DriverReady": ApplicationState.RUNNING,
    "InitializedBelowThresholdExecutors": ApplicationState.RUNNING,
    "RunningHealthy": ApplicationState.RUNNING,
    "RunningWithPartialCapacity": ApplicationState.RUNNING,
    "RunningWithBelowThresholdExecutors": ApplicationState.RUNNING,
    "DriverStartTimedOut": ApplicationState.FAILING,
    "DriverReadyTimedOut": ApplicationState.FAILING,
    "ExecutorsStartTimedOut": ApplicationState.FAILING,
    "SchedulingFailure": ApplicationState.FAILING,
    "DriverEvicted": ApplicationState.FAILING,
    "Failed": ApplicationState.FAILING,
    SUCCEEDED: ApplicationState.SUCCEEDING,
}


@dataclass(frozen=True)
class ApacheSparkForm:
    """Builds and parses its applications."""

    submitter: Submitter = Submitter.APACHE_SPARK
    resource: ApiResource = APACHE_SPARK_APPLICATIONS

    def manifest(self, request: RunRequest) -> JsonObject:
        """The SparkApplication of a run.

        Raises:
            SparkSettingsRefused: the resource's settings reach beyond its own pods.
        """
        spark = checked_settings(request)
        spec: JsonValue = {
            "runtimeVersions": {"sparkVersion": spark.spark_version},
            "mainClass": _PYTHON,
            "pyFiles": JOB_FILE,
            "driverArgs": [*job_arguments(request, BUNDLE_FOLDER)],
            "sparkConf": {**_configuration(request, spark, sizes(spark))},
            "driverSpec": {"podTemplateSpec": driver_template(request)},
            "executorSpec": {"podTemplateSpec": executor_template(request)},
            "applicationTolerations": {
                "restartConfig": {"restartPolicy": "Never"},
                "resourceRetainPolicy": "Always",
                "applicationTimeoutConfig": dict.fromkeys(_TIMEOUTS, _PATIENCE_MILLIS),
            },
        }
        return application_object(self.resource, request, {"spec": spec})

    def read(self, stored: JsonObject) -> Application | None:
        """The run of a SparkApplication; None if it is not ours."""
        status = mapping_in(stored, "status")
        current = mapping_in(status, "currentState")
        word, message = text_in(current, "currentStateSummary"), text_in(current, "message")
        if word in _ENDED:
            state, message = _ending(status, message)
        else:
            state, message = known_state(word, _APACHE_STATES, message)
        return read_application(stored, self.submitter, state, message)


def _configuration(request: RunRequest, spark: SparkSettings, sized: Sizes) -> dict[str, str]:
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
    return {**PROTECTION, **spark.spark_conf, **{key: value for key, value in own.items() if value}}


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


def _ending(status: JsonObject, message: str) -> tuple[ApplicationState, str]:
    history = mapping_in(status, "stateTransitionHistory")
    states = [history[key] for key in sorted(history, key=number_of)]
    before = [state for state in states if _word(state) not in ("", *_ENDED)]
    word = _word(before[-1]) if before else ""
    if word == SUCCEEDED:
        return ApplicationState.COMPLETED, message
    if not word:
        return ApplicationState.FAILED, message or "it ended without a reason"
    cause = text_in(before[-1], "message") if isinstance(before[-1], Mapping) else ""
    return ApplicationState.FAILED, joined(word, cause or message)


def _word(state: JsonValue) -> str:
    return text_in(state, "currentStateSummary") if isinstance(state, Mapping) else ""


# All submitters, by name.

FORMS: Mapping[Submitter, ApplicationForm] = {
    form.submitter: form for form in (SparkOperatorForm(), ApacheSparkForm(), LocalForm())
}
"""The application form of each submitter."""
