"""Whatever call of the operator fails, or is its last, one run is submitted and ends well.

The story is told once undisturbed, to count the operator's calls, and then again with a fault at
each of them: before it took effect, and behind.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.badapi import (
    CRASH_AFTER,
    CRASH_BEFORE,
    LOST_ANSWER,
    LOST_REQUEST,
    Fault,
    FaultyCluster,
    at,
    nothing,
)
from support.declarations import model, spoilt
from support.faultystore import Killed
from support.operatorharness import FakeHarness, condition, is_ready

from snaploom_operator.cluster.port import ChangeType
from snaploom_operator.cluster.resources import SPARK_APPLICATIONS
from snaploom_operator.errors import ClusterError, ObjectChanged, ObjectRefused, TooManyRequests
from snaploom_operator.workqueue import LONGEST_BACKOFF

WIDE = "OutputDataset/wide"
OUTPUT = spoilt(model()[-1], "spec.run", {"deletionPolicy": "Delete"})
FAULTS = [
    pytest.param(CRASH_BEFORE, id="crash before"),
    pytest.param(CRASH_AFTER, id="crash after"),
    pytest.param(LOST_REQUEST, id="request lost"),
    pytest.param(LOST_ANSWER, id="answer lost"),
    pytest.param(Fault(ObjectChanged("changed meanwhile")), id="conflict"),
    pytest.param(Fault(TooManyRequests("slow down", after=5)), id="too many"),
    pytest.param(Fault(ObjectRefused("a quota says no")), id="refused"),
]


class Story:
    """A model is applied, run and published, by operators that see a cluster with faults.

    Args:
        plans: what goes wrong with each operator; the next one begins where one died.
    """

    def __init__(self, *plans):
        self.plans = iter(plans)
        self.operators = []
        self.created = []
        self.harness = FakeHarness(through=self._through)
        self.harness.fake.subscribe(self._seen)

    def _through(self, cluster):
        self.operators.append(FaultyCluster(cluster, next(self.plans, nothing)))
        return self.operators[-1]

    def _seen(self, resource, change):
        if resource == SPARK_APPLICATIONS and change.type is ChangeType.ADDED:
            self.created.append(change.object["metadata"]["name"])

    async def tell(self):
        """The output as it is stored when it is Ready."""
        await self.harness.apply(*model()[:-1], OUTPUT)
        return await self._until(is_ready, self.harness.start)

    async def tell_the_end(self, plan):
        """Delete the output, and what it published; faults begin here."""
        before = len(self.operators[-1].calls)
        self.operators[-1].plan = lambda call: plan(replace(call, number=call.number - before))
        await self.harness.delete(WIDE)
        await self._until(lambda found: not found, self.harness.settle)
        return self.operators[0].calls[before:]

    async def _until(self, is_reached, begin):
        while True:
            try:
                await begin()
                return await self._go_on_until(is_reached)
            except (Killed, ClusterError):  # it died, or could not even begin
                begin = self.harness.restart

    async def _go_on_until(self, is_reached):
        for _ in range(10):
            await self.harness.settle()
            while await self.harness.double.step():
                await self.harness.settle()
            found = await self.harness.get(WIDE)
            if is_reached(found):
                return found
            await self.harness.advance(LONGEST_BACKOFF)
        raise AssertionError(f"it never ends: {found}")


@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_at_any_call_ends_in_one_run(fault):
    undisturbed = Story()
    wanted = await undisturbed.tell()
    calls = undisturbed.operators[0].calls
    assert [call.resource for call in calls if call.verb == "create"][-1] == SPARK_APPLICATIONS
    for number in range(1, len(calls) + 1):
        story = Story(at(number, fault))
        found = await story.tell()
        assert len(story.created) == 1, calls[number - 1]
        assert told(found) == told(wanted), calls[number - 1]


@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_at_any_call_of_a_deletion_ends_in_one_deletion(fault):
    undisturbed = Story()
    await undisturbed.tell()
    calls = await undisturbed.tell_the_end(nothing)
    assert len(undisturbed.created) == 2
    for number in range(1, len(calls) + 1):
        story = Story()
        await story.tell()
        await story.tell_the_end(at(number, fault))
        assert len(story.created) == 2, calls[number - 1]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=2, max_size=5))
async def test_operators_that_die_one_after_the_other_leave_one_run(deaths):
    crashes = [at(n, CRASH_AFTER if is_after else CRASH_BEFORE) for n, is_after in deaths]
    story = Story(*crashes)
    found = await story.tell()
    assert len(story.created) == 1
    assert (found["status"]["lastRun"]["phase"], found["status"]["snapshotCount"]) == (
        "Succeeded",
        1,
    )


def told(raw):
    """What a status says, without names and times, which differ with every story."""
    run = raw["status"]["lastRun"]
    ready = condition(raw, "Ready")
    return (
        ready["reason"],
        run["phase"],
        run["attempt"],
        "currentRun" in raw["status"],
        raw["status"]["snapshotCount"],
        raw["status"]["realised"],
    )
