"""Stopping a run: the intention is written first, then what it left is cleared away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.operator.observations import (
    RUN,
    a_report,
    a_run,
    an_application,
    an_output,
    conditions_of,
    current_of,
    decided,
    flying,
    last_of,
    observing,
    phase_of,
    ready,
    with_status,
)

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, CurrentRun, LastPhase
from snaploom_operator.decision import Delete, ObservedOutput
from snaploom_operator.objects import ANNOTATION_PAUSED, ApplicationState

State = ApplicationState


def stopped(observed: ObservedOutput) -> str | None:
    decision = decided(observed)
    current = current_of(decision)
    assert not decision.actions  # the intention is written first
    return current.stopping if current is not None else None


@pytest.mark.parametrize(
    ("run", "state", "settings", "reason"),
    [
        pytest.param(a_run(since=-601), State.SUBMITTED, {}, "StartTimeout", id="never started"),
        pytest.param(a_run(since=-599), State.SUBMITTED, {}, None, id="may still start"),
        pytest.param(
            a_run("Running", since=-61), State.RUNNING, {"activeDeadlineSeconds": 60},
            "DeadlineExceeded", id="too long",
        ),
        pytest.param(
            a_run("Running", since=-59), State.RUNNING, {"activeDeadlineSeconds": 60}, None,
            id="long",
        ),
        pytest.param(a_run("Running", since=-9000), State.RUNNING, {}, None, id="no limit"),
        pytest.param(a_run(since=9000), State.SUBMITTED, {}, None, id="a clock was set back"),
    ],
)  # fmt: skip
def test_run_is_stopped_when_it_takes_too_long(
    run: CurrentRun, state: State, settings: dict[str, Any], reason: str | None
) -> None:
    assert stopped(flying(run, an_application(state), **settings)) == reason


@pytest.mark.parametrize(("policy", "reason"), [("Forbid", None), ("Replace", "RunStopped")])
def test_newer_run_replaces_the_one_in_flight_only_where_that_is_declared(
    policy: str, reason: str | None
) -> None:
    observed = flying(a_run("Running"), an_application(State.RUNNING), concurrencyPolicy=policy)
    assert stopped(observed) is None
    assert stopped(replace(observed, declarations="others")) == reason


def test_suspended_resource_lets_the_run_in_flight_go_on() -> None:
    observed = flying(
        a_run("Running"), an_application(State.RUNNING), concurrencyPolicy="Replace", suspend=True
    )
    assert stopped(replace(observed, declarations="others")) is None
    decision = decided(observed)
    assert ready(decision) == ("False", "RunRunning")
    assert conditions_of(decision)["Suspended"] == ("True", "Suspended")


def test_run_that_is_being_stopped_is_deleted_and_ends_when_it_is_gone() -> None:
    run = a_run("Ending", stopping="StartTimeout", waiting_for="ImagePullBackOff")
    (deletion,) = decided(flying(run, an_application())).actions
    assert isinstance(deletion, Delete)
    assert (deletion.resource.kind, deletion.name, deletion.uid) == (
        "SparkApplication",
        RUN,
        "application-1",
    )
    assert not decided(flying(run, an_application(is_deleting=True))).actions
    last = last_of(decided(flying(run)))
    assert last is not None
    assert (last.phase, last.reason, last.retryable) == (LastPhase.FAILED, "StartTimeout", True)
    assert "ImagePullBackOff" in last.message


def test_run_that_ends_well_while_it_is_being_stopped_has_ended_well() -> None:
    run = a_run("Ending", stopping="DeadlineExceeded")
    last = last_of(decided(flying(run, an_application(State.COMPLETED), a_report())))
    assert last is not None
    assert last.phase is LastPhase.SUCCEEDED


def test_replaced_run_makes_way_for_the_newer_one() -> None:
    run = a_run("Ending", stopping="RunStopped")
    decision = decided(replace(flying(run), declarations="others"))
    last = last_of(decision)
    assert last is not None
    assert (last.phase, last.retryable) == (LastPhase.STOPPED, False)
    following = with_status(flying(run), current_run=None, last_run=last)
    current = current_of(decided(replace(following, declarations="others")))
    assert current is not None
    assert current.trigger.declarations == "others"


def test_paused_resource_is_followed_and_not_acted_on() -> None:
    paused = {ANNOTATION_PAUSED: "true"}
    status = OutputDatasetStatus(current_run=a_run("Submitting"))
    assert not decided(an_output(status, paused)).actions
    late = OutputDatasetStatus(current_run=a_run(since=-9000))
    observed = observing(an_output(late, paused), applications=(an_application(),))
    assert stopped(observed) is None
    running = observing(observed, applications=(an_application(State.RUNNING),))
    assert phase_of(running) is CurrentPhase.RUNNING


def test_run_that_is_being_stopped_waits_while_paused() -> None:
    status = OutputDatasetStatus(current_run=a_run("Ending", stopping="StartTimeout"))
    paused = an_output(status, {ANNOTATION_PAUSED: "true"})
    assert not decided(observing(paused, applications=(an_application(),))).actions
