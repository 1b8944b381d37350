"""A local run that is deleted is there until its process has ended, which may still publish."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

import pytest
from support.declared.declarations import Raw, model, spoilt
from support.operator.clusters import until
from support.operator.localruns import LocalRuns, is_alive
from support.operator.operatorharness import FakeHarness

from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.objects import ApplicationState
from snaploom_operator.submit.local import FINALIZER

WIDE = "OutputDataset/wide"
DEAF = """
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(os.environ["PLAYED_LOG"], "a") as log:
    log.write(json.dumps({"pid": os.getpid()}) + "\\n")
time.sleep(600)
"""
"""A job that goes on until it is killed."""


async def test_a_deleted_run_is_there_until_its_process_has_ended(runs: LocalRuns) -> None:
    await runs.submit("run-1", "stays")
    async with runs.running():
        await runs.waiting()
        await runs.delete("run-1")
        application = await runs.application("run-1")
        assert (application.state, application.is_deleting) == (ApplicationState.RUNNING, True)
        await runs.removed("run-1")
        assert not any(is_alive(pid) for pid in runs.pids())


async def test_a_run_that_has_ended_or_has_not_started_has_no_finalizer(runs: LocalRuns) -> None:
    await runs.submit("run-1")
    assert "finalizers" not in (await runs.stored("run-1"))["metadata"]
    async with runs.running():
        await runs.ended("run-1")
    assert not (await runs.stored("run-1"))["metadata"].get("finalizers")


async def test_finalizers_of_others_stay(runs: LocalRuns) -> None:
    await runs.submit("run-1", "sleeps")
    await hold(runs, "example.com/theirs")
    async with runs.running():
        await runs.waiting()
        await runs.delete("run-1")
        await runs.all_gone()

        async def has_only_theirs() -> bool:
            return (await runs.stored("run-1"))["metadata"]["finalizers"] == ["example.com/theirs"]

        await until(has_only_theirs)


@pytest.mark.parametrize("host", [socket.gethostname(), "elsewhere"])
async def test_a_deleted_run_of_a_dead_operator_is_removed_by_its_machine(
    runs: LocalRuns, host: str
) -> None:
    await runs.submit("run-1")
    data: Raw = {"state": "RUNNING", "host": host, "process": "1 1", "operator": "1 1"}
    await runs.cluster.patch(CONFIG_MAPS, "default", "run-1", {"data": data})
    await hold(runs, FINALIZER)
    await runs.delete("run-1")
    await runs.submit("run-2")
    async with runs.running():
        await runs.ended("run-2")
        if host == socket.gethostname():
            await runs.removed("run-1")
    if host == "elsewhere":
        assert (await runs.application("run-1")).is_deleting


async def test_data_that_stays_is_reported_when_the_process_has_ended(runs: LocalRuns) -> None:
    harness = FakeHarness(is_local=True)
    await harness.start()
    *others, declared = model()
    wanted = {"deletionPolicy": "Delete", "submitter": "Local"}
    await harness.apply(*others, spoilt(declared, "spec.run", wanted))
    async with runs.running(cluster=harness.fake, program=(sys.executable, "-c", DEAF)):
        await until_settled(harness, lambda: bool(runs.played()))
        (pid,) = runs.pids()
        await harness.apply(spoilt(declared, "spec.run", {**wanted, "deletionPolicy": "Retain"}))
        await harness.delete(WIDE)
        await until_settled(harness, lambda: "DataLeft" in harness.notes.reasons(WIDE))
        assert not is_alive(pid)
    assert await harness.get(WIDE) == {}


async def until_settled(harness: FakeHarness, predicate: Callable[[], bool]) -> None:
    """Let the operator go on until something is so."""

    async def is_so() -> bool:
        await harness.settle()
        return predicate()

    await until(is_so)


async def hold(runs: LocalRuns, finalizer: str) -> None:
    patch: Raw = {"metadata": {"finalizers": [finalizer]}}
    await runs.cluster.patch(CONFIG_MAPS, "default", "run-1", patch)
