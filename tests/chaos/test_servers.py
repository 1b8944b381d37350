"""Servers that die: our operator, Spark's, and the API server. Each run is one application."""

from __future__ import annotations

import json

import pytest
from support.chaosroom import OUTPUT, Room
from support.chart import NAMESPACE
from support.clusterkubectl import KubectlFailed
from support.shop import FIRST_DAY, SECOND_DAY

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]

BEFORE_STATUS = {
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": ["snaploom.io"],
                "apiVersions": ["*"],
                "operations": ["UPDATE"],
                "resources": ["outputdatasets/status"],
            }
        ]
    },
    "validations": [
        {
            "expression": "!has(object.status.currentRun) || "
            "object.status.currentRun.phase in ['Queued', 'Submitting']"
        }
    ],
}
"""Refuses each status that shows a submitted run."""
_DAY = "2024-01-01T00:00:00Z"
SUBMITTED = {
    "currentRun": {"name": "x", "id": "x", "phase": "Submitted", "since": _DAY, "startedAt": _DAY}
}


def forbid_status(room: Room) -> None:
    """Keep the operator from writing down what it submitted, of an output that is there."""
    name = {"metadata": {"name": room.namespace}}
    api = {"apiVersion": "admissionregistration.k8s.io/v1"}
    here = {"matchLabels": {"kubernetes.io/metadata.name": room.namespace}}
    binding = {
        "policyName": room.namespace,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    room.cluster_wide.apply(
        api | name | {"kind": "ValidatingAdmissionPolicy", "spec": BEFORE_STATUS},
        api | name | {"kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )
    # The API server learns of its policies from a watch.
    room.until("the policy in force", lambda: is_forbidden(room))


def is_forbidden(room: Room) -> bool:
    """Whether a status that shows a submission is refused."""
    status = ("--subresource=status", "--type=merge", "--patch", json.dumps({"status": SUBMITTED}))
    try:
        room.kubectl("patch", OUTPUT, *status, "--dry-run=server")
    except KubectlFailed as refused:
        return "ValidatingAdmissionPolicy" in refused.stderr
    return False


def allow_status(room: Room) -> None:
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    room.cluster_wide("delete", kinds, room.namespace)


def test_operator_killed_between_submit_and_status_submits_once(room: Room) -> None:
    room.declare(suspend=True)
    forbid_status(room)
    room.declare()
    room.until("an application", lambda: bool(room.applications()))
    assert room.status()["currentRun"]["phase"] == "Submitting"
    operator = ("delete", "pod", "--selector=app.kubernetes.io/component=operator")
    room.cluster_wide(*operator, "--namespace", NAMESPACE, "--grace-period=0", "--force")
    allow_status(room)
    room.until_published(FIRST_DAY)
    assert len(room.applications()) == 1
    assert room.status()["lastRun"]["attempt"] == 0


def test_spark_operator_that_is_away_is_waited_for(room: Room) -> None:
    spark_operator = room.own.spark_operator
    spark_operator.kill()
    room.declare()
    room.until_said("to pick up its application")
    spark_operator.start()
    room.until_running()
    spark_operator.kill()
    room.until("the end of the driver", lambda: not room.pods("driver"))
    spark_operator.start()
    room.until_published(FIRST_DAY)
    assert len(room.applications()) == 1


def test_api_server_that_is_killed_under_a_run_costs_nothing_but_time(room: Room) -> None:
    room.declare()
    room.until_running()
    room.own.plane.apiserver.kill()
    room.own.plane.apiserver.start()
    room.own.plane.await_ready()
    room.until_published(FIRST_DAY)
    room.run_again()
    room.until_published(FIRST_DAY, SECOND_DAY)
