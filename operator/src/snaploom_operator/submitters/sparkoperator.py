"""The Kubeflow Spark operator: `sparkoperator.k8s.io/v1beta2` (rule R9).

The manifest has every field that its webhooks would add, so that they change nothing, and it runs
the same if they are disabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.models.run import SparkSettings, Submitter
from snaploom.planning.podsettings import BUNDLE_FOLDER
from snaploom_operator.cluster.apiresources import SPARK_APPLICATIONS
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objectmetadata import mapping_in, text_in
from snaploom_operator.objects import Application, ApplicationState, JsonObject
from snaploom_operator.submitters.applications import (
    application_object,
    checked_settings,
    known_state,
    read_application,
)
from snaploom_operator.submitters.arguments import JOB_FILE, job_arguments
from snaploom_operator.submitters.base import RunRequest
from snaploom_operator.submitters.pods import driver_template, executor_template
from snaploom_operator.submitters.protection import PROTECTION
from snaploom_operator.submitters.sparksizes import Sizes, sizes

_STATES: Mapping[str, ApplicationState] = {state.value: state for state in ApplicationState}


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
            text_in(reported, "state"), _STATES, text_in(reported, "errorMessage")
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
