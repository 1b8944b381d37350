"""Servers that die: our operator, Spark's, and the API server. Each run is one application."""

from __future__ import annotations

import json

import pytest
from support.cluster.chaosnamespace import OUTPUT, ChaosNamespace
from support.cluster.chart import NAMESPACE
from support.cluster.clusterkubectl import KubectlFailed
from support.declared.shop import FIRST_DAY, SECOND_DAY

pytestmark = [pytest.mark.chaos, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]

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


def forbid_status(chaos: ChaosNamespace) -> None:
    """Keep the operator from writing down what it submitted, of an output that is there."""
    name = {"metadata": {"name": chaos.namespace}}
    api = {"apiVersion": "admissionregistration.k8s.io/v1"}
    here = {"matchLabels": {"kubernetes.io/metadata.name": chaos.namespace}}
    binding = {
        "policyName": chaos.namespace,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    chaos.cluster_wide.apply(
        api | name | {"kind": "ValidatingAdmissionPolicy", "spec": BEFORE_STATUS},
        api | name | {"kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )
    # The API server learns of its policies from a watch.
    chaos.until("the policy in force", lambda: is_forbidden(chaos))


def is_forbidden(chaos: ChaosNamespace) -> bool:
    """Whether a status that shows a submission is refused."""
    status = ("--subresource=status", "--type=merge", "--patch", json.dumps({"status": SUBMITTED}))
    try:
        chaos.kubectl("patch", OUTPUT, *status, "--dry-run=server")
    except KubectlFailed as refused:
        return "ValidatingAdmissionPolicy" in refused.stderr
    return False


def allow_status(chaos: ChaosNamespace) -> None:
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    chaos.cluster_wide("delete", kinds, chaos.namespace)


def test_operator_killed_between_submit_and_status_submits_once(chaos: ChaosNamespace) -> None:
    chaos.declare(suspend=True)
    forbid_status(chaos)
    chaos.declare()
    chaos.until("an application", lambda: bool(chaos.applications()))
    assert chaos.status()["currentRun"]["phase"] == "Submitting"
    operator = ("delete", "pod", "--selector=app.kubernetes.io/component=operator")
    chaos.cluster_wide(*operator, "--namespace", NAMESPACE, "--grace-period=0", "--force")
    allow_status(chaos)
    chaos.until_published(FIRST_DAY)
    assert len(chaos.applications()) == 1
    assert chaos.status()["lastRun"]["attempt"] == 0


def test_spark_operator_that_is_away_is_waited_for(chaos: ChaosNamespace) -> None:
    spark_operator = chaos.own.spark_operator
    spark_operator.kill()
    chaos.declare()
    chaos.until_message("to pick up its application")
    spark_operator.start()
    chaos.until_running()
    spark_operator.kill()
    chaos.until("the end of the driver", lambda: not chaos.pods("driver"))
    spark_operator.start()
    chaos.until_published(FIRST_DAY)
    assert len(chaos.applications()) == 1


def test_api_server_that_is_killed_under_a_run_costs_nothing_but_time(
    chaos: ChaosNamespace,
) -> None:
    chaos.declare()
    chaos.until_running()
    chaos.own.plane.apiserver.kill()
    chaos.own.plane.apiserver.start()
    chaos.own.plane.await_ready()
    chaos.until_published(FIRST_DAY)
    chaos.run_again()
    chaos.until_published(FIRST_DAY, SECOND_DAY)
