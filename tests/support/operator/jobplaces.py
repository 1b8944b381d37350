"""Where an application is in a cluster, and how each submitter's controller writes its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objects import ApplicationState
from snaploom_operator.submit import local
from snaploom_operator.submit.applications import ApplicationForm

Raw = dict[str, Any]
S = ApplicationState
MOMENT = "2024-05-01T00:00:00Z"
APACHE_WORDS: Mapping[ApplicationState, str] = {
    S.SUBMITTED: "DriverRequested",
    S.RUNNING: "RunningHealthy",
    S.COMPLETED: "ResourceReleased",
    S.FAILED: "ResourceReleased",
    S.SUBMISSION_FAILED: "SchedulingFailure",
    S.PENDING_RERUN: "ScheduledToRestart",
    S.SUCCEEDING: "Succeeded",
    S.FAILING: "Failed",
}
"""States of Apache's operator; it has none for the others, and keeps the last one then."""


@dataclass(frozen=True)
class Place:
    """One application."""

    resource: ApiResource
    submitter: Submitter
    namespace: str
    name: str
    labels: Raw
    owner_kind: str
    owner_name: str
    reference: Raw
    """Owner reference to the application."""

    @property
    def pod_name(self) -> str:
        """Name of its driver's pod."""
        return f"{self.name}-driver"

    @property
    def subresource(self) -> str:
        """Where its state is written."""
        return "" if self.submitter is Submitter.LOCAL else "status"

    def state_patch(self, stored: Raw, state: ApplicationState, message: str) -> Raw:
        """What its controller writes when it comes to a state."""
        return _PATCHES[self.submitter](stored, state, message)

    def pod(self) -> Raw:
        """Its driver's pod, as Spark creates it."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.pod_name,
                "namespace": self.namespace,
                "labels": {**self.labels, "spark-role": "driver"},
                "ownerReferences": [self.reference],
            },
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "spark-kubernetes-driver", "image": "spark"}],
            },
        }


def place_of(form: ApplicationForm, stored: Raw) -> Place:
    """Where a stored application is."""
    metadata = stored["metadata"]
    owner = metadata["ownerReferences"][0]
    return Place(
        resource=form.resource,
        submitter=form.submitter,
        namespace=metadata["namespace"],
        name=metadata["name"],
        labels=dict(metadata["labels"]),
        owner_kind=owner["kind"],
        owner_name=owner["name"],
        reference={
            "apiVersion": form.resource.api_version,
            "kind": form.resource.kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        },
    )


def _spark_operator(stored: Raw, state: ApplicationState, message: str) -> Raw:
    written = {"state": state.value, "errorMessage": message or None}
    status: Raw = {"applicationState": written, "driverInfo": {}}
    if state not in (S.NEW, S.SUBMISSION_FAILED):
        status["driverInfo"] = {"podName": f"{stored['metadata']['name']}-driver"}
        status["executionAttempts"] = 1
        status["lastSubmissionAttemptTime"] = MOMENT
    if state.is_terminal:
        status["terminationTime"] = MOMENT
    return {"status": status}


def _apache(stored: Raw, state: ApplicationState, message: str) -> Raw:
    status = stored.get("status", {})
    history = dict(status.get("stateTransitionHistory", {}))
    kept = status.get("currentState", {}).get("currentStateSummary", "Submitted")
    entry = {
        "currentStateSummary": APACHE_WORDS.get(state, kept),
        "lastTransitionTime": MOMENT,
        "message": message,
    }
    if state is S.FAILED and not any(_is_failure(one) for one in history.values()):
        history[str(len(history))] = {**entry, "currentStateSummary": "Failed"}
    history[str(len(history))] = entry
    return {"status": {"currentState": entry, "stateTransitionHistory": history}}


def _is_failure(entry: Raw) -> bool:
    return entry["currentStateSummary"] in ("Failed", "SchedulingFailure")


def _local(stored: Raw, state: ApplicationState, message: str) -> Raw:
    data: Raw = {local.STATE: state.value, local.MESSAGE: message}
    if state is S.RUNNING:
        data[local.STARTED_AT] = MOMENT
    if state.is_terminal:
        data[local.FINISHED_AT] = MOMENT
    return {"data": data}


_PATCHES: Mapping[Submitter, Callable[[Raw, ApplicationState, str], Raw]] = {
    Submitter.SPARK_OPERATOR: _spark_operator,
    Submitter.APACHE_SPARK: _apache,
    Submitter.LOCAL: _local,
}
