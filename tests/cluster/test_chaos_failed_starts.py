"""Runs that cannot start: the resource names what is missing, and continues when it exists."""

from __future__ import annotations

import json

import pytest
from support.cluster.chaosnamespace import RUN, ChaosNamespace
from support.cluster.clusterkubectl import KubectlFailed
from support.declared.shop import FIRST_DAY, SECOND_DAY

pytestmark = [pytest.mark.chaos, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]

NO_IMAGE = "registry.invalid/nobody/nothing:1"


def spark(**changes: object) -> dict[str, object]:
    """The settings of Spark, with some changed."""
    return RUN["spark"] | changes


def test_image_that_is_missing_is_named_and_another_one_runs(chaos: ChaosNamespace) -> None:
    chaos.declare(spark=spark(image=NO_IMAGE), startTimeoutSeconds=20, retry={"limit": 0})
    chaos.until_message("ImagePull", NO_IMAGE)
    chaos.until("the time-out", lambda: "currentRun" not in chaos.status())
    message = chaos.note()
    assert chaos.status()["lastRun"]["reason"] == "StartTimeout"
    assert NO_IMAGE in message
    chaos.apply(chaos.output())
    chaos.until_published(FIRST_DAY)


def test_exceeded_quota_is_reported_and_the_run_retried(chaos: ChaosNamespace) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    chaos.apply(quota | {"spec": {"hard": {"pods": "0"}}})
    chaos.until("the quota", lambda: "used" in chaos.status("resourcequota/none"))
    chaos.declare()
    chaos.until_message("exceeded quota: none")
    chaos.kubectl("delete", "resourcequota", "none")
    chaos.until_published(FIRST_DAY)


def test_secret_that_is_missing_is_named_and_the_run_goes_on_when_it_is_there(
    chaos: ChaosNamespace,
) -> None:
    template = RUN["spark"]["podTemplate"] | {"envFrom": [{"secretRef": {"name": "keys"}}]}
    chaos.declare(spark=spark(podTemplate=template))
    chaos.until_message('secret "keys" not found')
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    chaos.apply(secret | {"stringData": {"TOKEN": "anything"}})
    chaos.until_published(FIRST_DAY)
    assert chaos.status()["lastRun"]["attempt"] == 0


def test_config_map_of_a_run_cannot_be_edited_and_an_edited_report_is_ignored(
    chaos: ChaosNamespace,
) -> None:
    chaos.declare()
    chaos.until_running()
    run = chaos.status()["currentRun"]["id"]
    with pytest.raises(KubectlFailed, match="immutable") as refused:
        edit(chaos, "bundle", run, "bundle.json")
    chaos.messages.append(refused.value.stderr.strip())
    chaos.until_published(FIRST_DAY)
    edit(chaos, "report", run, "report.json")
    chaos.run_again()
    chaos.until_published(FIRST_DAY, SECOND_DAY)


def edit(chaos: ChaosNamespace, role: str, run: str, key: str) -> None:
    """Change a ConfigMap of a run by hand."""
    which = f"--selector=snaploom.io/role={role},snaploom.io/run={run}"
    (name,) = chaos.kubectl("get", "configmaps", which, "--output", "name").split()
    lie = json.dumps({"data": {key: json.dumps({"phase": "Failed", "published": 99})}})
    chaos.kubectl("patch", name, "--type=merge", "--patch", lie)
