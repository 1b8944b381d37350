"""Whatever call of the operator fails, or is its last, every story ends as it does undisturbed.

A story is run once to count the operator's calls, and then again with a fault at each of them. To
the cluster an operator that dies before a write is one that died behind the write before it.
"""

from collections.abc import Iterable
from typing import Any

import pytest
import yaml
from controller.faults.stories import STORIES, Ending, Story, ending
from hypothesis import given, settings
from hypothesis import strategies as st
from support.operator.fakecluster import ChangeType, FakeCluster
from support.operator.faultycluster import (
    CRASH_AFTER,
    LOST_ANSWER,
    LOST_REQUEST,
    Fault,
    FaultyCluster,
    Plan,
    at,
    at_write,
    nothing,
)
from support.operator.jobdouble import JobDouble
from support.operator.operatorharness import FakeHarness, Predicate
from support.runner.proofscope import sampled
from support.storage.faultystore import Killed

from snaploom_operator.cluster.port import OURS, SPARK_APPLICATIONS
from snaploom_operator.errors import ClusterError, ObjectChanged, ObjectRefused, TooManyRequests

Raw = dict[str, Any]
ROUND = 60.0
"""Seconds that pass when nothing else happens: what failed is tried again after some of them."""
MOST_ROUNDS = 60


class MemoryStage(FakeHarness):
    """Operators one after the other; the next begins where one died.

    Args:
        story: what is to be run.
        plans: what goes wrong with each operator; nothing with those that follow.
    """

    def __init__(self, story: Story, plans: Iterable[Plan] = ()) -> None:
        self._plans = iter(plans)
        self.operators: list[FaultyCluster] = []
        self.created: list[str] = []
        super().__init__(
            through=self._seen_by_next,
            double=lambda cluster: JobDouble(cluster, story.script()),
        )
        self.fake.subscribe(self._note)

    def _seen_by_next(self, cluster: FakeCluster) -> FaultyCluster:
        self.operators.append(FaultyCluster(cluster, next(self._plans, nothing)))
        return self.operators[-1]

    def _note(self, resource: Any, change: Any) -> None:
        if resource == SPARK_APPLICATIONS and change.type is ChangeType.ADDED:
            self.created.append(change.object["metadata"]["name"])

    async def begin(self) -> None:
        """Start the first operator; where it dies at once, those that follow."""
        await self._outliving(self.start())

    async def lose_status(self, identity: str) -> None:
        kind, _, name = identity.partition("/")
        patch = {"status": None}
        await self.fake.patch(OURS[kind], self.namespace, name, patch, subresource="status")

    async def pass_time(self, seconds: float) -> None:
        self.clock.elapsed += seconds  # at once: jobs are to be played on the way of nothing
        await self._outliving(self.settle())

    async def restart(self) -> None:
        await self._outliving(super().restart())

    def release(self) -> None:
        self.double.release()

    async def wait_for(self, identity: str, predicate: Predicate) -> Raw:
        for _ in range(MOST_ROUNDS):
            moved = True
            while moved:
                await self._outliving(self.settle())
                found = await self.get(identity)
                if predicate(found):
                    return found
                moved = await self.double.step()
            await self.pass_time(ROUND)
        raise AssertionError(f"{identity} never is as it should be: {yaml.safe_dump(found)}")

    async def _outliving(self, work: Any) -> None:
        """Await some work of the operator; where it dies of it, start another one."""
        while work is not None:
            try:
                await work
            except (Killed, ClusterError):
                work = super().restart()
            else:
                work = None


async def run_in_memory(story: Story, *plans: Plan) -> tuple[Ending, MemoryStage]:
    stage = MemoryStage(story, plans)
    await stage.begin()
    await story.steps(stage)
    await stage.pass_time(ROUND)
    return await ending(story, stage, stage.created), stage


FAULTS = {
    "request lost": LOST_REQUEST,
    "answer lost": LOST_ANSWER,
    "conflict": Fault(ObjectChanged("changed meanwhile")),
    "too many": Fault(TooManyRequests("slow down", after=5)),
    "refused": Fault(ObjectRefused("a quota refuses")),
}
each_story = pytest.mark.parametrize("name", STORIES)


@each_story
async def test_undisturbed_there_is_one_application_a_run(name):
    ended, _ = await run_in_memory(STORIES[name])
    assert ended.runs == ended.names == STORIES[name].runs


@each_story
async def test_operator_that_dies_behind_any_write_changes_no_end(name):
    story = STORIES[name]
    wanted, stage = await run_in_memory(story)
    writes, lives = stage.operators[0].writes, len(stage.operators)
    for number, call in enumerate(writes, start=1):
        ended, stage = await run_in_memory(story, at_write(number, CRASH_AFTER))
        assert len(stage.operators) == lives + 1, call
        assert ended == wanted, call


@each_story
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_at_any_call_changes_no_end(name, fault):
    story = STORIES[name]
    wanted, stage = await run_in_memory(story)
    for call in sampled(stage.operators[0].calls, 1):
        ended, _ = await run_in_memory(story, at(call.number, FAULTS[fault]))
        assert ended == wanted, call


@settings(max_examples=8)
@given(st.sampled_from(sorted(STORIES)), st.lists(st.integers(1, 30), min_size=2, max_size=5))
async def test_operators_that_die_one_after_the_other_change_no_end(name, deaths):
    ended, _ = await run_in_memory(
        STORIES[name], *(at_write(number, CRASH_AFTER) for number in deaths)
    )
    assert ended.runs == ended.names == STORIES[name].runs
