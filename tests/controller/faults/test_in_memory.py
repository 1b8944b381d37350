"""Whatever call of the operator fails, or is its last, every story ends as it does undisturbed.

A story is run once to count the operator's calls, and then again with a fault at each of them. To
the cluster an operator that dies before a write is one that died behind the write before it.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.operator.faultycluster import (
    CRASH_AFTER,
    LOST_ANSWER,
    LOST_REQUEST,
    Fault,
    at,
    at_write,
)
from support.operator.memorystage import run_in_memory
from support.operator.stories import STORIES
from support.runner.proofscope import sampled

from snaploom_operator.errors import ObjectChanged, ObjectRefused, TooManyRequests

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
