"""Pods that die under a run: it is tried again, or Spark replaces them, and rows are there once."""

from __future__ import annotations

import pytest
from support.chaosroom import OUTPUT, RUN, Room
from support.clusternode import NODE
from support.shop import FIRST_DAY, SECOND_DAY

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]


def test_killed_driver_is_reported_and_the_run_retried(room: Room) -> None:
    room.declare()
    room.kill(room.until_running())
    room.until("an event of the failure", lambda: bool(room.events("RunFailed")))
    room.note()
    room.until_published(FIRST_DAY)
    last = room.status()["lastRun"]
    assert (last["phase"], last["published"], last["attempt"]) == ("Succeeded", 1, 1)


def test_killed_executor_is_replaced_and_the_run_ends_well(room: Room) -> None:
    spark = RUN["spark"] | {"executor": {"instances": 1}}
    room.declare(spark=spark)
    room.kill(room.until_running("executor"))
    room.until_published(FIRST_DAY)
    last = room.status()["lastRun"]
    assert (last["phase"], last["attempt"]) == ("Succeeded", 0)
    (run,) = room.applications()
    assert len(run["status"]["executorState"]) == 2


def test_drained_node_stops_everything_and_all_goes_on_when_it_is_back(room: Room) -> None:
    room.declare()
    room.until_running()
    drained = ("drain", NODE, "--force", "--ignore-daemonsets", "--delete-emptydir-data")
    try:
        room.cluster_wide(*drained, "--timeout=120s")
        assert room.pods("driver") == []
    finally:
        room.cluster_wide("uncordon", NODE)
    room.own.whole.await_operator()
    room.until_published(FIRST_DAY)
    room.messages += room.events("RunFailed")
    room.run_again()
    room.until_published(FIRST_DAY, SECOND_DAY)


def test_application_deleted_by_hand_is_a_lost_run_that_is_done_again(room: Room) -> None:
    room.declare()
    room.until_running()
    room.kubectl("delete", "sparkapplications", "--all")
    room.until("an event of the loss", lambda: bool(room.events("RunLost")))
    room.messages += room.events("RunLost")
    room.until_published(FIRST_DAY)
    assert room.status()["lastRun"]["attempt"] == 1
    assert room.kubectl("get", OUTPUT, "--no-headers").split()[1:3] == ["True", "Published"]
