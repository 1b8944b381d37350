"""The end of a run: report, application and driver show its outcome, and a lost run is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.operator.observations import (
    DECLARATIONS,
    RUN,
    a_report,
    a_run,
    an_application,
    current_of,
    decided,
    flying,
    last_of,
    phase_of,
    ready,
)

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, LastPhase
from snaploom_operator.objects import ApplicationState, DriverPod, FoundReport

State = ApplicationState


def test_end_with_a_report_is_evaluated_at_once() -> None:
    decision = decided(flying(a_run("Running"), an_application(State.COMPLETED), a_report()))
    last, status = last_of(decision), decision.status
    assert isinstance(status, OutputDatasetStatus)
    assert last is not None
    assert (last.id, last.phase, last.trigger.declarations) == (
        RUN,
        LastPhase.SUCCEEDED,
        DECLARATIONS,
    )
    assert status.current_run is None
    assert status.realised == DECLARATIONS
    assert status.latest_snapshot is not None
    assert (status.latest_snapshot.rows, status.snapshot_count) == (3, 1)
    assert status.manifest is not None
    assert ready(decision) == ("True", "Published")
    assert [note.reason for note in decision.notes] == ["RunSucceeded"]


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED])
def test_end_without_a_report_waits_for_it_a_minute(state: State) -> None:
    first = decided(flying(a_run("Running"), an_application(state)))
    current = current_of(first)
    assert current is not None
    assert (current.phase, current.waiting_for) == (CurrentPhase.ENDING, "the report of its job")
    assert first.requeue_after == pytest.approx(60)
    late = decided(flying(a_run("Ending", since=-61), an_application(state)))
    last = last_of(late)
    assert last is not None
    expected = LastPhase.SUCCEEDED if state is State.COMPLETED else LastPhase.FAILED
    assert last.phase is expected


@pytest.mark.parametrize(
    ("state", "phase", "outcome", "realised"),
    [
        pytest.param(State.COMPLETED, "SUCCEEDED", LastPhase.SUCCEEDED, True, id="both well"),
        pytest.param(State.FAILED, "SUCCEEDED", LastPhase.FAILED, False, id="it died afterwards"),
        pytest.param(State.COMPLETED, "FAILED", LastPhase.FAILED, False, id="as the report states"),
        pytest.param(State.FAILED, "FAILED", LastPhase.FAILED, False, id="both badly"),
        pytest.param(State.FAILED, "INTERRUPTED", LastPhase.FAILED, False, id="evicted"),
    ],
)
def test_run_failed_if_its_report_or_its_application_failed(
    state: State, phase: str, outcome: LastPhase, realised: bool
) -> None:
    decision = decided(flying(a_run("Running"), an_application(state), a_report(phase)))
    last, status = last_of(decision), decision.status
    assert isinstance(status, OutputDatasetStatus)
    assert last is not None
    assert last.phase is outcome
    assert (status.realised is not None) is realised
    assert status.latest_snapshot is not None  # publications in the report count


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(a_report(uid="another"), id="of a resource before it"),
        pytest.param(replace(a_report(), report=a_report(run="other").report), id="of another run"),
        pytest.param(FoundReport(RUN, None, "written by a newer Snaploom"), id="unreadable"),
    ],
)
def test_report_that_does_not_count_is_named_and_ignored(ignored: FoundReport) -> None:
    run = a_run("Ending", since=-61)
    decision = decided(flying(run, an_application(State.FAILED), ignored))
    last = last_of(decision)
    assert last is not None
    assert last.phase is LastPhase.FAILED
    assert "its report" in last.message
    status = decision.status
    assert isinstance(status, OutputDatasetStatus)
    assert status.latest_snapshot is None


def test_application_that_went_away_is_decided_by_its_report() -> None:
    last = last_of(decided(flying(a_run("Running"), None, a_report())))
    assert last is not None
    assert last.phase is LastPhase.SUCCEEDED


def test_application_that_went_away_without_a_report_is_lost_after_a_minute() -> None:
    assert phase_of(flying(a_run("Running"))) is CurrentPhase.ENDING
    last = last_of(decided(flying(a_run("Ending", since=-61))))
    assert last is not None
    assert (last.phase, last.reason, last.retryable) == (LastPhase.LOST, "RunLost", True)


THERE = "driver pod ods-driver already exists"


@pytest.mark.parametrize(
    ("pod", "phase"),
    [
        pytest.param("Running", CurrentPhase.RUNNING, id="at work"),
        pytest.param("Pending", CurrentPhase.SUBMITTED, id="about to start"),
    ],
)
def test_failure_does_not_count_while_the_driver_of_an_earlier_submission_runs(
    pod: str, phase: CurrentPhase
) -> None:
    failed = an_application(State.FAILED, message=THERE)
    decision = decided(flying(a_run(), failed, pod=DriverPod("ods-driver", RUN, pod, "")))
    current = current_of(decision)
    assert current is not None
    assert current.phase is phase
    assert "earlier submission" in (current.waiting_for or "")


def test_driver_of_an_earlier_submission_decides_when_it_has_ended() -> None:
    failed = an_application(State.FAILED, message=THERE)
    pod = DriverPod("ods-driver", RUN, "Succeeded", "")
    last = last_of(decided(flying(a_run(), failed, a_report(), pod)))
    assert last is not None
    assert last.phase is LastPhase.SUCCEEDED


def test_failure_because_of_a_missing_pod_counts_after_a_minute() -> None:
    failed = an_application(State.FAILED, message=THERE)
    assert phase_of(flying(a_run(), failed)) is CurrentPhase.ENDING
    assert last_of(decided(flying(a_run("Ending", since=-61), failed))) is not None


def test_times_that_cannot_be_read_are_long_ago() -> None:
    run = a_run("Ending").model_copy(update={"since": "yesterday"})
    assert last_of(decided(flying(run, an_application(State.FAILED)))) is not None
