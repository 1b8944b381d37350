"""Two operators that both believe to lead: a leader that was paused wakes, and does no harm."""

from __future__ import annotations

import asyncio

import pytest
from support.declared.declarations import Raw, model
from support.operator.faultycluster import Fault, FaultyCluster, Gate, nth
from support.operator.operatorharness import NAMESPACE, FakeHarness, is_ready, started

from snaploom_operator.cluster.port import (
    CONFIG_MAPS,
    OURS,
    SPARK_APPLICATIONS,
    ApiResource,
)

WIDE = "OutputDataset/wide"
OUTPUTS = OURS["OutputDataset"]
STATUS = "status"
DEADLINE = 30.0
"""Seconds within which a leader has reached the write; it takes milliseconds."""


def status_of(stored: Raw) -> Raw:
    """The status, without the times at which conditions changed."""
    status: Raw = stored[STATUS]
    return status


PLACES = [
    ("patch", OUTPUTS, 1),
    ("patch", OUTPUTS, 2),
    ("create", CONFIG_MAPS, 1),
    ("create", SPARK_APPLICATIONS, 1),
]
each_place = pytest.mark.parametrize(("verb", "resource", "number"), PLACES)


async def paused(verb: str, resource: ApiResource, number: int) -> PausedLeader:
    """A leader that stands still before a write, and by then knows of a model with an output."""
    gate = Gate()
    plan = nth(number, Fault(gate=gate), verb=verb, kind=resource.kind)
    harness = await started(*model(), through=lambda inner: FaultyCluster(inner, plan))
    working = asyncio.create_task(harness.settle())
    async with asyncio.timeout(DEADLINE):  # a leader that never writes it would never stand still
        await gate.reached.wait()
    # It hears nothing any more while it stands still.
    harness.kill()
    return PausedLeader(harness, gate, working)


class PausedLeader:
    """A leader that stands still in the middle of a pass."""

    def __init__(self, harness: FakeHarness, gate: Gate, working: asyncio.Task[int]) -> None:
        self.harness = harness
        self._gate = gate
        self._working = working

    async def wake(self) -> None:
        """Continue with the state that it had, and observe everything once more."""
        self._gate.opened.set()
        await self._working
        self.harness.operator.queue.add_all(self.harness.operator.store.refs())
        await self.harness.settle()


@each_place
async def test_a_leader_that_wakes_after_the_run_starts_no_second_one(verb, resource, number):
    former = await paused(verb, resource, number)
    leader = await started(cluster=former.harness.fake)
    ended = await leader.wait_for(WIDE, is_ready)
    applications = [each["metadata"]["uid"] for each in await leader.all(SPARK_APPLICATIONS)]
    await former.wake()
    await leader.settle()
    left = [each["metadata"]["uid"] for each in await leader.all(SPARK_APPLICATIONS)]
    assert left == applications
    assert len(left) == 1
    assert status_of(await leader.get(WIDE)) == status_of(ended)


@each_place
async def test_a_leader_that_wakes_in_the_middle_of_the_run_does_no_harm(verb, resource, number):
    former = await paused(verb, resource, number)
    leader = await started(cluster=former.harness.fake)
    await leader.settle()
    await former.wake()
    ended = await leader.wait_for(WIDE, is_ready)
    assert len(await leader.all(SPARK_APPLICATIONS)) == 1
    assert ended[STATUS]["lastRun"]["phase"] == "Succeeded"
    assert ended[STATUS]["lastRun"]["attempt"] == 0


async def test_a_leader_that_wakes_does_not_bring_back_an_older_spec() -> None:
    former = await paused("patch", OUTPUTS, 2)
    leader = await started(cluster=former.harness.fake)
    changed = [*model()]
    changed[-1]["spec"]["run"] = {"suspend": True}
    await leader.apply(changed[-1])
    await leader.settle()
    newer = await leader.get(WIDE)
    await former.wake()
    await leader.settle()
    assert (await leader.get(WIDE))[STATUS] == newer[STATUS]
    assert (await leader.get(WIDE))["spec"] == newer["spec"]


async def test_an_application_that_comes_after_its_run_was_deleted_is_deleted_again() -> None:
    former = await paused("create", SPARK_APPLICATIONS, 1)
    leader = await started(cluster=former.harness.fake)
    ended = await leader.wait_for(WIDE, is_ready)
    (application,) = await leader.all(SPARK_APPLICATIONS)
    gone = application["metadata"]
    await leader.fake.delete(SPARK_APPLICATIONS, NAMESPACE, gone["name"], uid=gone["uid"])
    await leader.settle()
    former.harness.clock.elapsed += 60
    await former.wake()
    await leader.settle()
    assert await leader.all(SPARK_APPLICATIONS) == []
    assert status_of(await leader.get(WIDE)) == status_of(ended)
