"""Pods that die under a run: it is tried again, or Spark replaces them, and rows are there once."""

from __future__ import annotations

import pytest
from support.cluster.chaosnamespace import OUTPUT, RUN, ChaosNamespace
from support.cluster.clusternode import NODE
from support.declared.shop import FIRST_DAY, SECOND_DAY

pytestmark = [pytest.mark.chaos, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]


def test_killed_driver_is_reported_and_the_run_retried(chaos: ChaosNamespace) -> None:
    chaos.declare()
    chaos.kill(chaos.until_running())
    chaos.until("an event of the failure", lambda: bool(chaos.events("RunFailed")))
    chaos.note()
    chaos.until_published(FIRST_DAY)
    last = chaos.status()["lastRun"]
    assert (last["phase"], last["published"], last["attempt"]) == ("Succeeded", 1, 1)


def test_killed_executor_is_replaced_and_the_run_ends_well(chaos: ChaosNamespace) -> None:
    spark = RUN["spark"] | {"executor": {"instances": 1}}
    chaos.declare(spark=spark)
    chaos.kill(chaos.until_running("executor"))
    chaos.until_published(FIRST_DAY)
    last = chaos.status()["lastRun"]
    assert (last["phase"], last["attempt"]) == ("Succeeded", 0)
    (run,) = chaos.applications()
    assert len(run["status"]["executorState"]) == 2


def test_drained_node_stops_everything_and_all_goes_on_when_it_is_back(
    chaos: ChaosNamespace,
) -> None:
    chaos.declare()
    chaos.until_running()
    drained = ("drain", NODE, "--force", "--ignore-daemonsets", "--delete-emptydir-data")
    try:
        chaos.cluster_wide(*drained, "--timeout=120s")
        assert chaos.pods("driver") == []
    finally:
        chaos.cluster_wide("uncordon", NODE)
    chaos.own.whole.await_operator()
    chaos.until_published(FIRST_DAY)
    chaos.messages += chaos.events("RunFailed")
    chaos.run_again()
    chaos.until_published(FIRST_DAY, SECOND_DAY)


def test_application_deleted_by_hand_is_a_lost_run_that_is_done_again(
    chaos: ChaosNamespace,
) -> None:
    chaos.declare()
    chaos.until_running()
    chaos.kubectl("delete", "sparkapplications", "--all")
    chaos.until("an event of the loss", lambda: bool(chaos.events("RunLost")))
    chaos.messages += chaos.events("RunLost")
    chaos.until_published(FIRST_DAY)
    assert chaos.status()["lastRun"]["attempt"] == 1
    assert chaos.kubectl("get", OUTPUT, "--no-headers").split()[1:3] == ["True", "Published"]
