"""Whatever happens in whatever order: one application at a time, one a run, each trigger once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.operator.runsimulator import Simulator
from support.runner.quick import examples

from snaploom.models.common import ConditionStatus
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import LastPhase
from snaploom_operator.conditions import ConditionType
from snaploom_operator.objects import ApplicationState

Event = Callable[[Simulator], None]
SECONDS = [1, 31, 61, 601, 4_000]
PASSING = [state for state in ApplicationState if not state.is_terminal and state is not state.NEW]


def waits(seconds: int) -> Event:
    return lambda world: world.pass_time(seconds)


def becomes(**values: object) -> Event:
    return lambda world: [setattr(world, name, value) for name, value in values.items()] and None


def turns(state: ApplicationState) -> Event:
    return lambda world: world.to_state(state)


def suspends(suspend: bool) -> Event:
    return lambda world: world.run.update(suspend=suspend)


def ends(phase: str, reported: bool, retryable: bool, reason: str) -> Event:
    failure = {"reason": reason, "retryable": retryable} if phase == "FAILED" else {}
    return lambda world: world.end(phase, reported=reported, **failure)


EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from(SECONDS).map(waits),
    st.integers(0, 2).map(lambda n: becomes(declarations=f"declarations-{n}")),
    st.integers(0, 2).map(lambda n: becomes(upstream=f"upstream-{n}" if n else "")),
    st.integers(0, 2).map(lambda n: becomes(token=f"token-{n}" if n else "")),
    st.booleans().map(lambda slot: becomes(has_slot=slot)),
    st.integers(0, 4).map(lambda n: becomes(writes_until_crash=n)),
    st.just(becomes(sees_applications=False)),
    st.booleans().map(suspends),
    st.sampled_from(PASSING).map(turns),
    st.builds(
        ends,
        st.sampled_from(["SUCCEEDED", "FAILED"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["SourceNotReadable", "Invalid"]),
    ),
    st.just(Simulator.remove_application),
    st.just(Simulator.recreate_application),
)
RUNS = st.fixed_dictionaries(
    {"concurrencyPolicy": st.sampled_from(["Forbid", "Replace"])},
    optional={
        "schedule": st.just({"cron": "*/5 * * * *"}),
        "activeDeadlineSeconds": st.just(300),
        "historyLimit": st.just({"successful": 1, "failed": 0}),
        "deletionPolicy": st.just("Delete"),
    },
)


def lived(run: dict[str, object], events: list[Event]) -> Simulator:
    """A resource after events; what must hold always is looked at after each of them."""
    world = Simulator(run=dict(run))
    world.settle()
    for event in events:
        event(world)
        world.look()
        world.sees_applications = True
        world.look()
        assert len(world.in_flight) <= 1
        names = [application.name for application in world.created]
        assert len(set(names)) == len(names)
        assert_conditions(world.status)
    return world


def quieten(world: Simulator) -> None:
    """Nothing happens any more but that runs end well."""
    world.has_slot, world.writes_until_crash = True, None
    world.run.update(suspend=False)
    world.run.pop("schedule", None)
    for _ in range(8):
        world.pass_time(4_000)
        world.settle()
        world.end()
        world.settle()


def assert_conditions(status: OutputDatasetStatus | None) -> None:
    if status is None:
        return  # it died before the first status
    conditions = {condition.type: condition for condition in status.conditions}
    assert ConditionType.READY in conditions
    assert not {ConditionType.RECONCILING, ConditionType.STALLED} <= conditions.keys()
    if conditions[ConditionType.READY].status is ConditionStatus.TRUE:
        assert not {ConditionType.RECONCILING, ConditionType.STALLED} & conditions.keys()


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(RUNS, st.lists(EVENTS, max_size=25))
def test_in_any_order_every_trigger_is_answered_and_then_there_is_silence(
    run: dict[str, object], events: list[Event]
) -> None:
    world = lived(run, events)
    quieten(world)
    assert not world.in_flight
    assert world.status is not None
    last = world.status.last_run
    assert last is not None
    refused = last.phase is LastPhase.FAILED and not last.retryable
    assert refused or world.status.realised == world.declarations
    assert last.trigger.declarations == world.declarations
    assert world.upstream in ("", last.trigger.upstream)
    assert world.token in ("", last.trigger.token)
    runs = len(world.created)
    world.pass_time(100_000)
    world.settle()
    assert len(world.created) == runs


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(RUNS, st.lists(EVENTS, max_size=25))
def test_in_any_order_no_trigger_is_answered_twice(
    run: dict[str, object], events: list[Event]
) -> None:
    world = lived(run, events)
    for earlier, later in pairwise(world.created):
        is_retry = later.attempt == earlier.attempt + 1
        assert later.trigger != earlier.trigger or is_retry


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(EVENTS, max_size=15))
def test_status_that_is_lost_starts_no_second_application(events: list[Event]) -> None:
    world = lived({}, events)
    before = len(world.in_flight)
    world.status, world.writes_until_crash = None, None
    world.settle()
    assert len(world.in_flight) == before or not before
    assert len(world.in_flight) <= 1
