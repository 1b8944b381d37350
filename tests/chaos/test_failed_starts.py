"""Runs that cannot start: the resource names what is missing, and continues when it exists."""

from __future__ import annotations

import json

import pytest
from support.chaosroom import RUN, Room
from support.clusterkubectl import KubectlFailed
from support.shop import FIRST_DAY, SECOND_DAY

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]

NO_IMAGE = "registry.invalid/nobody/nothing:1"


def spark(**changes: object) -> dict[str, object]:
    """The settings of Spark, with some changed."""
    return RUN["spark"] | changes


def test_image_that_is_missing_is_named_and_another_one_runs(room: Room) -> None:
    room.declare(spark=spark(image=NO_IMAGE), startTimeoutSeconds=20, retry={"limit": 0})
    room.until_said("ImagePull", NO_IMAGE)
    room.until("the time-out", lambda: "currentRun" not in room.status())
    message = room.note()
    assert room.status()["lastRun"]["reason"] == "StartTimeout"
    assert NO_IMAGE in message
    room.apply(room.output())
    room.until_published(FIRST_DAY)


def test_exceeded_quota_is_reported_and_the_run_retried(room: Room) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    room.apply(quota | {"spec": {"hard": {"pods": "0"}}})
    room.until("the quota", lambda: "used" in room.status("resourcequota/none"))
    room.declare()
    room.until_said("exceeded quota: none")
    room.kubectl("delete", "resourcequota", "none")
    room.until_published(FIRST_DAY)


def test_secret_that_is_missing_is_named_and_the_run_goes_on_when_it_is_there(room: Room) -> None:
    template = RUN["spark"]["podTemplate"] | {"envFrom": [{"secretRef": {"name": "keys"}}]}
    room.declare(spark=spark(podTemplate=template))
    room.until_said('secret "keys" not found')
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    room.apply(secret | {"stringData": {"TOKEN": "anything"}})
    room.until_published(FIRST_DAY)
    assert room.status()["lastRun"]["attempt"] == 0


def test_config_map_of_a_run_cannot_be_edited_and_an_edited_report_is_not_believed(
    room: Room,
) -> None:
    room.declare()
    room.until_running()
    run = room.status()["currentRun"]["id"]
    with pytest.raises(KubectlFailed, match="immutable") as refused:
        edit(room, "bundle", run, "bundle.json")
    room.messages.append(refused.value.stderr.strip())
    room.until_published(FIRST_DAY)
    edit(room, "report", run, "report.json")
    room.run_again()
    room.until_published(FIRST_DAY, SECOND_DAY)


def edit(room: Room, role: str, run: str, key: str) -> None:
    """Change a ConfigMap of a run by hand."""
    which = f"--selector=snaploom.io/role={role},snaploom.io/run={run}"
    (name,) = room.kubectl("get", "configmaps", which, "--output", "name").split()
    lie = json.dumps({"data": {key: json.dumps({"phase": "Failed", "published": 99})}})
    room.kubectl("patch", name, "--type=merge", "--patch", lie)
